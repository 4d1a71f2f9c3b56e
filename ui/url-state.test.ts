import fc from "fast-check";
import { expect, it } from "vitest";
import { PROPOSAL_KINDS } from "../src/api/protocol/flow-proposal.ts";
import {
  DIFFERENCES,
  isStep,
  PANELS,
  RULE_FILTERS,
  readHash,
  SCREENS,
  SPANS,
  THEMES,
  type UrlState,
  writeHash,
} from "./url-state.ts";
import { COLUMN_SORTS } from "./worker/flow-columns.ts";

const FIRST = readHash("");

const anyState: fc.Arbitrary<UrlState> = fc.record({
  screen: fc.constantFrom(...SCREENS),
  query: fc.string(),
  namespace: fc.string(),
  sort: fc.constantFrom(...COLUMN_SORTS),
  isDescending: fc.boolean(),
  flow: fc.string(),
  isExplained: fc.boolean(),
  rules: fc.constantFrom(...RULE_FILTERS),
  run: fc.string(),
  panel: fc.constantFrom(...PANELS),
  api: fc.constantFrom(...PROPOSAL_KINDS),
  egress: fc.boolean(),
  addresses: fc.boolean(),
  gone: fc.string(),
  isNarrow: fc.boolean(),
  mark: fc.integer({ min: 0, max: 8.64e15 }),
  span: fc.constantFrom(...SPANS),
  differences: fc.constantFrom(...DIFFERENCES),
  theme: fc.constantFrom(...THEMES),
});

it("a link is read as what it was written from", () => {
  fc.assert(
    fc.property(anyState, (state) => {
      const isExplained = state.isExplained && state.flow !== "";
      expect(readHash(writeHash(state))).toEqual({ ...state, isExplained });
    }),
  );
});

it("any text is a link, and what it does not say is as at first", () => {
  fc.assert(fc.property(fc.string(), (text) => void readHash(text)));
  expect(readHash("#screen=nothing&sort=nothing&theme=pink&rules=x&mark=-1&span=7")).toEqual(FIRST);
  expect(writeHash(FIRST)).toBe("#");
});

it("sorting and choosing a flow are no steps of the back button; another query, screen, panel or explanation is", () => {
  const from = FIRST;
  for (const change of [{ sort: "bytes" }, { flow: "a" }, { theme: "dark" }, { run: "a" }] as const)
    expect(isStep(from, { ...from, ...change }), JSON.stringify(change)).toBe(false);
  for (const change of [
    { screen: "map" },
    { query: "a" },
    { namespace: "shop" },
    { isExplained: true },
    { panel: "preview" },
    { mark: 1 },
  ] as const)
    expect(isStep(from, { ...from, ...change }), JSON.stringify(change)).toBe(true);
});
