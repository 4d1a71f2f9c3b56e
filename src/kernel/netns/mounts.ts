import { mkdirSync, readFileSync } from "node:fs";
import { kernelError } from "../errors.ts";
import { mount, unmount } from "../sys.ts";
import type { MountedFileSystem, MountsPort } from "./mounts-port.ts";

export function realMounts(): MountsPort {
  const mounted = () => readMounts(readFileSync("/proc/self/mountinfo", "utf8"));
  const at = (path: string) => mounted().findLast((found) => found.path === path);
  return {
    mounted,
    ensure: (type, path) => {
      if (at(path)?.type === type) return false;
      try {
        mkdirSync(path, { recursive: true });
      } catch (error) {
        throw kernelError(`making ${path}`, (error as NodeJS.ErrnoException).code ?? "EIO");
      }
      mount(type, path, type);
      return true;
    },
    unmount: (path) => {
      if (!at(path)) return false;
      unmount(path);
      return true;
    },
  };
}

/** Lines of mountinfo: numbers, the mounted root, the path, options, how it propagates, a dash, the type. Spaces in paths are written as octal numbers. */
function readMounts(text: string): MountedFileSystem[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const fields = line.split(" ");
      const dash = fields.indexOf("-");
      return {
        path: unescaped(fields[4] ?? ""),
        root: unescaped(fields[3] ?? ""),
        type: fields[dash + 1] ?? "",
        propagates: fields.slice(6, dash).some((field) => /^(shared|master):/.test(field)),
      };
    });
}

function unescaped(text: string): string {
  return text.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
}
