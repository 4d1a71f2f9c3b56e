import { expect, it } from "vitest";
import { NODE_PROGRAMS, PROGRAMS } from "../local/programs/program-table.ts";
import { vendorHelp } from "./vendor-help.ts";

it("lists every program that vendor can start", () => {
  const started = [...Object.keys(PROGRAMS), ...Object.keys(NODE_PROGRAMS), "cni"];
  const [, programs = ""] = /^Programs:\n(.*?)\n\n/ms.exec(vendorHelp()) ?? [];
  const listed = programs.split("\n").map((line) => line.trim().split(/ +/)[0]);
  expect(listed.toSorted()).toEqual(started.toSorted());
});

it("fits a terminal of 80 columns", () => {
  for (const line of vendorHelp().split("\n")) expect(line.length).toBeLessThanOrEqual(80);
});
