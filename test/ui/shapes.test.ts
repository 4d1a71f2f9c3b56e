import { expectTypeOf, it } from "vitest";
import type { FlowObject } from "../../src/flows/api/flow-kind.ts";
import type { FlowCoverage, FlowStore } from "../../src/flows/store/flow-store.ts";
import type {
  Flow,
  FlowHints,
  FlowTimeline,
  RuleStatistics,
  FlowCoverage as ShownCoverage,
} from "../../ui/api/flow.ts";

it("the page reads flows as vendor-flow-logs writes them", () => {
  expectTypeOf<FlowObject>().toExtend<Omit<Flow, "metadata">>();
  expectTypeOf<FlowObject["metadata"]>().toExtend<Flow["metadata"]>();
  expectTypeOf<FlowCoverage>().toExtend<ShownCoverage>();
  expectTypeOf<Awaited<ReturnType<FlowStore["timeline"]>>>().toExtend<FlowTimeline>();
  expectTypeOf<ReturnType<FlowStore["hints"]>>().toExtend<FlowHints["hints"]>();
  expectTypeOf<ReturnType<FlowStore["statistics"]>["rules"]>().toExtend<RuleStatistics[]>();
});
