import { describe, expect } from "vitest";
import { DEPLOYMENTS, NAMESPACES, NODES, PODS } from "../../src/cluster/kinds.ts";
import { describeKind } from "../support/kind-scenario.ts";

const CLEANUP = "vendor-cleanup";

describe("uninstall with a node that is down and without an operator", () => {
  const story = describeKind({ kind: "generic" });
  const { step, ok } = story;
  const namespaces = async () =>
    (await story.cluster.client.list(NAMESPACES)).items.map(({ metadata }) => metadata.name);

  step("installed; then a node is lost, and the operator too", async () => {
    const { client } = story.cluster;
    await ok("install", "-y");
    await client.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: "lost" } });
    const status = { conditions: [{ type: "Ready", status: "Unknown", reason: "NodeStatusUnknown" }] };
    await client.patch(NODES, { name: "lost" }, { type: "merge", patch: { status } }, { subresource: "status" });
    await client.delete(DEPLOYMENTS, { namespace: "vendor-operator", name: "vendor-operator" });
  });

  step("everything goes; the lost node is named, and its pod waits for its return", async () => {
    const { client } = story.cluster;
    const said = await ok("uninstall", "--remove-crds", "-y");
    expect(said).toContain("0 objects of the service are left");
    expect(said).toContain("nothing of the service is left on 2 of 3 nodes");
    expect(said).toMatch(/not cleaned, because the node is down: lost\./);
    const waiting = (await client.list(PODS, { namespace: CLEANUP })).items;
    expect(waiting.map(({ spec }) => (spec as { nodeName: string }).nodeName)).toEqual(["lost"]);
    expect((await namespaces()).filter((name) => name.startsWith("vendor"))).toEqual([CLEANUP]);
  });
});
