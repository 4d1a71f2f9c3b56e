import { defineErrors } from "../kit/errors.ts";

export const errors = defineErrors({
  CONTROLLERS_ENV: {
    means: "An environment variable of vendor-kube-controllers has a value that it cannot use. It does not start.",
    example: ["LOG_LEVEL", "loud", "one of debug, info, warn, error"],
    say: (name: string, value: string, wanted: string) => `$${name} is "${value}", which is not ${wanted}`,
    fix: (name: string, _value: string, wanted: string) => `set $${name} to ${wanted}, or omit it`,
    exitCode: 78,
  },
});
