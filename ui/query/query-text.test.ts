import fc from "fast-check";
import { expect, it } from "vitest";
import { flowKey, outside, policyHit, workload } from "../../src/flows/flow.fixture.ts";
import { compileQuery } from "../../src/flows/query/compile-query.ts";
import { parseQuery } from "../../src/flows/query/parse-query.ts";
import {
  keyQuery,
  pairQuery,
  problemIn,
  quoted,
  ruleQuery,
  termsOf,
  timeIn,
  withoutTime,
  withTime,
} from "./query-text.ts";

const NOON = Date.parse("2026-01-31T12:00:00Z");
const finds = (query: string, key = flowKey()) => compileQuery(parseQuery(query)).matchesKey(key);

it("a value is read as it stands, whatever it holds", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 40 }), (name) => {
      const key = flowKey({ from: workload("shop", name) });
      expect(finds(pairQuery(key), key)).toBe(true);
    }),
  );
  expect(quoted("or")).toBe('"or"');
  expect(quoted("shop/web-1.2")).toBe("shop/web-1.2");
});

it("the query of a flow finds it, and not the same between others", () => {
  const key = flowKey({ from: outside });
  expect(keyQuery(key)).toBe("from:/public to:pay/db port:5432 proto:tcp verdict:deny");
  expect(finds(keyQuery(key), key)).toBe(true);
  expect(finds(keyQuery(key), flowKey())).toBe(false);
});

it("what was merged is asked for by what is left of it", () => {
  const key = flowKey({ from: workload("shop", ""), port: 0 });
  expect(keyQuery(key)).toBe("namespace:shop to:pay/db proto:tcp verdict:deny");
});

it.each([
  [policyHit(), 'rule:"pay/lock#ingress[2]"'],
  [policyHit({ namespace: "" }), 'rule:"lock#ingress[2]"'],
  [{ kind: "NetworkPolicy", tier: "default", namespace: "pay", name: "lock" }, "policy:pay/lock"],
])("the query of a rule finds its flows: %o", (rule, query) => {
  expect(ruleQuery(rule)).toBe(query);
  expect(finds(query, flowKey({ policies: [policyHit(rule)] }))).toBe(true);
});

it("the end of a tier is found by its tier", () => {
  const { rule: _, ...end } = policyHit({ kind: "EndOfTier", namespace: "", name: "", tier: "security" });
  expect(ruleQuery(end)).toBe("policy:EndOfTier tier:security");
  expect(finds(ruleQuery(end), flowKey({ policies: [end] }))).toBe(true);
});

it("terms are taken apart where each can be left out alone", () => {
  expect(termsOf('from:shop/* (a or b) -"x y" and port:1')).toEqual(["from:shop/*", "(a or b)", '-"x y"', "port:1"]);
  expect(termsOf("a or b")).toBeUndefined();
});

it("a time is written in place of the one before, for all of the query", () => {
  const query = withTime("web since:15m until:5m", NOON, NOON + 60_000);
  expect(query).toBe("web since:2026-01-31T12:00:00Z until:2026-01-31T12:01:00Z");
  expect(timeIn(query, 0)).toEqual({ since: NOON, until: NOON + 60_000 });
  expect(withoutTime(query)).toBe("web");
  const either = withTime("web or db", NOON, NOON + 60_000);
  expect(timeIn(either, 0).since).toBe(NOON);
  expect(finds(either, flowKey())).toBe(true);
});

it("a problem says where it is", () => {
  expect(problemIn("web prot:tcp")).toMatchObject({
    message: 'found "prot", expected a field; did you mean "port"?',
    problem: { position: 4, length: 4 },
  });
  expect(problemIn("web")).toBeUndefined();
});
