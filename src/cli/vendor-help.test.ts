import { expect, it } from "vitest";
import { NODE_PROGRAMS, PROGRAMS } from "../local/programs/program-table.ts";
import { VENDOR_PROGRAMS, vendorHelp } from "./vendor-help.ts";

it("lists every program that vendor can start", () => {
  const started = [...Object.keys(PROGRAMS), ...Object.keys(NODE_PROGRAMS), "cni"];
  expect(Object.keys(VENDOR_PROGRAMS).sort()).toEqual(started.sort());
});

it("fits a terminal of 80 columns", () => {
  for (const line of vendorHelp().split("\n")) expect(line.length).toBeLessThanOrEqual(80);
});
