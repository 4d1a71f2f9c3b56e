import { beforeEach, expect, it } from "vitest";
import {
  CONNTRACK_FLAG,
  conntrackEntryLayout,
  fiveTupleLayout,
  NODE_FIELD,
  TOLD,
} from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import { fakeKernel } from "../../../kernel/fake/fake-kernel.ts";
import { kernelTime } from "../../../kernel/kernel-time.ts";
import { u32 } from "../programs/programs.ts";
import { ConntrackMigration } from "./migrate-conntrack.ts";

const BEFORE = "/sys/fs/bpf/before";
const [CLIENT, SERVICE, ONE, OTHER] = [1, 2, 3, 4].map((last) => Buffer.alloc(16, last)) as [
  Buffer,
  Buffer,
  Buffer,
  Buffer,
];

let before: Record<"flows" | "node", BpfMap>;
let ours: Record<"flows" | "node", BpfMap>;
let carry: ConntrackMigration;

beforeEach(() => {
  const { bpf } = fakeKernel();
  const map = (name: string, keySize: number, valueSize: number) =>
    bpf.createMap({ name, type: "hash", keySize, valueSize, maxEntries: 64 });
  const maps = () => ({
    flows: map("flows", fiveTupleLayout.size, conntrackEntryLayout.size),
    node: map("node", 4, 4),
  });
  [before, ours] = [maps(), maps()];
  bpf.makePinDirectory(BEFORE);
  for (const [name, one] of Object.entries(before)) one.pin(`${BEFORE}/${name}`);
  before.node.update(u32(NODE_FIELD.NODE_EPOCH), u32(7));
  carry = new ConntrackMigration(bpf, BEFORE, (name) => ours[name as "flows"]);
});

const keyOf = (src: Buffer, sport: number, dst: Buffer, dport: number) =>
  fiveTupleLayout.write({ src, dst, sport, dport, protocol: 6 });
const asks = keyOf(CLIENT, 1000, SERVICE, 80);
const answersOf = (backend: Buffer) => keyOf(backend, 8080, CLIENT, 1000);

/** Both directions of a client's flow to a backend of the service, as programs write them. */
function flowTo(backend: Buffer, lastSeen: bigint): { asking: Buffer; answering: Buffer } {
  const value = (flags: number, to: ReturnType<typeof fiveTupleLayout.read>) => {
    const bytes = Buffer.alloc(conntrackEntryLayout.size);
    bytes.writeBigUInt64LE(lastSeen, conntrackEntryLayout.at.lastSeen);
    bytes[conntrackEntryLayout.at.flags] = flags;
    fiveTupleLayout.write(to).copy(bytes, conntrackEntryLayout.at.to);
    return bytes;
  };
  const { CT_NAT: FLOW_NAT, CT_REPLY: FLOW_REPLY } = CONNTRACK_FLAG;
  return {
    asking: value(FLOW_NAT, { src: CLIENT, dst: backend, sport: 1000, dport: 8080, protocol: 6 }),
    answering: value(FLOW_NAT | FLOW_REPLY, { src: SERVICE, dst: CLIENT, sport: 80, dport: 1000, protocol: 6 }),
  };
}

function put({ flows }: { flows: BpfMap }, backend: Buffer, lastSeen: bigint): void {
  const { asking, answering } = flowTo(backend, lastSeen);
  flows.update(asks, asking);
  flows.update(answersOf(backend), answering);
}

it("a flow comes over with both its directions, and programs act as they did", async () => {
  put(before, ONE, 5n);
  await carry.copy();
  expect(ours.flows.lookup(asks)).toEqual(before.flows.lookup(asks));
  expect(ours.flows.lookup(answersOf(ONE))).toEqual(before.flows.lookup(answersOf(ONE)));
  expect(ours.node.lookup(u32(NODE_FIELD.NODE_EPOCH))).toEqual(u32(7));
});

it("one of which only half came over, and which our programs have seen since, is made whole", async () => {
  carry.startSharing();
  const now = kernelTime();
  put(before, ONE, now);
  ours.flows.update(asks, flowTo(ONE, now + 1_000_000_000n).asking);
  await carry.copy();
  expect(ours.flows.lookup(answersOf(ONE))).toEqual(before.flows.lookup(answersOf(ONE)));
});

it("one whose addresses and ports are another's since, by our programs, stays behind", async () => {
  carry.startSharing();
  const now = kernelTime();
  put(before, ONE, now);
  put(ours, OTHER, now + 1_000_000_000n);
  const newer = ours.flows.lookup(asks);
  await carry.copy();
  expect(ours.flows.lookup(asks)).toEqual(newer);
  expect(ours.flows.lookup(answersOf(ONE))).toBeUndefined();
});

it("one that takes the place of a flow that is over comes over whole", async () => {
  put(ours, OTHER, 5n);
  carry.startSharing();
  put(before, ONE, kernelTime());
  await carry.copy();
  expect(ours.flows.lookup(asks)).toEqual(before.flows.lookup(asks));
  expect(ours.flows.lookup(answersOf(ONE))).toEqual(before.flows.lookup(answersOf(ONE)));
});

it("what a layout without flow logs counted is neither new packets nor a new connection", async () => {
  const { bpf } = fakeKernel();
  const { told, toldPackets, toldBytes, packets, bytes } = conntrackEntryLayout.at;
  const map = (name: string, keySize: number, valueSize: number) =>
    bpf.createMap({ name, type: "hash", keySize, valueSize, maxEntries: 64 });
  const older = { flows: map("flows", fiveTupleLayout.size, 96), node: map("node", 4, 4) };
  bpf.makePinDirectory(BEFORE);
  for (const [name, one] of Object.entries(older)) one.pin(`${BEFORE}/${name}`);
  const value = flowTo(ONE, 5n).asking.subarray(0, 96);
  value.writeBigUInt64LE(40n, packets);
  value.writeBigUInt64LE(4000n, bytes);
  older.flows.update(asks, value);
  older.flows.update(answersOf(ONE), flowTo(ONE, 5n).answering.subarray(0, 96));
  await new ConntrackMigration(bpf, BEFORE, (name) => ours[name as "flows"]).copy();
  const found = ours.flows.lookup(asks)!;
  expect([found[told], found.readBigUInt64LE(toldPackets), found.readBigUInt64LE(toldBytes)]).toEqual([
    TOLD.TOLD_STARTED,
    40n,
    4000n,
  ]);
});
