import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../src/api/object.ts";
import type { Client } from "../../src/cluster/client.ts";
import { manifest } from "./operator-story.ts";

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
