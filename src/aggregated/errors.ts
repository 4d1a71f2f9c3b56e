import { defineErrors } from "../kit/errors.ts";

/** EX_CONFIG of sysexits: started wrongly, and a restart alone will not help. */
const CONFIG = 78;

export const errors = defineErrors({
  AGGREGATED_NO_KEY_PAIR: {
    means: "A server of an aggregated API (vendor-apiserver, vendor-flow-logs) was started without a certificate.",
    say: () => "there is no certificate to serve the API with",
    fix: () => "set TLS_CERT_FILE and TLS_KEY_FILE to the files of its Secret",
    exitCode: CONFIG,
  },
});
