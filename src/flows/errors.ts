import { defineErrors } from "../kit/errors.ts";

/** sysexits: a configuration error. */
const CONFIG = 78;

export const errors = defineErrors({
  FLOWS_PORT_BAD: {
    args: ["name", "text"],
    say: (name: string, text: string) => `${name} is "${text}", which is not a port`,
    fix: (name: string) => `set ${name} of the container to a number from 1 to 65535, or omit it`,
    exitCode: CONFIG,
  },
});
