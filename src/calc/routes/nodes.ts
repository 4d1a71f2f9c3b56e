import type { KubeObject } from "../../api/object.ts";
import { type AgentReport, announcedDataplane } from "../../api/protocol/agent-report.ts";
import type { ClusterNode } from "../model.ts";
import { addressOf, toNet } from "../nets.ts";
import { orMake } from "../or-make.ts";
import type { TableDiff } from "../table-diff.ts";
import { clusterNode } from "./cluster-node.ts";
import type { RouteFact, Routes } from "./routes.ts";

/** The cluster's nodes: what they say themselves, the tunnel addresses blocks know of, and the data plane their agents announce. */
export class Nodes {
  readonly #local: string;
  readonly #systemNamespace: string;
  readonly #table: TableDiff<ClusterNode>;
  readonly #routes: Routes;
  readonly #objects = new Map<string, KubeObject>();
  /** By node, what each block says of its tunnel. */
  readonly #tunnels = new Map<string, Map<string, string[]>>();
  readonly #tunnelsOfBlock = new Map<string, Set<string>>();
  /** By node, what each of its agent's pods announces; there may be two for a moment, and none while one is replaced. */
  readonly #agents = new Map<string, Map<string, AgentReport["dataplane"]>>();
  readonly #nodeOfAgent = new Map<string, string>();
  readonly #dirty = new Set<string>();

  constructor(local: string, systemNamespace: string, table: TableDiff<ClusterNode>, routes: Routes) {
    this.#local = local;
    this.#systemNamespace = systemNamespace;
    this.#table = table;
    this.#routes = routes;
  }

  get(name: string): ClusterNode | undefined {
    return this.#table.get(name);
  }

  set(name: string, node: KubeObject | undefined): void {
    if (node) this.#objects.set(name, node);
    else this.#objects.delete(name);
    this.#dirty.add(name);
  }

  setBlock(key: string, facts: readonly RouteFact[]): void {
    for (const node of this.#tunnelsOfBlock.get(key) ?? []) {
      this.#tunnels.get(node)?.delete(key);
      this.#dirty.add(node);
    }
    const nodes = new Set<string>();
    for (const fact of facts) {
      if (fact.is !== "host" || !fact.tunnel) continue;
      const ofNode = orMake(this.#tunnels, fact.node, () => new Map<string, string[]>());
      orMake(ofNode, key, () => []).push(addressOf(fact.net));
      nodes.add(fact.node);
      this.#dirty.add(fact.node);
    }
    if (nodes.size > 0) this.#tunnelsOfBlock.set(key, nodes);
    else this.#tunnelsOfBlock.delete(key);
  }

  /** Pods are looked at for one thing only: whether they are an agent that says which data plane acts. */
  setPod(key: string, pod: KubeObject | undefined): void {
    const inSystem = pod?.metadata.namespace === this.#systemNamespace;
    const says = inSystem ? announcedDataplane(pod?.metadata.annotations) : undefined;
    const before = this.#nodeOfAgent.get(key);
    if (says === undefined && before === undefined) return;
    if (before !== undefined) {
      this.#agents.get(before)?.delete(key);
      this.#nodeOfAgent.delete(key);
      this.#dirty.add(before);
    }
    const node = ((pod?.["spec"] ?? {}) as { nodeName?: string }).nodeName;
    if (says === undefined || node === undefined) return;
    orMake(this.#agents, node, () => new Map<string, AgentReport["dataplane"]>()).set(key, says);
    this.#nodeOfAgent.set(key, node);
    this.#dirty.add(node);
  }

  /** Whether any node changed: then every way to it is worked out again. */
  settle(): boolean {
    let changed = false;
    for (const name of this.#dirty) {
      const object = this.#objects.get(name);
      const node = object && clusterNode(object, this.#factsOf(name));
      // A node's status is written every few seconds; only what matters here may cost anything.
      if (JSON.stringify(node) === JSON.stringify(this.#table.get(name))) continue;
      this.#table.set(name, node);
      this.#routes.problems(`node ${name}`, node ? hostFacts(node) : []);
      changed = true;
    }
    this.#dirty.clear();
    return changed;
  }

  #factsOf(name: string) {
    // Older agents announce on their pods alone, which are gone while a pod is replaced.
    const ofNode = announcedDataplane(this.#objects.get(name)?.metadata.annotations);
    const says = [...(this.#agents.get(name)?.values() ?? []), ...(ofNode === undefined ? [] : [ofNode])];
    const dataplane = says.length === 0 ? null : says.every((word) => word === "BPF") ? "BPF" : "Nftables";
    const tunnelAddresses = [...(this.#tunnels.get(name)?.values() ?? [])].flat();
    return { local: name === this.#local, tunnelAddresses, dataplane } as const;
  }
}

function hostFacts({ name, addresses, vtep }: ClusterNode): RouteFact[] {
  const tunnels = [vtep.addressV4, vtep.addressV6].flatMap((address) => toNet(address ?? "") ?? []);
  return [
    ...addresses.map((net) => ({ is: "host" as const, net, node: name, tunnel: false })),
    ...tunnels
      .filter((net) => !addresses.includes(net))
      .map((net) => ({ is: "host" as const, net, node: name, tunnel: true })),
  ];
}
