import type { KubeObject } from "../../api/object.ts";
import type { FlowEnd } from "../../api/protocol/flow.ts";
import { workloadEnd } from "../../api/protocol/workload-end.ts";
import type { InputName } from "../../calc/calculator-kinds.ts";
import { toAddress } from "../../calc/nets.ts";
import type { ClusterObjects } from "../explain/cluster-objects.ts";
import { isOfApiServer, OF_PODS, podAddresses, sliceAddresses } from "../explain/node-model.ts";
import type { Turns } from "../turns.ts";

/** The same objects for many questions: nothing goes through all pods, slices or policies of namespaces for each. */
export interface AskedObjects {
  /** For the places of a flow: of pods those of its ends. */
  ofEnds(from: FlowEnd, to: FlowEnd): ClusterObjects;
  /** For the model of a node: what is about packets between some addresses. */
  about(addresses: readonly string[]): ClusterObjects;
}

export async function askedObjects(objects: ClusterObjects, turn: Turns): Promise<AskedObjects> {
  const pods = { ofWorkload: new Index(), ofAddress: new Index() };
  for (const pod of objects.get("pods") ?? []) {
    pods.ofWorkload.add(workloadKey(pod.metadata.namespace, workloadEnd(pod).name), pod);
    for (const address of podAddresses(pod)) pods.ofAddress.add(address, pod);
    await turn();
  }
  const slices = new Index();
  const ofApiServer: KubeObject[] = [];
  for (const slice of objects.get("endpointSlices") ?? []) {
    if (isOfApiServer(slice)) ofApiServer.push(slice);
    else for (const address of sliceAddresses(slice)) slices.add(address, slice);
    await turn();
  }
  const within = new Map<InputName, Index>();
  for (const name of Object.keys(OF_PODS) as InputName[]) {
    const index = new Index();
    for (const object of objects.get(name) ?? []) {
      index.add(object.metadata.namespace ?? "", object);
      await turn();
    }
    within.set(name, index);
  }
  return {
    ofEnds(from, to) {
      const keys = [from, to].map(({ namespace, name }) => workloadKey(namespace, name));
      return new Map([...objects, ["pods", pods.ofWorkload.all(keys)]]);
    },
    about(addresses) {
      const asked = addresses.flatMap((text) => toAddress(text) ?? []);
      const near = pods.ofAddress.all(asked);
      const namespaces = near.map(({ metadata }) => metadata.namespace ?? "");
      return new Map([
        ...objects,
        ...[...within].map(([name, index]) => [name, index.all(namespaces)] as const),
        ["pods", near],
        ["endpointSlices", [...ofApiServer, ...slices.all(asked)]],
      ]);
    },
  };
}

function workloadKey(namespace = "", name: string): string {
  return `${namespace}/${name}`;
}

class Index {
  readonly #lists = new Map<string, KubeObject[]>();

  add(key: string, object: KubeObject): void {
    const list = this.#lists.get(key);
    if (list) list.push(object);
    else this.#lists.set(key, [object]);
  }

  all(keys: readonly string[]): KubeObject[] {
    return [...new Set([...new Set(keys)].flatMap((key) => this.#lists.get(key) ?? []))];
  }
}
