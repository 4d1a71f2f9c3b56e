import { describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { type Calculator, createCalculator } from "../../src/calc/calculator.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { copyOf } from "../../src/controllers/copies/copy-of.ts";
import { parseKept } from "../../src/datastore/kept-form.ts";
import { NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import { NetworkPolicyLab, networkPolicyCases, verdictOf } from "./network-policy-lab.ts";

const NODE = "node-1";
const cases = networkPolicyCases();

/** As vendor-kube-controllers write an object, and agents read it. */
function copied(object: KubeObject): KubeObject {
  return parseKept({ key: "", value: JSON.stringify(copyOf(object)), revision: 1 });
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

  it("copies of the objects in etcd give the same model, after each step", () => {
    let steps = 0;
    for (const { Description, Steps } of cases ?? []) {
      const [calculator, ofCopies] = [createCalculator(NODE, vendorNames), createCalculator(NODE, vendorNames)];
      const sink: Pick<Calculator, "set" | "remove"> = {
        set(object) {
          calculator.set(object);
          ofCopies.set(copied(object));
        },
        remove(kind, ref) {
          calculator.remove(kind, ref);
          ofCopies.remove(kind, ref);
        },
      };
      const world = new NetworkPolicyLab(sink, NODE);
      for (const { Actions = [] } of Steps) {
        for (const action of Actions) world.act(action);
        expect(ofCopies.takeDelta(), Description).toEqual(calculator.takeDelta());
        steps++;
      }
    }
    expect(steps).toBeGreaterThan(200);
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
