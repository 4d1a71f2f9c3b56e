import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { whyNoNodes } from "../agent/node-lab.ts";
import { Random } from "../calc/random.ts";
import { DESTINATIONS, type Figures, FrameLab } from "./frames/frame-lab.ts";
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
    }, 240_000);
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
        for (let count = 0; count < MUTATED / SPEAKERS.length; count++) {
          lab.send(mutateFrame(random, samples, addresses));
          if (count % BATCH === BATCH - 1) await lab.fence();
        }
      }
      await lab.fence();
      finish(`mutated frames of seed ${SEED}`, figures);
    });
  },
);
