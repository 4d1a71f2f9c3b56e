/** Rules in nft's language. */
import { prefixText } from "./prefixes.ts";
import {
  type BaseHook,
  CONNECTION_MARK,
  type Condition,
  type IpFamily,
  type NftRule,
  type Verdict,
} from "./ruleset.ts";

const FAMILY = { 4: { nft: "ip", protocol: "ipv4" }, 6: { nft: "ip6", protocol: "ipv6" } } as const;
const ADDRESS = { source: "saddr", destination: "daddr" } as const;
const PORT = { source: "sport", destination: "dport" } as const;
const INTERFACE = { in: "iifname", out: "oifname" } as const;
/** Bit offsets in the header after IP's. Read as plain bytes: nft's own words for them drag in conditions on protocol and family. */
const ICMP_BYTE = { type: "@th,0,8", code: "@th,8,8" } as const;
/** Behind the eight bytes of ICMPv6's header, in the second word of IPv6's. */
const QUOTED_HEADER = "@th,112,8";
/** Behind the eight bytes of UDP's header, in the second word of VXLAN's. */
const VNI = "@th,96,24";
const ALL_BITS = 0xffff_ffff;
/** What the kernel stores with a rule has 128 bytes. */
const LONGEST_COMMENT = 110;
const LONGEST_PREFIX = 100;

/** `stamp` stands before the comment: what the whole chain is known by when it is read back. */
export function ruleText(rule: NftRule, stamp?: string): string {
  const { when, log, mark, connectionMark, verdict, comment, denial } = rule;
  const remark = [stamp, comment].filter((part) => part !== undefined).join(" ");
  const parts = [
    ...when.map(conditionText),
    ...(log === undefined ? [] : [`log prefix "${readable(log, LONGEST_PREFIX)}: " level info`]),
    ...(mark ? [markText(mark)] : []),
    ...(connectionMark ? [`ct mark set ct mark | ${hex(connectionMark.set)}`] : []),
    ...(verdict && comment !== undefined && (isCounted(verdict) || denial !== undefined) ? ["counter"] : []),
    ...(verdict ? [verdictText(verdict)] : []),
    ...(remark === "" ? [] : [`comment "${readable(remark, LONGEST_COMMENT)}"`]),
  ];
  return parts.join(" ");
}

export function hookText({ type, hook, priority }: BaseHook): string {
  // Never a policy of drop: a base chain counts before its rules do.
  return `type ${type} hook ${hook} priority ${priority}; policy accept;`;
}

function verdictText(verdict: Verdict): string {
  switch (verdict.is) {
    case "jump":
    case "goto":
      return `${verdict.is} ${verdict.chain}`;
    case "dispatch":
      return `${INTERFACE[verdict.by]} vmap @${verdict.map}`;
    case "snat":
      return `snat ${verdict.to.includes(":") ? "ip6" : "ip"} to ${verdict.to}`;
    case "dnat": {
      const { to, port } = verdict;
      return to.includes(":") ? `dnat ip6 to [${to}]:${port}` : `dnat ip to ${to}:${port}`;
    }
    case "reject":
      return "reject with icmpx port-unreachable";
    default:
      return verdict.is;
  }
}

function isCounted({ is }: Verdict): boolean {
  return is !== "jump" && is !== "goto" && is !== "dispatch";
}

function conditionText(condition: Condition): string {
  const not = "not" in condition && condition.not ? "!= " : "";
  switch (condition.on) {
    case "family":
      return `meta nfproto ${FAMILY[condition.is].protocol}`;
    case "protocol":
      return `meta l4proto ${not}${listText(condition.among.map(String))}`;
    case "address":
      return `${addressText(condition)} ${not}${listText(condition.among.map(prefixText))}`;
    case "addressSet":
      return `${addressText(condition)} ${not}@${condition.set}`;
    case "port":
      return `th ${PORT[condition.side]} ${not}${listText(condition.among.map(rangeText))}`;
    case "portSet":
      return `${addressText(condition)} . meta l4proto . th ${PORT[condition.side]} ${not}@${condition.set}`;
    case "icmp":
      return `${ICMP_BYTE[condition.byte]} ${not}${listText(condition.among.map(String))}`;
    case "quotedHeader":
      return `${QUOTED_HEADER} ${hex(condition.is)}`;
    case "vni":
      return `${VNI} ${hex(condition.is)}`;
    case "interface":
      return `${INTERFACE[condition.way]} ${not}${listText(condition.names.map((name) => `"${name}"`))}`;
    case "interfaceAddress":
      return `iifname . ${FAMILY[condition.family].nft} saddr @${condition.set}`;
    case "interfacePair":
      return `iifname . oifname @${condition.set}`;
    case "interfaceSet":
      return `${INTERFACE[condition.way]} @${condition.set}`;
    case "newConnection":
      return `ct state ${condition.not ? "!= " : ""}new`;
    case "overRate": {
      const { set, perSecond, burst } = condition;
      return `update @${set} { iifname limit rate over ${perSecond}/second burst ${burst} packets }`;
    }
    case "counted":
      return `update @${condition.set} { ${condition.key} counter }`;
    case "mark":
      return `meta mark & ${hex(condition.bits)} ${condition.not ? "!=" : "=="} ${hex(condition.bits)}`;
    case "established":
      return `ct state established,related ct mark & ${hex(CONNECTION_MARK.midstream)} == 0x0`;
    case "establishedMidstream":
      return "ct state established,related ct direction original";
    case "midstream":
      return "meta l4proto 6 ct state new tcp flags & (syn | ack) != syn";
    case "connectionMark":
      return `ct mark & ${hex(condition.bits)} == ${hex(condition.bits)}`;
    case "local":
      return "fib daddr type local";
  }
}

function addressText({ family, side }: { family: IpFamily; side: "source" | "destination" }): string {
  return `${FAMILY[family].nft} ${ADDRESS[side]}`;
}

function markText(mark: NonNullable<NftRule["mark"]>): string {
  if ("replace" in mark) return `meta mark set ${hex(mark.replace)}`;
  if ("set" in mark) return `meta mark set meta mark | ${hex(mark.set)}`;
  return `meta mark set meta mark & ${hex((ALL_BITS & ~mark.clear) >>> 0)}`;
}

function listText(items: readonly string[]): string {
  return items.length === 1 ? items[0]! : `{ ${items.join(", ")} }`;
}

function rangeText([first, last]: readonly [number, number]): string {
  return first === last ? String(first) : `${first}-${last}`;
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

/** Names come from objects of users: nothing in them may end the text they stand in. */
function readable(text: string, most: number): string {
  return text.replace(/[^\x20-\x7e]|["\\]/g, "?").slice(0, most);
}
