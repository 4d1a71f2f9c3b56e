/**
 * Connections that the node masquerades, when packets to their destination are about to leave by another device. The kernel remembers with each
 * by which device it left, and ends it at the first packet that leaves by another. An entry that we make ourselves is bound to no device:
 * so those entries are made again, with the same translation, before the route changes.
 */
import type { ModelDelta, Net, Route } from "../../calc/model.ts";
import type { ConntrackEntry, ConntrackPort } from "../../kernel/conntrack/conntrack-port.ts";
import { errnoOf } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import { type Cidr, contains, parseAddress, parseCidr } from "../../kit/ip.ts";
import { dropUnknownWhile } from "../switchover/nat-keepalive.ts";

const PROTOCOLS: readonly number[] = [6, 17];
/** A packet may come between the end of an entry and its new beginning, and make one of its own. */
const TRIES = 3;

/** By prefix, how packets to it left last. */
export class LastEncapsulations {
  readonly #last = new Map<Net, Route["encapsulation"]>();

  /** Prefixes that were reached in one way, and are in another from now on. */
  changed({ routes }: Pick<ModelDelta, "routes">): Net[] {
    const changed = routes.set.flatMap(({ cidr, kind, encapsulation }) => {
      const before = this.#last.get(cidr);
      if (kind !== "remote-workload") return [];
      this.#last.set(cidr, encapsulation);
      return before === undefined || before === encapsulation ? [] : [cidr];
    });
    for (const cidr of routes.remove) this.#last.delete(cidr);
    return changed;
  }
}

export interface KeepOptions {
  kernel: Pick<Kernel, "conntrack" | "nft">;
  /** Of nftables: while entries are exchanged it drops packets of connections the kernel does not know; their senders repeat them. */
  table: string;
  netns?: Netns;
}

/** How many were made again. Nothing is done where there is none: that is told from a dump, and no packet waits for it. */
export async function keepTranslations(nets: readonly Net[], { kernel, table, netns }: KeepOptions): Promise<number> {
  const cidrs = nets.flatMap((net) => parseCidr(net) ?? []);
  const conntrack = kernel.conntrack(netns);
  try {
    const isConcerned = (entry: ConntrackEntry) => isBound(entry, cidrs);
    if (!(await conntrack.list()).some(isConcerned)) return 0;
    return await whileUnknownAreDropped({ kernel, table, ...(netns && { netns }) }, async () => {
      const entries = (await conntrack.list()).filter(isConcerned);
      return entries.filter((entry) => madeAgain(conntrack, entry)).length;
    });
  } finally {
    conntrack.close();
  }
}

async function whileUnknownAreDropped<T>({ kernel, table, netns }: KeepOptions, act: () => Promise<T>): Promise<T> {
  const nft = kernel.nft(netns);
  try {
    const isOfOthers = (await nft.tables()).some(({ family, name }) => family === "inet" && name === table);
    const result = await dropUnknownWhile(nft, table, act);
    if (!isOfOthers) await nft.run(`delete table inet ${table}`);
    return result;
  } finally {
    nft.close();
  }
}

function isBound({ sourceNat, reply, original }: ConntrackEntry, cidrs: readonly Cidr[]): boolean {
  const address = parseAddress(reply.source);
  if (!sourceNat || !PROTOCOLS.includes(original.protocol) || !address) return false;
  return cidrs.some((cidr) => contains(cidr, address));
}

function madeAgain(conntrack: ConntrackPort, entry: ConntrackEntry): boolean {
  const { original, reply, mark, timeout, tcpState } = entry;
  for (let attempt = 0; attempt < TRIES; attempt++) {
    conntrack.delete(original);
    try {
      conntrack.insert({
        ...{ original, mark, timeout },
        sourceNat: { address: reply.destination, port: reply.destinationPort },
        ...(entry.destinationNat && { destinationNat: { address: reply.source, port: reply.sourcePort } }),
        ...(tcpState && { tcpState }),
      });
      return true;
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
    }
  }
  return false;
}
