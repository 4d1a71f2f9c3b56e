import { expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { objectText } from "./object-text.ts";

const object: KubeObject = {
  ...{ kind: "NetworkPolicy", apiVersion: "vendor.io/v3" },
  metadata: {
    name: "db",
    managedFields: [{ manager: "kubectl", operation: "Update" }],
    annotations: { note: "two\nlines\n" },
  },
  spec: {
    tier: "default",
    ingress: [
      { action: "Allow", source: { nets: Array.from({ length: 60 }, (_, index) => `10.0.${index}.0/24`) } },
      { protocol: "TCP", action: "Deny" },
    ],
  },
};

it("a rule has the line that kubectl prints it on, with its keys in order and no more indented than it must be", () => {
  // apiVersion, kind, metadata, annotations, note: |, two, lines, name, spec, ingress, 63 lines of the first rule.
  expect(objectText(object).find(["spec", "ingress", 1])).toEqual({
    line: 74,
    yaml: "- action: Deny\n  protocol: TCP",
  });
});

it("a long rule is cut, and says so", () => {
  const { line, yaml = "" } = objectText(object).find(["spec", "ingress", 0]) ?? {};
  expect(line).toBe(11);
  expect(yaml.split("\n")).toHaveLength(41);
  expect(yaml).toMatch(/^- action: Allow\n {2}source:\n[\s\S]*\n# …$/);
});

it("what is not there has no line", () => {
  expect(objectText(object).find(["spec", "egress", 0])).toBeUndefined();
});
