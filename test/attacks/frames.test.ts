import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { whyNoNodes } from "../agent/node-lab.ts";
import { Random } from "../calc/random.ts";
import { typeOf } from "./frames/attempt.ts";
import { ethernet } from "./frames/build-frame.ts";
import { DESTINATIONS, type Figures, FrameLab } from "./frames/frame-lab.ts";
import { halves } from "./frames/malformed-fragments.ts";
import { malformedFrames } from "./frames/malformed-frames.ts";
import { mutateFrame, validFrames } from "./frames/mutated-frames.ts";
import { FAMILIES, PLANES } from "./packet-lab.ts";

/** `FRAMES_MUTATED` runs for longer: 100000 is the long run. `FRAMES_SEED` begins elsewhere. */
const MUTATED = Number(process.env["FRAMES_MUTATED"] ?? 3_000);
const SEED = Number(process.env["FRAMES_SEED"] ?? 1);
/** Sent before what was heard is read: the sockets hold as much. */
const BATCH = 500;
const SPEAKERS = ["attacker", "jailed"] as const;
const why = whyNoNodes();

/** A pod with NET_RAW writes its frames itself. What policy denies, and what is not from its own addresses, must not be heard. */
describe.skipIf(why !== undefined).each(PLANES)(
  `frames of a hostile pod, $plane${why ? ` (${why})` : ""}`,
  ({ plane, bpf }) => {
    let lab: FrameLab;
    beforeAll(async () => {
      lab = await FrameLab.open(bpf);
      await lab.fence();
    });
    afterAll(() => lab?.close());

    function begin(): Figures {
      lab.figures = { sent: 0, refused: 0, heard: {}, denied: [] };
      return lab.figures;
    }

    function finish(what: string, { sent, refused, heard, denied }: Figures): void {
      const places = Object.entries(heard).map(([place, count]) => `${place} ${count}`);
      console.log(
        `${plane}: ${sent} ${what} sent (${refused} refused by the sender's own kernel), heard by ${places.join(", ")}; denied heard ${denied.length}`,
      );
      expect(denied.slice(0, 40)).toEqual([]);
      // Frames do arrive where policy lets them: a lab without a path would hear nothing denied, either.
      for (const place of ["victim", "open", "far", "node-1", "node-2", "wire"])
        expect(heard[place], place).toBeGreaterThan(0);
    }

    it("malformed frames, at least 200 in each family", async () => {
      const figures = begin();
      const catalogue = new Map<string, number>();
      for (const speaker of SPEAKERS) {
        await lab.speakAs(speaker);
        for (const { family, name } of FAMILIES) {
          for (const to of DESTINATIONS) {
            const all = malformedFrames(lab.ends(speaker, to, family));
            expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
            expect(all.length).toBeGreaterThanOrEqual(200);
            catalogue.set(name, all.length);
            for (const { frames, offload } of all) for (const frame of frames) lab.send(frame, offload);
            await lab.fence();
          }
        }
      }
      const attempts = [...catalogue].map(([name, count]) => `${count} attempts of ${name}`);
      finish(`malformed frames (${attempts.join(", ")}, each to every destination)`, figures);
    });

    /** Nodes reassemble fragments; the pieces of one packet must all be from the pod whose source they have. */
    it("a fragment with a forged source is no part of another pod's packet", async () => {
      const figures = begin();
      const [forgery, rest] = ["forged by another pod".padEnd(32), "of the pod itself".padEnd(32)];
      await lab.speakAs("jailed");
      for (const { family } of FAMILIES) {
        for (const to of ["victim", "open", "far", "node-1", "node-2"] as const) {
          const ends = lab.ends("jailed", to, family);
          const forger = lab.ends("attacker", to, family).ethernet;
          // The pod's own fragment is the last to arrive, so that the whole packet seems to be from its interface.
          for (const forgesFirst of [true, false]) {
            const [first, last] = halves(ends, forgesFirst ? forgery + rest : rest + forgery);
            const [forged, own] = forgesFirst ? [first, last] : [last, first];
            lab.sendForged("attacker", ethernet(forger, typeOf(forged), forged), Buffer.from(forgery));
            lab.send(ethernet(ends.ethernet, typeOf(own), own));
          }
          await lab.fence();
        }
      }
      finish("fragments", figures);
    });

    it(`${MUTATED} mutated frames of seed ${SEED}`, { timeout: 300_000 + MUTATED * 10 }, async () => {
      const figures = begin();
      const random = new Random(SEED);
      const addresses = [
        ...[...DESTINATIONS, ...SPEAKERS].flatMap((name) => FAMILIES.map(({ family }) => lab.address(name, family))),
        ...["127.0.0.1", "255.255.255.255", "224.0.0.1", "169.254.1.1", "0.0.0.0", "::", "::1", "ff02::1", "fe80::1"],
      ];
      for (const speaker of SPEAKERS) {
        await lab.speakAs(speaker);
        const samples = FAMILIES.flatMap(({ family }) =>
          DESTINATIONS.flatMap((to) => validFrames(lab.ends(speaker, to, family))),
        );
        const before = figures.sent;
        for (let count = 1; figures.sent - before < MUTATED / SPEAKERS.length; count++) {
          lab.send(mutateFrame(random, samples, addresses));
          if (count % BATCH === 0) await lab.fence();
        }
      }
      await lab.fence();
      finish(`mutated frames of seed ${SEED}`, figures);
    });
  },
);
