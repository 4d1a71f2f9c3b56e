import { protocolNumber } from "../../src/api/tables/protocols.ts";
import type { IcmpMatch, Packet, PortRange, Rule, TierPolicies } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { toNets } from "../../src/calc/nets.ts";
import type { HookPolicy } from "../../src/calc/policy/hook-policy.ts";
import type { HostRole } from "../../src/calc/policy/hook-verdict.ts";
import { parseAddress } from "../../src/kit/ip.ts";
import { conformanceData } from "../support/conformance.ts";

/** The public cases of policy programs in our own words, for whoever runs policy: the evaluator, and the assembled programs. */
export interface PolicyProgramCase {
  id: string;
  name: string;
  ipVersion: 4 | 6;
  model: ModelCopy;
  hook: HookPolicy;
  packets: { packet: Packet; role: HostRole; allowed: boolean; ruleHits: string[] | undefined }[];
  /** What our hits are called in `ruleHits`. */
  hitName(hit: string): string;
}

interface PublicRule {
  action: Rule["action"];
  matchID?: string;
  protocol?: string | number;
  notProtocol?: string | number;
  srcNets?: string[];
  notSrcNets?: string[];
  dstNets?: string[];
  notDstNets?: string[];
  srcPorts?: PortRange[];
  notSrcPorts?: PortRange[];
  dstPorts?: PortRange[];
  notDstPorts?: PortRange[];
  srcIPSets?: string[];
  notSrcIPSets?: string[];
  dstIPSets?: string[];
  notDstIPSets?: string[];
  srcNamedPortIPSets?: string[];
  notSrcNamedPortIPSets?: string[];
  dstNamedPortIPSets?: string[];
  notDstNamedPortIPSets?: string[];
  icmp?: IcmpMatch;
  notICMP?: IcmpMatch;
}

interface PublicPolicy {
  name: string;
  rules: PublicRule[];
}

interface PublicTier {
  name: string;
  endAction: "deny" | "pass";
  endRuleID?: string;
  policies: PublicPolicy[];
}

interface PublicPacket {
  proto: number;
  srcAddr: string;
  srcPort?: number;
  dstAddr: string;
  dstPort?: number;
  icmpType?: number;
  icmpCode?: number;
  preNATDstAddr?: string;
  preNATDstPort?: number;
  fromHost?: boolean;
  toHost?: boolean;
  ruleHits?: string[];
}

interface PublicCase {
  id: string;
  name: string;
  ipVersion: 4 | 6;
  policy: {
    forHostInterface: boolean;
    suppressNormalHostPolicy: boolean;
    forXDP: boolean;
    tiers: PublicTier[];
    profiles: PublicPolicy[];
    hostPreDNATTiers: PublicTier[];
    hostForwardTiers: PublicTier[];
    hostNormalTiers: PublicTier[];
    hostProfiles: PublicPolicy[];
    noProfileMatchID?: string;
  };
  ipSets: Record<string, string[]>;
  allowed: PublicPacket[];
  dropped: PublicPacket[];
  unmatched: PublicPacket[];
}

export interface PolicyProgramCases {
  inScope: PolicyProgramCase[];
  /** Those we do not run, with the reason. */
  outOfScope: { id: string; because: string }[];
}

export function policyProgramCases(): PolicyProgramCases | undefined {
  const data = conformanceData<{ cases: PublicCase[] }>("policy-program-cases.json");
  if (!data) return undefined;
  const xdp = data.cases.filter(({ policy }) => policy.forXDP);
  return {
    inScope: data.cases.filter(({ policy }) => !policy.forXDP).map(read),
    outOfScope: xdp.map(({ id }) => ({ id, because: "programs before connection tracking (doNotTrack) are refused" })),
  };
}

function read(given: PublicCase): PolicyProgramCase {
  const model = new ModelCopy();
  for (const [id, members] of Object.entries(given.ipSets)) {
    const ports = members.some((member) => member.includes(","));
    model.ipSets.set(id, { id, kind: ports ? "net-port" : "net", members, meaning: given.id });
  }
  const names = new Map<string, string>([[";no-profile", given.policy.noProfileMatchID ?? "0"]]);
  const { policy } = given;
  const adopt = (prefix: string) => new Adoption(model, names, prefix);
  const hook: HookPolicy = {
    host: {
      id: "host",
      direction: "ingress",
      preDNAT: adopt("pre").tiers(policy.hostPreDNATTiers),
      forward: adopt("forward").tiers(policy.hostForwardTiers),
      normal: policy.suppressNormalHostPolicy ? null : adopt("normal").tiers(policy.hostNormalTiers),
      profiles: adopt("host-profile").profiles(policy.hostProfiles),
    },
    workload: policy.forHostInterface
      ? null
      : {
          id: "workload",
          direction: "ingress",
          tiers: adopt("tier").tiers(policy.tiers),
          profiles: adopt("profile").profiles(policy.profiles),
        },
  };
  return {
    id: given.id,
    name: given.name,
    ipVersion: given.ipVersion,
    model,
    hook,
    packets: [
      ...given.allowed.map((packet) => readPacket(given.ipVersion, packet, true)),
      ...given.dropped.map((packet) => readPacket(given.ipVersion, packet, false)),
    ],
    hitName: (hit) => names.get(hit) ?? "?",
  };
}

class Adoption {
  readonly #model: ModelCopy;
  readonly #names: Map<string, string>;
  readonly #prefix: string;
  #count = 0;

  constructor(model: ModelCopy, names: Map<string, string>, prefix: string) {
    this.#model = model;
    this.#names = names;
    this.#prefix = prefix;
  }

  tiers(tiers: PublicTier[]): TierPolicies[] {
    return tiers.map(({ endAction, endRuleID, policies }) => {
      const name = `${this.#prefix}-${this.#count++}`;
      this.#names.set(`${name};end`, endRuleID ?? "0");
      return { name, endAction, policies: policies.map((policy) => this.#policy(policy)) };
    });
  }

  profiles(profiles: PublicPolicy[]): string[] {
    return profiles.map(({ rules }) => {
      const id = `${this.#prefix}-${this.#count++}`;
      this.#model.profiles.set(id, {
        id,
        ingress: rules.map((rule, index) => this.#rule(id, rule, index)),
        egress: [],
      });
      return id;
    });
  }

  #policy({ rules }: PublicPolicy): string {
    const id = `${this.#prefix}-${this.#count++}`;
    const ingress = rules.map((rule, index) => this.#rule(id, rule, index));
    this.#model.policies.set(id, { id, tier: "default", order: null, ingress, egress: [] });
    return id;
  }

  #rule(owner: string, rule: PublicRule, index: number): Rule {
    const id = `${owner};ingress;${index}`;
    this.#names.set(id, rule.matchID ?? "0");
    const fields = {
      protocol: protocolOf(rule.protocol),
      notProtocol: protocolOf(rule.notProtocol),
      srcNets: rule.srcNets && toNets(rule.srcNets),
      notSrcNets: rule.notSrcNets && toNets(rule.notSrcNets),
      dstNets: rule.dstNets && toNets(rule.dstNets),
      notDstNets: rule.notDstNets && toNets(rule.notDstNets),
      srcPorts: rule.srcPorts,
      notSrcPorts: rule.notSrcPorts,
      dstPorts: rule.dstPorts,
      notDstPorts: rule.notDstPorts,
      srcSets: rule.srcIPSets,
      notSrcSets: rule.notSrcIPSets,
      dstSets: rule.dstIPSets,
      notDstSets: rule.notDstIPSets,
      srcNamedPortSets: rule.srcNamedPortIPSets,
      notSrcNamedPortSets: rule.notSrcNamedPortIPSets,
      dstNamedPortSets: rule.dstNamedPortIPSets,
      notDstNamedPortSets: rule.notDstNamedPortIPSets,
      icmp: rule.icmp,
      notIcmp: rule.notICMP,
    };
    const given = Object.entries(fields).filter(([, value]) => value !== undefined);
    return { id, action: rule.action, ...Object.fromEntries(given) };
  }
}

/** Names are in lower case there. */
function protocolOf(protocol: string | number | undefined): number | undefined {
  return protocolNumber(typeof protocol === "string" ? protocol.toUpperCase() : protocol);
}

function readPacket(ipVersion: 4 | 6, packet: PublicPacket, allowed: boolean): PolicyProgramCase["packets"][number] {
  if (!parseAddress(packet.srcAddr)) throw new Error(`${packet.srcAddr} is not an address`);
  return {
    packet: {
      ipVersion,
      protocol: packet.proto,
      source: packet.srcAddr,
      destination: packet.dstAddr,
      ...(packet.srcPort === undefined ? {} : { sourcePort: packet.srcPort }),
      ...(packet.dstPort === undefined ? {} : { destinationPort: packet.dstPort }),
      ...(packet.icmpType === undefined ? {} : { icmpType: packet.icmpType }),
      ...(packet.icmpCode === undefined ? {} : { icmpCode: packet.icmpCode }),
      ...(packet.preNATDstAddr === undefined ? {} : { originalDestination: packet.preNATDstAddr }),
      ...(packet.preNATDstPort === undefined ? {} : { originalDestinationPort: packet.preNATDstPort }),
    },
    role: { fromHost: packet.fromHost ?? false, toHost: packet.toHost ?? false },
    allowed,
    ruleHits: packet.ruleHits,
  };
}
