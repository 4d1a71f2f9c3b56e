import type { KubeObject } from "../../api/object.ts";
import { isPodInterface } from "../../api/protocol/pod-network.ts";
import type { Net } from "../model.ts";
import { orMake } from "../or-make.ts";

/**
 * Which interface is a pod's, where another CNI plugin connects pods: the one that this node's route to the pod's address leads to. An
 * address may be a new pod's while the object of the one before is still there: then two pods claim one interface, and the later has it.
 */
export class PodInterfaces {
  #prefixes: readonly string[] = [];
  #routes: ReadonlyMap<Net, string> = new Map();
  readonly #claims = new Map<string, Map<string, KubeObject>>();
  readonly #claimOf = new Map<string, string>();

  /** Whether they are others than before. */
  setPrefixes(prefixes: readonly string[]): boolean {
    const same = prefixes.join() === this.#prefixes.join();
    this.#prefixes = prefixes;
    return !same;
  }

  /** In place of the routes before; gives the addresses whose interface changed. */
  setRoutes(routes: ReadonlyMap<Net, string>): Net[] {
    const before = this.#routes;
    this.#routes = routes;
    return [...new Set([...before.keys(), ...routes.keys()])].filter((net) => before.get(net) !== routes.get(net));
  }

  /** The interface behind which these addresses are; undefined where none is known yet. */
  find(nets: readonly Net[]): string | undefined {
    const found = nets.map((net) => this.#routes.get(net));
    return found.find((name) => name !== undefined && isPodInterface(name, this.#prefixes));
  }

  /** Puts what a pod claims in place of what it claimed; gives the other pods to look at again. */
  claim(key: string, interfaceName: string | undefined, pod: KubeObject | undefined): string[] {
    const before = this.#claimOf.get(key);
    const touched = new Set([before, interfaceName].filter((name) => name !== undefined));
    const holders = new Map([...touched].map((name) => [name, this.#holder(name)]));
    if (before !== undefined) {
      const claims = this.#claims.get(before);
      claims?.delete(key);
      if (claims?.size === 0) this.#claims.delete(before);
    }
    this.#claimOf.delete(key);
    if (interfaceName !== undefined && pod) {
      orMake(this.#claims, interfaceName, () => new Map<string, KubeObject>()).set(key, pod);
      this.#claimOf.set(key, interfaceName);
    }
    return [...holders]
      .flatMap(([name, holder]) => (this.#holder(name) === holder ? [] : [holder, this.#holder(name)]))
      .filter((pod) => pod !== undefined && pod !== key) as string[];
  }

  has(key: string): boolean {
    const name = this.#claimOf.get(key);
    return name !== undefined && this.#holder(name) === key;
  }

  #holder(interfaceName: string): string | undefined {
    const claims = [...(this.#claims.get(interfaceName) ?? [])];
    return claims.map(([key, pod]) => ({ key, place: placeOf(key, pod) })).sort(byPlace)[0]?.key;
  }
}

/** One that stays comes before one that ends, then the later, then by name. */
function placeOf(key: string, { metadata }: KubeObject): [ends: number, madeAt: number, key: string] {
  const ends = metadata.deletionTimestamp === undefined ? 0 : 1;
  return [ends, -Date.parse(metadata.creationTimestamp ?? ""), key];
}

function byPlace({ place: a }: { place: ReturnType<typeof placeOf> }, { place: b }: { place: typeof a }): number {
  return a[0] - b[0] || (a[1] || 0) - (b[1] || 0) || (a[2] < b[2] ? -1 : 1);
}
