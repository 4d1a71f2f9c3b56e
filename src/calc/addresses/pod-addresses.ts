import type { KubeObject } from "../../api/object.ts";
import { annotatedAddresses, statusAddresses } from "../../api/protocol/pod-network.ts";
import type { IPAMBlock } from "../../api/resources/ipam.ts";
import { type Cidr, contains, parseAddress, parseCidr } from "../../kit/ip.ts";
import type { Net } from "../model.ts";
import { addressOf, NetTable } from "../nets.ts";
import { orMake } from "../or-make.ts";
import { IpamOwners } from "./ipam-owners.ts";
import type { ReservedAddresses } from "./reserved-addresses.ts";
import { unclaimableAddress } from "./special-addresses.ts";

/** What this node's CNI plugin made for a pod: written by the agent alone, on the node's own disk. */
export interface LocalPod {
  addresses: readonly string[];
  mac: string;
  /** False once the interface is gone: from then on the pod has no address, whatever its status still says. */
  connected: boolean;
}

/** A pod's addresses, and what it claims without having it. */
export interface PodGrant {
  nets: Net[];
  /** From the node's own record; null where there is none. */
  mac: string | null;
  refused: { net: Net; why: string }[];
}

/**
 * Which addresses are a pod's. A tenant writes annotations and labels of its pods, so neither counts. In this order:
 *
 * 1. the record of this node's CNI plugin, for pods of this node;
 * 2. what IPAM gave to a pod of this name on this node;
 * 3. `status.podIPs`, which only kubelets write, unless pools or IPAM contradict it.
 *
 * No source makes an address of a node, of the API server, or a special one a pod's.
 */
export class PodAddresses {
  readonly #node: string;
  readonly #foreign: boolean;
  readonly #reserved: ReservedAddresses;
  readonly #ipam = new IpamOwners();
  readonly #local = new Map<string, LocalPod>();
  readonly #podCidrs = new Map<string, Cidr[]>();
  #pools: NetTable | undefined;
  /** By address, the pods that name it, rightly or not: who is looked at again when whose it is changes. */
  readonly #claims = new Map<Net, Set<string>>();
  readonly #claimsOf = new Map<string, readonly Net[]>();
  /** Pods that have nothing but their status to go by; few, where IPAM is ours. */
  readonly #byStatus = new Set<string>();
  readonly #granted = new Map<Net, Set<string>>();
  readonly #grantedTo = new Map<string, readonly Net[]>();

  /** `foreign`: another CNI plugin gives addresses, so there are no pools or blocks to compare with. */
  constructor(node: string, reserved: ReservedAddresses, foreign: boolean) {
    this.#node = node;
    this.#reserved = reserved;
    this.#foreign = foreign;
  }

  setLocal(pod: string, record: LocalPod | undefined): void {
    if (record) this.#local.set(pod, record);
    else this.#local.delete(pod);
  }

  /** Gives the pods to look at again. */
  setBlock(key: string, block: IPAMBlock | undefined): Set<string> {
    const { pods, nets, covered } = this.#ipam.set(key, block);
    if (covered) for (const pod of this.#byStatus) pods.add(pod);
    for (const net of nets) for (const pod of this.claimants(net)) pods.add(pod);
    return pods;
  }

  /** Pools and prefixes of nodes are few and change seldom: every pod is looked at again. */
  setPools(nets: readonly Net[]): void {
    this.#pools = nets.length > 0 ? new NetTable() : undefined;
    for (const net of nets) this.#pools?.add(net, true);
  }

  /** Prefixes a node takes pod addresses from without IPAM; whether they changed. */
  setPodCidrs(node: string, texts: readonly string[]): boolean {
    const now = texts.flatMap((text) => parseCidr(text) ?? []);
    const text = (cidrs: readonly Cidr[]) => cidrs.map(({ base, length }) => `${base}/${length}`).join();
    if (text(now) === text(this.#podCidrs.get(node) ?? [])) return false;
    if (now.length > 0) this.#podCidrs.set(node, now);
    else this.#podCidrs.delete(node);
    return true;
  }

  claimants(net: Net): Iterable<string> {
    return this.#claims.get(net) ?? [];
  }

  /** The pod that has the address, as in "ADDRESS is the address of pod a/b". */
  holder(net: Net): string | undefined {
    const pods = this.#granted.get(net);
    return pods && [...pods].sort()[0];
  }

  /** What a pod has now. `networked` is false for pods without a network of their own, or gone. Gives also the addresses it got or lost. */
  settle(key: string, pod: KubeObject | undefined, networked: boolean): PodGrant & { changed: Net[] } {
    this.#byStatus.delete(key);
    const grant = pod && networked ? this.#grantOf(key, pod) : { nets: [], mac: null, refused: [] };
    this.#note(this.#claims, this.#claimsOf, key, [...grant.nets, ...grant.refused.map(({ net }) => net)]);
    // A pod that ends has given its address back: its status is late, not a lie.
    const isLate = pod?.metadata.deletionTimestamp !== undefined || this.#local.get(key)?.connected === false;
    const refused = isLate ? [] : grant.refused;
    return { ...grant, refused, changed: this.#note(this.#granted, this.#grantedTo, key, grant.nets) };
  }

  #grantOf(key: string, pod: KubeObject): PodGrant {
    const node = ((pod["spec"] ?? {}) as { nodeName?: string }).nodeName ?? "";
    const local = node === this.#node ? this.#local.get(key) : undefined;
    const status = statusAddresses(pod);
    // Other nodes do not look at the annotation at all.
    const claimed = node === this.#node ? [...new Set([...status, ...annotatedAddresses(pod)])].sort() : status;
    const given = local ? recorded(local) : this.#ipam.given(key, node);
    if (!local && given.length === 0) this.#byStatus.add(key);
    const nets: Net[] = [];
    const refused: PodGrant["refused"] = [];
    for (const net of [...new Set([...given, ...claimed])].sort()) {
      const sure = given.includes(net);
      const possible = sure || (!local && given.length === 0 && status.includes(net));
      const why =
        this.#never(net) ??
        (sure ? undefined : possible ? this.#objection(net, pod, node) : this.#notGiven(net, local !== undefined));
      if (why === undefined) nets.push(net);
      else refused.push({ net, why });
    }
    return { nets, mac: local?.mac ?? null, refused };
  }

  #never(net: Net): string | undefined {
    return unclaimableAddress(addressOf(net)) ?? this.#reserved.holder(net);
  }

  #notGiven(net: Net, hasRecord: boolean): string {
    const owner = this.#ipam.of(net);
    if (typeof owner === "object") return `the address of pod ${owner.pod}`;
    return hasRecord ? "not what this node's CNI plugin gave to the pod" : "not what IPAM gave to the pod";
  }

  /** What pools and IPAM have against an address that is in the status alone. */
  #objection(net: Net, pod: KubeObject, node: string): string | undefined {
    const address = parseAddress(addressOf(net));
    if (!address) return "not an address";
    if (this.#foreign) return undefined;
    const owner = this.#ipam.of(net);
    if (owner === "no pod") return "an address IPAM gave to a node";
    if (typeof owner === "object") return `an address IPAM gave to pod ${owner.pod}`;
    if (this.#pools === undefined || this.#podCidrs.get(node)?.some((cidr) => contains(cidr, address)))
      return undefined;
    const isEnding = pod.metadata.deletionTimestamp !== undefined;
    if (owner === undefined && (isEnding || this.#ipam.covers(address))) return "not an address IPAM has given out";
    if (this.#pools.find(address)) return undefined;
    return "in no IP pool";
  }

  /** Puts what a pod has in place of what it had; gives the difference. */
  #note(byNet: Map<Net, Set<string>>, ofPod: Map<string, readonly Net[]>, pod: string, nets: readonly Net[]): Net[] {
    const before = ofPod.get(pod) ?? [];
    const changed = [...before.filter((net) => !nets.includes(net)), ...nets.filter((net) => !before.includes(net))];
    for (const net of before) {
      const pods = byNet.get(net);
      pods?.delete(pod);
      if (pods?.size === 0) byNet.delete(net);
    }
    for (const net of nets) orMake(byNet, net, () => new Set<string>()).add(pod);
    if (nets.length > 0) ofPod.set(pod, nets);
    else ofPod.delete(pod);
    return changed;
  }
}

function recorded({ connected, addresses }: LocalPod): Net[] {
  return connected ? addresses.map((address) => `${address}/${address.includes(":") ? 128 : 32}`).sort() : [];
}
