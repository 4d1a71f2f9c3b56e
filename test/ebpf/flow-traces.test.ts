import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Direction, ModelDelta, Packet, Policy, Rule, TierPolicies } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { evaluate, type Place } from "../../src/calc/policy/evaluate.ts";
import type { FlowSum } from "../../src/dataplane/flow-sums.ts";
import { Random } from "../calc/random.ts";
import { frame, tcp, udp, v4, v6 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { deltaOf, type Interface, OUTSIDE, PacketLab, POD_A, POD_B, REMOTE } from "./packet-lab.ts";

/** `FLOW_SEED` repeats one failure; `FLOW_PAIRS` runs for longer: 100000 is the long run. */
const FIRST_SEED = Number(process.env["FLOW_SEED"] ?? 1);
const PAIRS = Number(process.env["FLOW_PAIRS"] ?? 2_000);
const PACKETS = 100;
const WORLDS = Math.ceil(PAIRS / PACKETS);
const FIRST_PORT = 1000;

const missing = whyNoPrograms();
const families = ["v4", "v6"] as const;

/** A way through the node; each interface on it asks the policy of its endpoint. */
const WAYS = [
  { from: "a", to: "b", ends: [POD_A, POD_B] },
  { from: "b", to: "a", ends: [POD_B, POD_A] },
  { from: "a", to: "uplink", ends: [POD_A, REMOTE] },
  { from: "uplink", to: "b", ends: [OUTSIDE, POD_B] },
] as const;

describe.skipIf(missing)(`what flow logs say was asked${missing ? ` (${missing})` : ""}`, () => {
  let lab: PacketLab;
  beforeAll(async () => {
    lab = await PacketLab.open();
  });
  afterAll(() => lab?.close());

  it(`is what the plain evaluation asks, of ${WORLDS * PACKETS} random (model, packet) pairs`, {
    timeout: 120_000 + PAIRS * 60,
  }, async () => {
    const verdicts = { allow: 0, deny: 0 };
    for (let seed = FIRST_SEED; seed < FIRST_SEED + WORLDS; seed++) {
      const random = new Random(seed);
      const delta = randomDelta(random);
      const model = new ModelCopy();
      model.apply(delta);
      await lab.apply({}, delta);
      lab.clearConntrack();
      const flows = lab.dataplane.flows!();
      const interval = ((await flows.intervals()).at(-1) ?? 0) + 1;
      await flows.begin(interval);
      const expected = new Map<string, { action: string; hits: readonly string[] }>();
      for (let index = 0; index < PACKETS; index++) {
        const way = random.of(WAYS);
        // A port of its own, so that each packet is a sum.
        const packet = randomPacket(random, way.ends, FIRST_PORT + index);
        const plain = evaluate(model, packet, { from: placeOf(model, way.from), to: placeOf(model, way.to) });
        verdicts[plain.action]++;
        expected.set(nameOf(packet.source, packet.destinationPort!), { action: plain.action, hits: plain.hits });
        send(lab, way, packet);
      }
      await flows.begin(interval + 1);
      const sums = new Map<string, FlowSum[]>();
      for (const sum of await flows.read(interval)) {
        const name = nameOf(sum.source, sum.destinationPort);
        sums.set(name, [...(sums.get(name) ?? []), sum]);
      }
      await flows.forget(interval);
      for (const [name, { action, hits }] of expected) {
        const said = sums.get(name)?.find(({ packets }) => packets === 1);
        const { egress = [], ingress = [] } = said ?? {};
        const of = (hit: string) => (egress.includes(hit) ? "egress" : "ingress");
        const misplaced = [...egress, ...ingress].filter((hit) => /gress/.test(hit) && !hit.includes(of(hit)));
        expect(
          { name, action: said?.verdict.toLowerCase(), hits: [...egress, ...ingress], misplaced },
          `seed ${seed}: repeat with FLOW_SEED=${seed} FLOW_PAIRS=${PACKETS}`,
        ).toEqual({ name, action, hits, misplaced: [] });
      }
    }
    // A run in which one verdict hardly occurs would prove little.
    expect(Math.min(verdicts.allow, verdicts.deny)).toBeGreaterThan((WORLDS * PACKETS) / 10);
  });
});

function nameOf(source: string, port: number): string {
  return `${source} to port ${port}`;
}

function placeOf(model: ModelCopy, at: "a" | "b" | "uplink"): Place {
  if (at !== "uplink") return { at: "workload", id: `default/${at}` };
  return { at: "interface", endpoint: model.hostEndpoints.get("node") };
}

function send(lab: PacketLab, { from, to }: { from: Interface; to: Interface }, packet: Packet): void {
  const payload =
    packet.protocol === 6
      ? tcp(packet.sourcePort!, packet.destinationPort!)
      : udp(packet.sourcePort!, packet.destinationPort!);
  const wrap = packet.ipVersion === 4 ? v4 : v6;
  const bytes = frame(wrap({ source: packet.source, destination: packet.destination }, payload));
  const { verdict } = lab.send(from, "ingress", bytes);
  // Pods of this node get it straight, and what leaves the node is asked about where it does.
  if (to === "uplink" && verdict !== "drop") lab.send("uplink", "egress", bytes, from);
}

function randomPacket(
  random: Random,
  [source, destination]: readonly [typeof POD_A, typeof POD_A],
  port: number,
): Packet {
  const family = random.of(families);
  return {
    ...{ ipVersion: family === "v4" ? 4 : 6, protocol: random.of([6, 17]) },
    ...{ source: source[family], destination: destination[family] },
    ...{ sourcePort: 40_000 + random.below(100), destinationPort: port },
  };
}

/** Two tiers for each pod and for what passes the uplink, with rules that go on, pass, allow and deny. */
function randomDelta(random: Random): ModelDelta {
  const policies: Policy[] = [];
  const tiers = (who: string, direction: Direction): TierPolicies[] =>
    [0, 1].map((index) => {
      const ids = random.some(1, 2, (number) => `${who}-${direction}-${index}-${number}`);
      for (const id of ids) {
        const rules = random.some(0, 12, (number) => randomRule(random, `${id};${direction};${number}`));
        const none: Rule[] = [];
        policies.push({
          ...{ id, tier: "default", order: 1, ingress: none, egress: none },
          [direction]: rules,
        });
      }
      const endAction = index === 0 || random.chance(40) ? ("pass" as const) : ("deny" as const);
      return { name: `${direction}-${index}`, endAction, policies: ids };
    });
  const profile = (direction: Direction) => [randomRule(random, `all;${direction};0`, "allow")];
  const base = deltaOf({ host: {} });
  const decided = (who: string, direction: Direction) => ({ tiers: tiers(who, direction), profiles: ["all"] });
  const endpoints = base.endpoints.set.map((endpoint) => ({
    ...endpoint,
    ingress: decided(endpoint.id.replace("/", "-"), "ingress"),
    egress: decided(endpoint.id.replace("/", "-"), "egress"),
  }));
  const [host] = base.hostEndpoints.set;
  const forward = { ingress: tiers("host", "ingress"), egress: tiers("host", "egress") };
  const all = { id: "all", ingress: profile("ingress"), egress: profile("egress") };
  return {
    ...base,
    policies: { set: policies, remove: [] },
    profiles: { set: [all], remove: [] },
    endpoints: { set: endpoints, remove: [] },
    hostEndpoints: { set: [{ ...host!, forward }], remove: [] },
  };
}

function randomRule(random: Random, id: string, action?: Rule["action"]): Rule {
  const first = FIRST_PORT + random.below(PACKETS);
  return {
    ...{ id, action: action ?? random.of(["allow", "allow", "deny", "pass", "log", "log"] as const) },
    ...random.maybe(50, "protocol", () => random.of([6, 17])),
    ...random.maybe(50, "dstPorts", () => [[first, first + random.below(60)]] as [number, number][]),
    ...random.maybe(20, "ipVersion", () => random.of([4, 6] as const)),
    ...random.maybe(20, "srcNets", () => [random.of([`${POD_A.v4}/31`, `${POD_A.v6}/127`, "0.0.0.0/0", "::/0"])]),
  };
}
