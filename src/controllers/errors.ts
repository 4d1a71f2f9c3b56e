import { defineErrors } from "../kit/errors.ts";

export const errors = defineErrors({
  CONTROLLERS_ENV: {
    args: ["name", "value", "expected"],
    say: (name: string, value: string, wanted: string) => `$${name} is "${value}", which is not ${wanted}`,
    fix: (name: string, _value: string, wanted: string) => `set $${name} to ${wanted}, or omit it`,
    exitCode: 78,
  },
});
