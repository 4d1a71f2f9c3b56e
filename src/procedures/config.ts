/** Where programs of other people are looked for. */
export function readProgramPath(): readonly string[] {
  return (process.env["PATH"] ?? "").split(":").filter((folder) => folder !== "");
}
