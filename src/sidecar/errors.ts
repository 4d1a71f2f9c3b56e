import { defineErrors } from "../kit/errors.ts";

/** sysexits: a configuration error. */
const CONFIG = 78;

export const errors = defineErrors({
  SIDECAR_ENV_MISSING: {
    means:
      "The sidecar needs an environment variable that its container does not have. The published injector maps set it.",
    example: ["POLICY_SOCKET", "where the agent serves the policy of this pod"],
    say: (name: string, what: string) => `$${name} is not set: it is ${what}`,
    fix: (name: string) => `set $${name} as the injector's ConfigMap of this release does`,
    exitCode: CONFIG,
  },
  SIDECAR_NOT_LISTENING: {
    means: "The sidecar cannot listen where Envoy asks it. Envoy then decides by its own failure mode.",
    example: ["/var/run/vendor/authz.sock", "address in use"],
    say: (path: string, why: string) => `the sidecar cannot listen at ${path}: ${why}`,
    fix: () => "give the container a writable volume there that the mesh's proxy mounts too",
    exitCode: CONFIG,
  },
});
