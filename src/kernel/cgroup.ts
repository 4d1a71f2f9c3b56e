/** Groups of processes of the unified hierarchy, at which socket programs are attached. */
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import type { AttachType } from "./bpf-constants.ts";
import type { BpfLink, BpfPort, BpfProgram } from "./bpf-port.ts";
import { errors, kernelError } from "./errors.ts";
import type { MountsPort } from "./mounts-port.ts";

export interface CgroupPort {
  /** Where the unified hierarchy is mounted, or undefined: hybrid systems have it beside the old ones. */
  root(): string | undefined;
  create(path: string): void;
  /** It must have no processes any more. */
  remove(path: string): boolean;
  move(path: string, process: number): void;
}

export function realCgroup(mounts: MountsPort): CgroupPort {
  return {
    root: () => mounts.mounted().find(({ type }) => type === "cgroup2")?.path,
    create: (path) => inFileSystem(`cgroup ${path}`, () => void mkdirSync(path, { recursive: true })),
    remove: (path) => {
      try {
        rmdirSync(path);
        return true;
      } catch (error) {
        const errno = (error as NodeJS.ErrnoException).code ?? "EIO";
        if (errno === "ENOENT") return false;
        throw kernelError(`removing cgroup ${path}`, errno);
      }
    },
    move: (path, process) =>
      inFileSystem(`moving ${process} to ${path}`, () => writeFileSync(`${path}/cgroup.procs`, String(process))),
  };
}

function inFileSystem(operation: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    throw kernelError(operation, (error as NodeJS.ErrnoException).code ?? "EIO");
  }
}

/** Attaches each program to its hook, or none: a node with half its hooks would translate one way and not back. */
export async function attachSocketPrograms(
  bpf: BpfPort,
  directory: string,
  programs: readonly (readonly [AttachType, BpfProgram])[],
): Promise<BpfLink[]> {
  const links: BpfLink[] = [];
  try {
    for (const [type, program] of programs) links.push(bpf.attachCgroup(program, directory, type));
    return links;
  } catch (error) {
    await Promise.all(links.map((link) => link.close()));
    throw error instanceof Error ? error : errors.KERNEL_BAD_VALUE("an error", String(error));
  }
}
