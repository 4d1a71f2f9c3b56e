import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { NODES, POD_DISRUPTION_BUDGETS, PODS } from "../cluster/kinds.ts";
import { type OperatorLab, operatorLab } from "./testing/operator-lab.ts";

let world: OperatorLab;
afterEach(() => world.stop());

const NAMESPACE = "vendor-system";

/** As a ReplicaSet's, where a scheduler had only this node to choose from. */
const copy = (name: string, nodeName: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    ...{ name, namespace: NAMESPACE, labels: { "k8s-app": "vendor-apiserver" } },
    ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "vendor-apiserver-5d9", uid: "1" }],
  },
  spec: { nodeName, containers: [{ name: "main", image: "paper" }] },
});

const readyFrom = (name: string, lastTransitionTime: string) =>
  world.kubectl.patch(
    NODES,
    { name },
    { type: "merge", patch: { status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime }] } } },
    { subresource: "status" },
  );

/** What the controller of budgets would write. */
const allow = (disruptionsAllowed: number) =>
  world.kubectl.patch(
    POD_DISRUPTION_BUDGETS,
    { namespace: NAMESPACE, name: "vendor-apiserver" },
    { type: "merge", patch: { status: { disruptionsAllowed } } },
    { subresource: "status" },
  );

describe("two copies on the node that was ready first", () => {
  it("one is evicted when the other node becomes ready and the budget allows it, and only one", async () => {
    world = await operatorLab({ nodes: 2 });
    await readyFrom("node-0", "2020-01-01T00:00:00Z");
    await readyFrom("node-1", "2020-01-01T00:00:00Z");
    world.startOperator();
    await world.installation();
    await world.request("apiServer");
    await world.untilStatus("apiserver", "Available");
    for (const name of ["a", "b"]) await world.kubectl.create(PODS, copy(name, "node-0"));
    await world.settled();
    const leaving = async () => {
      const { items } = await world.kubectl.list(PODS, {
        namespace: NAMESPACE,
        labelSelector: "k8s-app=vendor-apiserver",
      });
      return items.flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? [] : [metadata.name]));
    };
    expect(world.writes.filter((write) => write.endsWith("/eviction"))).toEqual([]);
    await readyFrom("node-1", "2099-01-01T00:00:00Z");
    await world.untilStatus("apiserver", "Progressing");
    expect(await leaving(), "the budget allows none yet").toEqual([]);
    await allow(1);
    await world.until(leaving, ({ length }) => length > 0);
    await world.untilStatus("apiserver", "Available");
    await world.settled();
    expect(await leaving()).toHaveLength(1);
  });
});
