import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  SERVICE_PROXY_RULES_STAY: {
    means: "kube-proxy's rules could not be removed from a node that serves with eBPF.",
    example: ["table ip nat", "resource busy"],
    say: (where: string, why: string) => `kube-proxy's rules in ${where} could not be removed: ${why}`,
    fix: () => "stop kube-proxy on this node; the agent retries",
  },
  SERVICE_PROXY_WRITES_AGAIN: {
    means: "kube-proxy and eBPF both serve on a node: rules that the agent removes are written again.",
    example: [6],
    say: (times: number) =>
      `kube-proxy wrote its rules again after they were removed, ${times} times in the last ten minutes`,
    fix: () =>
      "vendorctl proxy disable; or keep its rules: set bpfServiceProxyIptablesCleanupEnabled to false in the data plane configuration default",
  },
});
