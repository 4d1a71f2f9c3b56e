import { expect, it } from "vitest";
import { namesByKind } from "./names-by-kind.ts";

it.each([
  [["Deployment a/b"], "Deployment a/b"],
  [["ClusterRole a", "ClusterRole b"], "ClusterRoles a, b"],
  [
    ["NetworkPolicy a/b", "NetworkPolicy c/d", "Ingress e/f", "Ingress e/g"],
    "NetworkPolicies a/b, c/d; Ingresses e/f, e/g",
  ],
])("%j", (objects, text) => {
  expect(namesByKind(objects)).toBe(text);
});
