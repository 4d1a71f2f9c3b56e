import { rmSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { BpfPort, MapSpec } from "../../src/kernel/bpf/bpf-port.ts";
import { loadObject } from "../../src/kernel/bpf/object.ts";
import { kernelError } from "../../src/kernel/errors.ts";
import { fakeKernel } from "../../src/kernel/fake/fake-kernel.ts";
import { type Kernel, realKernel } from "../../src/kernel/kernel.ts";
import { u32 } from "../../src/kernel/testing/contract.ts";
import { compile } from "./compile.ts";
import { whyNoClang } from "./why-not.ts";

const PACKET = Buffer.alloc(64);
const NS = `vt-${process.pid}-object`;

describe("an object that clang compiled", () => {
  let kernel: Kernel;
  let object: Buffer;
  let pins = "";

  beforeAll(() => {
    if (whyNoClang()) return;
    kernel = realKernel();
    object = compile("toolkit", "VALUE=__u64");
    pins = `/run/${NS}-pins`;
    kernel.mounts.ensure("bpf", pins);
  });
  afterAll(() => {
    if (!pins) return;
    kernel.mounts.unmount(pins);
    rmSync(pins, { recursive: true, force: true });
  });
  beforeEach((context) => context.skip(whyNoClang() !== undefined, whyNoClang()));

  it("runs, with its functions, maps and variables", () => {
    const loaded = kernel.loadObject(object);
    expect(loaded.program("answer").testRun({ packet: PACKET }).verdict).toBe(1);
    expect(loaded.map("counts").entries()).toEqual([[u32(0), u64(1n)]]);
    expect(loaded.map(".bss").lookup(u32(0))).toEqual(u64(1n));
    expect([...loaded.programs.keys()].sort()).toEqual(["answer", "look_inside", "on_connect"]);
    loaded.close();
  });

  it("has its constants set by name before the verifier sees them", () => {
    const loaded = kernel.loadObject(object, { variables: { verdict: 0, addend: 1000n, started_at: 7 } });
    // Length of the packet, and both numbers.
    expect(loaded.program("answer").testRun({ packet: PACKET }).verdict).toBe(64 + 1000 + 7);
    const constants = loaded.map(".rodata");
    expect(() => constants.update(u32(0), constants.lookup(u32(0))!)).toThrow(/EPERM/);
    loaded.close();
    expect(() => kernel.loadObject(object, { variables: { nobody: 1 } })).toThrow(/no variable nobody/);
    expect(() => kernel.loadObject(object, { variables: { flag: 256 } })).toThrow(/"256" is not a value of flag/);
  });

  it("finds maps inside maps", () => {
    const loaded = kernel.loadObject(object, { programs: ["look_inside"] });
    const run = () => loaded.program("look_inside").testRun({ packet: PACKET }).verdict;
    expect(run()).toBe(-1);
    const inner = kernel.bpf.createMap({ name: "in", type: "hash", keySize: 4, valueSize: 4, maxEntries: 4 });
    loaded.map("outer").update(u32(1), u32(inner.fd));
    expect(run()).toBe(-2);
    inner.update(u32(1), u32(42));
    expect(run()).toBe(42);
    inner.close();
    loaded.close();
  });

  it("finds its pinned maps again, and refuses one that has another layout", () => {
    const first = kernel.loadObject(object, { pinDirectory: pins });
    first.program("answer").testRun({ packet: PACKET });
    first.close();
    const second = kernel.loadObject(object, { pinDirectory: pins });
    expect(second.map("counts").lookup(u32(0))).toEqual(u64(1n));
    second.close();
    const other = compile("toolkit", "VALUE=__u32");
    expect(() => kernel.loadObject(other, { pinDirectory: pins })).toThrow(
      expect.objectContaining({
        code: "KERNEL_MAP_LAYOUT",
        message: `the map pinned at ${pins}/counts is hash 4->8 of 16, and hash 4->4 of 16 is needed`,
      }),
    );
    kernel.bpf.unpin(`${pins}/counts`);
  });

  it("shares a map with another object when it is given one", () => {
    const first = kernel.loadObject(object);
    const second = kernel.loadObject(object, { maps: { counts: first.map("counts") } });
    second.program("answer").testRun({ packet: PACKET });
    second.close();
    expect(first.map("counts").entries().length).toBe(1);
    first.close();
  });

  it("writes events that arrive on the event loop", async () => {
    const loaded = kernel.loadObject(object, { variables: { flag: true } });
    const events: number[] = [];
    const reader = kernel.bpf.readRing(loaded.map("events"), (record) => events.push(record.readUInt32LE(0)));
    for (let run = 0; run < 3; run++) loaded.program("answer").testRun({ packet: PACKET });
    await expect.poll(() => events).toEqual([64, 64, 64]);
    expect(() => kernel.bpf.readRing(loaded.map("events"), () => {})).toThrow(/EEXIST/);
    // Far more than fits at once, so that the positions go round several times.
    let drained = 0;
    for (let round = 0; round < 200; round++) {
      loaded.program("answer").testRun({ packet: PACKET, repeat: 100 });
      drained += reader.drain();
    }
    expect(drained).toBe(20_000);
    expect(new Set(events)).toEqual(new Set([64]));
    reader.close();
    loaded.close();
  });

  it("calls functions of the kernel", (context) => {
    context.skip(kernel.bpf.kernelFunction("bpf_skb_ct_lookup") === undefined, "needs bpf_skb_ct_lookup");
    const offset = kernel.bpf.kernelField("nf_conn", "proto", "tcp", "state")!;
    const loaded = kernel.loadObject(compile("conntrack"), { variables: { tcp_state_offset: offset } });
    const run = () => loaded.program("lookup").testRun({ packet: PACKET }).verdict;
    const netns = kernel.netns.create(NS);
    const conntrack = kernel.conntrack(netns);
    try {
      // Test runs happen in the namespace of whoever asks for them.
      expect(kernel.netns.run(netns, run)).toBe(0);
      const original = {
        protocol: 6,
        source: "10.9.0.5",
        destination: "10.96.0.10",
        sourcePort: 4000,
        destinationPort: 80,
      };
      conntrack.insert({ original, timeout: 60, tcpState: "established" });
      expect(kernel.netns.run(netns, run)).toBe(100 + 3);
    } finally {
      conntrack.close();
      netns.close();
      kernel.netns.delete(NS);
      loaded.close();
    }
  });

  it("is refused by name when the kernel lacks a function it calls", () => {
    const without: BpfPort = { ...kernel.bpf, kernelFunction: () => undefined };
    expect(() => loadObject(without, compile("conntrack"))).toThrow(
      expect.objectContaining({ code: "KERNEL_NO_FUNCTION", message: expect.stringContaining("bpf_skb_ct_lookup") }),
    );
  });

  it("loads on kernels that refuse types of maps, or all types", () => {
    const refusing: MapSpec[] = [];
    const old: BpfPort = {
      ...kernel.bpf,
      createMap: (spec) => {
        if (!spec.types) return kernel.bpf.createMap(spec);
        refusing.push(spec);
        throw kernelError(`map ${spec.name}`, "EINVAL");
      },
    };
    const loaded = loadObject(old, object, { programs: ["answer"] });
    expect(refusing.length).toBeGreaterThan(2);
    expect(loaded.program("answer").testRun({ packet: PACKET }).verdict).toBe(1);
    loaded.close();
    const older: BpfPort = {
      ...kernel.bpf,
      loadBtf: () => {
        throw kernelError("types", "EINVAL");
      },
    };
    const plain = loadObject(older, object, { programs: ["answer"] });
    expect(plain.program("answer").testRun({ packet: PACKET }).verdict).toBe(1);
    plain.close();
  });

  it("leaves nothing behind, not even when loading fails halfway", () => {
    const fake = fakeKernel();
    const loaded = fake.loadObject(object);
    expect(fake.bpf.maps().length).toBe(8);
    loaded.close();
    const failing: BpfPort = {
      ...fake.bpf,
      loadProgram: () => {
        throw kernelError("program", "EACCES");
      },
    };
    expect(() => loadObject(failing, object)).toThrow(/EACCES/);
    expect([fake.bpf.maps(), fake.bpf.programs(), [...fake.world.open]]).toEqual([[], [], []]);
  });

  it("that is not one is refused with the reason", () => {
    const broken = (bytes: Buffer) => () => kernel.loadObject(bytes);
    expect(broken(Buffer.from("hello"))).toThrow(/not an ELF file/);
    expect(broken(object.subarray(0, 2000))).toThrow(/cut short/);
    const foreign = Buffer.from(object);
    foreign.writeUInt16LE(62, 18);
    expect(broken(foreign)).toThrow(/another machine/);
  });
});

function u64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}
