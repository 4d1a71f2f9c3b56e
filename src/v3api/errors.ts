import { defineErrors } from "../kit/errors.ts";

/** EX_CONFIG of sysexits: started wrongly, and a restart alone will not help. */
const CONFIG = 78;

export const errors = defineErrors({
  V3API_BAD_SETTING: {
    means: "An environment variable of the vendor.io/v3 API server has a value that it cannot use.",
    example: ["PORT", "https", "a port"],
    say: (name: string, value: string, wanted: string) => `${name} is "${value}", which is not ${wanted}`,
    fix: (name: string) => `correct ${name} in the pod's environment`,
    exitCode: CONFIG,
  },
});
