import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  OBSERVE_FORBIDDEN: {
    args: ["verb", "resource", "where"],
    say: (verb: string, resource: string, where: string) => `you may not ${verb} ${resource} ${where}`,
    fix: (verb: string, resource: string) =>
      `get permission to ${verb} ${resource} (RBAC), or use another --context; nothing was changed`,
    exitCode: 77,
  },
  OBSERVE_KIND_CONTRADICTED: {
    args: ["given", "detected", "evidence"],
    say: (given: string, detected: string, evidence: string) =>
      `--kind ${given} contradicts the detected kind: ${detected} (${evidence})`,
    fix: () => "omit --kind",
    exitCode: 64,
  },
});
