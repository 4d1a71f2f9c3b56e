import type { Store } from "../../apiserver/storage/store.ts";
import { matchesLabels } from "../controllers/label-selector.ts";
import { isReady } from "../controllers/pod-state.ts";
import type { Pod, Service } from "../controllers/workload-types.ts";
import { portNumber } from "../runtime/probes.ts";

export interface Address {
  host: string;
  port: number;
}

interface Listener {
  namespace: string;
  pod: string;
  uid: string;
  /** The port it has in its pod. */
  port: number;
  address: Address;
}

/** Where the ports of pods that really run are answered on this machine. */
export class Listeners {
  readonly #all = new Set<Listener>();

  /** Returns the function that forgets it. */
  add(pod: Pod, port: number, address: Address): () => void {
    const { name, namespace = "", uid = "" } = pod.metadata;
    const listener = { namespace, pod: name, uid, port, address };
    this.#all.add(listener);
    return () => this.#all.delete(listener);
  }

  /** A ready pod behind the service, as a service proxy would choose one; undefined while there is none. */
  resolve(store: Store, namespace: string, name: string, port: number): Address | undefined {
    const stored = store.get("/services", namespace, name);
    const service = stored && (JSON.parse(stored.body.toString()) as Service);
    const asked = service?.spec.ports?.find((one) => one.port === port);
    if (!service?.spec.selector || !asked) return undefined;
    for (const listener of this.#all) {
      if (listener.namespace !== namespace) continue;
      const pod = podOf(store, listener);
      if (!pod || !matchesLabels(service.spec.selector, pod.metadata.labels)) continue;
      if (!service.spec.publishNotReadyAddresses && !isReady(pod)) continue;
      const target = asked.targetPort ?? asked.port;
      const serves = pod.spec.containers.some((container) => portNumber(container, target) === listener.port);
      if (serves) return listener.address;
    }
    return undefined;
  }
}

function podOf(store: Store, { namespace, pod: name, uid }: Listener): Pod | undefined {
  const stored = store.get("/pods", namespace, name);
  if (stored?.uid !== uid) return undefined;
  const pod = JSON.parse(stored.body.toString()) as Pod;
  return pod.metadata.deletionTimestamp === undefined ? pod : undefined;
}
