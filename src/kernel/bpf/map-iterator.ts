import { close as closeInPool, read } from "node:fs";
import { promisify } from "node:util";
import { kernelError } from "../errors.ts";
import { close, errnoName } from "../sys.ts";
import { Attr } from "./bpf-attr.ts";
import { ATTACH_TYPES } from "./bpf-constants.ts";
import type { BpfMap, BpfProgram, MapIterator } from "./bpf-port.ts";

const readAsync = promisify(read);
const closeAsync = promisify(closeInPool);
/** Our programs write nothing; the kernel wants room for what one might. */
const ROOM = 4096;

/** A program that the kernel calls with every entry of a map. All but opening it is off the event loop: a million entries take half a second. */
export function openMapIterator(program: BpfProgram, map: BpfMap): MapIterator {
  const target = Buffer.alloc(16);
  target.writeUInt32LE(map.fd);
  const link = new Attr()
    .u32(0, program.fd)
    .u32(8, ATTACH_TYPES.traceIter)
    .pointer(16, target)
    .u32(24, target.length)
    .must(`iterator over map ${map.info.name}`, "linkCreate", 48);
  return {
    async run() {
      const run = await new Attr().u32(0, link).callAsync("iterCreate", 8);
      if (run < 0) throw kernelError(`run of the iterator over map ${map.info.name}`, errnoName(run));
      try {
        await readToEnd(run);
      } finally {
        await closeAsync(run);
      }
    },
    close: () => close(link),
  };
}

async function readToEnd(fd: number): Promise<void> {
  const room = Buffer.alloc(ROOM);
  for (;;) {
    try {
      const { bytesRead } = await readAsync(fd, room, 0, room.length, null);
      if (bytesRead === 0) return;
    } catch (error) {
      // After a million entries that wrote nothing the kernel wants to be asked again: it goes on from there.
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
}
