import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  OBSERVE_FORBIDDEN: {
    means: "vendorctl reads the cluster before it decides anything, and you lack a right for that.",
    example: ["list", "nodes", "in the cluster"],
    say: (verb: string, resource: string, where: string) => `you may not ${verb} ${resource} ${where}`,
    fix: (verb: string, resource: string) =>
      `get permission to ${verb} ${resource} (RBAC), or use another --context; nothing was changed`,
    exitCode: 77,
  },
  OBSERVE_KIND_CONTRADICTED: {
    means: "--kind names another platform than the cluster shows.",
    example: ["eks", "generic", "nodes have no provider ID of aws"],
    say: (given: string, detected: string, evidence: string) =>
      `--kind ${given} contradicts the detected kind: ${detected} (${evidence})`,
    fix: () => "omit --kind",
    exitCode: 64,
  },
});
