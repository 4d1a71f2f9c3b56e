import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A program of this folder, compiled as the shipped ones are. Debian keeps the headers of the kernel's processor in a folder of its own. */
export function compile(name: string, ...defines: string[]): Buffer {
  const directory = mkdtempSync(join(tmpdir(), "vt-bpf-"));
  const object = join(directory, "out.o");
  const processor = process.arch === "arm64" ? "aarch64" : "x86_64";
  try {
    const headers = [`-I/usr/include/${processor}-linux-gnu`, `-I${join(import.meta.dirname, "../../bpf")}`];
    const flags = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", ...headers];
    const source = join(import.meta.dirname, "programs", `${name}.bpf.c`);
    execFileSync("clang", [...flags, ...defines.map((define) => `-D${define}`), "-c", source, "-o", object]);
    return readFileSync(object);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
