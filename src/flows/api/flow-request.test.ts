import { expect, it } from "vitest";
import { flowKey } from "../flow.fixture.ts";
import { compileQuery } from "../query/compile-query.ts";
import { askedFlows } from "./flow-request.ts";

const asked = (search: string) => askedFlows(new URLSearchParams(search));
const matches = (search: string) => compileQuery(asked(search).query!).matchesKey(flowKey());

it("a query and selectors of kubectl hold together, and so does a time in the query", () => {
  expect(matches("query=port:5432&fieldSelector=verdict%3DDeny&labelSelector=app%3Dweb")).toBe(true);
  expect(matches("query=port:1 or web&fieldSelector=verdict%3DAllow")).toBe(false);
  expect(matches("fieldSelector=to!%3Dpay/db")).toBe(false);
  expect(asked("query=since:15m web&fieldSelector=verdict%3DDeny").query).toMatchObject({ since: { ago: 900_000 } });
});

it("a selector cannot leave its value", () => {
  for (const search of ['fieldSelector=from%3D" or web', "labelSelector=a%3D%5C", "fieldSelector=nothing%3D1"])
    expect(() => asked(search), search).toThrow(/selector|field of flows|selected by/);
  expect(() => asked("query=a) or (b&fieldSelector=port%3D1")).toThrow(/wrong at character 2/);
});
