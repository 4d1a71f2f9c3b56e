import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { customResourceDefinitions } from "../../api/schema/crd.ts";
import { CRDS, PODS } from "../../cluster/kinds.ts";
import { ACTIONS } from "../actions/all.ts";
import { isUnaltered } from "../make-plan.ts";
import type { Plan } from "../plan.ts";
import { type BareCluster, bareCluster } from "../testing/bare-cluster.ts";
import { resumeRun, rollbackRun } from "./engine.ts";
import type { StepEvent } from "./step-event.ts";

/** A switch of two nodes to nftables, stopped after its first step, as vendorctl wrote it when the data plane was called `standard`. */
const EARLIER = JSON.parse(readFileSync(new URL("../testing/earlier-run.json", import.meta.url), "utf8")) as {
  journal: KubeObject[];
  plan: Plan;
};

describe("a run that an earlier vendorctl began", () => {
  let cluster: BareCluster;
  const make = async (object: KubeObject) => {
    await cluster.client.create(await cluster.client.resourceFor(object), object);
  };
  const configuration = (name: string, metadata: object, bpfEnabled: boolean): KubeObject => ({
    apiVersion: "crd.vendor.io/v1",
    kind: "DataplaneConfiguration",
    metadata: { name, ...metadata },
    spec: { bpfEnabled },
  });
  const hold = { annotations: { "procedures.vendor.io/held-by-switch": "configuration-made" } };
  const agent = (node: string, dataplane: string): KubeObject => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `vendor-node-${node}`,
      namespace: "vendor-system",
      annotations: { "vendor.io/programs": "loads", "vendor.io/dataplane": dataplane },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "vendor-node", uid: "1", controller: true }],
    },
    spec: { nodeName: node, containers: [{ name: "agent", image: "vendor" }] },
  });

  beforeEach(async () => {
    cluster = await bareCluster();
    for (const definition of customResourceDefinitions()) await cluster.client.create(CRDS, definition);
    await make({ apiVersion: "v1", kind: "Namespace", metadata: { name: "vendor-system" } });
    for (const name of ["n1", "n2"]) {
      await make({ apiVersion: "v1", kind: "Node", metadata: { name, labels: { "kubernetes.io/os": "linux" } } });
      await make(configuration(`node.${name}`, hold, true));
    }
    for (const part of EARLIER.journal) await make(part);
  });
  afterEach(() => cluster.close());

  const waits = async (events: AsyncIterable<StepEvent>) => {
    const waited: string[] = [];
    let outcome = "";
    for await (const event of events) {
      if (event.event === "say" && event.kind === "waiting") waited.push(event.for);
      if (event.event === "end") outcome = event.outcome;
    }
    return { waited, outcome };
  };

  it("is resumed: nodes are released to nftables and prove it", async () => {
    await make(configuration("default", {}, false));
    await make(agent("n1", "Nftables"));
    await make(agent("n2", "DrainingBPF"));
    expect((await waits(resumeRun(cluster.engine()))).outcome).toBe("done");
  });

  it("waits for the node that still runs BPF, and ends when it does not", async () => {
    await make(configuration("default", {}, false));
    await make(agent("n1", "BPF"));
    await make(agent("n2", "Nftables"));
    const running = resumeRun(cluster.engine());
    const ended = (async () => {
      for await (const event of running) {
        if (event.event !== "say" || event.kind !== "waiting" || !event.for.includes("n1")) continue;
        const patch = { metadata: { annotations: { "vendor.io/dataplane": "Nftables" } } };
        const ref = { namespace: "vendor-system", name: "vendor-node-n1" };
        await cluster.client.patch(PODS, ref, { type: "merge", patch });
      }
    })();
    await ended;
  });

  it("is rolled back", async () => {
    await make(configuration("default", {}, true));
    expect((await waits(rollbackRun(cluster.engine()))).outcome).toBe("rolled-back");
  });

  it("has a plan file that is still accepted, and whose actions are known", () => {
    expect(isUnaltered(EARLIER.plan)).toBe(true);
    expect(EARLIER.plan.steps.filter(({ action }) => !Object.hasOwn(ACTIONS, action))).toEqual([]);
    expect(EARLIER.plan.steps.map(({ inputs }) => (inputs as { to?: string }).to)).toContain("standard");
  });
});
