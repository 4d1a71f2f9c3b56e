import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { figuresTable, median } from "./churn-figures.ts";
import { type ChurnPlan, ChurnRun } from "./churn-run.ts";
import { whyNoNodes } from "./node-lab.ts";

/** Minutes; `full` is 30 of them with 500 pods and 1,000 policies. */
const asked = process.env["AGENT_CHURN"];
const MINUTES = asked === "full" ? 30 : Number(asked ?? 0);
const FULL = { podsPerNode: 125, policies: 1000, services: 50, podsPerRound: 5, policiesPerRound: 40 };
const SHORT = { podsPerNode: 10, policies: 100, services: 10, podsPerRound: 2, policiesPerRound: 40 };
const PLAN: ChurnPlan = { minutes: MINUTES, rounds: Math.max(MINUTES, 10), ...(MINUTES < 10 ? SHORT : FULL) };
/** Sockets that are open for a moment: a request to the API server, a call of the plugin. */
const IN_FLIGHT = 3;

const why = whyNoNodes() ?? (asked ? undefined : "a long run: npm run test:long -- agent-churn");

describe.skipIf(why !== undefined)(`agents while pods and policies change${why ? ` (${why})` : ""}`, () => {
  let churn: ChurnRun;
  const HOUR = 3_600_000;
  beforeAll(
    async () => {
      churn = await ChurnRun.create(PLAN);
      await churn.run();
      printFigures(churn);
    },
    MINUTES * 60_000 + 2 * HOUR,
  );
  afterAll(() => churn?.close(), HOUR);

  const kept = () => churn.nodes.filter(({ isKilled }) => !isKilled);
  /** The median of the earlier and of the later half of what was measured. */
  const halves = (name: string, field: "rssMiB" | "fds") =>
    churn.measuredHalves.map((parts) => median(parts.flatMap((part) => churn.part(name, part)?.[field] ?? [])));

  it("pods were replaced and policies changed the whole time, and agents killed", () => {
    expect(churn.rounds).toBeGreaterThanOrEqual(PLAN.rounds);
    expect(churn.lives.length).toBeGreaterThanOrEqual(2 * 5);
    for (const { node, dataplane } of churn.nodes) {
      const kernel = churn.checkpoints[0]?.[node.name]?.kernel;
      expect(kernel?.["links"]).toBeGreaterThan(PLAN.podsPerNode);
      expect(kernel?.[dataplane === "BPF" ? "map interfaces" : "nft rules"]).toBeGreaterThan(PLAN.podsPerNode);
    }
  });

  it("with the same pods and policies the kernel holds what it held at first, on each node", () => {
    const [first, ...later] = churn.checkpoints.map((checkpoint) => kernelOf(checkpoint));
    expect(later).toHaveLength(2);
    for (const checkpoint of later) expect(checkpoint).toEqual(first);
  });

  it("where agents are killed the kernel holds what it holds where they are not", () => {
    for (const dataplane of ["Nftables", "BPF"] as const) {
      const [one, other] = churn.nodes.filter((node) => node.dataplane === dataplane);
      const last = churn.checkpoints.at(-1) ?? {};
      expect(last[one?.node.name ?? ""]?.kernel).toEqual(last[other?.node.name ?? ""]?.kernel);
    }
  });

  it("an agent that is never killed has as many descriptors at the end as when its measured part began", () => {
    for (const { node } of kept()) {
      const [, measured, end] = churn.checkpoints.map((checkpoint) => checkpoint[node.name]?.descriptors ?? {});
      const { socket: before = 0, ...others } = measured ?? {};
      const { socket: after = 0, ...othersAfter } = end ?? {};
      expect(othersAfter, node.name).toEqual(others);
      expect(Math.abs(after - before), `${node.name}: ${before} sockets, then ${after}`).toBeLessThanOrEqual(IN_FLIGHT);
      const [earlier = 0, later = 0] = halves(node.name, "fds");
      expect(later, `${node.name}: ${earlier} descriptors, then ${later}`).toBeLessThanOrEqual(earlier + IN_FLIGHT);
    }
  });

  it("the memory of an agent that is never killed is flat", () => {
    for (const { node } of kept()) {
      const [earlier = 0, later = 0] = halves(node.name, "rssMiB");
      expect(later, `${node.name}: ${earlier} MiB, then ${later} MiB`).toBeLessThanOrEqual(1.1 * earlier);
    }
  });

  it("an agent that was started again has no more than the one that was never killed", () => {
    for (const dataplane of ["Nftables", "BPF"] as const) {
      const lives = churn.lives.filter((life) => life.dataplane === dataplane);
      for (const { killed, kept } of lives) expect(killed.fds, dataplane).toBeLessThanOrEqual(kept.fds + IN_FLIGHT);
      const [killed, kept] = (["killed", "kept"] as const).map((which) =>
        median(lives.map((life) => life[which].rssMiB)),
      );
      // It has listed and programmed everything a moment ago: the heap that took is given back later.
      expect(killed, `${dataplane}: ${killed} MiB against ${kept} MiB`).toBeLessThanOrEqual(1.25 * (kept ?? 0));
    }
  });
});

function kernelOf(checkpoint: ChurnRun["checkpoints"][number]): Record<string, object> {
  return Object.fromEntries(Object.entries(checkpoint).map(([name, { kernel }]) => [name, kernel]));
}

/** The figures are what a long run is for: a reader sees how flat they are. */
function printFigures(churn: ChurnRun): void {
  const { rounds, podsReplaced, objects, lives } = churn;
  console.log(
    `${rounds} rounds in ${churn.parts} parts, measured from part ${(churn.measuredHalves[0][0] ?? 0) + 1}, ${podsReplaced} pods replaced, ${objects.changes} changes, ${lives.length} lives`,
  );
  for (const { node, dataplane, isKilled } of churn.nodes) {
    const head = ["PART", "RSS MiB", "FDS", "MOST FDS", "THREADS", "LINKS", "NFT RULES", "NFT SETS", "BPF PINS"];
    const rows = Array.from({ length: churn.parts }, (_, part) => {
      const { rssMiB = "-", fds = "-", mostFds = "-", threads = "-" } = churn.part(node.name, part) ?? {};
      const kernel = churn.kernelIn(node.name, part);
      const pins = Object.entries(kernel).flatMap(([name, count]) => (name.startsWith("pins") ? [count] : []));
      const bpfPins = pins.reduce((sum, count) => sum + count, 0);
      const objects = [kernel["links"], kernel["nft rules"], kernel["nft sets"], bpfPins];
      return [part + 1, rssMiB, fds, mostFds, threads, ...objects.map((count) => count ?? "-")].map(String);
    });
    const title = `${node.name}, ${dataplane}, agent ${isKilled ? "killed again and again" : "never killed"}`;
    console.log(`${title}\n${figuresTable([head, ...rows])}`);
  }
  console.log("At the end", JSON.stringify(churn.checkpoints.at(-1), null, 1));
  for (const life of lives) console.log("before a kill", JSON.stringify(life));
}
