import type { Net } from "../model.ts";
import { orMake } from "../or-make.ts";

/** Addresses of nodes and of the API server: whoever takes one over cuts the cluster off, or listens in. */
export class ReservedAddresses {
  readonly #bySource = new Map<string, readonly Net[]>();
  /** By address, whose it is by each source that names it. */
  readonly #holders = new Map<Net, Map<string, string>>();

  /** What one source reserves now, in place of what it did. Gives the addresses for which that makes a difference. */
  set(source: string, nets: readonly Net[], holder: string): Net[] {
    const before = this.#bySource.get(source) ?? [];
    const [was, is] = [new Set(before), new Set(nets)];
    for (const net of before) {
      if (is.has(net)) continue;
      const holders = this.#holders.get(net);
      holders?.delete(source);
      if (holders?.size === 0) this.#holders.delete(net);
    }
    for (const net of nets) orMake(this.#holders, net, () => new Map<string, string>()).set(source, holder);
    if (nets.length > 0) this.#bySource.set(source, [...nets]);
    else this.#bySource.delete(source);
    return [...before.filter((net) => !is.has(net)), ...nets.filter((net) => !was.has(net))];
  }

  /** As in "ADDRESS is an address of node a". The same whatever the order of arrival. */
  holder(net: Net): string | undefined {
    const holders = this.#holders.get(net);
    return holders && [...holders.values()].sort()[0];
  }
}
