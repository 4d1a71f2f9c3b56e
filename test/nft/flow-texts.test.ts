import { describe, expect, it } from "vitest";
import type { DataplaneModel, Packet } from "../../src/calc/model.ts";
import { trace } from "../../src/calc/policy/evaluate.ts";
import { desiredRuleset } from "../../src/dataplane/nft/desired-ruleset.ts";
import { withDenials } from "../../src/dataplane/nft/flows/denials.ts";
import { type FlowKey, FlowTexts } from "../../src/dataplane/nft/flows/flow-texts.ts";
import { ROW_KINDS, RowKeyWriter } from "../../src/dataplane/nft/flows/row-key.ts";
import { Places } from "../../src/dataplane/nft/places.ts";
import { reasonOf } from "../../src/dataplane/nft/ruleset.ts";
import { fakeKernel } from "../../src/kernel/fake/fake-kernel.ts";
import { addressBytes } from "../../src/kernel/netlink/netlink-message.ts";
import type { NetlinkPort } from "../../src/kernel/netlink/netlink-port.ts";
import { Random } from "../calc/random.ts";
import { type RandomCluster, randomCluster } from "../calc/random-cluster.ts";
import { type PacketEnd, randomPacket } from "../calc/random-packet.ts";
import { interpretedCause } from "./interpreter.ts";
import { modelOf } from "./random-model.ts";

/** `FLOW_PAIRS=100000` runs for longer, `FLOW_SEED` repeats one failure. */
const FIRST_SEED = Number(process.env["FLOW_SEED"] ?? 1);
const PAIRS = Number(process.env["FLOW_PAIRS"] ?? 2_000);
const PACKETS = 40;
const WORLDS = Math.ceil(PAIRS / PACKETS);

describe("what a flow of nftables says that decided", () => {
  it(
    `is what the policy reference says, on ${WORLDS * PACKETS} random (objects, packet) pairs`,
    async () => {
      const counts = { allow: 0, deny: 0, byRule: 0, skipped: 0 };
      for (let seed = FIRST_SEED; seed < FIRST_SEED + WORLDS; seed++) {
        const world = randomCluster(seed);
        const model = modelOf(world);
        const plain = desiredRuleset(model, { hostInterfaces: [world.uplink] });
        const { causes } = withDenials(plain, true);
        const numbers = new Map([...causes].flatMap(([number, some]) => some.map((cause) => [cause, number] as const)));
        const netlink = nodeOf(world);
        const texts = new FlowTexts();
        const places = new Places(model, netlink);
        const random = new Random(seed ^ 0xf10e);
        for (let index = 0; index < PACKETS; index++) {
          const { packet, from, to } = randomPacket(world, random);
          const path = { from: places.of(packet.source), to: places.of(packet.destination) };
          const said = `seed ${seed}, packet ${index}: ${JSON.stringify(packet)}`;
          // A source that is not where the packet came in: no connection is from there.
          const isItself = from.at === "workload" && to.at === "workload" && from.id === to.id;
          if (isItself || !isAt(model, path.from, from) || !isAt(model, path.to, to)) {
            counts.skipped++;
            continue;
          }
          const nameOf = (end: PacketEnd) => {
            if (end.at === "host") return undefined;
            return end.at === "uplink" ? world.uplink.name : model.endpoints.get(end.id)!.interfaceName;
          };
          const [wayIn, wayOut] = [nameOf(from), nameOf(to)];
          const { verdict, cause } = interpretedCause(plain, {
            packet,
            ...(wayIn === undefined ? {} : { in: wayIn }),
            ...(wayOut === undefined ? {} : { out: wayOut }),
            nodeAddresses: world.uplink.addresses,
          });
          const number = verdict === "deny" ? numbers.get(cause!) : 0;
          expect(number, said).toBeDefined();
          const flow = await flowOf(texts, model, netlink, rowOf(packet, number!), causes);
          const expected = trace(model, packet, path);
          counts[verdict]++;
          expect(flow, said).toMatchObject({
            ...{ source: packet.source, destination: packet.destination, protocol: packet.protocol },
            ...{ destinationPort: packet.destinationPort ?? 0, verdict: verdict === "allow" ? "Allow" : "Deny" },
          });
          if (verdict === "allow") {
            expect([flow.egress, flow.ingress], said).toEqual([expected.egress, expected.ingress]);
            continue;
          }
          if (reasonOf(cause!) !== undefined) {
            expect(flow.reason, said).toBe(reasonOf(cause!));
            continue;
          }
          // What the sets do not hold (ports of the sender, types of ICMP, the address asked for) may make the difference: then the rule alone.
          const last = [flow.egress?.at(-1), flow.ingress?.at(-1)];
          expect(last, said).toContain(cause);
          expect(flow.reason, said).toMatch(/^policy_(workload_(in|e)gress|host)$/);
          if (JSON.stringify([flow.egress, flow.ingress]) === JSON.stringify([expected.egress, expected.ingress])) {
            continue;
          }
          counts.byRule++;
          const isAlone = [flow.egress, flow.ingress].filter((hits) => hits !== undefined).flat().length === 1;
          expect(isAlone || !holdsAll(packet), said).toBe(true);
        }
      }
      expect(Math.min(counts.allow, counts.deny)).toBeGreaterThan((WORLDS * PACKETS) / 10);
      expect(counts.byRule).toBeLessThan(counts.deny / 10);
      expect(counts.skipped).toBeLessThan((WORLDS * PACKETS) / 2);
    },
    WORLDS * 2_000 + 60_000,
  );
});

/** Whether an element of a set says all of the packet that policy may ask. */
function holdsAll({ sourcePort, icmpType, originalDestination }: Packet): boolean {
  return sourcePort === undefined && icmpType === undefined && originalDestination === undefined;
}

function isAt(model: DataplaneModel, place: ReturnType<Places["of"]>, end: PacketEnd): boolean {
  if (place.at === "interface") return end.at === "uplink";
  return (
    place.at === end.at && (place.at !== "workload" || (end as { id: string }).id === place.id) && model !== undefined
  );
}

function rowOf(packet: Packet, number: number): Uint8Array {
  const { protocol, destination, sourcePort = 0, icmpType, icmpCode = 0 } = packet;
  const destinationPort = icmpType === undefined ? (packet.destinationPort ?? 0) : (icmpType << 8) | icmpCode;
  const isDropped = number !== 0;
  const asked = isDropped ? destination : (packet.originalDestination ?? destination);
  const ends = { source: wide(packet.source), destination: wide(destination), asked: wide(asked) };
  const askedPort = packet.originalDestinationPort ?? destinationPort;
  const ports = isDropped
    ? { sourcePort: 0, destinationPort: packet.destinationPort ?? 0, askedPort: 0 }
    : { sourcePort, destinationPort, askedPort };
  return new RowKeyWriter().write(ends, ports, protocol, isDropped ? ROW_KINDS.dropped : ROW_KINDS.allowed, number);
}

function wide(address: string): Uint8Array {
  const { bytes } = addressBytes(address);
  return bytes.length === 16 ? bytes : Buffer.concat([Buffer.alloc(10), Buffer.from([0xff, 0xff]), bytes]);
}

async function flowOf(
  texts: FlowTexts,
  model: DataplaneModel,
  netlink: NetlinkPort,
  row: Uint8Array,
  causes: ReadonlyMap<number, readonly string[]>,
): Promise<FlowKey> {
  const causesOf = (number: number) => causes.get(number) ?? [];
  const [text] = await texts.textsOf(row, () => ({ model, epoch: 1, netlink, causesOf }));
  return JSON.parse(text!) as FlowKey;
}

/** The node of a world, with its uplink. */
function nodeOf({ uplink }: RandomCluster): NetlinkPort {
  const netlink = fakeKernel().netlink();
  netlink.addVeth({ name: uplink.name, peer: { name: "far" } });
  const device = netlink.link(uplink.name)!.index;
  for (const { index } of netlink.links()) netlink.changeLink(index, { up: true });
  for (const address of uplink.addresses)
    netlink.addAddress({ device, address: `${address}/${address.includes(":") ? 64 : 24}` });
  for (const destination of ["0.0.0.0/0", "::/0"]) {
    netlink.replaceRoute({ destination, type: "unicast", table: 254, protocol: 3, device });
  }
  return netlink;
}
