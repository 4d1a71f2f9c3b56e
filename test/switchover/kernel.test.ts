import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { netBytes } from "../../src/dataplane/ebpf/net-bytes.ts";
import { CONNECTION_MARK } from "../../src/dataplane/nft/ruleset.ts";
import { exportConntrack, exportIdleConntrack } from "../../src/dataplane/switchover/export-conntrack.ts";
import { importNfConntrack } from "../../src/dataplane/switchover/import-nf-conntrack.ts";
import {
  createNatKeepalive,
  dropUnknownWhile,
  type NatKeepalive,
} from "../../src/dataplane/switchover/nat-keepalive.ts";
import {
  CONNTRACK_FLAG,
  CONNTRACK_STATE,
  conntrackEntryLayout,
  FORWARD_PATH,
  fiveTupleLayout,
  nfConntrackEntryLayout,
} from "../../src/gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../src/kernel/bpf/bpf-port.ts";
import type { ConntrackPort, ConntrackTuple } from "../../src/kernel/conntrack/conntrack-port.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { kernelTime } from "../../src/kernel/kernel-time.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import type { NftPort } from "../../src/kernel/nft/nft-port.ts";
import { whyNoNodes } from "../agent/node-lab.ts";

const why = whyNoNodes();
const kernel = realKernel();
const POOLS = ["10.244.0.0/16"];
const TCP = 6;
const UDP = 17;
const bytes = (address: string) => netBytes(`${address}/32`).bytes;

interface Carried {
  source: string;
  port: number;
  flags?: number;
  path?: number;
  denied?: number;
  protocol?: number;
}

/** What the kernel makes of what the programs carry, in a namespace of its own. */
describe.skipIf(why !== undefined)(
  `conntrack entries and rules of a switchover, in the kernel${why ? ` (${why})` : ""}`,
  () => {
    let netns: Netns;
    let conntrack: ConntrackPort;
    let keep: NatKeepalive;
    let nft: NftPort;
    const maps: BpfMap[] = [];
    beforeAll(async () => {
      netns = kernel.netns.create(`ho-${process.pid}-${randomBytes(2).toString("hex")}`);
      conntrack = kernel.conntrack(netns);
      nft = kernel.nft(netns);
      keep = createNatKeepalive({ kernel, table: "keep", overlay: "vxlan.vendor", netns });
      const model = new ModelCopy();
      await keep.put(false, model);
    });
    afterAll(() => {
      for (const map of maps) map.close();
      conntrack?.close();
      keep?.close();
      nft?.close();
      netns?.close();
      if (netns) kernel.netns.delete(netns.name);
    });

    function flowsOf(...carried: Carried[]): BpfMap {
      const sizes = { keySize: fiveTupleLayout.size, valueSize: conntrackEntryLayout.size, maxEntries: 65_536 };
      const map = kernel.bpf.createMap({ name: "story_flows", type: "lruHash", ...sizes });
      maps.push(map);
      for (const {
        source,
        port,
        flags = CONNTRACK_FLAG.CT_NAT,
        path = FORWARD_PATH.PATH_LOCAL,
        denied = 0,
        protocol = TCP,
      } of carried) {
        const key = { src: bytes(source), dst: bytes("10.96.0.1"), sport: port, dport: 80, protocol };
        const to = { ...key, dst: bytes("10.244.2.2"), dport: 8080 };
        const rest = {
          packets: 1n,
          bytes: 1n,
          approvedIn: 0,
          approvedOut: 0,
          out: 0,
          service: 1,
          mac: new Uint8Array(6),
          ...{ told: 0, countedArriving: 0, toldPackets: 0n, toldBytes: 0n, traceIn: 0n, traceOut: 0n },
        };
        const state = { lastSeen: kernelTime(), state: CONNTRACK_STATE.CT_ESTABLISHED, path, flags, denied };
        map.update(fiveTupleLayout.write(key), conntrackEntryLayout.write({ ...rest, ...state, to }));
      }
      return map;
    }

    const asked = (source: string, sourcePort: number): ConntrackTuple => ({
      ...{ protocol: TCP, source, sourcePort, destination: "10.96.0.1", destinationPort: 80 },
    });
    const give = (flows: BpfMap, generation: number, known = new Set<string>()) => ({
      ...{ flows, conntrack, generation, known, pools: POOLS },
      hold: <T>(act: () => Promise<T>) => dropUnknownWhile(nft, "keep", act),
    });

    it("a translated flow is the kernel's, with its translation and the drain's mark", async () => {
      const flows = flowsOf({ source: "10.244.1.1", port: 1001 });
      expect(await exportConntrack(give(flows, 3), true)).toEqual({ exported: 1, refused: 0, staying: 0 });
      expect(conntrack.find(asked("10.244.1.1", 1001))).toMatchObject({
        ...{ mark: 3 * 0x1_0000, destinationNat: true, tcpState: "established", assured: true },
        reply: { source: "10.244.2.2", sourcePort: 8080, destination: "10.244.1.1", destinationPort: 1001 },
      });
    });

    it("a flow that policy denies is the kernel's as one that is dropped there", async () => {
      const flows = flowsOf({ source: "10.244.1.1", port: 1011, denied: 1 });
      expect(await exportConntrack(give(flows, 3), true)).toEqual({ exported: 1, refused: 0, staying: 0 });
      expect(conntrack.find(asked("10.244.1.1", 1011))?.mark).toBe(3 * 0x1_0000 + CONNECTION_MARK.denied);
    });

    it("what the kernel has of an earlier life goes before the drain, and is left alone after it", async () => {
      const flows = flowsOf({ source: "10.244.1.1", port: 1002 });
      conntrack.insert({ original: asked("10.244.1.1", 1002), timeout: 600 });
      expect(await exportConntrack(give(flows, 4), false)).toEqual({ exported: 0, refused: 1, staying: 0 });
      expect(conntrack.find(asked("10.244.1.1", 1002))?.mark).toBe(0);
      expect(await exportConntrack(give(flows, 4), true)).toEqual({ exported: 1, refused: 0, staying: 0 });
      expect(conntrack.find(asked("10.244.1.1", 1002))?.mark).toBe(4 * 0x1_0000);
    });

    it("a connection that is over, straight to the backend from the same port, does not get the given one another port", async () => {
      const flows = flowsOf({ source: "10.244.1.1", port: 1007 });
      const over = { ...asked("10.244.1.1", 1007), destination: "10.244.2.2", destinationPort: 8080 };
      conntrack.insert({ original: over, timeout: 120, tcpState: "timeWait" });
      expect(await exportConntrack(give(flows, 8), false)).toEqual({ exported: 0, refused: 1, staying: 0 });
      expect(conntrack.find(over)?.tcpState).toBe("timeWait");
      expect(await exportConntrack(give(flows, 8), true)).toEqual({ exported: 1, refused: 0, staying: 0 });
      expect(conntrack.find(asked("10.244.1.1", 1007))?.reply).toMatchObject({
        ...{ source: "10.244.2.2", sourcePort: 8080, destination: "10.244.1.1", destinationPort: 1007 },
      });
    });

    it("a flow that was given and then cut by policy is not given again, and the programs forget it", async () => {
      const flows = flowsOf({ source: "10.244.1.1", port: 1003 });
      const known = new Set<string>();
      await exportConntrack(give(flows, 5, known), true);
      conntrack.delete(asked("10.244.1.1", 1003));
      await exportConntrack(give(flows, 5, known), false);
      expect(conntrack.find(asked("10.244.1.1", 1003))).toBeUndefined();
      await exportIdleConntrack(give(flows, 5, known));
      expect(flows.entries()).toEqual([]);
    });

    it("an idle flow is the kernel's for as long as the kernel remembers idle ones", async () => {
      const flows = flowsOf({ source: "10.244.1.1", port: 1004 });
      const known = new Set<string>();
      await exportConntrack(give(flows, 6, known), true);
      expect(conntrack.find(asked("10.244.1.1", 1004))?.timeout).toBeLessThanOrEqual(120);
      expect(await exportIdleConntrack(give(flows, 6, known))).toEqual({ exported: 1, refused: 0, staying: 0 });
      expect(conntrack.find(asked("10.244.1.1", 1004))?.timeout).toBeGreaterThan(400_000);
      expect(flows.entries()).toEqual([]);
    });

    it("a client's kept address through the overlay stays with the programs", async () => {
      const flows = flowsOf({ source: "192.0.2.9", port: 1005, path: FORWARD_PATH.PATH_OVERLAY });
      expect(await exportConntrack(give(flows, 7), true)).toEqual({ exported: 0, refused: 0, staying: 1 });
      expect(flows.entries()).toHaveLength(1);
    });

    it("what the kernel knows by what the programs make of it becomes one flow, with both translations", async () => {
      const { CT_NAT: FLOW_NAT, CT_MASQUERADE: FLOW_MARK } = CONNTRACK_FLAG;
      const flows = flowsOf(
        { source: "192.0.2.9", port: 1008, path: FORWARD_PATH.PATH_STACK, flags: FLOW_NAT | FLOW_MARK },
        { source: "10.244.1.1", port: 1009, path: FORWARD_PATH.PATH_STACK },
      );
      const behind = (source: string, sourcePort: number) => ({
        ...asked(source, sourcePort),
        ...{ destination: "10.244.2.2", destinationPort: 8080 },
      });
      const masqueraded = { address: "192.0.2.1", port: 40_001 };
      conntrack.insert({ original: behind("192.0.2.9", 1008), timeout: 600, sourceNat: masqueraded });
      conntrack.insert({ original: behind("10.244.1.1", 1009), timeout: 600 });
      // Not before programs leave to the kernel what they do not know.
      expect(await exportConntrack(give(flows, 9), true)).toEqual({ exported: 0, refused: 2, staying: 0 });
      expect(await exportConntrack(give(flows, 9), false)).toEqual({ exported: 2, refused: 0, staying: 0 });
      expect(flows.entries()).toEqual([]);
      const backend = { source: "10.244.2.2", sourcePort: 8080 };
      expect(conntrack.find(asked("192.0.2.9", 1008))?.reply).toMatchObject({
        ...{ ...backend, destination: "192.0.2.1", destinationPort: 40_001 },
      });
      expect(conntrack.find(asked("10.244.1.1", 1009))?.reply).toMatchObject({
        ...{ ...backend, destination: "10.244.1.1", destinationPort: 1009 },
      });
      expect(conntrack.find(asked("10.244.1.1", 1009))?.timeout).toBeGreaterThan(500);
      expect(conntrack.find(behind("192.0.2.9", 1008))).toBeUndefined();
      expect(conntrack.find(behind("10.244.1.1", 1009))).toBeUndefined();
    });

    it("datagrams that the kernel has forgotten begin a new flow there: nobody knows which address they left with", async () => {
      const flows = flowsOf({ source: "10.244.1.1", port: 1013, path: FORWARD_PATH.PATH_STACK, protocol: UDP });
      expect(await exportConntrack(give(flows, 9), false)).toEqual({ exported: 1, refused: 0, staying: 0 });
      expect(flows.entries()).toEqual([]);
      expect(conntrack.find({ ...asked("10.244.1.1", 1013), protocol: UDP })).toBeUndefined();
    });

    it("one that was not answered yet when the others were given is given when it is idle", async () => {
      const flows = flowsOf({ source: "10.244.1.1", port: 1010 });
      const known = new Set<string>();
      expect(await exportIdleConntrack(give(flows, 10, known))).toEqual({ exported: 0, refused: 1, staying: 0 });
      expect(await exportIdleConntrack(give(flows, 10, known))).toEqual({ exported: 1, refused: 0, staying: 0 });
      expect(flows.entries()).toEqual([]);
    });

    it("what an agent that died held back is let go by the next", async () => {
      const held = async () => JSON.stringify(await nft.list("list table inet keep")).includes("held back");
      const died = dropUnknownWhile(nft, "keep", async () => {
        expect(await held()).toBe(true);
        await keep.put(false, new ModelCopy());
        expect(await held()).toBe(false);
      });
      await died;
      expect(await held()).toBe(false);
    });

    it("programs that cannot look are told both directions of what the kernel has, and no longer what it forgot", async () => {
      const sizes = { keySize: fiveTupleLayout.size, valueSize: nfConntrackEntryLayout.size, maxEntries: 65_536 };
      const oldFlows = kernel.bpf.createMap({ name: "story_old", type: "lruHash", ...sizes });
      maps.push(oldFlows);
      const options = { imported: oldFlows, conntrack, nodeAddresses: [], which: "all" } as const;
      const known = await importNfConntrack(options);
      expect(oldFlows.entries()).toHaveLength(2 * known);
      const { src, dst } = { src: bytes("10.244.1.1"), dst: bytes("10.96.0.1") };
      const key = fiveTupleLayout.write({ src, dst, sport: 1001, dport: 80, protocol: TCP });
      expect(nfConntrackEntryLayout.read(oldFlows.lookup(key)!)).toMatchObject({ dport: 8080, mark: 3, reply: 0 });
      conntrack.delete(asked("10.244.1.1", 1001));
      await importNfConntrack(options);
      expect(oldFlows.lookup(key)).toBeUndefined();
    });

    it("the table that keeps NAT alive says what it is, also where there is nothing to guard, and is gone when it goes", async () => {
      const model = new ModelCopy();
      expect(await keep.state()).toBe("open");
      await keep.noteProxy();
      await keep.put(true, model);
      expect(await keep.state()).toBe("gated");
      expect(await keep.proxyWasHere()).toBe(true);
      await keep.remove();
      expect(await keep.state()).toBe("absent");
      expect(await keep.proxyWasHere()).toBe(false);
      await keep.put(false, model);
    });
  },
);
