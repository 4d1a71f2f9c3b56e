/**
 * A path without the links every system has to absolute paths: followed from outside the root they are in, they would lead to our own files.
 */
export function withoutLinks(path: string): string {
  return path.replace(/^\/var\/(run|lock)(?=\/|$)/, (_, name: string) => (name === "run" ? "/run" : "/run/lock"));
}
