import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { createCalculator } from "../../calc/calculator.ts";
import type { InputName } from "../../calc/calculator-kinds.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import { toAddress } from "../../calc/nets.ts";
import type { ClusterObjects } from "./cluster-objects.ts";

/**
 * What the agent of a node calculates, as far as it is about packets between these addresses. A packet has two addresses, so of all pods and
 * backends only those that have one of them can make a difference; and a policy of a namespace is for pods of that namespace alone. The rest is left
 * out: this is what keeps a question short in a large cluster.
 */
export function nodeModel(objects: ClusterObjects, node: string, addresses: readonly string[]): ModelCopy {
  const calculator = createCalculator(node, vendorNames);
  const asked = new Set(addresses.flatMap((text) => toAddress(text) ?? []));
  const pods = (objects.get("pods") ?? []).filter((pod) => podAddresses(pod).some((address) => asked.has(address)));
  const namespaces = new Set(pods.map(({ metadata }) => metadata.namespace));
  const isInThem = ({ metadata }: KubeObject) => namespaces.has(metadata.namespace);
  for (const pod of pods) calculator.set(pod);
  for (const [name, list] of objects) {
    if (name === "pods") continue;
    for (const object of list) {
      if (OF_PODS.has(name) && !isInThem(object)) continue;
      if (name === "endpointSlices" && !isAbout(object, asked)) continue;
      calculator.set(object);
    }
  }
  calculator.inSync();
  const model = new ModelCopy();
  const delta = calculator.takeDelta();
  if (delta) model.apply(delta);
  return model;
}

/** What a namespace has for its own pods. */
const OF_PODS: ReadonlySet<InputName> = new Set(["kubernetesPolicies", "networkPolicies", "serviceAccounts"]);

/** Where the API server names its own addresses, which are no pod's. */
const API_SERVER_SLICE = "default/kubernetes";

function isAbout(slice: KubeObject, asked: ReadonlySet<string>): boolean {
  if (`${slice.metadata.namespace}/${slice.metadata.name}` === API_SERVER_SLICE) return true;
  const { endpoints } = slice as { endpoints?: { addresses?: string[] }[] | null };
  return (endpoints ?? []).some((one) => (one.addresses ?? []).some((text) => asked.has(toAddress(text) ?? "")));
}

function podAddresses(pod: KubeObject): string[] {
  const { podIP, podIPs = [] } = (pod["status"] ?? {}) as { podIP?: string; podIPs?: { ip?: string }[] };
  return [podIP, ...podIPs.map(({ ip }) => ip)].flatMap((text) => (text ? (toAddress(text) ?? []) : []));
}
