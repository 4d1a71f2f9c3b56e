import { defineErrors } from "../../kit/errors.ts";

/** sysexits: a usage error / a configuration error. */
const USAGE = 64;
const CONFIG = 78;

export const errors = defineErrors({
  PROGRAM_UNKNOWN: {
    means: "The executable vendor was started with a program name that it does not have.",
    example: ["nodes", ["node", "operator"]],
    say: (name: string, _known: readonly string[]) => `there is no program "${name}"`,
    fix: (_name: string, known: readonly string[]) => `run one of: ${known.map((one) => `vendor ${one}`).join(", ")}`,
    exitCode: USAGE,
  },
  PROGRAM_HAS_NO_ACCOUNT: {
    means: "A program of the service runs in a pod without a service account token.",
    example: ["vendor-system/vendor-node-x"],
    say: (pod: string) => `pod ${pod} has no service account token mounted, so it cannot ask the API server`,
    fix: () => "remove automountServiceAccountToken: false from the pod",
    exitCode: CONFIG,
  },
});
