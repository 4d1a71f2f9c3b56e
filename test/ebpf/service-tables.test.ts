import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ServicePort } from "../../src/calc/model.ts";
import { addressText } from "../../src/dataplane/ebpf/net-bytes.ts";
import { objectBytes } from "../../src/dataplane/ebpf/programs/objects.ts";
import { LIST_GRACE_MS } from "../../src/dataplane/ebpf/services/backend-lists.ts";
import {
  deleteAffinities,
  deleteUdpConntrack,
  type RemovedByService,
} from "../../src/dataplane/ebpf/services/removed-backends.ts";
import { ServiceTables } from "../../src/dataplane/ebpf/services/service-tables.ts";
import {
  affinityKeyLayout,
  affinityLayout,
  backendKeyLayout,
  backendLayout,
  CONNTRACK_FLAG,
  conntrackEntryLayout,
  FRONTEND_FLAG,
  fiveTupleLayout,
  frontendKeyLayout,
  frontendLayout,
  sourceRangeKeyLayout,
} from "../../src/gen/bpf/layout.gen.ts";
import type { BpfObject } from "../../src/kernel/bpf/object.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { type FakeClock, fakeClock } from "../../src/kit/fake-clock.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { backendOf, service, TCP, UDP } from "./service-rows.ts";

const missing = whyNoPrograms();
const A = "default/a:http/tcp/4";
const B = "default/b:http/tcp/4";
const ONE = ["10.65.0.1:8080"];
const TWO = ["10.65.0.1:8080", "10.65.0.2:8080"];

describe.skipIf(missing)(`services in the maps${missing ? ` (${missing})` : ""}`, () => {
  let object: BpfObject;
  let clock: FakeClock;
  let tables: ServiceTables;
  let gone: RemovedByService[];

  const open = (maxEntries: Record<string, number> = {}) => {
    object = realKernel().loadObject(objectBytes("socket"), {
      maxEntries: { flows: 4096, old_flows: 16, ...maxEntries },
    });
  };
  /** A life of the agent. */
  const start = async () => {
    const maps = {
      frontends: object.map("frontends"),
      backends: object.map("backends"),
      source_ranges: object.map("source_ranges"),
    };
    tables = new ServiceTables({ maps, clock, onBackendsRemoved: async (backends) => void gone.push(backends) });
    await tables.readMaps();
  };
  beforeEach(async () => {
    clock = fakeClock(1_000_000);
    gone = [];
    open();
    await start();
  });
  afterEach(() => object?.close());

  const set = async (...services: ServicePort[]) => {
    const outcomes = await tables.apply({ set: services, remove: [] });
    return outcomes.flatMap(({ id, failed }) => (failed ? [`${id}: ${failed.code}: ${failed.message}`] : []));
  };
  const remove = (...ids: string[]) => tables.apply({ set: [], remove: ids });

  /** What packets find: an address, its service, and the backends behind it. */
  const seen = () =>
    object
      .map("frontends")
      .entries()
      .map(([key, value]) => {
        const { address, port, protocol } = frontendKeyLayout.read(key);
        const frontend = frontendLayout.read(value);
        const flags = Object.entries(FRONTEND_FLAG).filter(([, flag]) => (frontend.flags & flag) !== 0);
        const names = flags.map(([name]) => name.replace("FRONTEND_", "").toLowerCase());
        const { clusterList, clusterCount, localList, localCount } = frontend;
        const lists = [list(clusterList, clusterCount), list(localList, localCount)];
        return `${addressText(address)}:${port}/${protocol} ${names.join()} -> ${lists.join(" | local ")}`;
      })
      .sort();
  const list = (number: number, count: number) => {
    const backends = Array.from({ length: count }, (_, index) => {
      const value = object.map("backends").lookup(backendKeyLayout.write({ list: number, index }));
      if (!value) return "missing";
      const { address, port, flags } = backendLayout.read(value);
      return `${addressText(address)}:${port}${flags === 0 ? "" : "*"}`;
    });
    return backends.length === 0 ? "nobody" : backends.join(" ");
  };
  const numbers = () =>
    object
      .map("frontends")
      .entries()
      .map(([, value]) => frontendLayout.read(value))
      .map(({ service: number, clusterList }) => ({ number, clusterList }));
  const backendCount = () => object.map("backends").entries().length;

  it("answer on their cluster, load balancer, external and node addresses, each by its own rules", async () => {
    await set(
      service(A, TWO, {
        ...{ externalAddresses: ["198.51.100.1"], loadBalancerAddresses: ["198.51.100.2"], nodePort: 30080 },
        ...{ sourceRanges: ["203.0.113.0/24"], internalLocal: true, externalLocal: true, affinitySeconds: 60 },
        localBackends: [backendOf("10.65.0.2:8080", true)],
      }),
      service("default/a:dns/udp/6", ["[fd65::1]:53"], {
        ...{ protocol: UDP, family: 6, clusterAddress: "fd96::10", port: 53, nodePort: 30053 },
      }),
    );
    const lists = "10.65.0.1:8080 10.65.0.2:8080 | local 10.65.0.2:8080*";
    expect(seen()).toEqual([
      `0.0.0.0:30080/6 external,external_local,any,node_port -> ${lists}`,
      `10.96.0.10:80/6 internal_local,any -> ${lists}`,
      `198.51.100.1:80/6 external,external_local,any -> ${lists}`,
      `198.51.100.2:80/6 external,external_local,source_ranges,any -> ${lists}`,
      ":::30053/17 external,any,node_port -> fd65::1:53 | local nobody",
      "fd96::10:53/17 any -> fd65::1:53 | local nobody",
    ]);
    const [[range] = []] = object.map("source_ranges").entries();
    const { prefixLength, address } = sourceRangeKeyLayout.read(range!);
    expect([prefixLength, addressText(address)]).toEqual([32 + 96 + 24, "203.0.113.0"]);
    expect(tables.fill()).toEqual([
      { map: "frontends", entries: 6, max: 262_144 },
      { map: "backends", entries: 4, max: 1_048_576 },
      { map: "source_ranges", entries: 1, max: 65_536 },
    ]);
  });

  it("that are asked from outside have a list of this node's backends, for clients other nodes send", async () => {
    const backends = [backendOf("10.65.0.1:8080"), backendOf("10.65.0.2:8080", true)];
    await set(service(A, [], { nodePort: 30080, clusterBackends: backends, anyBackends: true }));
    expect(seen()[0]).toContain("-> 10.65.0.1:8080 10.65.0.2:8080* | local 10.65.0.2:8080*");
  });

  it("without backends are there all the same, so that whoever asks can be refused", async () => {
    await set(service(A, []), service(B, [], { clusterAddress: "10.96.0.11", anyBackends: true }));
    expect(seen()).toEqual([
      "10.96.0.10:80/6  -> nobody | local nobody",
      "10.96.0.11:80/6 any -> nobody | local nobody",
    ]);
  });

  it("get a new list when backends change, and the old one goes after a grace", async () => {
    await set(service(A, TWO));
    const [before] = numbers();
    await set(service(A, ["10.65.0.2:8080", "10.65.0.3:8080"]));
    const [after] = numbers();
    expect(after!.number).toBe(before!.number);
    expect(after!.clusterList).not.toBe(before!.clusterList);
    expect(list(before!.clusterList, 2)).toBe("10.65.0.1:8080 10.65.0.2:8080");
    await clock.advance(LIST_GRACE_MS);
    await set(service(B, [], { clusterAddress: "10.96.0.11" }));
    expect(list(before!.clusterList, 2)).toBe("missing missing");
    expect(backendCount()).toBe(2);
    expect(seen()[0]).toContain("10.65.0.2:8080 10.65.0.3:8080");
  });

  it("keep their list when anything else changes", async () => {
    await set(service(A, TWO));
    const before = numbers();
    await set(service(A, TWO, { affinitySeconds: 10 }));
    expect(numbers()).toEqual(before);
    expect(gone).toEqual([]);
  });

  it("tell which backends are gone, and of which service", async () => {
    await set(service(A, TWO), service(B, ONE, { clusterAddress: "10.96.0.11", protocol: UDP }));
    await set(service(A, ONE));
    expect(
      gone.map((each) => [...each].map(([number, { protocol, backends }]) => [number, protocol, backends.size])),
    ).toEqual([[[1, TCP, 1]]]);
    await remove(B);
    expect([...gone[1]!.values()]).toMatchObject([{ protocol: UDP, affinity: false }]);
    expect(seen()).toHaveLength(1);
  });

  it("are found again after a restart: same numbers, same lists, nothing left over", async () => {
    await set(service(A, TWO, { sourceRanges: ["203.0.113.0/24"], loadBalancerAddresses: ["198.51.100.2"] }));
    await set(service(B, ONE, { clusterAddress: "10.96.0.11" }));
    const [before, found] = [numbers(), seen()];
    await start();
    expect(seen()).toEqual(found);
    await set(
      service(B, ONE, { clusterAddress: "10.96.0.11" }),
      service(A, TWO, { sourceRanges: ["203.0.113.0/24"], loadBalancerAddresses: ["198.51.100.2"] }),
    );
    expect(numbers()).toEqual(before);
    expect(gone).toEqual([]);
    expect(await tables.sweep()).toBe(0);
    await set(service("default/c:http/tcp/4", [], { clusterAddress: "10.96.0.12" }));
    expect(new Set(numbers().map(({ number }) => number)).size).toBe(3);
  });

  it("that went while nobody looked are swept with everything of theirs, and their backends told", async () => {
    await set(service(A, TWO, { affinitySeconds: 5 }), service(B, ONE, { clusterAddress: "10.96.0.11" }));
    await start();
    await set(service(B, ["10.65.0.9:8080"], { clusterAddress: "10.96.0.11" }));
    expect(gone.flatMap((each) => [...each.keys()])).toEqual([2]);
    expect(seen()).toHaveLength(2);
    expect(await tables.sweep()).toBeGreaterThan(0);
    expect(gone.at(-1)!.get(1)).toMatchObject({ affinity: true, protocol: TCP });
    expect(seen()).toEqual(["10.96.0.11:80/6 any -> 10.65.0.9:8080 | local nobody"]);
    await clock.advance(LIST_GRACE_MS);
    await set();
    expect(backendCount()).toBe(1);
    expect(await tables.sweep()).toBe(0);
  });

  it("under another name keep the number of the address they took over, and lose only the backends that went", async () => {
    await set(service(A, TWO));
    const [before] = numbers();
    await tables.apply({ set: [service(B, ONE)], remove: [A] });
    expect(numbers()).toMatchObject([{ number: before!.number }]);
    expect([...gone[0]!.get(before!.number)!.backends]).toHaveLength(1);
  });

  it("that want the same address: the first by name has it, the other is told and gets it when the first leaves", async () => {
    const external = { externalAddresses: ["198.51.100.1"] };
    expect(await set(service(B, ONE, { ...external, clusterAddress: "10.96.0.11" }))).toEqual([]);
    expect(await set(service(A, TWO, external))).toEqual([
      `${B}: SERVICE_ADDRESS_TAKEN: ${B} does not answer on 198.51.100.1:80/TCP: ${A} does`,
    ]);
    expect(seen().filter((line) => line.startsWith("198"))).toEqual([expect.stringContaining("10.65.0.2:8080")]);
    await remove(A);
    expect(seen()).toEqual([
      "10.96.0.11:80/6 any -> 10.65.0.1:8080 | local nobody",
      "198.51.100.1:80/6 external,any -> 10.65.0.1:8080 | local nobody",
    ]);
  });

  it("cannot take another's cluster address by calling it external", async () => {
    await set(service(B, TWO));
    const told = await set(service(A, ONE, { clusterAddress: "10.96.0.11", externalAddresses: ["10.96.0.10"] }));
    expect(told).toEqual([`${A}: SERVICE_ADDRESS_TAKEN: ${A} does not answer on 10.96.0.10:80/TCP: ${B} does`]);
    expect(seen()[0]).toBe("10.96.0.10:80/6 any -> 10.65.0.1:8080 10.65.0.2:8080 | local nobody");
  });

  it("that do not fit are told; the others work, and they come in when there is room", async () => {
    object.close();
    // The kernel counts roughly in larger maps of this kind; in small ones exactly.
    open({ backends: 4 });
    await start();
    const full = service(B, ["10.65.1.1:1", "10.65.1.2:1", "10.65.1.3:1"], { clusterAddress: "10.96.0.11" });
    const third = service("default/c:http/tcp/4", ONE, { clusterAddress: "10.96.0.12" });
    const told = await set(service(A, TWO), full, third);
    expect(told).toEqual([`${B}: SERVICE_MAP_FULL: ${B} does not fit: all 4 entries of the map backends are taken`]);
    expect(seen().map((line) => line.split(":")[0])).toEqual(["10.96.0.10", "10.96.0.12"]);
    expect(backendCount()).toBe(3);
    await remove(A);
    await clock.advance(LIST_GRACE_MS);
    expect(await set()).toEqual([]);
    expect(seen()).toHaveLength(2);
    expect(seen()[0]).toContain("10.65.1.3:1");
  });

  it("whose addresses do not all fit answer on those that do", async () => {
    object.close();
    open({ frontends: 2 });
    await start();
    const told = await set(service(A, ONE, { externalAddresses: ["198.51.100.1"], nodePort: 30080 }));
    expect(told).toEqual([`${A}: SERVICE_MAP_FULL: ${A} does not fit: all 2 entries of the map frontends are taken`]);
    expect(seen()).toEqual([
      "10.96.0.10:80/6 any -> 10.65.0.1:8080 | local nobody",
      "198.51.100.1:80/6 external,any -> 10.65.0.1:8080 | local nobody",
    ]);
    expect(await set(service(A, TWO))).toEqual([]);
    expect(seen()).toEqual(["10.96.0.10:80/6 any -> 10.65.0.1:8080 10.65.0.2:8080 | local nobody"]);
  });

  it("are mended where somebody else changed the maps", async () => {
    await set(service(A, TWO), service(B, ONE, { clusterAddress: "10.96.0.11" }));
    const before = seen();
    for (const name of ["frontends", "backends"]) {
      const [[key] = []] = object.map(name).entries();
      object.map(name).delete(key!);
    }
    expect(seen()).not.toEqual(before);
    await tables.resync();
    expect(seen()).toEqual(before);
  });

  it("of an address nobody can read are told, and keep nobody else out", async () => {
    const told = await set(service(A, ONE, { clusterAddress: "nowhere" }), service(B, ONE));
    expect(told).toEqual([expect.stringContaining("EBPF_BAD_MODEL")]);
    expect(seen()).toHaveLength(1);
  });

  it("come and go by the thousand, and a restart finds them all", async () => {
    const many = Array.from({ length: 5000 }, (_, index) =>
      service(`default/s${index}:http/tcp/4`, TWO, { clusterAddress: `10.97.${index >> 8}.${index & 255}` }),
    );
    expect(await set(...many)).toEqual([]);
    expect([seen().length, backendCount()]).toEqual([5000, 10_000]);
    const before = numbers();
    await start();
    await set(...many);
    expect(numbers()).toEqual(before);
    await remove(...many.map(({ id }) => id));
    await clock.advance(LIST_GRACE_MS);
    await set();
    expect([seen().length, backendCount()]).toEqual([0, 0]);
  });

  describe("whose backend is gone", () => {
    const bytes = (text: string) => Buffer.from([...Array(10).fill(0), 255, 255, ...text.split(".").map(Number)]);
    const [CLIENT, VIP, BACKEND] = ["10.65.0.99", "10.96.0.10", "10.65.0.1"].map(bytes) as [Buffer, Buffer, Buffer];
    const flow = (protocol: number, number: number) => {
      const key = { src: CLIENT, dst: VIP, sport: 4000 + number, dport: 80, protocol };
      const to = { ...key, dst: BACKEND, dport: 8080 };
      const nothing = {
        lastSeen: 1n,
        packets: 1n,
        bytes: 1n,
        approvedIn: 0,
        approvedOut: 0,
        out: 0,
        state: 0,
        path: 0,
        denied: 0,
        ...{ told: 0, countedArriving: 0, toldPackets: 0n, toldBytes: 0n, traceIn: 0n, traceOut: 0n },
      };
      const value = { ...nothing, flags: CONNTRACK_FLAG.CT_NAT, to, service: number, mac: Buffer.alloc(6), pad2: 0 };
      const answer = { src: BACKEND, dst: CLIENT, sport: 8080, dport: key.sport, protocol };
      const back = { ...value, flags: CONNTRACK_FLAG.CT_NAT | CONNTRACK_FLAG.CT_REPLY };
      object.map("flows").update(fiveTupleLayout.write(key), conntrackEntryLayout.write(value));
      object.map("flows").update(fiveTupleLayout.write(answer), conntrackEntryLayout.write(back));
    };
    const left = () =>
      object
        .map("flows")
        .entries()
        .map(([key]) => fiveTupleLayout.read(key))
        .map(
          ({ protocol, sport, dport }) =>
            `${protocol} ${Math.max(sport, dport) === 8080 ? Math.min(sport, dport) : sport}`,
        )
        .sort();

    it("have their UDP flows ended, both ways; TCP and other services' flows go on", async () => {
      await set(service(A, TWO, { protocol: UDP }), service(B, TWO, { clusterAddress: "10.96.0.11", protocol: UDP }));
      for (const [protocol, number] of [
        [UDP, 1],
        [TCP, 1],
        [UDP, 2],
      ] as const)
        flow(protocol, number);
      await set(service(A, ["10.65.0.2:8080"], { protocol: UDP }));
      await deleteUdpConntrack(gone[0]!, object.map("flows"));
      expect(left()).toEqual([`${UDP} 4002`, `${UDP} 4002`, `${TCP} 4001`, `${TCP} 4001`]);
    });

    it("have clients choose anew that stayed with it", async () => {
      await set(service(A, TWO, { affinitySeconds: 60 }));
      const client = (service: number, address: Buffer, local: number) =>
        object
          .map("affinities")
          .update(
            affinityKeyLayout.write({ client: CLIENT, service, local }),
            affinityLayout.write({ address, port: 8080, lastUsed: 1n }),
          );
      client(1, BACKEND, 0);
      client(1, bytes("10.65.0.2"), 1);
      client(2, BACKEND, 0);
      await set(service(A, ["10.65.0.2:8080"], { affinitySeconds: 60 }));
      await deleteAffinities(gone[0]!, object.map("affinities"), object.map("socket_choices"));
      const keys = object
        .map("affinities")
        .entries()
        .map(([key]) => affinityKeyLayout.read(key));
      expect(keys.map(({ service, local }) => [service, local]).sort()).toEqual([
        [1, 1],
        [2, 0],
      ]);
    });
  });
});
