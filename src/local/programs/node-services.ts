import { vendorNames } from "../../api/names.ts";
import { announcedDataplane } from "../../api/protocol/agent-report.ts";
import type { Admission, Change } from "../../apiserver/call.ts";
import type { Store } from "../../apiserver/storage/store.ts";
import { isReady } from "../controllers/pod-state.ts";
import type { Pod } from "../controllers/workload-types.ts";

const { serviceProxy, workloads } = vendorNames;
const APP = "k8s-app";

/** On which nodes something serves cluster IPs. Kept from the writes themselves, so that asking costs nothing. */
export class NodeServices implements Admission {
  /** By node: the pods that serve there. */
  readonly #serving = new Map<string, Set<string>>();

  /** What a former life of the cluster left. */
  learn(store: Store): this {
    for (const stored of store.list("/pods")) this.#note(JSON.parse(stored.body.toString()) as Pod);
    return this;
  }

  workOn(node: string): boolean {
    return (this.#serving.get(node)?.size ?? 0) > 0;
  }

  committed({ kind, object, operation }: Change): void {
    if (kind.kind !== "Pod" || kind.group !== "") return;
    this.#note(object as Pod, operation === "DELETE");
  }

  #note(pod: Pod, gone = false): void {
    const app = pod.metadata.labels?.[APP];
    const node = pod.spec?.nodeName;
    if (!node || (app !== serviceProxy.daemonSet && app !== workloads.node)) return;
    const serves = !gone && pod.metadata.deletionTimestamp === undefined && isServing(pod, app);
    const pods = this.#serving.get(node) ?? new Set<string>();
    if (serves) this.#serving.set(node, pods.add(pod.metadata.uid ?? ""));
    else if (pods.delete(pod.metadata.uid ?? "") && pods.size === 0) this.#serving.delete(node);
  }
}

function isServing(pod: Pod, app: string): boolean {
  if (app === serviceProxy.daemonSet) return isReady(pod);
  return announcedDataplane(pod.metadata.annotations) === "BPF";
}
