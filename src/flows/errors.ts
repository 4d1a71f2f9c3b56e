import { defineErrors } from "../kit/errors.ts";

/** sysexits: a configuration error. */
const CONFIG = 78;

export const errors = defineErrors({
  FLOWS_PORT_BAD: {
    means: "The port of a flow log component is not a number.",
    example: ["PORT", "http"],
    say: (name: string, text: string) => `${name} is "${text}", which is not a port`,
    fix: (name: string) => `set ${name} of the container to a number from 1 to 65535, or omit it`,
    exitCode: CONFIG,
  },
});
