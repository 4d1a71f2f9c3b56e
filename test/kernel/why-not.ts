import { existsSync } from "node:fs";

/** Why stories that need the kernel cannot run here; undefined when they can. */
export function whyNoKernel(): string | undefined {
  if (process.platform !== "linux") return "needs Linux";
  if (process.getuid?.() !== 0) return "needs root";
  return undefined;
}

const CLANG = ["/usr/bin", "/usr/local/bin"].map((directory) => `${directory}/clang`);

export function whyNoClang(): string | undefined {
  return whyNoKernel() ?? (CLANG.some(existsSync) ? undefined : "needs clang");
}
