import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  SERVICE_PROXY_RULES_STAY: {
    args: ["where", "why"],
    say: (where: string, why: string) => `the service proxy's rules in ${where} could not be removed: ${why}`,
    fix: () => "stop the service proxy on this node; they are tried again",
  },
  SERVICE_PROXY_WRITES_AGAIN: {
    args: ["times"],
    say: (times: number) =>
      `the service proxy wrote its rules again after they were removed, ${times} times in the last ten minutes`,
    fix: () =>
      "disable the service proxy, or leave its rules alone: set bpfServiceProxyIptablesCleanupEnabled to false in the data plane configuration default",
  },
});
