import { createHash } from "node:crypto";
import { dirname } from "node:path";
import type { AttachType } from "../bpf/bpf-constants.ts";
import type {
  BpfLink,
  BpfMap,
  BpfPort,
  BpfProgram,
  Direction,
  LinkInfo,
  ProgramInfo,
  ProgramSpec,
  TestResult,
  TestRun,
} from "../bpf/bpf-port.ts";
import { errors, KernelError, kernelError } from "../errors.ts";
import { FakeMap, FakeMapObject } from "./fake-map.ts";
import type { FakeNamespace, FakeObject, FakeState } from "./fake-state.ts";

export interface FakeBpfOptions {
  /** What test runs of programs give. Without it they are refused: the fake loads programs, and cannot run them. */
  readonly runProgram?: (program: ProgramSpec, run: TestRun) => TestResult;
  /** Whether interfaces have the hook of newer kernels. */
  readonly tcx?: boolean;
  /** Functions of the kernel that programs may call. */
  readonly kernelFunctions?: readonly string[];
  /** Offsets, by `structure.field.field`. */
  readonly kernelFields?: Readonly<Record<string, number>>;
}

const KERNEL_FUNCTIONS = ["bpf_skb_ct_lookup", "bpf_xdp_ct_lookup", "bpf_ct_release"];
const EXIT = 0x95;
const LOAD_WIDE = 0x18;

class FakeProgramObject implements FakeObject {
  readonly kind = "program";
  readonly id: number;
  holders = 0;
  readonly info: ProgramInfo;
  readonly spec: ProgramSpec;
  private readonly world: FakeState;
  private readonly maps: FakeObject[];

  constructor(world: FakeState, spec: ProgramSpec) {
    const { instructions, name, type } = spec;
    if (instructions.length === 0 || instructions.length % 8 !== 0 || instructions.at(-8) !== EXIT) {
      throw new KernelError(errors.KERNEL_PROGRAM_REFUSED(name, "EINVAL", "last insn is not an exit or jmp"), "EINVAL");
    }
    this.world = world;
    this.spec = spec;
    this.maps = mapsOf(world, Buffer.from(instructions));
    for (const map of this.maps) world.hold(map);
    this.id = world.newId();
    const tag = createHash("sha1").update(instructions).digest("hex").slice(0, 16);
    this.info = { id: this.id, name: name.slice(0, 15), type, tag };
  }

  gone(): void {
    for (const map of this.maps) this.world.release(map);
  }
}

/** A program holds the maps its instructions name. */
function mapsOf(world: FakeState, instructions: Buffer): FakeObject[] {
  const found = new Set<FakeObject>();
  for (let at = 0; at < instructions.length; at += instructions[at] === LOAD_WIDE ? 16 : 8) {
    const source = instructions.readUInt8(at + 1) >> 4;
    if (instructions[at] !== LOAD_WIDE || (source !== 1 && source !== 2)) continue;
    found.add(world.objectAt(instructions.readInt32LE(at + 4), "map"));
  }
  return [...found];
}

class FakeLinkObject implements FakeObject {
  readonly kind = "link";
  readonly id: number;
  holders = 0;
  readonly at: { namespace: FakeNamespace; ifindex: number } | { cgroup: Set<number> };
  readonly attachType: AttachType;
  program: FakeObject;
  private readonly world: FakeState;

  constructor(world: FakeState, program: FakeObject, attachType: AttachType, at: FakeLinkObject["at"]) {
    this.world = world;
    this.id = world.newId();
    this.program = program;
    this.attachType = attachType;
    this.at = at;
    world.hold(program);
  }

  exchange(program: FakeObject): void {
    this.world.hold(program);
    this.world.release(this.program);
    this.program = program;
  }

  gone(): void {
    this.world.release(this.program);
  }

  info(): LinkInfo {
    const common = { id: this.id, programId: this.program.id, attachType: this.attachType };
    if ("cgroup" in this.at) {
      const { cgroup } = this.at;
      const isThere = [...this.world.cgroups.values()].includes(cgroup);
      return { ...common, kind: "cgroup", cgroup: isThere ? this.world.numberOf(cgroup) : 0n };
    }
    // An interface that is gone leaves its links without one.
    const ifindex = this.at.namespace.links.has(this.at.ifindex) ? this.at.ifindex : 0;
    return { ...common, kind: "tcx", ifindex };
  }
}

export function fakeBpf(world: FakeState, options: FakeBpfOptions = {}): BpfPort {
  const functions = options.kernelFunctions ?? KERNEL_FUNCTIONS;
  const pin = (object: FakeObject, path: string) => pinObject(world, object, path);
  const mapOf = (object: FakeObject): BpfMap => {
    if (!(object instanceof FakeMapObject)) throw kernelError("map", "EINVAL");
    return new FakeMap(world, object, pin);
  };
  const programOf = (object: FakeObject): BpfProgram => {
    if (!(object instanceof FakeProgramObject)) throw kernelError("program", "EINVAL");
    return programHandle(world, object, pin, options);
  };
  const linkOf = (object: FakeObject): BpfLink => {
    if (!(object instanceof FakeLinkObject)) throw kernelError("link", "EINVAL");
    return linkHandle(world, object, pin);
  };
  const attach = (namespace: FakeNamespace, program: BpfProgram, ifindex: number, direction: Direction) => {
    if (options.tcx === false) throw kernelError(`attach to interface ${ifindex}`, "EINVAL");
    return linkOf(tcxLink(world, namespace, program, ifindex, direction));
  };
  const all = <T extends FakeObject>(type: new (...args: never[]) => T): T[] =>
    [...world.objects.values()].filter((object): object is T => object instanceof type);
  return {
    createMap: (spec) => mapOf(new FakeMapObject(world, spec)),
    openMap: (path) => mapOf(pinned(world, path)),
    loadBtf: () => world.openFd({ kind: "btf", id: world.newId(), holders: 0, gone: () => {} }),
    closeBtf: (fd) => world.closeFd(fd),
    loadProgram: (spec) => programOf(new FakeProgramObject(world, spec)),
    openProgram: (path) => programOf(pinned(world, path)),
    attachTcx: async (program, ifindex, direction) => attach(world.home, program, ifindex, direction),
    attachTcxHere: (program, ifindex, direction) => attach(world.here, program, ifindex, direction),
    attachCgroup: (program, directory, type) => {
      const cgroup = world.cgroups.get(directory);
      if (!cgroup) throw kernelError(`cgroup ${directory}`, "ENOENT");
      return linkOf(new FakeLinkObject(world, world.objectAt(program.fd, "program"), type, { cgroup }));
    },
    openLink: (path) => linkOf(pinned(world, path)),
    readRing: (map, onRecord) => {
      if (!(map instanceof FakeMap)) throw kernelError("ring buffer", "EINVAL");
      return map.read(onRecord);
    },
    openMapIterator: (program, map) => ({
      run: async () => {
        const spec = world.objectAt(program.fd, "program") as FakeProgramObject;
        if (!options.runProgram) {
          throw kernelError(
            `run of the iterator over map ${map.info.name}`,
            "ENOTSUPP",
            "the fake does not run programs",
          );
        }
        for (const [key, value] of map.entries())
          options.runProgram(spec.spec, { packet: Buffer.concat([key, value]) });
      },
      close: () => {},
    }),
    programsSettled: async () => {},
    maps: () => all(FakeMapObject).map(({ info }) => info),
    programs: () => all(FakeProgramObject).map(({ info }) => info),
    links: () => all(FakeLinkObject).map((link) => link.info()),
    openProgramById: (id) => programOf(byId(world, id)),
    openMapById: (id) => mapOf(byId(world, id)),
    pins: (directory) => pinsIn(world, directory),
    unpin: (path) => {
      const object = pinned(world, path);
      world.pins.delete(path);
      world.release(object);
    },
    makePinDirectory: (path) => {
      for (let at = path; at.length > 1; at = dirname(at)) world.pinDirectories.add(at);
    },
    removePinDirectory: (path) => {
      if (!world.pinDirectories.has(path)) throw kernelError(`remove ${path}`, "ENOENT");
      if (pinsIn(world, path).length > 0) throw kernelError(`remove ${path}`, "ENOTEMPTY");
      world.pinDirectories.delete(path);
    },
    kernelFunction: (name) => (functions.includes(name) ? 1000 + functions.indexOf(name) : undefined),
    kernelField: (structure, ...fields) => options.kernelFields?.[[structure, ...fields].join(".")],
  };
}

type Pin = (object: FakeObject, path: string) => void;

function programHandle(world: FakeState, object: FakeProgramObject, pin: Pin, options: FakeBpfOptions): BpfProgram {
  const fd = world.openFd(object);
  return {
    fd,
    info: object.info,
    size: () => ({ instructions: object.spec.instructions.length / 8, nativeBytes: 0 }),
    testRun: (run) => {
      if (options.runProgram) return options.runProgram(object.spec, run);
      throw kernelError(`test run of program ${object.info.name}`, "ENOTSUPP", "the fake does not run programs");
    },
    pin: (path) => pin(object, path),
    close: () => world.closeFd(fd),
  };
}

function linkHandle(world: FakeState, object: FakeLinkObject, pin: Pin): BpfLink {
  const fd = world.openFd(object);
  return {
    fd,
    info: () => object.info(),
    update: (program) => object.exchange(world.objectAt(program.fd, "program")),
    pin: (path) => pin(object, path),
    close: async () => world.closeFd(fd),
  };
}

function tcxLink(
  world: FakeState,
  namespace: FakeNamespace,
  program: BpfProgram,
  ifindex: number,
  direction: Direction,
): FakeLinkObject {
  const object = world.objectAt(program.fd, "program");
  if (!namespace.links.has(ifindex)) throw kernelError(`attach to interface ${ifindex}`, "ENODEV");
  const attachType = direction === "ingress" ? "tcxIngress" : "tcxEgress";
  const same = [...world.objects.values()].some(
    (other) =>
      other instanceof FakeLinkObject &&
      other.program === object &&
      other.attachType === attachType &&
      "namespace" in other.at &&
      other.at.namespace === namespace &&
      other.at.ifindex === ifindex,
  );
  if (same) throw kernelError(`attach to interface ${ifindex}`, "EEXIST");
  return new FakeLinkObject(world, object, attachType, { namespace, ifindex });
}

function pinned(world: FakeState, path: string): FakeObject {
  const object = world.pins.get(path);
  if (object) return object;
  throw kernelError(`pin ${path}`, "ENOENT");
}

function byId(world: FakeState, id: number): FakeObject {
  const object = world.objects.get(id);
  if (object) return object;
  throw kernelError(`object ${id}`, "ENOENT");
}

function pinObject(world: FakeState, object: FakeObject, path: string): void {
  const name = path.slice(dirname(path).length + 1);
  if (!world.pinDirectories.has(dirname(path))) throw kernelError(`pin ${path}`, "ENOENT");
  if (name.includes(".")) throw kernelError(`pin ${path}`, "EPERM");
  if (world.pins.has(path) || world.pinDirectories.has(path)) throw kernelError(`pin ${path}`, "EEXIST");
  world.pins.set(path, object);
  world.hold(object);
}

function pinsIn(world: FakeState, directory: string): string[] {
  const inside = [...world.pins.keys(), ...world.pinDirectories].filter((path) => dirname(path) === directory);
  return inside.map((path) => path.slice(directory.length + 1)).sort();
}
