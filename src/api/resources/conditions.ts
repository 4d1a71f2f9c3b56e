import { choice, integer, listByKey, object, text } from "./describe.ts";
import type { PrinterColumn } from "./resource.ts";

/** Conditions as Kubernetes writes them; keyed by type, so that several controllers may each own theirs. */
export const conditions = listByKey(
  "What is true of the object now, one entry per condition type.",
  ["type"],
  object(
    "One condition.",
    {
      type: text("Name of the condition, such as Available.", { maxLength: 316 }),
      status: choice("Whether the condition holds.", ["True", "False", "Unknown"]),
      reason: text("One CamelCase word for programs: why the condition has this status.", { maxLength: 1024 }),
      message: text("One sentence for people: why the condition has this status.", { maxLength: 32768 }),
      lastTransitionTime: text("When the status last changed.", { format: "date-time" }),
      observedGeneration: integer("Generation of the object the condition was computed from.", { minimum: 0 }),
    },
    ["type", "status"],
  ),
);

export function conditionColumn(type: string, description: string): PrinterColumn {
  return { name: type, type: "string", jsonPath: `.status.conditions[?(@.type=='${type}')].status`, description };
}

/** What the main condition says in words: how it is, what is waited for, or what is wrong and how to mend it. */
export function messageColumn(type: string): PrinterColumn {
  const jsonPath = `.status.conditions[?(@.type=='${type}')].message`;
  return { name: "Message", type: "string", jsonPath, description: "The state in words" };
}

/** How long the object has been (or not been) as its main condition says. */
export function sinceColumn(type: string): PrinterColumn {
  return {
    name: "Since",
    type: "date",
    jsonPath: `.status.conditions[?(@.type=='${type}')].lastTransitionTime`,
    description: `Time since ${type} last changed`,
  };
}
