import { expect, it } from "vitest";
import { deletedObject, goneText, refusedLines, writtenObjects } from "./written-objects.ts";

const TEXT = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: lock
spec:
  podSelector: {}
  ingress:
    - ports:
        - port: 80
        - port: yes
---
apiVersion: v1
kind: List
items:
  - kind: NetworkPolicy
    metadata: { name: one }
  - kind: Tier
    metadata: { name: two }
    spec:
      order: many
`;

const refusal = (message: string, details?: object) => ({
  ...{ status: 422, reason: "Invalid", message },
  ...(details && { details }),
});

it("reads several documents and lists, as kubectl does", () => {
  const { found, problems } = writtenObjects(TEXT);
  expect(problems).toEqual([]);
  expect(found.map(({ object }) => (object["metadata"] as { name: string }).name)).toEqual(["lock", "one", "two"]);
  expect(found[0]?.object["spec"]).toMatchObject({ ingress: [{ ports: [{ port: 80 }, { port: true }] }] });
});

it("says at which line YAML cannot be read", () => {
  expect(writtenObjects("kind: a\nmetadata: [\n").problems).toEqual([{ line: 3, message: expect.any(String) }]);
  expect(writtenObjects("kind: a\n---\n- b\n").problems).toEqual([
    { line: 3, message: "this is no object with apiVersion and kind" },
  ]);
  expect(writtenObjects("# nothing\n")).toMatchObject({ found: [], problems: [] });
});

it("refuses aliases that multiply, and does not follow them", () => {
  const levels = Array.from({ length: 20 }, (_, at) => `a${at + 1}: &a${at + 1} [*a${at}, *a${at}]`);
  expect(writtenObjects(`a0: &a0 [x]\n${levels.join("\n")}\n`).problems).toHaveLength(1);
});

it("puts what the server refuses at its line, and at the nearest one where a field is missing", () => {
  const written = writtenObjects(TEXT);
  const causes = [
    { field: "spec.ingress[0].ports[1].port", message: "Invalid value" },
    { field: "spec.policyTypes", message: "Required value" },
  ];
  const said = refusal('NetworkPolicy.networking.k8s.io "lock" is invalid: …', {
    ...{ name: "lock", kind: "NetworkPolicy", causes },
  });
  expect(refusedLines(written, said)).toEqual([
    { line: 10, message: "spec.ingress[0].ports[1].port: Invalid value" },
    { line: 5, message: "spec.policyTypes: Required value" },
  ]);
  const ofList = refusal("…", { name: "two", kind: "Tier", causes: [{ field: "spec.order", message: "no number" }] });
  expect(refusedLines(written, ofList)).toEqual([{ line: 20, message: "spec.order: no number" }]);
  expect(refusedLines(written, refusal("spec.objects[1] has no apiVersion"))).toEqual([
    { line: 15, message: "spec.objects[1] has no apiVersion" },
  ]);
  expect(refusedLines(written, refusal("no preview is calculated now"))).toEqual([
    { message: "no preview is calculated now" },
  ]);
});

it("deletes policies of the kinds that a preview takes, and nothing that a link invents", () => {
  const lock = { kind: "KubernetesNetworkPolicy", namespace: "pay", name: "lock" };
  expect(deletedObject(goneText(lock))).toEqual({
    ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", namespace: "pay", name: "lock" },
  });
  const everywhere = { kind: "GlobalNetworkPolicy", namespace: "", name: "front.deny" };
  expect(deletedObject(goneText(everywhere))).toEqual({
    ...{ apiVersion: "vendor.io/v3", kind: "GlobalNetworkPolicy", name: "front.deny" },
  });
  for (const [kind, name] of [
    ["EndOfTier", "x"],
    ["Secret", "x"],
    ["constructor", "x"],
    ["NetworkPolicy", ""],
  ] as const)
    expect(goneText({ kind, namespace: "", name })).toBe("");
});
