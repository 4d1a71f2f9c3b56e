import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { createCalculator } from "../../calc/calculator.ts";
import type { InputName } from "../../calc/calculator-kinds.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import { toAddress } from "../../calc/nets.ts";
import type { ClusterObjects } from "./cluster-objects.ts";

/** What the agent of a node calculates, as far as it is about packets between these addresses. */
export function nodeModel(objects: ClusterObjects, node: string, addresses: readonly string[]): ModelCopy {
  const calculator = createCalculator(node, vendorNames);
  for (const object of modelObjects(objects, node, addresses)) calculator.set(object);
  calculator.inSync();
  const model = new ModelCopy();
  const delta = calculator.takeDelta();
  if (delta) model.apply(delta);
  return model;
}

/**
 * The objects that such a model rests on. Of all pods and backends only those that have one of the addresses can make a difference; and a policy of a
 * namespace is for pods of that namespace alone, on their own node. The rest is left out: this is what keeps a question short in a large cluster.
 */
export function* modelObjects(
  objects: ClusterObjects,
  node: string,
  addresses: readonly string[],
): Generator<KubeObject> {
  const asked = new Set(addresses.flatMap((text) => toAddress(text) ?? []));
  const pods = (objects.get("pods") ?? []).filter((pod) => podAddresses(pod).some((address) => asked.has(address)));
  const namespaces = { all: new Set<string | undefined>(), own: new Set<string | undefined>() };
  for (const pod of pods) {
    namespaces.all.add(pod.metadata.namespace);
    if (nodeOf(pod) === node) namespaces.own.add(pod.metadata.namespace);
    yield pod;
  }
  for (const [name, list] of objects) {
    if (name === "pods") continue;
    const within = OF_PODS[name] && namespaces[OF_PODS[name]];
    for (const object of list) {
      if (within && !within.has(object.metadata.namespace)) continue;
      if (name === "endpointSlices" && !isAbout(object, asked)) continue;
      yield object;
    }
  }
}

/** What a namespace has for its pods: for those of the node, or for all that packets come from and go to. */
export const OF_PODS: Partial<Record<InputName, "own" | "all">> = {
  kubernetesPolicies: "own",
  networkPolicies: "own",
  serviceAccounts: "all",
};

/** Where the API server names its own addresses, which are no pod's. */
const API_SERVER_SLICE = "default/kubernetes";

function isAbout(slice: KubeObject, asked: ReadonlySet<string>): boolean {
  return isOfApiServer(slice) || sliceAddresses(slice).some((address) => asked.has(address));
}

export function isOfApiServer({ metadata }: KubeObject): boolean {
  return `${metadata.namespace}/${metadata.name}` === API_SERVER_SLICE;
}

export function sliceAddresses(slice: KubeObject): string[] {
  const { endpoints } = slice as { endpoints?: { addresses?: string[] | null }[] | null };
  return (endpoints ?? []).flatMap(({ addresses }) => (addresses ?? []).flatMap((text) => toAddress(text) ?? []));
}

function nodeOf(pod: KubeObject): string | undefined {
  return (pod["spec"] as { nodeName?: string } | undefined)?.nodeName;
}

export function podAddresses(pod: KubeObject): string[] {
  const { podIP, podIPs = [] } = (pod["status"] ?? {}) as { podIP?: string; podIPs?: { ip?: string }[] };
  return [podIP, ...podIPs.map(({ ip }) => ip)].flatMap((text) => (text ? (toAddress(text) ?? []) : []));
}
