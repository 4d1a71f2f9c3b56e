import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  OBSERVE_FORBIDDEN: {
    args: ["verb", "resource", "where"],
    say: (verb: string, resource: string, where: string) => `you may not ${verb} ${resource} ${where}`,
    fix: (verb: string, resource: string) =>
      `ask whoever runs the cluster for the right to ${verb} ${resource}, or use another context; nothing was changed`,
    exitCode: 77,
  },
  OBSERVE_KIND_CONTRADICTED: {
    args: ["given", "detected", "evidence"],
    say: (given: string, detected: string, evidence: string) =>
      `--kind ${given} contradicts what the cluster shows: it is ${detected} (${evidence})`,
    fix: () => "leave --kind out",
    exitCode: 64,
  },
});
