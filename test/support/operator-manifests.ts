import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../src/api/object.ts";
import type { ClusterKind } from "../../src/api/tables/cluster-kinds.ts";
import type { Client } from "../../src/cluster/client.ts";
import type { LocalCluster } from "../../src/local/cluster.ts";

/** A file as it is published. */
export function manifest(name: string): string {
  return readFileSync(resolve("manifests", name), "utf8");
}

/** Install step 2: where the API server really is, as each kind of cluster has it. Nothing where none is needed. */
export function endpointMap(kind: ClusterKind, cluster: LocalCluster): string | undefined {
  const { port } = new URL(cluster.url);
  const addresses: Record<ClusterKind, [host: string, port: string] | undefined> = {
    generic: ["api.story.internal", port],
    iac: ["api.internal.story", port],
    openshift: undefined,
    aks: ["story-dns-7c1d2f3a.hcp.westeurope.azmk8s.internal", "443"],
    eks: ["story.gr7.eu-west-1.eks.internal", "443"],
    mke: ["proxy.local", "6444"],
  };
  const address = addresses[kind];
  return address && endpointMapOf(...address);
}

export function endpointMapOf(host: string, port: string): string {
  return `
apiVersion: v1
kind: ConfigMap
metadata:
  name: orchestrator-services-endpoint
  namespace: vendor-operator
data:
  ORCHESTRATOR_SERVICE_HOST: "${host}"
  ORCHESTRATOR_SERVICE_PORT: "${port}"
`;
}

/** Install step 4's patch, as the specification writes it. */
export const DNS_PATCH = JSON.stringify({
  spec: { template: { spec: { dnsConfig: { nameservers: ["169.254.169.253"] } } } },
});

/** The published custom resources with lines added to the networking section, by somebody who takes care of kube-proxy, too. */
export function customResources(...lines: string[]): string {
  const published = manifest("custom-resources.yaml").replace("Management: Enabled", "Management: Disabled");
  return published.replace(/^( {2}vendorNetwork:\n)/m, `$1${lines.map((line) => `    ${line}\n`).join("")}`);
}

/** With flow logs and their page asked for too: the last lines of the file, uncommented. */
export function withFlowLogs(text: string): string {
  const [head = "", tail = ""] = text.split(/^(?=# Flow logs, and)/m);
  return head + tail.replace(/^# (?=---|apiVersion|kind|metadata|spec| {2}name)/gm, "");
}

export function documents(text: string): KubeObject[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);
}

/** As `kubectl apply --server-side --force-conflicts -f`, without a process for it. */
export async function applyAll(client: Client, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const kind = await client.resourceFor(object);
    await client.apply(kind, object, { fieldManager: "kubectl", force: true });
  }
}

/** Definitions and the operator's objects, with as many copies of the operator as asked for. */
export async function applyOperator(client: Client, replicas: number): Promise<void> {
  await applyAll(client, documents(manifest("operator-crds.yaml")));
  const operator = documents(manifest("vendor-operator.yaml"));
  for (const { kind, ...object } of operator) {
    if (kind === "Deployment") Object.assign(object["spec"] as object, { replicas });
  }
  await applyAll(client, operator);
}
