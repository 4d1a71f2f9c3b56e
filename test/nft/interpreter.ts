/**
 * What nftables would do with our rules, written plainly from its manual: base chains by priority, rules in order, `accept` ends one base chain,
 * `drop` ends all. Rules are read as values, before they are text.
 */

import type { Packet } from "../../src/calc/model.ts";
import type { BaseHook, Condition, NftChain, NftRule, Ruleset } from "../../src/dataplane/nft/ruleset.ts";
import { contains, parseAddress, parseCidr } from "../../src/kit/ip.ts";

export interface InterpretedPacket {
  packet: Packet;
  /** Absent: the node itself. */
  in?: string;
  out?: string;
  nodeAddresses: readonly string[];
}

type Fate = "accept" | "drop" | "return";

export function interpret(ruleset: Ruleset, given: InterpretedPacket): "allow" | "deny" {
  return interpretedCause(ruleset, given).verdict;
}

/** Also what dropped it, as flow logs name it. */
export function interpretedCause(ruleset: Ruleset, given: InterpretedPacket) {
  const run = new Run(ruleset, given);
  const hooks: BaseHook["hook"][] =
    given.in === undefined ? ["output"] : ["prerouting", given.out === undefined ? "input" : "forward"];
  const verdict = hooks.every((hook) => run.hook(hook)) ? ("allow" as const) : ("deny" as const);
  return { verdict, cause: run.cause };
}

/** Translation of services happens between the two. */
const TRANSLATES_AT = -100;

class Run {
  /** Of the rule that dropped it. */
  cause: string | undefined;
  private mark = 0;
  private readonly ruleset: Ruleset;
  private readonly given: InterpretedPacket;
  private packet: Packet;

  constructor(ruleset: Ruleset, given: InterpretedPacket) {
    this.ruleset = ruleset;
    this.given = given;
    this.packet = given.packet;
  }

  hook(hook: BaseHook["hook"]): boolean {
    const chains = [...this.ruleset.chains.values()]
      .filter(({ base }) => base?.hook === hook && base.type === "filter")
      .sort((a, b) => a.base!.priority - b.base!.priority);
    for (const chain of chains) {
      this.packet = hook === "prerouting" && chain.base!.priority < TRANSLATES_AT ? this.original() : this.given.packet;
      if (this.chain(chain) === "drop") return false;
    }
    return true;
  }

  private original(): Packet {
    const { packet } = this.given;
    return {
      ...packet,
      destination: packet.originalDestination ?? packet.destination,
      ...(packet.destinationPort === undefined
        ? {}
        : { destinationPort: packet.originalDestinationPort ?? packet.destinationPort }),
    };
  }

  private chain({ rules }: NftChain): Fate {
    for (const rule of rules) {
      if (!rule.when.every((condition) => this.holds(condition))) continue;
      const fate = this.rule(rule);
      if (fate) return fate;
    }
    return "return";
  }

  /** Undefined: on to the next rule. */
  private rule({ mark, verdict, denial }: NftRule): Fate | undefined {
    if (denial !== undefined) this.cause = denial;
    if (mark && "replace" in mark) this.mark = mark.replace;
    else if (mark) this.mark = "set" in mark ? this.mark | mark.set : this.mark & ~mark.clear;
    if (!verdict) return undefined;
    switch (verdict.is) {
      case "accept":
      case "drop":
      case "return":
        return verdict.is;
      case "jump": {
        const fate = this.named(verdict.chain);
        return fate === "return" ? undefined : fate;
      }
      case "goto":
        return this.named(verdict.chain);
      case "dispatch": {
        const name = verdict.by === "in" ? this.given.in : this.given.out;
        const target = this.ruleset.sets.get(verdict.map)!.elements.get(`"${name}"`);
        return target === undefined ? undefined : this.named(target.replace(/^goto /, ""));
      }
      default:
        throw new Error(`no filter says ${verdict.is}`);
    }
  }

  private named(name: string): Fate {
    const chain = this.ruleset.chains.get(name);
    if (!chain) throw new Error(`no chain ${name}`);
    return this.chain(chain);
  }

  private holds(condition: Condition): boolean {
    // A condition on an address of a family is, negated or not, one of that family.
    if ("family" in condition && condition.family !== this.packet.ipVersion) return false;
    const says = this.says(condition);
    return "not" in condition && condition.not ? !says : says;
  }

  private says(condition: Condition): boolean {
    const { packet, given } = this;
    switch (condition.on) {
      case "family":
        return packet.ipVersion === condition.is;
      case "protocol":
        return condition.among.includes(packet.protocol);
      case "address":
        return condition.among.some((net) => contains(parseCidr(net)!, parseAddress(packet[condition.side])!));
      case "addressSet":
        return this.members(condition.set).some(([net]) => inText(net!, packet[condition.side]));
      case "port":
        return condition.among.some(
          ([first, last]) => this.port(condition.side) >= first && this.port(condition.side) <= last,
        );
      case "portSet":
        return this.members(condition.set).some(
          ([net, protocol, port]) =>
            inText(net!, packet[condition.side]) &&
            Number(protocol) === packet.protocol &&
            Number(port) === this.port(condition.side),
        );
      case "icmp":
        if (packet.protocol !== 1 && packet.protocol !== 58) throw new Error("reads ICMP from something else");
        return condition.among.includes((condition.byte === "type" ? packet.icmpType : packet.icmpCode) ?? 0);
      case "quotedHeader":
      case "vni":
        // Packets of the models have no payload.
        return false;
      case "interface":
        return condition.names.some((name) => isNamed((condition.way === "in" ? given.in : given.out) ?? "", name));
      case "interfaceAddress":
        return this.members(condition.set).some(
          ([name, net]) => name === `"${given.in}"` && inText(net!, packet.source),
        );
      case "interfacePair":
        return this.members(condition.set).some(([a, b]) => a === `"${given.in}"` && b === `"${given.out}"`);
      case "mark":
        return (this.mark & condition.bits) === condition.bits;
      case "established":
      case "establishedMidstream":
      case "newConnection":
      case "interfaceSet":
      case "overRate":
      case "counted":
      case "midstream":
      case "connectionMark":
        return false;
      case "local":
        return given.nodeAddresses.includes(packet.destination);
    }
  }

  private port(side: "source" | "destination"): number {
    if (![6, 17, 132].includes(this.packet.protocol)) throw new Error("reads ports where there are none");
    return (side === "source" ? this.packet.sourcePort : this.packet.destinationPort) ?? 0;
  }

  private members(set: string): string[][] {
    const found = this.ruleset.sets.get(set);
    if (!found) throw new Error(`no set ${set}`);
    return [...found.elements.keys()].map((key) => key.split(" . "));
  }
}

function inText(net: string, address: string): boolean {
  const cidr = parseCidr(net.includes("/") ? net : `${net}/${net.includes(":") ? 128 : 32}`);
  return contains(cidr!, parseAddress(address)!);
}

function isNamed(name: string, pattern: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
