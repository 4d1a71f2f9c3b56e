import { expect, it } from "vitest";
import { ModelCopy } from "../../calc/model-copy.ts";
import { overlayGuard } from "./base-chains.ts";
import { ruleText } from "./rule-text.ts";

it("packets in IPIP are believed from nodes alone, and neither pods nor others reach a node with them by way of another", () => {
  const rules = overlayGuard({ settings: new ModelCopy().settings }).flatMap(({ name, base, rules: all }) =>
    all.map((rule) => `${name}, ${base?.hook}: ${ruleText(rule)}`),
  );
  expect(rules.filter((text) => /l4proto 4 |ipip/.test(text))).toEqual([
    "overlay-input, input: meta l4proto 4 ip saddr @nodes-4 meta mark set meta mark | 0x100000",
    'overlay-forward, forward: meta l4proto 4 ip daddr @nodes-4 iifname "ven*" counter drop comment "to the overlay from a pod"',
    'overlay-forward, forward: meta l4proto 4 ip daddr @nodes-4 ip saddr != @nodes-4 counter drop comment "to the overlay from no node"',
    'ipip-source, prerouting: iifname "ipip.vendor" meta mark & 0x100000 != 0x100000 counter drop comment "in IPIP from no node"',
  ]);
});
