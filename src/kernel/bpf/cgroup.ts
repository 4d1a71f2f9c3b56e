/** Groups of processes of the unified hierarchy, at which socket programs are attached. */
import { mkdirSync, rmdirSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { kernelError } from "../errors.ts";
import type { MountsPort } from "../netns/mounts-port.ts";
import type { AttachType } from "./bpf-constants.ts";
import type { BpfLink, BpfPort, BpfProgram } from "./bpf-port.ts";

export interface CgroupPort {
  /** Where the unified hierarchy is mounted, or undefined: hybrid systems have it in addition to the old ones. */
  root(): string | undefined;
  create(path: string): void;
  /** The kernel's number for the cgroup, as in its links. */
  id(path: string): bigint;
  /** It must have no processes any more. */
  remove(path: string): boolean;
  move(path: string, process: number): void;
  /** Attaches each program to its hook, or none: a node with half its hooks would translate one way and not back. */
  attach(path: string, programs: readonly SocketProgram[]): Promise<BpfLink[]>;
}

const CGROUP2_MAGIC = 0x63677270;

export type SocketProgram = readonly [AttachType, BpfProgram];

export function realCgroup(mounts: MountsPort, bpf: BpfPort): CgroupPort {
  return {
    root: () => mounts.mounted().find(({ type }) => type === "cgroup2")?.path,
    create: (path) => inFileSystem(`cgroup ${path}`, () => void mkdirSync(path, { recursive: true })),
    id: (path) => {
      const { type, ino } = inFileSystem(`cgroup ${path}`, () => ({
        type: statfsSync(path).type,
        ino: statSync(path, { bigint: true }).ino,
      }));
      // An empty directory is left where the hierarchy was unmounted: its number would be taken for another cgroup's.
      if (type !== CGROUP2_MAGIC) throw kernelError(`cgroup ${path}`, "EOPNOTSUPP", "no cgroup2 is mounted there");
      return ino;
    },
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
    attach: (path, programs) => attachAll(bpf, path, programs),
    move: (path, process) =>
      inFileSystem(`moving ${process} to ${path}`, () => writeFileSync(`${path}/cgroup.procs`, String(process))),
  };
}

function inFileSystem<T>(operation: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw kernelError(operation, (error as NodeJS.ErrnoException).code ?? "EIO");
  }
}

async function attachAll(bpf: BpfPort, path: string, programs: readonly SocketProgram[]): Promise<BpfLink[]> {
  const links: BpfLink[] = [];
  try {
    for (const [type, program] of programs) links.push(bpf.attachCgroup(program, path, type));
    return links;
  } catch (error) {
    await Promise.all(links.map((link) => link.close()));
    throw error;
  }
}
