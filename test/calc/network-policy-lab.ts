import type { KubeObject } from "../../src/api/object.ts";
import type { ModelCopy } from "../../src/calc/model-copy.ts";
import { evaluate } from "../../src/calc/policy/evaluate.ts";
import { conformanceData } from "../support/conformance.ts";

/** The world the public NetworkPolicy cases are played in, as objects; whoever plays them (calculation or real packets) reads the same. */
export interface NetworkPolicyCase {
  Description: string;
  Tags: string[];
  Steps: { Actions?: Action[]; Allowed: string[]; Total: number }[];
}

type Named = { Namespace: string };
type Action = Partial<{
  CreatePolicy: { Policy: KubeObject };
  UpdatePolicy: { Policy: KubeObject };
  DeletePolicy: Named & { Name: string };
  CreateNamespace: Named & { Labels: Record<string, string> };
  SetNamespaceLabels: Named & { Labels: Record<string, string> };
  DeleteNamespace: Named;
  CreatePod: Named & { Pod: string; Labels: Record<string, string> };
  SetPodLabels: Named & { Pod: string; Labels: Record<string, string> };
  DeletePod: Named & { Pod: string };
  ReadNetworkPolicies: unknown;
}>;

export interface Probe {
  from: string;
  to: string;
  protocol: "TCP" | "UDP" | "SCTP";
  port: number;
  allowed: boolean;
}

const PROTOCOLS = { TCP: 6, UDP: 17, SCTP: 132 } as const;
const PORTS = [80, 81];

export function networkPolicyCases(): NetworkPolicyCase[] | undefined {
  return conformanceData<NetworkPolicyCase[]>("network-policy-cases.json");
}

/** Few cases that have every tag between them; those that have most come first. */
export function fewWithEveryTag(cases: readonly NetworkPolicyCase[]): NetworkPolicyCase[] {
  const missing = new Set(cases.flatMap(({ Tags }) => Tags));
  const picked: NetworkPolicyCase[] = [];
  while (missing.size > 0) {
    const adds = ({ Tags }: NetworkPolicyCase) => Tags.filter((tag) => missing.has(tag)).length;
    const best = cases.reduce((best, one) => (adds(one) > adds(best) ? one : best));
    for (const tag of best.Tags) missing.delete(tag);
    picked.push(best);
  }
  return picked;
}

/** What a case tells: an object as it is now, or one that is gone. */
export interface LabSink {
  set(object: KubeObject): void;
  remove(kind: { group: string; kind: string }, ref: { name: string; namespace?: string }): void;
}

export class NetworkPolicyLab {
  readonly #sink: LabSink;
  readonly #node: string;
  readonly #pods = new Map<string, { address: string }>();
  readonly #addresses: string[] = [];

  /** Starts with namespaces x, y, z and pods a, b, c in each, at the addresses the cases count on. */
  constructor(sink: LabSink, node: string) {
    this.#sink = sink;
    this.#node = node;
    for (const namespace of ["x", "y", "z"]) {
      this.#setNamespace(namespace, { ns: namespace });
      for (const pod of ["a", "b", "c"]) this.#setPod(namespace, pod, { pod });
    }
  }

  addressOf(pod: string): string {
    return this.#pods.get(pod)!.address;
  }

  act(action: Action): void {
    const sink = this.#sink;
    const policy = action.CreatePolicy ?? action.UpdatePolicy;
    // Some of them come without their type.
    if (policy) sink.set({ ...policy.Policy, apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" });
    if (action.DeletePolicy) {
      const { Namespace: namespace, Name: name } = action.DeletePolicy;
      sink.remove({ group: "networking.k8s.io", kind: "NetworkPolicy" }, { namespace, name });
    }
    const namespace = action.CreateNamespace ?? action.SetNamespaceLabels;
    if (namespace) this.#setNamespace(namespace.Namespace, namespace.Labels);
    const pod = action.CreatePod ?? action.SetPodLabels;
    if (pod) this.#setPod(pod.Namespace, pod.Pod, pod.Labels);
    if (action.DeletePod) this.#removePod(action.DeletePod.Namespace, action.DeletePod.Pod);
    if (action.DeleteNamespace) {
      const { Namespace: name } = action.DeleteNamespace;
      for (const key of [...this.#pods.keys()].filter((each) => each.startsWith(`${name}/`))) {
        this.#removePod(name, key.slice(name.length + 1));
      }
      sink.remove({ group: "", kind: "Namespace" }, { name });
    }
  }

  /** Every pod to every other on every port and protocol. A pod to itself is left out: it never meets policy. */
  *probes(allowed: readonly string[]): Generator<Probe> {
    const yes = new Set(allowed);
    for (const from of this.#pods.keys()) {
      for (const to of this.#pods.keys()) {
        if (from === to) continue;
        for (const protocol of ["TCP", "UDP", "SCTP"] as const) {
          for (const port of PORTS) {
            yield { from, to, protocol, port, allowed: yes.has(`${from}>${to}:${protocol}/${port}`) };
          }
        }
      }
    }
  }

  #setNamespace(name: string, labels: Record<string, string>): void {
    const all = { ...labels, "kubernetes.io/metadata.name": name };
    this.#sink.set({ apiVersion: "v1", kind: "Namespace", metadata: { name, labels: all } });
    const account = { name: "default", namespace: name };
    this.#sink.set({ apiVersion: "v1", kind: "ServiceAccount", metadata: account });
  }

  #setPod(namespace: string, name: string, labels: Record<string, string>): void {
    const key = `${namespace}/${name}`;
    const address = this.#pods.get(key)?.address ?? this.#newAddress(key);
    this.#pods.set(key, { address });
    const ports = PORTS.flatMap((containerPort) =>
      Object.keys(PROTOCOLS).map((protocol) => ({
        name: `serve-${containerPort}-${protocol.toLowerCase()}`,
        containerPort,
        protocol,
      })),
    );
    this.#sink.set({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace, labels },
      spec: { nodeName: this.#node, serviceAccountName: "default", containers: [{ name: "serve", ports }] },
      status: { phase: "Running", podIP: address, podIPs: [{ ip: address }] },
    });
  }

  #removePod(namespace: string, name: string): void {
    this.#pods.delete(`${namespace}/${name}`);
    this.#sink.remove({ group: "", kind: "Pod" }, { namespace, name });
  }

  /** The CIDR cases count on z/c being far from the others. */
  #newAddress(key: string): string {
    if (key === "z/c") return "192.168.242.249";
    this.#addresses.push(key);
    return `192.168.242.${this.#addresses.length}`;
  }
}

/** One pod to another on the same node: what leaves the one and reaches the other. */
export function verdictOf(model: ModelCopy, world: NetworkPolicyLab, { from, to, protocol, port }: Probe): boolean {
  const packet = {
    ipVersion: 4 as const,
    protocol: PROTOCOLS[protocol],
    source: world.addressOf(from),
    sourcePort: 40_000,
    destination: world.addressOf(to),
    destinationPort: port,
  };
  const path = { from: { at: "workload", id: from }, to: { at: "workload", id: to } } as const;
  return evaluate(model, packet, path).action === "allow";
}
