import type { ModelDelta } from "../../calc/model.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import type { NftPort } from "../../kernel/nft/nft-port.ts";
import type { LimitedWorkload } from "../contract.ts";
import { readActualRuleset } from "./actual-ruleset.ts";
import { knownPods, loopbackGuard, natOutgoing, overlayGuard, serviceLoop, unknownPodGuard } from "./base-chains.ts";
import { ConnectionShares, withConnectionLimit } from "./connection-limit.ts";
import { nodeSets } from "./desired-ruleset.ts";
import type { Ruleset } from "./ruleset.ts";
import { transaction, type Written } from "./transaction.ts";

/**
 * SNAT of packets that leave the pools, and the guards of the overlay port, of the node's loopback and of interfaces without programs at every interface: for the
 * eBPF data plane, nothing else of nftables. While it exists, the kernel tracks connections and translates them.
 */
export interface NatTable {
  /** As the data plane's: what programs leave to the kernel, such as ICMP that is no echo, is in nf_conntrack only. */
  checkShares(): Promise<LimitedWorkload[]>;
  apply(delta: ModelDelta): Promise<void>;
  resync(): Promise<void>;
  close(): void;
  remove(): Promise<void>;
}

export function createNatTable({ kernel, table, netns }: { kernel: Kernel; table: string; netns?: Netns }): NatTable {
  const nft = kernel.nft(netns);
  const model = new ModelCopy();
  const conntrack = kernel.conntrack(netns);
  const shares = new ConnectionShares(conntrack);
  let written: Written | undefined;
  const write = async (): Promise<void> => {
    const found = written ?? readActualRuleset(await listed(nft, table));
    written = undefined;
    const { commands, after } = transaction(table, withConnectionLimit(wanted(model), shares.limit(model)), found);
    if (commands.length > 0) await nft.run(commands.join("\n"));
    written = after;
  };
  return {
    async apply(delta) {
      model.apply(delta);
      const isTouched = ({ set, remove }: { set: unknown[]; remove: unknown[] }) => set.length + remove.length > 0;
      const pods = isTouched(delta.endpoints) && knownPods(model).length > 0;
      if (model.inSync && (delta.settings || isTouched(delta.nodes) || pods || !written)) await write();
    },
    async checkShares() {
      if (model.inSync && (await shares.check(model))) await write();
      return shares.limited;
    },
    async resync() {
      written = undefined;
      if (model.inSync) await write();
    },
    close() {
      nft.close();
      conntrack.close();
    },
    async remove() {
      written = undefined;
      await nft.run(`add table inet ${table}\ndelete table inet ${table}`);
    },
  };
}

function wanted(model: ModelCopy): Ruleset {
  const chains = [
    ...[natOutgoing(model), loopbackGuard(model)],
    ...[...overlayGuard(model), ...unknownPodGuard(model), ...serviceLoop(model)],
  ];
  return {
    chains: new Map(chains.map((chain) => [chain.name, chain])),
    sets: new Map([...nodeSets(model), ...knownPods(model)].map((set) => [set.name, set])),
  };
}

async function listed(nft: NftPort, table: string) {
  const there = await nft.tables();
  return there.some(({ family, name }) => family === "inet" && name === table)
    ? await nft.list(`list table inet ${table}`)
    : [];
}
