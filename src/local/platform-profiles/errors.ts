import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  CLUSTER_KIND_UNKNOWN: {
    args: ["kind", "known"],
    say: (kind: string, known: string) => `"${kind}" is not a kind of cluster; the kinds are ${known}`,
    fix: () => "choose one of them with --kind",
    exitCode: 64,
  },
  PROXY_NOT_OFFERED: {
    args: ["kind", "asked", "offered"],
    say: (kind: string, asked: string, offered: string) =>
      `kube-proxy of a cluster of kind ${kind} cannot be "${asked}"; it can be ${offered}`,
    fix: () => "leave --proxy out, or choose another --kind",
    exitCode: 64,
  },
  TOO_FEW_NODES: {
    args: ["nodes", "old", "windows"],
    say: (nodes: number, old: number, windows: number) =>
      `${nodes} nodes are too few: ${old} are to be too old and ${windows} to run Windows, and one more must run Linux where any runs Windows`,
    fix: () => "ask for more --nodes",
    exitCode: 64,
  },
  CLUSTER_CONFIGURATION_UNREADABLE: {
    args: ["why"],
    say: (why: string) => `the cluster configuration cannot be rolled out: ${why}`,
    fix: () => "mend cluster.yaml in the config map kube-system/cluster-configuration and ask for another rollout",
    exitCode: 64,
  },
});
