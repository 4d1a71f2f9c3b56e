import { describe, expect, it } from "vitest";
import { hookVerdict } from "../../src/calc/policy/hook-verdict.ts";
import { NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import { policyProgramCases } from "./policy-program-cases.ts";

const cases = policyProgramCases();

describe.skipIf(!cases)(`public policy program cases${cases ? "" : ` (${NO_CONFORMANCE_DATA})`}`, () => {
  const { inScope, outOfScope } = cases ?? { inScope: [], outOfScope: [] };

  it("every packet of every case in scope is judged as it should be", () => {
    const wrong = inScope.flatMap(({ id, name, model, hook, packets }) =>
      packets.flatMap(({ packet, role, allowed }) => {
        const verdict = hookVerdict(model, hook, packet, role);
        return (verdict.action === "allow") === allowed ? [] : [{ id, name, packet, role, verdict }];
      }),
    );
    expect(wrong).toEqual([]);
    expect({ cases: inScope.length, packets: inScope.reduce((sum, { packets }) => sum + packets.length, 0) }).toEqual({
      cases: 100,
      packets: 602,
    });
  });

  it("the rules that were hit are told in the order they were", () => {
    const compared = inScope.flatMap(({ id, model, hook, packets, hitName }) =>
      packets.flatMap(({ packet, role, ruleHits }) =>
        ruleHits ? [{ id, hits: hookVerdict(model, hook, packet, role).hits.map(hitName), ruleHits }] : [],
      ),
    );
    for (const { id, hits, ruleHits } of compared) expect([id, hits]).toEqual([id, ruleHits]);
    expect(compared.length).toBeGreaterThan(0);
  });

  it("names what is out of scope", () => {
    expect(outOfScope).toEqual(
      [0, 1, 2].map((index) => ({
        id: `xdpPolProgramTests/${index}`,
        because: "programs before connection tracking (doNotTrack) are refused",
      })),
    );
  });
});
