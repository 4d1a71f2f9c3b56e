import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseAllDocuments } from "yaml";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { Client } from "../../src/cluster/client.ts";
import { CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS } from "../../src/cluster/kinds.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";

const SYSTEM = "kube-system";
const PATIENCE_MS = 60_000;

/** Applies a published manifest as kubectl does, and waits until all of its pods are ready. */
export async function applyManifest(client: Client, file: string): Promise<void> {
  for (const document of parseAllDocuments(readFileSync(resolve("manifests", file), "utf8"))) {
    const object = document.toJS() as KubeObject | null;
    if (!object) continue;
    const kind = await eventually(
      () => client.resourceFor(object).catch(() => undefined),
      (found) => found !== undefined,
      PATIENCE_MS,
    );
    await client.apply(kind!, object, { fieldManager: "kubectl", force: true });
  }
  await untilManifestRuns(client);
}

/** What a user changes by hand: the MTU, a setting of the data plane, resources, a label that nothing has a field for. */
export async function editManifest(client: Client, agents: string): Promise<void> {
  const by = { fieldManager: "kubectl-edit" };
  const container = {
    name: vendorNames.workloads.node,
    env: [{ name: "DATAPLANE_LOGSEVERITYSCREEN", value: "Warning" }],
    resources: { requests: { cpu: "250m" } },
  };
  const patch = {
    metadata: { labels: { team: "network" } },
    spec: { template: { spec: { containers: [container] } } },
  };
  await client.patch(DAEMON_SETS, { name: agents, namespace: SYSTEM }, { type: "strategic", patch }, by);
  const map = { name: vendorNames.manifests.configMap, namespace: SYSTEM };
  await client.patch(CONFIG_MAPS, map, { type: "merge", patch: { data: { veth_mtu: "1440" } } }, by);
  await untilManifestRuns(client);
}

async function untilManifestRuns(client: Client): Promise<void> {
  const ofOurs = async (kind: typeof DEPLOYMENTS) =>
    (await client.list<KubeObject>(kind, { namespace: SYSTEM })).items.filter(({ metadata }) =>
      metadata.name.startsWith("vendor-"),
    );
  await eventually(
    async () => [...(await ofOurs(DAEMON_SETS)), ...(await ofOurs(DEPLOYMENTS))],
    (workloads) => workloads.length > 1 && workloads.every(isRolledOut),
    PATIENCE_MS,
  );
}

function isRolledOut({ metadata, status }: KubeObject): boolean {
  const { observedGeneration, desiredNumberScheduled, replicas, ...counts } = (status ?? {}) as Record<string, number>;
  const wanted = desiredNumberScheduled ?? replicas ?? 0;
  const updated = counts["updatedNumberScheduled"] ?? counts["updatedReplicas"];
  const available = counts["numberAvailable"] ?? counts["availableReplicas"];
  return observedGeneration === metadata.generation && wanted > 0 && updated === wanted && available === wanted;
}
