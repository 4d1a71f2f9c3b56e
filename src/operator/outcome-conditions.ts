import type { Condition } from "../api/object.ts";
import { setCondition } from "../cluster/conditions.ts";
import type { Change } from "../cluster/events.ts";
import type { Outcome } from "./outcome.ts";

interface ConditionContext {
  /** The condition that says all is well. */
  main: "Available" | "Ready";
  now: number;
  generation: number | undefined;
}

type ConditionText = { status: "True" | "False"; reason: string; message: string };

/** An outcome as the three conditions people and programs read. */
export function conditionsOf(
  outcome: Exclude<Outcome, { kind: "absent" }>,
  before: readonly Condition[] | undefined,
  context: ConditionContext,
): Condition[] {
  const said = conditionText(outcome);
  const order = [context.main, "Progressing", "Degraded"] as const;
  const date = new Date(context.now);
  return order.reduce<Condition[]>(
    (conditions, type) => {
      const { status, reason, message } =
        type === "Progressing" ? said.progressing : type === "Degraded" ? said.degraded : said.main;
      const observedGeneration = context.generation === undefined ? {} : { observedGeneration: context.generation };
      return setCondition(conditions, { type, status, reason, message, ...observedGeneration }, date);
    },
    [...(before ?? [])],
  );
}

/** What became different for people: conditions that became true, and another reason to be degraded. */
export function changesOf(before: readonly Condition[], now: readonly Condition[]): Change[] {
  return now.flatMap(({ type, status, reason = "", message = "" }): Change[] => {
    const was = before.find((one) => one.type === type);
    if (status !== "True" || (was?.status === "True" && (type !== "Degraded" || was.reason === reason))) return [];
    if (type === "Degraded") return [{ type: "Warning", reason, message }];
    return [{ type: "Normal", reason: type, message: message || `${type} is true` }];
  });
}

function conditionText(outcome: Exclude<Outcome, { kind: "absent" }>): {
  main: ConditionText;
  progressing: ConditionText;
  degraded: ConditionText;
} {
  const yes = (reason: string, message: string): ConditionText => ({ status: "True", reason, message });
  const no = (reason: string, message = ""): ConditionText => ({ status: "False", reason, message });
  switch (outcome.kind) {
    case "ready":
      return {
        main: yes("AllObjectsAvailable", outcome.message),
        progressing: no("AllObjectsAvailable"),
        degraded: no("AllObjectsAvailable"),
      };
    case "notInstalled":
      return {
        main: no("NotInstalled", outcome.message),
        progressing: no("NotInstalled"),
        degraded: no("NotInstalled"),
      };
    case "progressing": {
      const message = `Waiting for ${outcome.waitingFor}.`;
      return {
        main: no("ResourceNotReady", message),
        progressing: yes("ResourceNotReady", message),
        degraded: no("ResourceNotReady"),
      };
    }
    case "degraded":
      return {
        main: outcome.available ? yes("AllObjectsAvailable", outcome.message) : no(outcome.reason, outcome.message),
        progressing: no(outcome.reason),
        degraded: yes(outcome.reason, outcome.message),
      };
  }
}
