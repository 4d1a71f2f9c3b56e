import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiRequest } from "../../src/api/transport.ts";
import type { EndState } from "../support/operator-end-state.ts";
import type { Fault } from "../support/operator-proxy.ts";
import { OperatorRestarts, PHASES, type Phase } from "./operator-restarts.ts";

/** Whatever happens to the operator or to its requests, the cluster comes to the same end. */
describe("an operator that is disturbed", () => {
  let world: OperatorRestarts;
  const undisturbed = new Map<string, EndState>();
  const count = { kills: 0, answers: 0, restarts: 0, different: 0 };

  beforeAll(async () => {
    world = await OperatorRestarts.start();
  });
  afterAll(async () => {
    const { kills, answers, restarts, different } = count;
    console.log(
      `operator faults: ${kills} kills, ${answers} refused/slow answers, ${restarts} restarts of the API server, ${different} different end states`,
    );
    await world?.close();
  });

  const expectSame = (different: readonly string[]) => {
    if (different.length > 0) count.different++;
    expect(different).toEqual([]);
  };
  const endOf = ({ name }: Phase) => undisturbed.get(name) as EndState;
  const killThrough = async (nth: number) => {
    for (const phase of PHASES) {
      await phase.begin(world);
      const { kills, different } = await killAfterEachWrite(world, phase, nth, endOf(phase));
      count.kills += kills;
      expectSame(different);
    }
  };

  it("left in peace, ends here", async () => {
    await world.begin();
    for (const phase of PHASES) {
      await phase.begin(world);
      await world.until(phase);
      undisturbed.set(phase.name, await settled(world));
    }
    await world.end();
    expect(undisturbed.get("removal")?.has("Namespace vendor-system")).toBe(false);
  });

  it("killed after every single one of its writes, ends there too", async ({ skip }) => {
    if (process.env["OPERATOR_FAULTS"] !== "full") skip("a long run: npm run test:long -- operator-faults");
    await killThrough(1);
    expect(count.kills).toBeGreaterThan(100);
  });

  it("killed after every thirteenth of its writes, ends there too", async () => {
    await killThrough(13);
  });

  it("refused at random, kept waiting, cut off, and its API server restarted, ends there too", async () => {
    const random = randomFrom(20_240_229);
    world.proxy.fault = (request) => {
      const fault = faultFor(request, random);
      if (fault) count.answers++;
      return fault;
    };
    await world.begin();
    for (const phase of PHASES) {
      await phase.begin(world);
      const before = world.proxy.writes.length;
      await world.until(phase, () => world.proxy.writes.length > before + 8);
      await world.restartServer();
      count.restarts++;
      await world.until(phase);
      expectSame(await world.untilSame(endOf(phase)));
    }
    world.proxy.fault = () => undefined;
    await world.end();
  });
});

/** What is left to write after a phase is over is little, and soon done: the state counts when it stays. */
async function settled(world: OperatorRestarts): Promise<EndState> {
  for (;;) {
    const before = world.proxy.writes.length;
    const state = await world.endState();
    if ((await world.untilSame(state)).length === 0 && before === world.proxy.writes.length) return state;
  }
}

/** No phase has this many writes. */
const MOST_KILLS = 250;

/** One life after another, each killed by the nth write it makes, until one has nothing more to write. */
async function killAfterEachWrite(
  world: OperatorRestarts,
  phase: Phase,
  nth: number,
  expected: EndState,
): Promise<{ kills: number; different: string[] }> {
  for (let kills = 0; kills < MOST_KILLS; kills++) {
    let killed = false;
    let written = 0;
    world.proxy.onWrite = () => {
      if (++written < nth || killed) return;
      killed = true;
      world.kill();
    };
    const life = await world.begin();
    await world.until(phase, () => killed);
    const different = killed ? [] : await world.untilSame(expected, () => killed);
    if (!killed) {
      world.proxy.onWrite = () => {};
      await world.end();
      return { kills, different };
    }
    await life.exited;
  }
  throw new Error(`${phase.name} goes in circles: ${world.proxy.writes.slice(-20).join("\n")}`);
}

const FAULTS: readonly Fault[] = [
  { status: 409 },
  { status: 429 },
  { status: 500 },
  { status: 503 },
  { slowMs: 300 },
  "refused",
  "lost",
];

/** One write in four, one read in twenty; a lease now and then too. */
function faultFor({ method }: ApiRequest, random: () => number): Fault | undefined {
  const often = method === "GET" ? 0.05 : 0.25;
  if (random() > often) return undefined;
  const fault = FAULTS[Math.floor(random() * FAULTS.length)];
  // A read is never in conflict.
  return method === "GET" && typeof fault === "object" && "status" in fault && fault.status === 409 ? undefined : fault;
}

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
