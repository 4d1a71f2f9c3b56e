import { describe, expect, it } from "vitest";
import { Assembler, R0, R2 } from "../bpf/asm.ts";
import { MAP_FLAGS } from "../bpf/bpf-constants.ts";
import type { BpfPort, MapSpec } from "../bpf/bpf-port.ts";
import { type Corner, u32 } from "./contract.ts";

const HASH: MapSpec = { name: "hash", type: "hash", keySize: 4, valueSize: 4, maxEntries: 8 };

export function bpfContract(corner: () => Corner): void {
  describe("maps", () => {
    it("keep what they are given, and say what was not there", () => {
      const map = corner().kernel.bpf.createMap(HASH);
      expect(map.lookup(u32(1))).toBeUndefined();
      map.update(u32(1), u32(10));
      expect(map.lookup(u32(1))).toEqual(u32(10));
      expect(map.delete(u32(1))).toBe(true);
      expect(map.delete(u32(1))).toBe(false);
      expect(map.info).toMatchObject({ name: "hash", type: "hash", keySize: 4, valueSize: 4, maxEntries: 8 });
      map.close();
    });

    it("tell creating from changing, and refuse when full", () => {
      const map = corner().kernel.bpf.createMap(HASH);
      expect(() => map.update(u32(1), u32(1), "exist")).toThrow(/ENOENT/);
      map.update(u32(1), u32(1), "create");
      expect(() => map.update(u32(1), u32(1), "create")).toThrow(/EEXIST/);
      for (let key = 2; key <= 8; key++) map.update(u32(key), u32(key));
      expect(() => map.update(u32(9), u32(9))).toThrow(/E2BIG/);
      map.close();
    });

    it("refuse keys and values of the wrong size before the kernel sees them", () => {
      const map = corner().kernel.bpf.createMap(HASH);
      expect(() => map.lookup(Buffer.alloc(3))).toThrow(expect.objectContaining({ code: "KERNEL_BAD_VALUE" }));
      expect(() => map.update(u32(1), Buffer.alloc(5))).toThrow(expect.objectContaining({ code: "KERNEL_BAD_VALUE" }));
      map.close();
    });

    it("are written, read and emptied many entries at a time", async () => {
      const map = corner().kernel.bpf.createMap({ ...HASH, maxEntries: 5_000 });
      const numbers = Array.from({ length: 4_500 }, (_, index) => index);
      await map.updateMany(numbers.map((number) => [u32(number), u32(number * 2)] as const));
      const found = map.entries().map(([key, value]) => [key.readUInt32LE(), value.readUInt32LE()] as const);
      expect(found.sort(([a], [b]) => a - b)).toEqual(numbers.map((number) => [number, number * 2]));
      expect([...map.chunks(100)].length).toBeGreaterThan(10);
      // Every other one is gone already, which is no reason to stop.
      for (const number of numbers.filter((candidate) => candidate % 2 === 0)) map.delete(u32(number));
      await map.deleteMany(numbers.map(u32));
      expect(map.entries()).toEqual([]);
      map.close();
    });

    it("take many entries that lie one after the other, and refuse half of one", async () => {
      const map = corner().kernel.bpf.createMap(HASH);
      await map.updatePacked(Buffer.concat([u32(1), u32(2)]), Buffer.concat([u32(10), u32(20)]));
      expect([1, 2].map((key) => map.lookup(u32(key))?.readUInt32LE())).toEqual([10, 20]);
      const half = map.updatePacked(Buffer.concat([u32(1), u32(2)]), u32(10));
      await expect(half).rejects.toMatchObject({ code: "KERNEL_BAD_VALUE" });
      map.close();
    });

    it("of arrays have every entry from the start, and lose none", () => {
      const map = corner().kernel.bpf.createMap({ ...HASH, type: "array", maxEntries: 3 });
      map.update(u32(2), u32(7));
      expect(map.entries().map(([, value]) => value.readUInt32LE())).toEqual([0, 0, 7]);
      expect(() => map.update(u32(3), u32(1))).toThrow(/E2BIG/);
      expect(() => map.delete(u32(0))).toThrow(/EINVAL/);
      map.close();
    });

    it("of prefixes find the longest that fits", () => {
      const spec = { name: "lpm", keySize: 8, valueSize: 4, maxEntries: 16, flags: MAP_FLAGS.noPrealloc } as const;
      const map = corner().kernel.bpf.createMap({ ...spec, type: "lpmTrie" });
      const prefix = (length: number, ...address: number[]) => Buffer.concat([u32(length), Buffer.from(address)]);
      map.update(prefix(8, 10, 0, 0, 0), u32(8));
      map.update(prefix(24, 10, 1, 2, 0), u32(24));
      expect(map.lookup(prefix(32, 10, 1, 2, 99))).toEqual(u32(24));
      expect(map.lookup(prefix(32, 10, 9, 9, 9))).toEqual(u32(8));
      expect(map.lookup(prefix(32, 11, 0, 0, 1))).toBeUndefined();
      expect(map.delete(prefix(24, 10, 1, 2, 0))).toBe(true);
      expect(map.lookup(prefix(32, 10, 1, 2, 99))).toEqual(u32(8));
      expect(map.entries()).toEqual([[prefix(8, 10, 0, 0, 0), u32(8)]]);
      expect(map.readsInBatches()).toBeTypeOf("boolean");
      map.close();
    });

    it("that forget the oldest never refuse", () => {
      const map = corner().kernel.bpf.createMap({ ...HASH, type: "lruHash", maxEntries: 64 });
      for (let key = 0; key < 1_000; key++) map.update(u32(key), u32(key));
      const left = map.entries().length;
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(64);
      expect(map.lookup(u32(999))).toEqual(u32(999));
      map.close();
    });

    it("with a value for each processor are read and written as such", () => {
      const map = corner().kernel.bpf.createMap({ ...HASH, type: "perCpuArray", maxEntries: 2, valueSize: 4 });
      const each = map.lookupEach(u32(1))!;
      expect(each.length).toBe(map.valueBytes / 8);
      const value = Buffer.alloc(map.valueBytes);
      value.writeUInt32LE(5, 0);
      map.update(u32(1), value);
      expect(map.lookupEach(u32(1))!.map((part) => part.readUInt32LE())).toEqual([5, ...each.slice(1).map(() => 0)]);
      map.close();
    });

    it("of maps take only maps like the first, and read back as their numbers", () => {
      const { bpf } = corner().kernel;
      const inner = bpf.createMap({ ...HASH, name: "inner" });
      const outer = bpf.createMap({ ...HASH, name: "outer", type: "hashOfMaps", inner });
      outer.update(u32(1), u32(inner.fd));
      expect(outer.lookup(u32(1))).toEqual(u32(inner.info.id));
      const other = bpf.createMap({ ...HASH, name: "other", valueSize: 8 });
      expect(() => outer.update(u32(2), u32(other.fd))).toThrow(/EINVAL/);
      for (const map of [inner, outer, other]) map.close();
    });

    it("that are frozen cannot be changed from here", () => {
      const map = corner().kernel.bpf.createMap({ ...HASH, type: "array", maxEntries: 1 });
      map.update(u32(0), u32(1));
      map.freeze();
      expect(() => map.update(u32(0), u32(2))).toThrow(expect.objectContaining({ code: "KERNEL_NOT_PERMITTED" }));
      expect(map.lookup(u32(0))).toEqual(u32(1));
      map.close();
    });
  });

  describe("pins", () => {
    it("keep a map when nobody holds it open", () => {
      const { kernel, pins } = corner();
      const map = kernel.bpf.createMap(HASH);
      map.update(u32(1), u32(2));
      map.pin(`${pins}/kept`);
      expect(() => map.pin(`${pins}/kept`)).toThrow(/EEXIST/);
      expect(() => map.pin(`${pins}/a.b`)).toThrow(/EPERM/);
      map.close();
      const again = kernel.bpf.openMap(`${pins}/kept`);
      expect(again.lookup(u32(1))).toEqual(u32(2));
      expect(again.info.id).toBe(map.info.id);
      again.close();
      expect(kernel.bpf.pins(pins)).toEqual(["kept"]);
      kernel.bpf.unpin(`${pins}/kept`);
      expect(() => kernel.bpf.openMap(`${pins}/kept`)).toThrow(/ENOENT/);
      expect(kernel.bpf.pins(`${pins}/nowhere`)).toEqual([]);
    });
  });

  describe("programs", () => {
    it("are refused with a reason that can be read", () => {
      const { bpf } = corner().kernel;
      const load = () =>
        bpf.loadProgram({ name: "endless", type: "schedCls", instructions: new Assembler().mov(R0, 0).build() });
      expect(load).toThrow(expect.objectContaining({ code: "KERNEL_PROGRAM_REFUSED", errno: "EINVAL" }));
      expect(load).toThrow(/program endless: EINVAL\n.*exit/s);
    });

    it("with the same instructions have the same tag", () => {
      const { bpf } = corner().kernel;
      const [one, two, three] = [passing(bpf, 0), passing(bpf, 0), passing(bpf, 1)];
      expect(one.info.tag).toBe(two.info.tag);
      expect(one.info.tag).not.toBe(three.info.tag);
      for (const program of [one, two, three]) program.close();
    });

    it("keep the maps they use, and are found by their number", () => {
      const { bpf } = corner().kernel;
      const map = bpf.createMap({ ...HASH, name: "used" });
      const instructions = new Assembler().loadMap(R2, map).mov(R0, 0).exit().build();
      const program = bpf.loadProgram({ name: "user", type: "schedCls", instructions });
      map.close();
      expect(bpf.maps().some(({ id }) => id === map.info.id)).toBe(true);
      const again = bpf.openProgramById(program.info.id);
      expect(again.info).toEqual(program.info);
      expect(bpf.programs()).toContainEqual(program.info);
      again.close();
      program.close();
    });

    it("are put into jump tables by descriptor", () => {
      const { bpf } = corner().kernel;
      const jumps = bpf.createMap({ ...HASH, name: "jumps", type: "progArray" });
      const program = passing(bpf, 0);
      jumps.update(u32(3), u32(program.fd));
      expect(jumps.entries()).toEqual([[u32(3), u32(program.info.id)]]);
      expect(jumps.delete(u32(3))).toBe(true);
      expect(jumps.delete(u32(3))).toBe(false);
      jumps.close();
      program.close();
    });
  });

  describe("links", () => {
    it("hold a program at an interface while somebody holds them, through an exchange and a restart", async () => {
      const { kernel, here, pins } = corner();
      const { bpf } = kernel;
      const netlink = kernel.netlink(here);
      netlink.addVeth({ name: "v0", peer: { name: "v1" } });
      const { index } = netlink.link("v0")!;
      const [old, fresh] = [passing(bpf, -1), passing(bpf, 0)];
      const link = kernel.netns.run(here, () => bpf.attachTcxHere(old, index, "ingress"));
      const id = link.info().id;
      expect(link.info()).toMatchObject({
        kind: "tcx",
        ifindex: index,
        attachType: "tcxIngress",
        programId: old.info.id,
      });
      link.pin(`${pins}/link`);
      await link.close();
      expect(bpf.links().map((found) => found.id)).toContain(id);

      const again = bpf.openLink(`${pins}/link`);
      again.update(fresh);
      expect(again.info().programId).toBe(fresh.info.id);
      bpf.unpin(`${pins}/link`);
      await again.close();
      await expect.poll(() => bpf.links().map((found) => found.id)).not.toContain(id);
      for (const program of [old, fresh]) program.close();
      netlink.close();
    });

    it("outlive their interface, but say so", async () => {
      const { kernel, here } = corner();
      const netlink = kernel.netlink(here);
      netlink.addVeth({ name: "v0", peer: { name: "v1" } });
      const { index } = netlink.link("v0")!;
      const program = passing(kernel.bpf, 0);
      const link = kernel.netns.run(here, () => kernel.bpf.attachTcxHere(program, index, "egress"));
      await netlink.deleteLink(index);
      expect(link.info().ifindex).toBe(0);
      await link.close();
      program.close();
      netlink.close();
    });

    it("at a group of processes say which, and that it is gone", async (context) => {
      const { kernel } = corner();
      const root = kernel.cgroup.root();
      if (root === undefined) return context.skip("needs cgroup2");
      const group = `${root}/${corner().here.name}`;
      kernel.cgroup.create(group);
      const program = kernel.bpf.loadProgram({
        ...{ name: "connecting", type: "cgroupSockAddr", attachType: "connect4" },
        instructions: new Assembler().mov(R0, 1).exit().build(),
      });
      const link = kernel.bpf.attachCgroup(program, group, "connect4");
      expect(link.info()).toMatchObject({ kind: "cgroup", cgroup: kernel.cgroup.id(group), attachType: "connect4" });
      expect(kernel.cgroup.remove(group)).toBe(true);
      await expect.poll(() => link.info().cgroup).toBe(0n);
      expect(() => kernel.cgroup.id(group)).toThrow(expect.objectContaining({ code: "KERNEL_NOT_FOUND" }));
      await link.close();
      program.close();
    });

    it("cannot be made where there is no interface", async () => {
      const program = passing(corner().kernel.bpf, 0);
      await expect(corner().kernel.bpf.attachTcx(program, 4_000_000, "ingress")).rejects.toMatchObject({
        errno: "ENODEV",
      });
      program.close();
    });
  });
}

function passing(bpf: BpfPort, verdict: number) {
  return bpf.loadProgram({
    name: "passing",
    type: "schedCls",
    instructions: new Assembler().mov(R0, verdict).exit().build(),
  });
}
