/**
 * Connections that the node masquerades, while packets to their destination begin to leave by another device. The kernel remembers with each
 * by which device it left, and ends it at the first packet that leaves by another. An entry that we make ourselves is bound to no device:
 * so those entries are made again, with the same translation, and no packet of theirs leaves between the change of the route and that.
 */
import type { ModelDelta, Net } from "../../calc/model.ts";
import type { ConntrackEntry, ConntrackPort } from "../../kernel/conntrack/conntrack-port.ts";
import { errnoOf } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import { type Cidr, contains, parseAddress, parseCidr } from "../../kit/ip.ts";
import type { ApplyReport } from "../contract.ts";
import { holdChains, holdUnknown } from "../switchover/nat-keepalive.ts";
import type { NodeNetwork } from "./node-network.ts";

const PROTOCOLS: readonly number[] = [6, 17];
/** A packet may come between the end of an entry and its new beginning, and make one of its own; and the kernel may be busy. */
const TRIES = 3;

export interface KeepOptions {
  kernel: Pick<Kernel, "conntrack" | "nft">;
  /** Of nftables, of nothing else: it is there for a moment, and a switchover that has a table at the same time keeps its own. */
  table: string;
  netns?: Netns;
}

/**
 * The change of routes is carried out in any case: a delta comes once, and a route that is not changed leads nowhere later. Rejects, when
 * connections may have been lost by it.
 */
export async function applyAndKeep(
  network: Pick<NodeNetwork, "apply" | "rerouted">,
  delta: ModelDelta,
  options: KeepOptions,
): Promise<ApplyReport> {
  const nets = network.rerouted(delta);
  if (nets.length === 0) return network.apply(delta);
  let report: ApplyReport | undefined;
  const apply = () => {
    report ??= network.apply(delta);
    return report;
  };
  try {
    return await whileHeld(nets, options, async () => {
      const done = apply();
      await makeAgain(nets, options);
      return done;
    });
  } finally {
    apply();
  }
}

/** Of an agent that was killed in such a moment: until it goes, connections wait. */
export async function releaseHeld({ kernel, table, netns }: KeepOptions): Promise<void> {
  const nft = kernel.nft(netns);
  try {
    const isThere = (await nft.tables()).some(({ family, name }) => family === "inet" && name === table);
    if (isThere) await nft.run(`delete table inet ${table}`);
  } finally {
    nft.close();
  }
}

/**
 * Meanwhile the kernel takes no TCP packet of a connection it does not know, and lets none of a masqueraded one out to these prefixes. Their
 * senders repeat them.
 */
async function whileHeld<T>(
  nets: readonly Net[],
  { kernel, table, netns }: KeepOptions,
  act: () => Promise<T>,
): Promise<T> {
  const nft = kernel.nft(netns);
  const at = `inet ${table}`;
  const families = (["ip", "ip6"] as const).flatMap((family) => {
    const own = nets.filter((net) => net.includes(":") === (family === "ip6"));
    return own.length > 0 ? [`${family} daddr { ${own.join(", ")} }`] : [];
  });
  try {
    await nft.run(
      [
        `add table ${at}`,
        ...holdChains(at),
        ...holdUnknown(at),
        // After the translation of destinations, before the kernel compares devices.
        `add chain ${at} leaving { type filter hook postrouting priority 90; }`,
        `flush chain ${at} leaving`,
        ...families.map((to) => `add rule ${at} leaving ${to} ct direction original ct status snat drop`),
      ].join("\n"),
    );
    try {
      return await act();
    } finally {
      await again(() => nft.run(`delete table ${at}`));
    }
  } finally {
    nft.close();
  }
}

async function makeAgain(nets: readonly Net[], { kernel, netns }: KeepOptions): Promise<void> {
  const cidrs = nets.flatMap((net) => parseCidr(net) ?? []);
  const conntrack = kernel.conntrack(netns);
  try {
    const entries = (await again(() => conntrack.list())).filter((entry) => isBound(entry, cidrs));
    const failures = entries.flatMap((entry) => failureOf(() => madeAgain(conntrack, entry)));
    // One that the kernel refuses keeps none of the others.
    if (failures.length > 0) throw failures[0];
  } finally {
    conntrack.close();
  }
}

async function again<T>(act: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await act();
    } catch (error) {
      if (attempt === TRIES) throw error;
    }
  }
}

function failureOf(act: () => void): unknown[] {
  try {
    act();
    return [];
  } catch (error) {
    return [error];
  }
}

function isBound({ sourceNat, reply, original }: ConntrackEntry, cidrs: readonly Cidr[]): boolean {
  const address = parseAddress(reply.source);
  if (!sourceNat || !PROTOCOLS.includes(original.protocol) || !address) return false;
  return cidrs.some((cidr) => contains(cidr, address));
}

function madeAgain(conntrack: ConntrackPort, entry: ConntrackEntry): void {
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
      return;
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
    }
  }
}
