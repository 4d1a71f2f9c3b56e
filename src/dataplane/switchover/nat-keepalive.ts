/**
 * A small table of ours that exists while programs and the kernel share a node's connections. NAT and nf_conntrack are registered only
 * while there are rules for them: when kube-proxy's tables are removed, this one keeps them registered for existing connections. It
 * also masquerades packets that are forwarded to a node without programs, and, once programs handle all new connections, resets
 * unknown TCP connections instead of letting them hang.
 */

import { createHash } from "node:crypto";
import type { DataplaneModel, Net, ServicePort } from "../../calc/model.ts";
import { MARK as BPF_MARK } from "../../gen/bpf/layout.gen.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";
import type { NftObject, NftPort } from "../../kernel/nft/nft-port.ts";
import { closeForeignForward, openForeignForward } from "../nft/foreign-forward.ts";
import { MARK } from "../nft/ruleset.ts";
import { clusterRanges, isWithin } from "./cluster-ranges.ts";

export type NatKeepaliveState = "absent" | "open" | "gated";

export interface NatKeepalive {
  state(): Promise<NatKeepaliveState>;
  /** Written when it differs. The gate stands only while programs carry everything new: then what they let through to the stack has an owner. */
  put(gate: boolean, model: Pick<DataplaneModel, "settings" | "services">): Promise<void>;
  /** Whether services at these addresses are behind the gate that was put last. */
  covers(services: readonly ServicePort[]): boolean;
  /** Notes in the kernel, where it outlives us, that a service proxy's rules were here. */
  noteProxy(): Promise<void>;
  proxyWasHere(): Promise<boolean>;
  remove(): Promise<void>;
  close(): void;
}

/** For filters of others that forward nothing by default: they are asked to trust this mark, by a rule of ours that iptables can read, too. */
const TRUSTED = `meta mark set meta mark or ${MARK.allowed}`;
/** On packets our programs have translated and the kernel is to give its own address. */
const TO_MASQUERADE = `meta mark & ${BPF_MARK.MARK_MASK} == ${BPF_MARK.MARK_MASQUERADE}`;
const PROXY_NOTE = "a-service-proxy-was-here";
const GATE = "belongs to nobody";
const UNKNOWN = "meta l4proto tcp tcp flags & (syn | rst) == 0 ct state new,invalid";
const HELD = "held back for a moment";

export interface NatKeepaliveOptions {
  kernel: Kernel;
  table: string;
  /** Name of the VXLAN device. */
  overlay: string;
  netns?: Netns;
}

export function createNatKeepalive({ kernel, table, overlay, netns }: NatKeepaliveOptions): NatKeepalive {
  const nft = kernel.nft(netns);
  const at = `inet ${table}`;
  let ranges: Net[] = [];
  const listed = async (): Promise<NftObject[]> => {
    const there = (await nft.tables()).some(({ family, name }) => family === "inet" && name === table);
    return there ? await nft.list(`list table ${at}`) : [];
  };
  return {
    state: async () => stateOf(await listed()),
    async put(gate, model) {
      if (gate) ranges = clusterRanges(model.services.values());
      const commands = keepCommands(at, gate ? gateRules(model, ranges, overlay) : NO_GATE);
      const digest = createHash("sha256").update(commands.join("\n")).digest("hex").slice(0, 16);
      const stamp = `${gate ? "gated" : "open"} ${digest}`;
      const comments = commentsOf(await listed());
      if (!comments.includes(stamp) || comments.includes(HELD)) {
        await nft.run([...commands, `add rule ${at} forward accept comment "${stamp}"`].join("\n"));
      }
      await openForeignForward(nft, table);
    },
    covers: (services) =>
      services.every(({ clusterAddress }) => clusterAddress === null || isWithin(clusterAddress, ranges)),
    noteProxy: () => nft.run(`add table ${at}\nadd chain ${at} ${PROXY_NOTE}`),
    proxyWasHere: async () =>
      (await listed()).some((object) => (object["chain"] as { name?: string } | undefined)?.name === PROXY_NOTE),
    async remove() {
      await closeForeignForward(nft, table);
      await nft.run(`add table ${at}\ndelete table ${at}`);
    },
    close: () => nft.close(),
  };
}

function stateOf(objects: readonly NftObject[]): NatKeepaliveState {
  const comments = commentsOf(objects);
  if (comments.length === 0) return "absent";
  return comments.some((comment) => comment.startsWith("gated ")) ? "gated" : "open";
}

function commentsOf(objects: readonly NftObject[]): string[] {
  return objects.flatMap((object) => (object["rule"] as { comment?: string } | undefined)?.comment ?? []);
}

interface GateRules {
  forward: readonly string[];
  output: readonly string[];
}

const NO_GATE: GateRules = { forward: [], output: [] };

/** Rules are exchanged in one transaction, chains are never taken away: the kernel would stop translating in between. */
function keepCommands(at: string, { forward, output }: GateRules): string[] {
  return [
    `add table ${at}`,
    `add chain ${at} source { type nat hook postrouting priority 110; }`,
    `add chain ${at} forward { type filter hook forward priority -5; }`,
    `add chain ${at} output { type filter hook output priority -5; }`,
    ...["source", "forward", "output"].map((chain) => `flush chain ${at} ${chain}`),
    ...holdChains(at),
    `add rule ${at} source ${TO_MASQUERADE} masquerade`,
    `add rule ${at} forward ${TO_MASQUERADE} ${TRUSTED} accept`,
    `add rule ${at} forward ct state established,related ${TRUSTED} accept`,
    ...forward.map((rule) => `add rule ${at} forward ${rule}`),
    ...output.map((rule) => `add rule ${at} output ${rule}`),
  ];
}

const HOLDING = ["arriving", "sent"] as const;

/** After the lookup of a packet's connection; nothing is delayed. */
export function holdChains(at: string): string[] {
  return [
    `add chain ${at} arriving { type filter hook prerouting priority -150; }`,
    `add chain ${at} sent { type filter hook output priority -150; }`,
    ...HOLDING.map((chain) => `flush chain ${at} ${chain}`),
  ];
}

/**
 * Meanwhile the kernel takes no packet of a TCP connection it does not know, and it is sent again. Else it would follow the connection from
 * there, and make of it what it likes.
 */
export async function dropUnknownWhile<T>(nft: NftPort, table: string, act: () => Promise<T>): Promise<T> {
  const at = `inet ${table}`;
  await nft.run([`add table ${at}`, ...holdChains(at), ...holdUnknown(at)].join("\n"));
  try {
    return await act();
  } finally {
    await nft.run(holdChains(at).join("\n"));
  }
}

/** Rules for the chains above. */
export function holdUnknown(at: string): string[] {
  return HOLDING.map((chain) => `add rule ${at} ${chain} ${UNKNOWN} drop comment "${HELD}"`);
}

/**
 * A connection that neither the programs nor the kernel know: its replies would be lost, so it is reset. A packet that opens a connection was
 * evaluated by the programs and may pass.
 */
function gateRules({ settings }: Pick<DataplaneModel, "settings">, ranges: readonly Net[], overlay: string): GateRules {
  const reset = `counter reject with tcp reset comment "${GATE}"`;
  const pools = settings.pools.map(({ cidr }) => cidr);
  const pods = settings.podInterfacePrefixes.map((prefix) => `"${prefix}*"`).join(", ");
  const to = (nets: readonly Net[]) =>
    (["ip", "ip6"] as const).flatMap((family) => {
      const own = nets.filter((net) => net.includes(":") === (family === "ip6"));
      return own.length > 0 ? [`${family} daddr { ${own.join(", ")} }`] : [];
    });
  return {
    forward: [
      ...to(pools).map((where) => `iifname { ${pods}, "${overlay}" } ${where} ${UNKNOWN} ${reset}`),
      ...to(ranges).map((where) => `iifname { ${pods} } ${where} ${UNKNOWN} ${reset}`),
      // While programs evaluate every packet of pods.
      ...["iifname", "oifname"].map((way) => `${way} { ${pods} } ${TRUSTED}`),
    ],
    output: to(ranges).map((where) => `${where} ${UNKNOWN} ${reset}`),
  };
}
