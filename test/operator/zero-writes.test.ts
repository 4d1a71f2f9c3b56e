import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DAEMON_SETS, NODES } from "../../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { PARTS } from "../../src/operator/outcome.ts";
import { type InProcessOperator, startInProcessOperator } from "../support/in-process-operator.ts";
import {
  applyAll,
  applyOperator,
  customResources,
  documents,
  endpointMap,
  withFlowLogs,
} from "../support/operator-manifests.ts";
import { listEverything, untilQuiet, versionsOf } from "../support/operator-snapshot.ts";
import { untilAvailable } from "../support/operator-status.ts";

describe("an operator whose cluster is as it should be", () => {
  let cluster: LocalCluster;
  let operator: InProcessOperator;

  beforeAll(async () => {
    cluster = await startCluster({ name: "story", kind: "generic", nodes: 2 });
    const { client } = cluster;
    await applyOperator(client, 0);
    await applyAll(client, documents(endpointMap("generic", cluster) ?? ""));
    const file = customResources("linuxDataplane: BPF").replace("Management: Disabled", "Management: Enabled");
    await applyAll(client, documents(withFlowLogs(file)));
    operator = startInProcessOperator(cluster.server);
    for (const part of PARTS) await untilAvailable(client, part);
    await untilQuiet(client);
  });
  afterAll(async () => {
    await operator?.stop();
    await cluster?.close();
  });

  const lookedAgain = async (before: Record<string, number>) =>
    eventually(
      () => operator.looks(),
      (looks) => PARTS.every((part) => (looks[part] ?? 0) > (before[part] ?? 0)),
    );

  it("writes nothing when everything is looked at again", async () => {
    const { client } = cluster;
    const touch = { metadata: { annotations: { "example.com/touched": "yes" } } };
    const before = await operator.looks();
    const already = operator.writes.length;
    const [node = ""] = cluster.nodeNames;
    await client.patch(NODES, { name: node }, { type: "merge", patch: touch });
    const agents = { namespace: "vendor-system", name: "vendor-node" };
    await client.patch(DAEMON_SETS, agents, { type: "merge", patch: touch });
    await lookedAgain(before);
    expect(operator.writes.slice(already)).toEqual([]);
    expect((await client.get(DAEMON_SETS, agents)).metadata.annotations?.["example.com/touched"]).toBe("yes");
  });

  it("writes nothing when it starts anew and reads the whole cluster", async () => {
    const { client } = cluster;
    await operator.stop();
    const before = versionsOf(await untilQuiet(client));
    operator = startInProcessOperator(cluster.server);
    await lookedAgain({});
    await untilQuiet(client);
    expect(operator.writes).toEqual([]);
    expect(versionsOf(await listEverything(client))).toEqual(before);
  });
});
