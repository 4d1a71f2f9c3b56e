import { defineErrors } from "../kit/errors.ts";

/** EX_CONFIG of sysexits: started wrongly, and a restart alone will not help. */
const CONFIG = 78;

export const errors = defineErrors({
  V3API_NO_KEY_PAIR: {
    say: () => "the v3 API has no certificate to serve with",
    fix: () => "set TLS_CERT_FILE and TLS_KEY_FILE to the files of its Secret",
    exitCode: CONFIG,
  },
  V3API_BAD_SETTING: {
    args: ["name", "value", "expected"],
    say: (name: string, value: string, wanted: string) => `${name} is "${value}", which is not ${wanted}`,
    fix: (name: string) => `correct ${name} in the pod's environment`,
    exitCode: CONFIG,
  },
});
