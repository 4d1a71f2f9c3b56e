import { describe, expect, it } from "vitest";
import type { IpSet, Rule, RuleMatch } from "../calc/model.ts";
import { ModelCopy } from "../calc/model-copy.ts";
import type { Criterion } from "../calc/policy/criteria.ts";
import { MATCHED_CRITERIA, matchesRule, readPacket } from "../calc/policy/match-rule.ts";
import { Assembler } from "../kernel/bpf/asm.ts";
import { MatchCode } from "./ebpf/policy/match-code.ts";
import { policyItems } from "./ebpf/policy/policy-items.ts";
import { desiredRuleset } from "./nft/desired-ruleset.ts";
import { ruleLines } from "./nft/rule-lines.ts";

const NETS: IpSet = { id: "s0000000000000001", kind: "net", meaning: "", members: ["192.0.2.9/32"] };
const PORTS: IpSet = { id: "s0000000000000002", kind: "net-port", meaning: "", members: ["192.0.2.9/32,tcp:9"] };
const SETS = new Map([NETS, PORTS].map((set) => [set.id, set]));

/** A rule of each criterion alone that does not match the packet below. A new criterion does not compile without its own. */
const SAMPLES: { readonly [K in Criterion]: RuleMatch } = {
  ipVersion: { ipVersion: 6 },
  protocol: { protocol: 17 },
  notProtocol: { notProtocol: 6 },
  srcNets: { srcNets: ["192.0.2.9/32"] },
  notSrcNets: { notSrcNets: ["10.0.0.1/32"] },
  dstNets: { dstNets: ["192.0.2.9/32"] },
  notDstNets: { notDstNets: ["10.0.0.2/32"] },
  srcPorts: { srcPorts: [[9, 9]] },
  notSrcPorts: { notSrcPorts: [[40_000, 40_000]] },
  dstPorts: { dstPorts: [[9, 9]] },
  notDstPorts: { notDstPorts: [[80, 80]] },
  srcSets: { srcSets: [NETS.id] },
  notSrcSets: { notSrcSets: ["s0000000000000003"] },
  dstSets: { dstSets: [NETS.id] },
  notDstSets: { notDstSets: ["s0000000000000004"] },
  srcNamedPortSets: { srcNamedPortSets: [PORTS.id] },
  notSrcNamedPortSets: { notSrcNamedPortSets: ["s0000000000000005"] },
  dstNamedPortSets: { dstNamedPortSets: [PORTS.id] },
  notDstNamedPortSets: { notDstNamedPortSets: ["s0000000000000006"] },
  icmp: { icmp: { type: 8 } },
  notIcmp: { notIcmp: {} },
};
const HOLDING = new Map<string, IpSet>([
  ...SETS,
  ["s0000000000000003", { ...NETS, id: "s0000000000000003", members: ["10.0.0.1/32"] }],
  ["s0000000000000004", { ...NETS, id: "s0000000000000004", members: ["10.0.0.2/32"] }],
  ["s0000000000000005", { ...PORTS, id: "s0000000000000005", members: ["10.0.0.1/32,tcp:40000"] }],
  ["s0000000000000006", { ...PORTS, id: "s0000000000000006", members: ["10.0.0.2/32,tcp:80"] }],
]);
const TCP = { ipVersion: 4, protocol: 6, source: "10.0.0.1", destination: "10.0.0.2" } as const;
const PACKET = readPacket({ ...TCP, sourcePort: 40_000, destinationPort: 80 })!;
const ECHO = readPacket({ ...TCP, protocol: 1, icmpType: 8, icmpCode: 0 })!;

/** A data plane that ignores a criterion matches too much. */
describe("every criterion of a rule", () => {
  it.each(Object.keys(MATCHED_CRITERIA) as Criterion[])("%s has a meaning everywhere", (criterion) => {
    const sample = SAMPLES[criterion];
    expect(Object.keys(sample)).toEqual([criterion]);
    expect(matchesRule(sample, criterion === "notIcmp" ? ECHO : PACKET, HOLDING)).toBe(false);
    expect(ruleLines(sample, HOLDING)).not.toEqual(ruleLines({}, HOLDING));
    const code = (rule: RuleMatch) => {
      const asm = new Assembler();
      new MatchCode(asm, { ipSets: { fd: 3 }, setOf: () => NETS.id }, "miss").write(rule, false);
      return asm.label("miss").build().length;
    };
    expect(code(sample)).toBeGreaterThan(code({}));
  });

  it("one that a data plane does not know denies there", () => {
    const later = { id: "later", action: "allow", protocol: 6, hostName: "example.org" } as Rule;
    const policy = { id: "p", tier: "default", order: 1, ingress: [later], egress: [] };
    const tiers = [{ name: "default", endAction: "pass" as const, policies: ["p"] }];
    const model = new ModelCopy();
    const none = { set: [], remove: [] };
    const decided = { tiers, profiles: [] };
    const endpoint = { id: "pod", interfaceName: "ven1", mac: null, addresses: ["10.0.0.2/32"] };
    model.apply({
      ...{ inSync: true, ipSets: { ...none, change: [] }, policies: { set: [policy], remove: [] }, profiles: none },
      endpoints: { set: [{ ...endpoint, ingress: decided, egress: { tiers: [], profiles: [] } }], remove: [] },
      ...{ hostEndpoints: none, nodes: none, routes: none, services: none, problems: none },
    });
    const hook = { host: undefined, workload: { direction: "ingress" as const, ...decided } };
    const options = { failsafe: { inbound: [], outbound: [] }, endpointToHost: "accept" as const };
    const items = policyItems(model, hook as unknown as Parameters<typeof policyItems>[1], options);
    const [rule] = items.filter((item) => item.kind === "rule");
    expect([rule?.hit, rule?.then, rule?.match]).toEqual(["later", "deny", { id: "later", action: "deny" }]);
    const chains = [...desiredRuleset(model, { hostInterfaces: [] }).chains.values()];
    const rules = chains.flatMap((chain) => chain.rules).filter(({ comment }) => comment === "later");
    expect(rules).toMatchObject([{ when: [], verdict: { is: "drop" } }]);
  });
});
