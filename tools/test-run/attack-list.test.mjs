import { expect, it } from "vitest";
import AttackList, { attackLines, caseOf } from "./attack-list.mjs";

const module = (path, tests) => ({
  moduleId: `/root/${path}`,
  children: { allTests: () => tests.map(([fullName, state]) => ({ fullName, result: () => ({ state }) })) },
});

function printed(...modules) {
  let text = "";
  const list = new AttackList({ out: { write: (more) => (text += more) } });
  list.onInit({ config: { root: "/root" } });
  list.onTestRunEnd(modules);
  return text;
}

it("has a row per attack, and a verdict per data plane", () => {
  const cases = [
    caseOf("reuse, nftables > old entries", "passed"),
    caseOf("reuse, 'eBPF' > old entries", "failed"),
    caseOf("HTTP front > GET //", "passed"),
    caseOf("services, eBPF (needs root) > claimed", "skipped"),
  ];
  expect(attackLines(cases)).toEqual([
    "ATTACK              NFTABLES  EBPF     ANY PLANE",
    "HTTP front: GET //  -         -        held",
    "reuse: old entries  held      FELL     -",
    "services: claimed   -         skipped  -",
    "",
    "3 attacks, 4 cases: 2 held, 1 fell, 1 skipped",
  ]);
});

it("is printed for runs of attacks only", () => {
  const attack = module("test/attacks/a.test.ts", [["front > GET //", "passed"]]);
  const tool = module("test/attacks/frames/b.test.ts", [["a verdict > of a frame", "passed"]]);
  expect(printed(attack)).toContain("1 attacks, 1 cases: 1 held, 0 fell");
  expect(printed(attack, tool)).toBe(printed(attack));
  expect(printed(tool)).toBe("");
  expect(printed(attack, module("test/nft/a.test.ts", []))).toBe("");
  expect(printed()).toBe("");
});
