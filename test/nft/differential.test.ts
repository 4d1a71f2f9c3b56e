import { describe, expect, it } from "vitest";
import { desiredRuleset } from "../../src/dataplane/nft/desired-ruleset.ts";
import { withDenials } from "../../src/dataplane/nft/flows/denials.ts";
import { Random } from "../calc/random.ts";
import { randomCluster } from "../calc/random-cluster.ts";
import { type PacketEnd, type RandomPacket, randomPacket } from "../calc/random-packet.ts";
import { referenceVerdict } from "../calc/reference-evaluator.ts";
import { interpret } from "./interpreter.ts";
import { modelOf } from "./random-model.ts";

/** `NFT_SEED` and `NFT_WORLDS` repeat one failure, or run for longer. */
const FIRST_SEED = Number(process.env["NFT_SEED"] ?? 1);
const WORLDS = Number(process.env["NFT_WORLDS"] ?? 800);
const PACKETS = 60;
const PATIENCE = 240 * WORLDS + 60_000;

/**
 * Before services are translated nobody knows where a packet will go: not that it is for a failsafe port of the node, nor that it comes back to
 * the pod that sent it. Policy of that moment decides without it, here and in the kernel.
 */
function isBeyondSight({ packet, from, to }: RandomPacket): boolean {
  // A pod that means itself by its own address never leaves its namespace: such a packet was sent to a service.
  const itself = from.at === "workload" && to.at === "workload" && from.id === to.id;
  return itself || (packet.originalDestination !== undefined && from.at !== "host" && to.at === "host");
}

describe("the rules for nftables and the plain reference", () => {
  it(
    `agree on ${WORLDS * PACKETS} random (objects, packet) pairs`,
    () => {
      const counts = { allow: 0, deny: 0, beyondSight: 0 };
      for (let seed = FIRST_SEED; seed < FIRST_SEED + WORLDS; seed++) {
        const world = randomCluster(seed);
        const model = modelOf(world);
        const plain = desiredRuleset(model, { hostInterfaces: [world.uplink] });
        // Numbered drops decide as plain ones, recorded or not.
        const ruleset = seed % 3 === 0 ? plain : withDenials(plain, seed % 3 === 1).rules;
        const nameOf = (end: PacketEnd) => {
          if (end.at === "host") return undefined;
          return end.at === "uplink" ? world.uplink.name : model.endpoints.get(end.id)!.interfaceName;
        };
        const random = new Random(seed ^ 0xf117e5);
        for (let index = 0; index < PACKETS; index++) {
          const made = randomPacket(world, random);
          const [reference, wayIn, wayOut] = [
            referenceVerdict(world.objects, world, made.packet, made),
            nameOf(made.from),
            nameOf(made.to),
          ];
          const verdict = interpret(ruleset, {
            packet: made.packet,
            ...(wayIn === undefined ? {} : { in: wayIn }),
            ...(wayOut === undefined ? {} : { out: wayOut }),
            nodeAddresses: world.uplink.addresses,
          });
          if (verdict !== reference && isBeyondSight(made)) {
            counts.beyondSight++;
            continue;
          }
          counts[reference]++;
          if (verdict === reference) continue;
          expect.fail(
            `seed ${seed}, packet ${index}: the reference says ${reference}, the rules ${verdict}\n` +
              `repeat with NFT_SEED=${seed} NFT_WORLDS=1\n${JSON.stringify(made, null, 1)}`,
          );
        }
      }
      expect(Math.min(counts.allow, counts.deny)).toBeGreaterThan((WORLDS * PACKETS) / 10);
      expect(counts.beyondSight).toBeLessThan((WORLDS * PACKETS) / 1_000);
      expect(counts.allow + counts.deny).toBeGreaterThan(WORLDS * PACKETS * 0.999);
    },
    PATIENCE,
  );
});
