import { close as closeInPool, closeSync, mkdirSync, openSync, readdirSync, rmdirSync, unlinkSync } from "node:fs";
import { kernelError } from "../errors.ts";
import { close, errnoName, type Fd, waitForAllProcessors } from "../sys.ts";
import { Attr } from "./bpf-attr.ts";
import { ATTACH_TYPES, type AttachType, LINK_TYPES, MAP_TYPES, nameOf } from "./bpf-constants.ts";
import { KernelMap, pinAt, readMapInfo } from "./bpf-map.ts";
import type { BpfLink, BpfMap, BpfPort, BpfProgram, Direction, LinkInfo, MapSpec } from "./bpf-port.ts";
import { KernelProgram, loadBtf, loadProgram, readProgramInfo } from "./bpf-program.ts";
import { kernelBtf } from "./kernel-btf.ts";
import { openMapIterator } from "./map-iterator.ts";
import { raiseMemlockLimit } from "./memlock.ts";
import { readRing } from "./ringbuf.ts";

/** The kernel's BPF, as the port asks for it. */
export function realBpf(): BpfPort {
  raiseMemlockLimit();
  return {
    createMap,
    openMap: (path) => mapOf(openPin(path)),
    loadBtf,
    closeBtf: close,
    loadProgram,
    openProgram: (path) => programOf(openPin(path)),
    attachTcx,
    attachTcxHere: (program, ifindex, direction) =>
      new KernelLink(tcxAttr(program, ifindex, direction).must(`attach to interface ${ifindex}`, "linkCreate", 48)),
    attachCgroup,
    openLink: (path) => new KernelLink(openPin(path)),
    maps: () => each("nextMapId", "mapById", readMapInfo),
    programs: () => each("nextProgramId", "programById", readProgramInfo),
    links: () => each("nextLinkId", "linkById", readLinkInfo),
    readRing,
    openMapIterator,
    programsSettled: waitForAllProcessors,
    openProgramById: (id) => programOf(new Attr().u32(0, id).must(`program ${id}`, "programById", 12)),
    openMapById: (id) => mapOf(new Attr().u32(0, id).must(`map ${id}`, "mapById", 12)),
    pins,
    unpin: (path) => inFileSystem(`unpin ${path}`, () => unlinkSync(path)),
    makePinDirectory: (path) =>
      inFileSystem(`make ${path}`, () => void mkdirSync(path, { recursive: true, mode: 0o700 })),
    removePinDirectory: (path) => inFileSystem(`remove ${path}`, () => rmdirSync(path)),
    kernelFunction: (name) => kernelBtf()?.functionId(name),
    kernelField: (structure, ...fields) => kernelBtf()?.fieldOffset(structure, fields),
  };
}

function createMap(spec: MapSpec): BpfMap {
  const attr = new Attr()
    .u32(0, MAP_TYPES[spec.type])
    .u32(4, spec.keySize)
    .u32(8, spec.valueSize)
    .u32(12, spec.maxEntries)
    .u32(16, spec.flags ?? 0)
    .u32(20, spec.inner?.fd ?? 0)
    .name(28, spec.name);
  if (spec.types) attr.u32(48, spec.types.btf).u32(52, spec.types.key).u32(56, spec.types.value);
  return mapOf(attr.must(`map ${spec.name}`, "mapCreate", 72));
}

function mapOf(fd: Fd): BpfMap {
  return new KernelMap(fd, readMapInfo(fd));
}

function programOf(fd: Fd): BpfProgram {
  return new KernelProgram(fd, readProgramInfo(fd));
}

function openPin(path: string): Fd {
  return new Attr().path(0, path).must(`pin ${path}`, "openPin", 16);
}

function tcxAttr(program: BpfProgram, ifindex: number, direction: Direction): Attr {
  const type = direction === "ingress" ? ATTACH_TYPES.tcxIngress : ATTACH_TYPES.tcxEgress;
  return new Attr().u32(0, program.fd).u32(4, ifindex).u32(8, type);
}

async function attachTcx(program: BpfProgram, ifindex: number, direction: Direction): Promise<BpfLink> {
  const result = await tcxAttr(program, ifindex, direction).callAsync("linkCreate", 48);
  if (result < 0) throw kernelError(`attach to interface ${ifindex}`, errnoName(result));
  return new KernelLink(result);
}

function attachCgroup(program: BpfProgram, directory: string, type: AttachType): BpfLink {
  const cgroup = inFileSystem(`cgroup ${directory}`, () => openSync(directory, "r"));
  try {
    const attr = new Attr().u32(0, program.fd).u32(4, cgroup).u32(8, ATTACH_TYPES[type]);
    return new KernelLink(attr.must(`attach to cgroup ${directory}`, "linkCreate", 48));
  } finally {
    closeSync(cgroup);
  }
}

class KernelLink implements BpfLink {
  readonly fd: Fd;

  constructor(fd: Fd) {
    this.fd = fd;
  }

  info(): LinkInfo {
    return readLinkInfo(this.fd);
  }

  update(program: BpfProgram): void {
    new Attr().u32(0, this.fd).u32(4, program.fd).must("exchange of a program", "linkUpdate", 16);
  }

  pin(path: string): void {
    pinAt(this.fd, path);
  }

  /** In the pool: the last close detaches, and waits until no processor runs the program any more. */
  close(): Promise<void> {
    return new Promise((resolve, reject) => closeInPool(this.fd, (error) => (error ? reject(error) : resolve())));
  }
}

function readLinkInfo(fd: Fd): LinkInfo {
  const info = Buffer.alloc(128);
  new Attr().u32(0, fd).u32(4, info.length).pointer(8, info).must("link info", "info", 16);
  const kind = nameOf(LINK_TYPES, info.readUInt32LE(0));
  const common = { kind, id: info.readUInt32LE(4), programId: info.readUInt32LE(8) };
  if (kind === "tcx") {
    return {
      ...common,
      ifindex: info.readUInt32LE(16),
      attachType: nameOf(ATTACH_TYPES, info.readUInt32LE(20)),
    };
  }
  if (kind === "cgroup") {
    return {
      ...common,
      cgroup: info.readBigUInt64LE(16),
      attachType: nameOf(ATTACH_TYPES, info.readUInt32LE(24)),
    };
  }
  return common;
}

type NextId = "nextMapId" | "nextProgramId" | "nextLinkId";
type ById = "mapById" | "programById" | "linkById";

function each<Info>(next: NextId, byId: ById, read: (fd: Fd) => Info): Info[] {
  const found: Info[] = [];
  for (let id = 0; ; ) {
    const attr = new Attr().u32(0, id);
    const result = attr.call(next, 12);
    if (result < 0) {
      if (errnoName(result) === "ENOENT") return found;
      throw kernelError("listing BPF objects", errnoName(result));
    }
    id = attr.read(4);
    const fd = new Attr().u32(0, id).call(byId, 12);
    // It may have gone between the two calls.
    if (fd < 0) continue;
    try {
      found.push(read(fd));
    } finally {
      close(fd);
    }
  }
}

function pins(directory: string): string[] {
  try {
    // Names with a dot are reserved by bpffs: it refuses all others.
    return readdirSync(directory)
      .filter((name) => !name.includes("."))
      .sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function inFileSystem<T>(operation: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw kernelError(operation, (error as NodeJS.ErrnoException).code ?? "EIO");
  }
}
