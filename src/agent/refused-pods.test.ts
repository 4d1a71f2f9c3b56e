import { expect, it } from "vitest";
import { fakeClock } from "../kit/fake-clock.ts";
import { errors } from "./errors.ts";
import { refusedPods } from "./refused-pods.ts";

it("lists a pod whose ADD failed with its code, until it is connected or no longer tried", async () => {
  const clock = fakeClock();
  const refused = refusedPods(clock);
  refused.failed("shop/web", errors.AGENT_NOT_READY("starting"));
  refused.failed("shop/api", new Error("a bug"));
  expect(refused.list()).toEqual([
    { pod: "shop/web", code: "AGENT_NOT_READY", message: "the node's agent is not ready: starting" },
    { pod: "shop/api", code: "INTERNAL", message: "Error: a bug" },
  ]);
  refused.connected("shop/web");
  expect(refused.list()).toHaveLength(1);
  await clock.advance(121_000);
  expect(refused.list()).toEqual([]);
});
