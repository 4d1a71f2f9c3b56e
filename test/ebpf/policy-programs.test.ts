import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Packet, Rule, RuleMatch } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import type { HookPolicy } from "../../src/calc/policy/hook-policy.ts";
import { type PolicyProgramCase, policyProgramCases } from "../calc/policy-program-cases.ts";
import { NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { hitNumber, PolicyLab } from "./policy-lab.ts";

const missing = whyNoPrograms();
const cases = policyProgramCases();
const NOBODY = { fromHost: false, toHost: false };

describe.skipIf(missing)(`policy as programs in the kernel${missing ? ` (${missing})` : ""}`, () => {
  let lab: PolicyLab;
  beforeAll(() => {
    lab = new PolicyLab();
  });
  afterAll(() => lab?.close());

  describe.skipIf(!cases)(`public policy program cases${cases ? "" : ` (${NO_CONFORMANCE_DATA})`}`, () => {
    it("every packet of every case in scope is judged as it should be, for the same rules", () => {
      const wrong: unknown[] = [];
      let packets = 0;
      for (const given of cases!.inScope) {
        const program = lab.install(withKernelIds(given), given.hook);
        for (const { packet, role, allowed, ruleHits } of given.packets) {
          packets++;
          const verdict = lab.verdictOf(program, packet, role);
          const names = namesOf(given);
          const hits = verdict.hits.map((hit) => names.get(hit) ?? "?");
          if ((verdict.action === "allow") !== allowed) wrong.push({ id: given.id, packet, role, verdict });
          else if (ruleHits && hits.join() !== ruleHits.slice(0, 32).join())
            wrong.push({ id: given.id, hits, ruleHits });
        }
        lab.uninstall();
      }
      expect(wrong).toEqual([]);
      const left = cases!.outOfScope.length;
      expect({ cases: cases!.inScope.length, packets, left }).toEqual({ cases: 100, packets: 602, left: 3 });
    });
  });

  it("12,500 rules on one endpoint are several programs, and still the right one decides", () => {
    const rules = Array.from({ length: 12_500 }, (_, index) =>
      rule(index, "deny", { srcSets: ["s00000000000000ff"], protocol: 6, dstPorts: [[index + 1, index + 1]] }),
    );
    const { model, hook } = oneTier([...rules, rule(12_500, "allow", { protocol: 6 })]);
    const program = lab.install(model, hook);
    expect(program.slots.length).toBeGreaterThan(3);
    expect(lab.verdictOf(program, tcp("10.0.0.1", "10.0.0.2", 80), NOBODY).action).toBe("allow");
    expect(lab.verdictOf(program, { ...tcp("10.0.0.1", "10.0.0.2", 80), protocol: 17 }, NOBODY).action).toBe("deny");
    lab.uninstall();
    model.ipSets.set("s00000000000000ff", {
      id: "s00000000000000ff",
      kind: "net",
      members: ["10.0.0.0/8"],
      meaning: "",
    });
    const closed = lab.install(model, hook);
    for (const port of [1, 6_000, 12_500]) {
      const verdict = lab.verdictOf(closed, tcp("10.0.0.1", "10.0.0.2", port), NOBODY);
      expect(verdict).toEqual({ action: "deny", hits: [hitNumber(`p;ingress;${port - 1}`)] });
    }
    expect(lab.verdictOf(closed, tcp("10.0.0.1", "10.0.0.2", 12_501), NOBODY).action).toBe("allow");
    lab.uninstall();
  });

  it("SCTP is only itself: rules for other protocols and rules with ports never match it", () => {
    const sctp: Packet = { ipVersion: 4, protocol: 132, source: "10.0.0.1", destination: "10.0.0.2" };
    const verdictOf = (match: RuleMatch) => {
      const { model, hook } = oneTier([rule(0, "allow", match)]);
      const verdict = lab.verdictOf(lab.install(model, hook), sctp, NOBODY).action;
      lab.uninstall();
      return verdict;
    };
    expect(verdictOf({ protocol: 132 })).toBe("allow");
    expect(verdictOf({ protocol: 6 })).toBe("deny");
    expect(verdictOf({ protocol: 17 })).toBe("deny");
    expect(verdictOf({ protocol: 132, dstPorts: [[1, 65535]] })).toBe("deny");
  });

  it("a list of prefixes too long to compare is a set of its own, and means the same", () => {
    const nets = Array.from({ length: 40 }, (_, index) => `10.${index}.0.0/16`);
    const { model, hook } = oneTier([rule(0, "allow", { srcNets: nets }), rule(1, "deny", { notDstNets: nets })]);
    const program = lab.install(model, hook);
    expect([...program.netSets.values()]).toEqual([nets]);
    expect(lab.verdictOf(program, tcp("10.39.1.1", "10.0.0.2", 80), NOBODY).action).toBe("allow");
    expect(lab.verdictOf(program, tcp("10.40.1.1", "10.200.0.2", 80), NOBODY).hits).toEqual([hitNumber("p;ingress;1")]);
    lab.uninstall();
  });

  it("log decides nothing, and is remembered", () => {
    const { model, hook } = oneTier([rule(0, "log", { protocol: 6 }), rule(1, "allow", {})]);
    const verdict = lab.verdictOf(lab.install(model, hook), tcp("10.0.0.1", "10.0.0.2", 80), NOBODY);
    expect(verdict).toEqual({ action: "allow", hits: [hitNumber("p;ingress;0"), hitNumber("p;ingress;1")] });
    lab.uninstall();
  });
});

function rule(index: number, action: Rule["action"], match: RuleMatch): Rule {
  return { id: `p;ingress;${index}`, action, ...match };
}

function oneTier(ingress: Rule[]): { model: ModelCopy; hook: HookPolicy } {
  const model = new ModelCopy();
  model.policies.set("p", { id: "p", tier: "default", order: null, ingress, egress: [] });
  const tiers = [{ name: "default", endAction: "deny" as const, policies: ["p"] }];
  return { model, hook: { host: null, workload: { id: "a", direction: "ingress", tiers, profiles: [] } } };
}

function tcp(source: string, destination: string, destinationPort: number): Packet {
  return { ipVersion: 4, protocol: 6, source, destination, sourcePort: 40_000, destinationPort };
}

/** The public sets have names of their own; in the kernel a set is a number of 64 bits. */
function withKernelIds({ model }: PolicyProgramCase): ModelCopy {
  const renamed = new ModelCopy();
  for (const [id, set] of model.ipSets) renamed.ipSets.set(kernelId(id), { ...set, id: kernelId(id) });
  for (const [id, policy] of model.policies)
    renamed.policies.set(id, { ...policy, ingress: policy.ingress.map(withIds) });
  for (const [id, profile] of model.profiles)
    renamed.profiles.set(id, { ...profile, ingress: profile.ingress.map(withIds) });
  renamed.settings = { ...model.settings, failsafe: { inbound: [], outbound: [] } };
  return renamed;
}

function withIds(given: Rule): Rule {
  const entries = Object.entries(given).map(([name, value]) =>
    name.endsWith("Sets") ? [name, (value as string[]).map(kernelId)] : [name, value],
  );
  return Object.fromEntries(entries) as Rule;
}

function kernelId(name: string): string {
  return `s${createHash("sha256").update(name).digest("hex").slice(0, 16)}`;
}

function namesOf(given: PolicyProgramCase): Map<bigint, string> {
  const { model, hook, hitName } = given;
  const rules = [...model.policies.values(), ...model.profiles.values()].flatMap(({ ingress }) => ingress);
  const tiers = [...(hook.workload?.tiers ?? []), ...(hook.host?.preDNAT ?? []), ...(hook.host?.forward ?? [])];
  const ends = [...tiers, ...(hook.host?.normal ?? [])].map(({ name }) => `${name};end`);
  const ids = [...rules.map(({ id }) => id), ...ends, ";no-profile"];
  return new Map(ids.map((id) => [hitNumber(id), hitName(id)]));
}
