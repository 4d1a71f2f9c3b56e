import { errors, KernelError, kernelError } from "../errors.ts";
import { close, errnoName, type Fd } from "../sys.ts";
import { Attr } from "./bpf-attr.ts";
import { ATTACH_TYPES, nameOf, PROGRAM_TYPES } from "./bpf-constants.ts";
import { pinAt, textAt } from "./bpf-map.ts";
import type { BpfProgram, ProgramInfo, ProgramSize, ProgramSpec, TestResult, TestRun } from "./bpf-port.ts";
import { kernelBtf } from "./kernel-btf.ts";

/** Asked for in turn: old kernels refuse to load, and keep the useless beginning, when the log does not fit. */
const LOG_SIZES = [1 << 16, 1 << 20, 1 << 24];
const LOG_LINES_SHOWN = 24;
/** What an iterator over a map is attached to: a function of the kernel that is there for its type. */
export const MAP_ITERATOR = "bpf_iter_bpf_map_elem";
/** Loading is interrupted by signals and then wants to be asked again. */
const LOAD_ATTEMPTS = 5;

export class KernelProgram implements BpfProgram {
  readonly fd: Fd;
  readonly info: ProgramInfo;

  constructor(fd: Fd, info: ProgramInfo) {
    this.fd = fd;
    this.info = info;
  }

  testRun({ packet, context, repeat = 1 }: TestRun): TestResult {
    // Space for what a program may add in front: tunnel headers are 50 to 70 bytes.
    const packetOut = Buffer.alloc(packet.length + 256);
    const contextOut = context && Buffer.alloc(context.length);
    const attr = new Attr()
      .u32(0, this.fd)
      .u32(8, packet.length)
      .u32(12, packetOut.length)
      .pointer(16, packet)
      .pointer(24, packetOut)
      .u32(32, repeat);
    if (context && contextOut) {
      attr.u32(40, context.length).u32(44, contextOut.length).pointer(48, context).pointer(56, contextOut);
    }
    attr.must(`test run of program ${this.info.name}`, "testRun", 80);
    return {
      verdict: attr.bytes.readInt32LE(4),
      nanoseconds: attr.read(36),
      packet: packetOut.subarray(0, attr.read(12)),
      context: contextOut,
    };
  }

  size(): ProgramSize {
    const info = rawInfo(this.fd);
    return { instructions: info.readUInt32LE(20) / 8, nativeBytes: info.readUInt32LE(16) };
  }

  pin(path: string): void {
    pinAt(this.fd, path);
  }

  close(): void {
    close(this.fd);
  }
}

export function loadProgram(spec: ProgramSpec): BpfProgram {
  const result = tryToLoad(spec, undefined);
  if (result >= 0) return new KernelProgram(result, readProgramInfo(result));
  for (const size of LOG_SIZES) {
    const log = Buffer.alloc(size);
    const again = tryToLoad(spec, log);
    if (again >= 0) return new KernelProgram(again, readProgramInfo(again));
    if (errnoName(again) === "ENOSPC" && size !== LOG_SIZES.at(-1)) continue;
    const errno = errnoName(result);
    const text = logTail(log);
    // Without a log it was not the verifier that said no.
    if (text === "") throw kernelError(`program ${spec.name}`, errno);
    throw new KernelError(errors.KERNEL_PROGRAM_REFUSED(spec.name, errno, text), errno);
  }
  throw kernelError(`program ${spec.name}`, errnoName(result));
}

function tryToLoad(spec: ProgramSpec, log: Buffer | undefined): number {
  const attr = new Attr()
    .u32(0, PROGRAM_TYPES[spec.type])
    .u32(4, spec.instructions.length / 8)
    .pointer(8, spec.instructions)
    .path(16, spec.license ?? "GPL")
    .name(48, spec.name)
    .u32(68, spec.attachType ? ATTACH_TYPES[spec.attachType] : 0);
  if (spec.attachType === "traceIter") attr.u32(108, kernelBtf()?.functionId(MAP_ITERATOR) ?? 0);
  if (log) attr.u32(24, 1).u32(28, log.length).pointer(32, log);
  if (spec.types) {
    const { btf, functions, lines } = spec.types;
    attr.u32(72, btf);
    attr.u32(76, functions.recordSize).pointer(80, functions.bytes);
    attr.u32(88, functions.bytes.length / functions.recordSize);
    attr.u32(92, lines.recordSize).pointer(96, lines.bytes);
    attr.u32(104, lines.bytes.length / lines.recordSize);
  }
  for (let attempt = 1; ; attempt++) {
    const result = attr.call("programLoad", 128);
    if (result >= 0 || errnoName(result) !== "EAGAIN" || attempt === LOAD_ATTEMPTS) return result;
  }
}

export function loadBtf(bytes: Uint8Array): Fd {
  const result = new Attr().pointer(0, bytes).u32(16, bytes.length).call("btfLoad", 32);
  if (result >= 0) return result;
  const log = Buffer.alloc(LOG_SIZES[1]!);
  const attr = new Attr().pointer(0, bytes).pointer(8, log).u32(16, bytes.length).u32(20, log.length).u32(24, 1);
  const again = attr.call("btfLoad", 32);
  if (again >= 0) return again;
  throw new KernelError(errors.KERNEL_BTF_REFUSED(errnoName(result), logTail(log)), errnoName(result));
}

/** The end of a log is where the reason is; what was left out is counted. */
function logTail(log: Buffer): string {
  const end = log.indexOf(0);
  const lines = log
    .toString("latin1", 0, end < 0 ? log.length : end)
    .split("\n")
    .filter((line) => line !== "" && !/^processed \d+ insns/.test(line));
  const left = lines.length - LOG_LINES_SHOWN;
  return [...(left > 0 ? [`(${left} lines before)`] : []), ...lines.slice(-LOG_LINES_SHOWN)].join("\n");
}

export function readProgramInfo(fd: Fd): ProgramInfo {
  const info = rawInfo(fd);
  return {
    type: nameOf(PROGRAM_TYPES, info.readUInt32LE(0)),
    id: info.readUInt32LE(4),
    tag: info.toString("hex", 8, 16),
    name: textAt(info, 64),
  };
}

function rawInfo(fd: Fd): Buffer {
  const info = Buffer.alloc(256);
  new Attr().u32(0, fd).u32(4, info.length).pointer(8, info).must("program info", "info", 16);
  return info;
}
