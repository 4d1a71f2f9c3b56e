import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ModelCopy } from "../../src/calc/model-copy.ts";
import { readActualRuleset } from "../../src/dataplane/nft/actual-ruleset.ts";
import { desiredRuleset } from "../../src/dataplane/nft/desired-ruleset.ts";
import { withDenials } from "../../src/dataplane/nft/flows/denials.ts";
import { transaction } from "../../src/dataplane/nft/transaction.ts";
import { Random } from "../calc/random.ts";
import { type RandomCluster, randomCluster } from "../calc/random-cluster.ts";
import { type PacketEnd, type RandomPacket, randomPacket } from "../calc/random-packet.ts";
import { referenceVerdict } from "../calc/reference-evaluator.ts";
import { whyNoNftables } from "../kernel/why-not.ts";
import type { LabPod } from "./lab-pod.ts";
import { RandomLab } from "./random-lab.ts";
import { modelOf } from "./random-model.ts";

const reason = whyNoNftables();
const FIRST_SEED = Number(process.env["NFT_SEED"] ?? 1);
const WORLDS = Number(process.env["NFT_LIVE_WORLDS"] ?? 40);
const PACKETS = 30;
const UDP = 17;
/** The node's own packets are refused before they are sent. */
const isSentOrRefused = (answer: unknown) => answer === true || /EPERM/.test(String(answer));

describe.skipIf(reason)(`real packets in random worlds${reason ? ` (${reason})` : ""}`, () => {
  let lab: RandomLab;
  beforeAll(() => {
    lab = new RandomLab();
  });
  afterAll(async () => {
    await lab?.stop();
  });

  it(
    "arrive where the plain reference says, and nowhere else",
    async () => {
      let written = readActualRuleset([]);
      const counts = { allow: 0, deny: 0 };
      for (let seed = FIRST_SEED; seed < FIRST_SEED + WORLDS; seed++) {
        const world = randomCluster(seed);
        const model = modelOf(world);
        await lab.become(model);
        const { commands, after } = transaction(
          "story",
          withDenials(desiredRuleset(model, { hostInterfaces: [world.uplink] }), seed % 2 === 0).rules,
          written,
        );
        await lab.nft.run(commands.join("\n"));
        written = after;
        await lab.forget();
        const packets = somePackets(world, model, new Random(seed ^ 0x11fe));
        const expected = packets.filter((made) => verdictOf(world, made) === "allow").map(({ id }) => id);
        counts.allow += expected.length;
        counts.deny += packets.length - expected.length;
        for (const { id, packet, from } of packets) {
          const order = { do: "send", source: packet.source, sourcePort: packet.sourcePort, text: id };
          const target = { address: packet.destination, port: packet.destinationPort };
          expect(await whoIs(model, from).order({ ...order, ...target })).toSatisfy(isSentOrRefused);
        }
        const heard = await lab.received(expected);
        const wrong = packets.filter(({ id }) => heard.includes(id) !== expected.includes(id));
        expect(wrong, `seed ${seed}: repeat with NFT_SEED=${seed} NFT_LIVE_WORLDS=1`).toEqual([]);
      }
      expect(Math.min(counts.allow, counts.deny)).toBeGreaterThan((WORLDS * PACKETS) / 20);
    },
    WORLDS * 12_000,
  );

  function whoIs(model: ModelCopy, end: PacketEnd): LabPod {
    if (end.at !== "workload") return lab.labPods.get(end.at)!;
    const [v4] = model.endpoints.get(end.id)!.addresses;
    return lab.labPods.get(v4!)!;
  }
});

interface Made extends RandomPacket {
  id: string;
}

/** Datagrams nobody translates, and no two that connection tracking would take for one flow. */
function somePackets(world: RandomCluster, model: ModelCopy, random: Random): Made[] {
  const made: Made[] = [];
  const flows = new Set<string>();
  for (let tries = 0; tries < PACKETS * 40 && made.length < PACKETS; tries++) {
    const one = randomPacket(world, random);
    const { packet, from, to } = one;
    const itself = from.at === "workload" && to.at === "workload" && from.id === to.id;
    if (packet.protocol !== UDP || packet.originalDestination !== undefined || itself) continue;
    // What comes in by the uplink and leaves by it never was for us.
    if (from.at === "uplink" && to.at === "uplink") continue;
    if (from.at === "workload" && !model.endpoints.get(from.id)!.addresses[0]!.includes(".")) continue;
    const ends = [`${packet.source} ${packet.sourcePort}`, `${packet.destination} ${packet.destinationPort}`];
    const flow = ends.sort().join(" ");
    if (flows.has(flow)) continue;
    flows.add(flow);
    made.push({ ...one, id: `${world.seed}.${made.length}` });
  }
  return made;
}

function verdictOf(world: RandomCluster, { packet, from, to }: Made): "allow" | "deny" {
  return referenceVerdict(world.objects, world, packet, { from, to });
}
