import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { TrafficRow } from "../../src/api/protocol/traffic-report.ts";
import { isNotFound } from "../../src/cluster/failures.ts";
import { NAMESPACES } from "../../src/cluster/kinds.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { Action } from "../../src/procedures/action.ts";
import { ACTIONS } from "../../src/procedures/actions/all.ts";
import { DEFAULT_BUDGET } from "../../src/procedures/canary/budget.ts";
import { CANARY_NAMESPACE } from "../../src/procedures/canary/canary-objects.ts";
import { type CanaryInputs, chooseCanary } from "../../src/procedures/canary/canary-plan.ts";
import { observe } from "../../src/procedures/observe.ts";
import type { Step } from "../../src/procedures/plan.ts";
import { step } from "../../src/procedures/plans/steps.ts";
import { withCanary } from "../../src/procedures/plans/switch/canary-steps.ts";
import { type Engine, listRuns, rollbackRun, startRun } from "../../src/procedures/run/engine.ts";
import type { StepEvent } from "../../src/procedures/run/step-event.ts";
import { logLine, memoryCopy, planOf } from "../../src/procedures/testing/bare-cluster.ts";
import { installNetwork, type RealCluster, startReal, whyNoRealNodes } from "../netns/real-cluster.ts";

/** What each client says by TCP and by UDP, with three nodes. */
const WAYS = [
  "host-to-service",
  "node-port-local",
  "node-port-remote",
  "pod-other-node",
  "pod-same-node",
  "service-local",
  "service-remote",
];

describe.skipIf(whyNoRealNodes)(`traffic that is measured${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`, () => {
  let cluster: RealCluster;
  let inputs: CanaryInputs;
  beforeAll(async () => {
    cluster = await startReal({ nodes: 3 });
    await installNetwork(cluster, { dataplane: "Nftables", encapsulation: "VXLAN", families: [4] });
    const seen = await observe(cluster.client, vendorNames, {
      server: cluster.url,
      signal: new AbortController().signal,
    });
    // A machine with other things to do may be late; a broken way is silent for good.
    const choice = chooseCanary(seen, { budget: { ...DEFAULT_BUDGET, silenceMs: 3000, datagramsPercent: 2 } });
    if (!("inputs" in choice)) throw new Error(choice.notMeasured);
    inputs = choice.inputs;
  });
  afterAll(async () => await cluster?.close());

  const engine = (actions: Readonly<Record<string, Action>> = ACTIONS): Engine => ({
    client: cluster.client,
    clock: systemClock,
    files: { from: "nowhere", read: (name) => Promise.reject(new Error(`no file ${name}`)) },
    tools: { find: async () => undefined, run: () => Promise.reject(new Error("no tools")) },
    tool: "v3.31.3",
    local: memoryCopy(),
    signal: new AbortController().signal,
    actions,
  });
  const measured = (steps: Step[]) => planOf(withCanary({ steps, notes: [] }, { inputs }).steps);
  const isThere = () =>
    cluster.client.get(NAMESPACES, { name: CANARY_NAMESPACE }).then(
      () => true,
      (error: unknown) => !isNotFound(error),
    );

  it("is well on every way while nothing changes, there and back; figures are kept with the run, and nothing else stays", async () => {
    const { traffic, failed } = await follow(startRun(engine(), measured([])));
    expect(failed).toBeUndefined();
    expect(waysOf(traffic)).toEqual(WAYS);
    expect(traffic.map(({ lost, reached }) => [lost, reached])).toEqual(traffic.map(() => [0, true]));
    expect(traffic.every(({ protocol, opened, sent }) => (protocol === "tcp" ? opened > 3 : sent > 50))).toBe(true);
    const [run] = await listRuns(engine());
    expect(run && "record" in run && run.record.steps.at(-1)?.figures).toEqual(traffic);
    expect(await isThere()).toBe(false);
    const back = await follow(rollbackRun(engine()));
    expect([back.failed, waysOf(back.traffic)]).toEqual([undefined, WAYS]);
    expect(await isThere()).toBe(false);
  });

  it("that suffers from a step stops it at once, names the way, and everything is taken back", async () => {
    const [node = ""] = cluster.nodeNames;
    const nft = async (...words: string[]) => {
      const ran = await cluster.runtime.machine(node).run(["nft", ...words]);
      expect(ran.code, ran.out).toBe(0);
    };
    let broken = 0;
    const breaking: Action = {
      needed: async () => true,
      async apply() {
        broken++;
        await nft("add table inet broken");
        await nft("add chain inet broken in { type filter hook prerouting priority -310; }");
        await nft("add rule inet broken in iifname != lo udp dport 30000-32767 drop");
      },
      async undo() {
        broken--;
        await nft("delete table inet broken");
      },
    };
    const plan = measured([step("break", logLine("break"), {})]);
    const { failed, traffic, undone } = await follow(startRun(engine({ ...ACTIONS, break: breaking }), plan));
    expect(failed).toMatchObject({ code: "RUN_OVER_BUDGET", exitCode: 7 });
    expect(failed?.message).toMatch(/node-port-(local|remote) by UDP: .*(silent for|datagrams were not answered)/);
    expect(undone).toEqual(["stop-canary", "break", "start-canary"]);
    expect(broken).toBe(0);
    // Others may have answers under way when all ends at once.
    const [worst] = traffic.filter(({ protocol }) => protocol === "udp").sort((a, b) => b.unanswered - a.unanswered);
    expect(worst?.way).toMatch(/^node-port-/);
    expect(worst!.unanswered).toBeGreaterThan(worst!.sent / 20);
    expect(await isThere()).toBe(false);
    const [run] = await listRuns(engine());
    expect(run && "record" in run && run.record.outcome).toBe("rolled-back");
  });
});

const waysOf = (rows: readonly TrafficRow[]) => [...new Set(rows.map(({ way }) => way))].sort();

interface Followed {
  traffic: readonly TrafficRow[];
  undone: string[];
  failed: (Error & { code?: string }) | undefined;
}

async function follow(events: AsyncIterable<StepEvent>): Promise<Followed> {
  const followed: Followed = { traffic: [], undone: [], failed: undefined };
  try {
    for await (const event of events) {
      if (event.event === "traffic") followed.traffic = event.figures;
      if (event.event === "step" && event.state === "undone") followed.undone.push(event.id);
    }
  } catch (error) {
    followed.failed = error as Error;
  }
  return followed;
}
