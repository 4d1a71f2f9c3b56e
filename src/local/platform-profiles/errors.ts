import { defineErrors } from "../../kit/errors.ts";

export const errors = defineErrors({
  CLUSTER_KIND_UNKNOWN: {
    means: "--kind of vendorctl cluster up is not one of the platforms that it imitates.",
    example: ["gke", "generic, iac, openshift, aks, eks, mke"],
    say: (kind: string, known: string) => `"${kind}" is not a kind of cluster; the kinds are ${known}`,
    fix: () => "choose one of them with --kind",
    exitCode: 64,
  },
  PROXY_NOT_OFFERED: {
    means: "A platform does not offer the kube-proxy mode that was asked for.",
    example: ["openshift", "ipvs", "none"],
    say: (kind: string, asked: string, offered: string) =>
      `kube-proxy of a cluster of kind ${kind} cannot be "${asked}"; it can be ${offered}`,
    fix: () => "leave --proxy out, or choose another --kind",
    exitCode: 64,
  },
  TOO_FEW_NODES: {
    means: "An embedded cluster was to have more special nodes than nodes.",
    example: [2, 1, 1],
    say: (nodes: number, old: number, windows: number) =>
      `${nodes} nodes are too few: ${old} are to be too old and ${windows} to run Windows, and one more must run Linux where any runs Windows`,
    fix: () => "ask for more --nodes",
    exitCode: 64,
  },
  CLUSTER_CONFIGURATION_UNREADABLE: {
    means: "The imitated cluster tool cannot read the configuration that it is to roll out.",
    example: ["cluster.yaml is not YAML"],
    say: (why: string) => `the cluster configuration cannot be rolled out: ${why}`,
    fix: () => "mend cluster.yaml in the config map kube-system/cluster-configuration and ask for another rollout",
    exitCode: 64,
  },
});
