import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FlowNames, ruleNumber } from "./flow-names.ts";

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "vt-names-"));
  file = join(directory, "below", "flow-names");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

it("names are known in the next life too, also where the last one was cut short", () => {
  const names = new FlowNames(file);
  names.addRules(["np/shop/web;ingress;0", "default;end", "default;end"]);
  names.addService(5, "shop/web:http");
  names.addRules(["default;end"]);
  expect(readFileSync(file, "utf8").split("\n").filter(Boolean)).toHaveLength(3);
  appendFileSync(file, '[6,"shop/');
  const next = new FlowNames(file);
  expect(next.rule(ruleNumber("np/shop/web;ingress;0"))).toBe("np/shop/web;ingress;0");
  expect([next.rule(ruleNumber("default;end")), next.rule(7n)]).toEqual(["default;end", undefined]);
  expect([next.service(5), next.service(6)]).toEqual(["shop/web:http", undefined]);
  next.addService(6, "shop/db:5432");
  expect(new FlowNames(file).service(6)).toBe("shop/db:5432");
});

it("a number that another Service has now is that one's", () => {
  const names = new FlowNames(file);
  names.addService(5, "shop/web:http");
  names.addService(5, "pay/api:80");
  expect(new FlowNames(file).service(5)).toBe("pay/api:80");
});

it("what was said again and again is written anew once", () => {
  const names = new FlowNames(file);
  for (let index = 0; index < 10_010; index++) names.addService(5, `shop/web:${index % 2}`);
  expect(new FlowNames(file).service(5)).toBe("shop/web:1");
  expect(readFileSync(file, "utf8").trim()).toBe('[5,"shop/web:1"]');
});
