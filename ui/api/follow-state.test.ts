import { expect, it } from "vitest";
import { FIRST_STATE, type FollowInput, type FollowState, nextState } from "./follow-state.ts";

const watching: FollowState = { at: "watching", from: "7", failures: 0 };
const failed = (status: number): FollowInput => ({ is: "failed", refusal: { status, reason: "", message: "" } });
const after = (state: FollowState, ...inputs: FollowInput[]) =>
  inputs.reduce((at, input) => nextState(at, input, false), state);

it("lists page by page, then watches from the version of the list", () => {
  expect(after(FIRST_STATE, { is: "listed", version: "3", page: "next" })).toMatchObject({
    at: "listing",
    page: "next",
  });
  expect(after(FIRST_STATE, { is: "listed", version: "3" })).toMatchObject({ at: "watching", from: "3" });
});

it("goes on from the last version when a watch ends or is cut off", () => {
  const later = after(watching, { is: "version", version: "9" });
  for (const input of [{ is: "ended" }, failed(0), failed(503), failed(429)] as const)
    expect(after(later, input, { is: "waited" })).toMatchObject({ at: "watching", from: "9" });
});

it("lists again at once when the version is gone", () => {
  expect(after(watching, failed(410))).toEqual(FIRST_STATE);
});

it("waits longer each time, and not for ever", () => {
  const waits: number[] = [];
  let state: FollowState = watching;
  for (let attempt = 0; attempt < 9; attempt++) {
    state = after(state, failed(0));
    if (state.at === "waiting") waits.push(state.forMs);
    state = after(state, { is: "waited" });
  }
  expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
});

it.each([400, 401, 403, 404])("stops at %i, which asking again does not mend", (status) => {
  expect(after(watching, failed(status))).toMatchObject({ at: "refused", refusal: { status } });
});

it("a query with a time is listed again after a while, for a watch has no time", () => {
  const waiting = nextState(FIRST_STATE, { is: "listed", version: "3" }, true);
  expect(waiting).toMatchObject({ at: "waiting", next: FIRST_STATE });
});
