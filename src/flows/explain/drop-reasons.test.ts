import { expect, it } from "vitest";
import { REASON } from "../../gen/bpf/layout.gen.ts";
import { DROP_REASONS, isPolicyReason } from "./drop-reasons.ts";

const reasons = Object.keys(REASON)
  .filter((name) => /^(?:DROP|REJECT)_/.test(name))
  .map((name) => name.replace(/^(?:DROP|REJECT)_/, "").toLowerCase());

it("every reason for which a data plane drops is in words, with what to do", () => {
  expect(Object.keys(DROP_REASONS).sort()).toEqual(reasons.sort());
});

it("a denial by policy is told from other drops", () => {
  expect(reasons.filter(isPolicyReason)).toEqual(["policy_host", "policy_workload_egress", "policy_workload_ingress"]);
});
