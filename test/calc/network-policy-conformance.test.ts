import { describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { evaluate } from "../../src/calc/policy/evaluate.ts";
import { NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import { NetworkPolicyLab, networkPolicyCases, PROTOCOLS, type Probe } from "./network-policy-lab.ts";

const NODE = "node-1";
const cases = networkPolicyCases();

/** One pod to another on the same node: what leaves the one and reaches the other. */
function verdictOf(model: ModelCopy, world: NetworkPolicyLab, { from, to, protocol, port }: Probe): boolean {
  const packet = {
    ipVersion: 4 as const,
    protocol: PROTOCOLS[protocol],
    source: world.addressOf(from),
    sourcePort: 40_000,
    destination: world.addressOf(to),
    destinationPort: port,
  };
  const path = { from: { at: "workload", id: from }, to: { at: "workload", id: to } } as const;
  return evaluate(model, packet, path).action === "allow";
}

describe.skipIf(!cases)(`public NetworkPolicy cases${cases ? "" : ` (${NO_CONFORMANCE_DATA})`}`, () => {
  it("every verdict agrees, SCTP included, in all cases and after each of their steps", () => {
    const wrong: string[] = [];
    let verdicts = 0;
    for (const { Description, Steps } of cases ?? []) {
      const calculator = createCalculator(NODE, vendorNames);
      const model = new ModelCopy();
      const world = new NetworkPolicyLab(calculator, NODE);
      for (const [index, { Actions = [], Allowed }] of Steps.entries()) {
        for (const action of Actions) world.act(action);
        const delta = calculator.takeDelta();
        if (delta) model.apply(delta);
        for (const probe of world.probes(Allowed)) {
          verdicts++;
          if (verdictOf(model, world, probe) === probe.allowed) continue;
          wrong.push(`${Description}, step ${index + 1}: ${probe.from}>${probe.to}:${probe.protocol}/${probe.port}`);
        }
      }
    }
    expect(wrong.slice(0, 20)).toEqual([]);
    expect(verdicts).toBe(111_036);
  });

  it("SCTP is never let through for being something else: without sight of its ports only rules without ports allow it", () => {
    const letThrough: string[] = [];
    for (const { Description, Steps } of cases ?? []) {
      const calculator = createCalculator(NODE, vendorNames);
      const model = new ModelCopy();
      const world = new NetworkPolicyLab(calculator, NODE);
      for (const { Actions = [], Allowed } of Steps) {
        for (const action of Actions) world.act(action);
        const delta = calculator.takeDelta();
        if (delta) model.apply(delta);
        for (const probe of world.probes(Allowed)) {
          if (probe.protocol !== "SCTP" || probe.allowed) continue;
          // A data plane that cannot see SCTP's ports sees none at all.
          if (verdictOf(model, world, { ...probe, port: 0 }))
            letThrough.push(`${Description}: ${probe.from}>${probe.to}`);
        }
      }
    }
    expect(letThrough).toEqual([]);
  });
});
