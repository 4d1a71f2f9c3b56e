import type { KubeObject } from "../../src/api/object.ts";
import { POD_REQUESTS } from "../../src/api/protocol/pod-network.ts";
import { isNotFound } from "../../src/cluster/failures.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { isReady } from "../../src/local/controllers/pod-state.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import type { LabSink, Probe } from "../calc/network-policy-lab.ts";
import type { RealCluster } from "./real-cluster.ts";
import { answerIn, askFrom, type Listener } from "./sockets.ts";

/** How long nobody may answer before it counts as denied; and how long an answer that should come is waited for. */
const DENIED_MS = 500;
const ALLOWED_MS = 3000;
/** How long a change of policy may take to be in effect everywhere. */
const SETTLE_MS = 20_000;
/** A case has some three hundred probes: at once, since what is denied costs the same however many wait for it. */
const AT_ONCE = 400;

type Objects = Map<string, KubeObject>;

/** Plays the objects of a case on a real cluster: what a case wants is compared with what is there, and only that is changed. */
export class LivePolicyLab implements LabSink {
  readonly #cluster: RealCluster;
  readonly #nodes: readonly string[];
  #wanted: Objects = new Map();
  readonly #there: Objects = new Map();
  readonly #listening = new Map<string, Listener>();

  constructor(cluster: RealCluster, nodes: readonly string[]) {
    this.#cluster = cluster;
    this.#nodes = nodes;
  }

  /** The next case starts from nothing. */
  clear(): void {
    this.#wanted = new Map();
  }

  set(object: KubeObject): void {
    // Every namespace has its account already.
    if (object.kind !== "ServiceAccount") this.#wanted.set(keyOf(object), object);
  }

  remove({ kind }: { kind: string }, { name, namespace = "" }: { name: string; namespace?: string }): void {
    this.#wanted.delete(`${kind}/${namespace}/${name}`);
  }

  /** Makes the cluster as the case wants it: policies last, so that none is about pods that are not there yet. */
  async sync(): Promise<void> {
    const gone = [...this.#there].filter(([key]) => !this.#wanted.has(key));
    for (const [key, object] of inOrder(gone).reverse()) await this.#delete(key, object);
    for (const [key, object] of inOrder([...this.#wanted])) await this.#put(key, object);
    await this.#serve();
  }

  /** Every probe whose answer is not as the case says, after policy had the time to settle. */
  async wrong(probes: readonly Probe[]): Promise<string[]> {
    const began = Date.now();
    let open = probes;
    while (open.length > 0) {
      open = await this.#disagreeing(open);
      if (Date.now() - began > patience(SETTLE_MS)) break;
    }
    return open.map(({ from, to, protocol, port, allowed }) => {
      return `${from}>${to}:${protocol}/${port} should be ${allowed ? "allowed" : "denied"}`;
    });
  }

  close(): void {
    for (const listener of this.#listening.values()) listener.close();
  }

  async #disagreeing(probes: readonly Probe[]): Promise<Probe[]> {
    const pods = this.#pods();
    const wrong: Probe[] = [];
    for (let at = 0; at < probes.length; at += AT_ONCE) {
      await Promise.all(
        probes.slice(at, at + AT_ONCE).map(async (probe) => {
          const [from, to] = [pods.get(probe.from), pods.get(probe.to)];
          const protocol = probe.protocol === "TCP" ? "tcp" : "udp";
          const target = { host: to?.address ?? "", port: probe.port, protocol } as const;
          const answer = await askFrom(from?.netns as Netns, target, probe.allowed ? ALLOWED_MS : DENIED_MS);
          if ((answer?.host === probe.to) !== probe.allowed) wrong.push(probe);
        }),
      );
    }
    return wrong;
  }

  async #put(key: string, object: KubeObject): Promise<void> {
    const { client } = this.#cluster;
    const before = this.#there.get(key);
    if (before && JSON.stringify(before) === JSON.stringify(object)) return;
    const kind = await client.resourceFor(object);
    if (!before) await client.create(kind, this.#asMade(object));
    else if (object.kind === "NetworkPolicy") {
      // Whole, not merged: what a policy no longer says is what these cases are about.
      const operations = [{ op: "replace", path: "/spec", value: object["spec"] } as const];
      await client.patch(kind, object.metadata, { type: "json", operations });
    } else {
      const labels = { ...emptied(before.metadata.labels), ...object.metadata.labels };
      await client.patch(kind, object.metadata, { type: "merge", patch: { metadata: { labels } } });
    }
    this.#there.set(key, object);
  }

  async #delete(key: string, object: KubeObject): Promise<void> {
    const { client } = this.#cluster;
    const kind = await client.resourceFor(object);
    await client.delete(kind, object.metadata).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    const isGone = async () => {
      try {
        await client.get(kind, object.metadata);
        return false;
      } catch (error) {
        return isNotFound(error);
      }
    };
    await eventually(isGone, (gone) => gone, 60_000);
    this.#there.delete(key);
    this.#listening.get(key)?.close();
    this.#listening.delete(key);
  }

  /** Pods ask for the addresses the cases count on, and are spread over the nodes. */
  #asMade(object: KubeObject): KubeObject {
    if (object.kind !== "Pod") return object;
    const { metadata, status, spec } = object as Pod;
    const annotations = { [POD_REQUESTS.addresses]: JSON.stringify([status?.podIP]) };
    const container = { ...spec.containers[0], name: "serve", image: "pause" };
    return {
      ...object,
      metadata: { ...metadata, annotations },
      spec: {
        nodeName:
          this.#nodes[(metadata.name.charCodeAt(0) + (metadata.namespace ?? "").charCodeAt(0)) % this.#nodes.length],
        terminationGracePeriodSeconds: 0,
        automountServiceAccountToken: false,
        containers: [container],
      },
      status: undefined,
    } as KubeObject;
  }

  async #serve(): Promise<void> {
    const wanted = [...this.#wanted.values()].filter(({ kind }) => kind === "Pod");
    await eventually(
      async () => (await this.#cluster.client.list<Pod>(PODS)).items,
      (pods) =>
        wanted.every(({ metadata }) => {
          const is = ({ name, namespace }: Pod["metadata"]) =>
            name === metadata.name && namespace === metadata.namespace;
          return pods.some((pod) => is(pod.metadata) && isReady(pod));
        }),
      120_000,
    );
    for (const [name, { netns }] of this.#pods()) {
      const key = `Pod/${name}`;
      if (this.#listening.has(key) || !this.#wanted.has(key)) continue;
      this.#listening.set(key, await answerIn(netns, name, { tcp: [80, 81], udp: [80, 81] }));
    }
  }

  #pods(): Map<string, { netns: Netns; address: string }> {
    const here = [...this.#cluster.runtime.pods()].filter(({ sandbox }) => sandbox !== undefined);
    return new Map(
      here.map(({ pod, sandbox, podIPs }) => [
        `${pod.metadata.namespace}/${pod.metadata.name}`,
        { netns: sandbox?.netns as Netns, address: podIPs[0] as string },
      ]),
    );
  }
}

const ORDER = ["Namespace", "Pod", "NetworkPolicy"];

function inOrder(entries: [string, KubeObject][]): [string, KubeObject][] {
  return entries.sort(([, a], [, b]) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
}

function keyOf({ kind, metadata }: KubeObject): string {
  return `${kind}/${metadata.namespace ?? ""}/${metadata.name}`;
}

function emptied(labels: Record<string, string> = {}): Record<string, null> {
  return Object.fromEntries(Object.keys(labels).map((name) => [name, null]));
}
