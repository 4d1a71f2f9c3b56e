import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { statusAddresses } from "../../api/protocol/pod-network.ts";
import { createCalculator } from "../../calc/calculator.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import { hostNet } from "../../calc/nets.ts";
import { parseAddress } from "../../kit/ip.ts";
import type { ClusterObjects } from "./cluster-objects.ts";

/**
 * What the agent of a node calculates, as far as it is about packets between these addresses. A packet has two addresses, so of all pods and
 * backends only those that have one of them can make a difference, and the rest is left out: this is what keeps a question short in a large cluster.
 */
export function nodeModel(objects: ClusterObjects, node: string, addresses: readonly string[]): ModelCopy {
  const calculator = createCalculator(node, vendorNames);
  const nets = new Set(addresses.flatMap((text) => netOf(text) ?? []));
  for (const [name, list] of objects) {
    for (const object of list) {
      if (name === "pods" && !statusAddresses(object).some((net) => nets.has(net))) continue;
      if (name === "endpointSlices" && !isAbout(object, nets)) continue;
      calculator.set(object);
    }
  }
  calculator.inSync();
  const model = new ModelCopy();
  const delta = calculator.takeDelta();
  if (delta) model.apply(delta);
  return model;
}

/** Where the API server names its own addresses, which are no pod's. */
const API_SERVER_SLICE = "default/kubernetes";

function isAbout(slice: KubeObject, nets: ReadonlySet<string>): boolean {
  if (`${slice.metadata.namespace}/${slice.metadata.name}` === API_SERVER_SLICE) return true;
  const { endpoints } = slice as { endpoints?: { addresses?: string[] }[] | null };
  return (endpoints ?? []).some((one) => (one.addresses ?? []).some((text) => nets.has(netOf(text) ?? "")));
}

function netOf(text: string): string | undefined {
  const address = parseAddress(text);
  return address && hostNet(address);
}
