import { describe, expect } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { NODES } from "../../src/cluster/kinds.ts";
import type { LocalCluster } from "../../src/local/cluster.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { describeKind } from "../support/kind-scenario.ts";
import { allStatuses, untilAvailable } from "../support/operator-status.ts";

const CONFIGURATIONS = storedKind("dataplaneConfiguration");
const [CANARY, OTHER, LAST] = ["story-worker-1", "story-worker-2", "story-control-plane"];
const BY_HAND = ["--set", "spec.vendorNetwork.serviceProxyManagement=Disabled"];

describe("a switch in waves", () => {
  let spoiled = false;
  const spoil = (line: string, cluster: LocalCluster) =>
    spoiled && /^ok +\d+\/\d+ +Wait for the operator to enable eBPF/.test(line)
      ? refuse(cluster, "no BTF here")
      : undefined;
  const story = describeKind({ kind: "generic", nodes: 3 }, spoil);
  const { step, ok, plan, run, looks } = story;

  async function refuse({ client }: LocalCluster, why: string | null): Promise<void> {
    const patch = { metadata: { annotations: { "local.vendor.io/refuse-programs": why } } };
    await client.patch(NODES, { name: OTHER as string }, { type: "merge", patch });
  }
  /** Until nothing of the last change is under way any more. */
  const untilReady = () =>
    expect.poll(async () => (await run("plan", "switch", "--to", "BPF")).exit, { interval: 500 }).toBe(0);
  /** The nodes' own configurations: their fields, and how many remarks they carry. */
  async function ofNodes(): Promise<Record<string, unknown>> {
    const { items } = await story.cluster.client.list<KubeObject>(CONFIGURATIONS);
    const own = items.filter(({ metadata }) => metadata.name.startsWith("node."));
    return Object.fromEntries(
      own.map(({ metadata, ...rest }) => [metadata.name, [rest["spec"], metadata.annotations]]),
    );
  }
  const OWN = { [`node.${OTHER}`]: [{ vxlanMTU: 1400 }, { note: "mine" }] };

  step("somebody has settings for one node of their own", async () => {
    await ok("install", "-y", "--dataplane", "standard", ...BY_HAND);
    const metadata = { name: `node.${OTHER}`, annotations: { note: "mine" } };
    const { group, version, kind } = CONFIGURATIONS;
    const own = { apiVersion: `${group}/${version}`, kind, metadata, spec: { vxlanMTU: 1400 } };
    await story.cluster.client.create(CONFIGURATIONS, own);
    expect(await ofNodes()).toEqual(OWN);
  });

  step("the plan says who goes first and who follows; it can be told, and it can be all at once", async () => {
    const waves = async (...flags: string[]) => {
      const { plan: made } = await plan("switch", "--to", "BPF", ...flags);
      return made.steps.filter(({ action }) => action === "release-nodes").map(({ where }) => where);
    };
    expect(await waves()).toEqual([CANARY, OTHER, LAST]);
    expect(await waves("--canary", LAST as string, "--wave-size", "100%")).toEqual([LAST, `${CANARY}, ${OTHER}`]);
    expect(await waves("--no-waves")).toEqual([]);
    const { plan: made } = await plan("switch", "--to", "BPF");
    expect(made.notes.join("\n")).toContain("Canary traffic is not measured: nodes are simulated.");
    const { exit, err } = await run("plan", "switch", "--to", "BPF", "--canary", "nobody");
    expect([exit, err]).toEqual([64, expect.stringContaining("[CANARY_NODE_UNKNOWN]")]);
  });

  step(
    "a node that refuses once eBPF is on stops it: the canary has switched, the proxy and all others serve as before",
    async () => {
      spoiled = true;
      const { exit, err } = await run("switch", "--to", "BPF", "-y");
      spoiled = false;
      expect(exit).toBe(1);
      expect(err).toMatch(/\[STEP_NODE_REFUSES_EBPF\]\n {2}fix: .*vendorctl resume/);
      expect(err).toContain("no BTF here");
      await expect.poll(looks).toMatch(/Nftables.*BPF|BPF.*Nftables/);
      expect(await looks()).toMatch(/on 3 nodes; service proxy on 3 nodes$/);
      expect(await ofNodes()).toMatchObject({ [`node.${LAST}`]: [{ bpfEnabled: false }, {}] });
      await expect
        .poll(async () => (await allStatuses(story.cluster.client))["network"]?.message)
        .toMatch(/do not load on 1 node; eBPF runs on 1 others, and kube-proxy stays on all.*no BTF here/);
    },
  );

  step("put right, it goes on; the holds are gone and what was somebody's is still theirs", async () => {
    await refuse(story.cluster, null);
    await ok("resume", "-y");
    expect(await looks()).toBe("eBPF on 3 nodes; service proxy parked");
    expect(await ofNodes()).toEqual(OWN);
  });

  step("taken back to before the canary, nodes are held, and the operator says so and is not worried", async () => {
    await ok("rollback", "-y", "--to-step", "dataplane-turned");
    await expect
      .poll(async () => (await allStatuses(story.cluster.client))["network"])
      .toMatchObject({
        degraded: false,
        progressing: true,
        message: expect.stringMatching(
          /nodes held by their own data plane configuration.*story-control-plane, story-worker-1, story-worker-2/,
        ),
      });
    expect(await looks()).toBe("Nftables (the switch says otherwise) on 3 nodes; service proxy on 3 nodes");
  });

  step("all the way back, everything is as it was", async () => {
    await ok("rollback", "-y");
    expect(await looks()).toBe("Nftables on 3 nodes; service proxy on 3 nodes");
    expect(await ofNodes()).toEqual(OWN);
  });

  step("stopped in the middle, the nodes that have switched go back one wave after another", async () => {
    await untilReady();
    spoiled = true;
    expect(await run("switch", "--to", "BPF", "-y")).toMatchObject({ exit: 1 });
    spoiled = false;
    const said = await ok("rollback", "-y");
    expect(said).toMatch(/Switch the canary node to eBPF {2}rolled back/);
    await refuse(story.cluster, null);
    await untilAvailable(story.cluster.client, "network");
    expect(await looks()).toBe("Nftables on 3 nodes; service proxy on 3 nodes");
    expect(await ofNodes()).toEqual(OWN);
  });

  step("what an aborted switch left held is taken up by the next one, in either direction", async () => {
    await untilReady();
    spoiled = true;
    expect(await run("switch", "--to", "BPF", "-y")).toMatchObject({ exit: 1 });
    spoiled = false;
    await ok("abort", "-y");
    await refuse(story.cluster, null);
    await untilReady();
    await ok("switch", "--to", "BPF", "-y");
    expect(await looks()).toBe("eBPF on 3 nodes; service proxy parked");
    await ok("switch", "--to", "standard", "-y");
    expect(await looks()).toBe("Nftables on 3 nodes; service proxy on 3 nodes");
    expect(await ofNodes()).toEqual(OWN);
  });

  step("a node that somebody keeps on the other data plane is named before anything changes", async () => {
    const patch = { spec: { bpfEnabled: false } };
    await story.cluster.client.patch(CONFIGURATIONS, { name: `node.${OTHER}` }, { type: "merge", patch });
    const { exit, err } = await run("switch", "--to", "BPF", "-y");
    expect(exit).toBe(3);
    expect(err).toMatch(new RegExp(`node\\.${OTHER}.*\\[(EBPF_MIXED_CLUSTER|SWITCH_NODE_KEPT)\\]`));
  });
});
