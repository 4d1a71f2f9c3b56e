import type { IPAMBlock } from "../../api/resources/ipam.ts";
import { allocationsOf } from "../../api/resources/ipam-allocation.ts";
import type { Address } from "../../kit/ip.ts";
import type { Net } from "../model.ts";
import { NetTable, toNet } from "../nets.ts";
import { orMake } from "../or-make.ts";

/** Who an address was given to. `node` is absent where the allocation does not name one. */
export type IpamOwner = { pod: string; node: string | undefined } | "no pod" | "unknown";

/** What a change of a block concerns. */
interface OwnersChange {
  pods: Set<string>;
  nets: Set<Net>;
  /** Whether a prefix began or ceased to be a block's: that also says something of addresses that are free. */
  covered: boolean;
}

/**
 * What blocks say of single addresses. Only agents write blocks, so a tenant cannot change any of it. Two blocks never have one prefix;
 * should they, the first by name is believed, so that nothing depends on the order of arrival.
 */
export class IpamOwners {
  readonly #covered = new NetTable();
  readonly #blocksOf = new Map<Net, Set<string>>();
  readonly #ofBlock = new Map<string, { net: Net; owners: Map<Net, IpamOwner> }>();
  readonly #owners = new Map<Net, Map<string, IpamOwner>>();
  readonly #ofPod = new Map<string, Map<Net, Set<string>>>();

  /** Undefined where the block is gone. */
  set(key: string, block: IPAMBlock | undefined): OwnersChange {
    const before = this.#ofBlock.get(key);
    const net = block && !block.spec.deleted ? toNet(block.spec.cidr) : undefined;
    const owners = block && net !== undefined ? ownersIn(block) : new Map<Net, IpamOwner>();
    const change: OwnersChange = { pods: new Set(), nets: new Set(), covered: before?.net !== net };
    for (const [address, owner] of before?.owners ?? []) {
      if (sameOwner(owner, owners.get(address))) continue;
      change.nets.add(address);
      this.#drop(key, address, owner, change.pods);
    }
    for (const [address, owner] of owners) {
      if (sameOwner(owner, before?.owners.get(address))) continue;
      change.nets.add(address);
      this.#add(key, address, owner, change.pods);
    }
    if (change.covered) this.#cover(key, before?.net, net);
    if (net === undefined) this.#ofBlock.delete(key);
    else this.#ofBlock.set(key, { net, owners });
    return change;
  }

  of(net: Net): IpamOwner | undefined {
    const owners = this.#owners.get(net);
    if (!owners || owners.size === 1) return owners?.values().next().value;
    return [...owners].sort(([a], [b]) => (a < b ? -1 : 1))[0]?.[1];
  }

  /** Addresses given to the pod for this node, ordered. The same name on another node is another pod. */
  given(pod: string, node: string): Net[] {
    const all = [...(this.#ofPod.get(pod)?.keys() ?? [])];
    return all.filter((net) => isGiven(this.of(net), pod, node)).sort();
  }

  /** Whether some block has the address, given out or not. */
  covers(address: Address): boolean {
    return this.#covered.find(address) !== undefined;
  }

  #add(key: string, address: Net, owner: IpamOwner, pods: Set<string>): void {
    orMake(this.#owners, address, () => new Map<string, IpamOwner>()).set(key, owner);
    if (typeof owner !== "object") return;
    pods.add(owner.pod);
    const nets = orMake(this.#ofPod, owner.pod, () => new Map<Net, Set<string>>());
    orMake(nets, address, () => new Set<string>()).add(key);
  }

  #drop(key: string, address: Net, owner: IpamOwner, pods: Set<string>): void {
    const owners = this.#owners.get(address);
    owners?.delete(key);
    if (owners?.size === 0) this.#owners.delete(address);
    if (typeof owner !== "object") return;
    pods.add(owner.pod);
    const nets = this.#ofPod.get(owner.pod);
    const keys = nets?.get(address);
    keys?.delete(key);
    if (keys?.size === 0) nets?.delete(address);
    if (nets?.size === 0) this.#ofPod.delete(owner.pod);
  }

  #cover(key: string, before: Net | undefined, now: Net | undefined): void {
    if (before !== undefined) {
      const keys = this.#blocksOf.get(before);
      keys?.delete(key);
      if (keys?.size === 0) {
        this.#blocksOf.delete(before);
        this.#covered.remove(before);
      }
    }
    if (now === undefined) return;
    orMake(this.#blocksOf, now, () => new Set<string>()).add(key);
    this.#covered.add(now, true);
  }
}

function isGiven(owner: IpamOwner | undefined, pod: string, node: string): boolean {
  return typeof owner === "object" && owner.pod === pod && (owner.node === undefined || owner.node === node);
}

function ownersIn(block: IPAMBlock): Map<Net, IpamOwner> {
  return new Map(
    allocationsOf(block).flatMap(({ address, owner }): [Net, IpamOwner][] => {
      const net = toNet(address);
      if (net === undefined) return [];
      if (owner.kind === "pod") return [[net, { pod: `${owner.namespace}/${owner.name}`, node: owner.node }]];
      return [[net, owner.kind === "tunnel" || owner.kind === "node" ? "no pod" : "unknown"]];
    }),
  );
}

function sameOwner(a: IpamOwner, b: IpamOwner | undefined): boolean {
  if (typeof a !== "object" || typeof b !== "object") return a === b;
  return a.pod === b.pod && a.node === b.node;
}
