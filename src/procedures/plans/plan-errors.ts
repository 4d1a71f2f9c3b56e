import { defineErrors } from "../../kit/errors.ts";

/** A plan that would break something is refused like a failed check. */
const CHECK_FAILED = 3;
const USAGE = 64;

/** Why install, switch, proxy and uninstall make no plan. */
export const errors = defineErrors({
  MANIFEST_NOT_YAML: {
    means: "A published file is not YAML.",
    example: ["custom-resources.yaml", "bad indentation at line 7"],
    say: (name: string, problem: string) => `${name} cannot be read: ${problem}`,
    fix: () => "check the file at --manifest-url, or omit the flag to use the copy in this tool",
  },
  MANIFEST_NOT_OBJECTS: {
    means: "A published file has something that is not a Kubernetes object.",
    example: ["custom-resources.yaml"],
    say: (name: string) => `${name} is not a list of objects with apiVersion, kind and a name`,
    fix: () => "check the file at --manifest-url, or omit the flag to use the copy in this tool",
  },
  MANIFEST_WITHOUT_KIND: {
    means: "Flags of install change an object of a published file, and the file does not have it.",
    example: ["custom-resources.yaml", "Installation"],
    say: (name: string, kind: string) => `${name} has no ${kind} to edit`,
    fix: () => "check the file at --manifest-url, and that --names fits it",
  },
  MANIFEST_FIELD_IMPOSSIBLE: {
    means: "--set names a field below one that is not an object.",
    example: ["custom-resources.yaml", "spec.variant.x"],
    say: (name: string, path: string) => `${path} cannot be set in ${name}: a field above it is not an object`,
    fix: () => "give --set the path of a field, such as spec.vendorNetwork.mtu=1400",
    exitCode: USAGE,
  },
  INSTALL_EDIT_REFUSED: {
    means: "--set gives a field of the Installation a value that it may not have.",
    example: ["spec.vendorNetwork.mtu is -1, and must be at least 0", "use a number of bytes, or 0"],
    say: (message: string, _fix: string) => `--set is not valid: ${message}`,
    fix: (_message, fix) => fix,
    exitCode: USAGE,
  },
  INSTALL_OPERATOR_WOULD_REFUSE: {
    means: "The operator would not accept the Installation that install or an upgrade leads to. Nothing is changed.",
    example: ["spec.vendorNetwork.bgp", "this CNI plugin uses no pools", "remove the field"],
    say: (path: string, message: string, _fix: string) => `the operator would refuse ${path}: ${message}`,
    fix: (_path, _message, fix) => fix,
    exitCode: CHECK_FAILED,
  },
  INSTALL_OTHER_VERSION: {
    means: "install does not change the version of an installation that exists.",
    example: ["v3.30.2", "v3.31.3"],
    say: (version: string, wanted: string) => `${version} is installed already, and this tool installs ${wanted}`,
    fix: () => "vendorctl upgrade",
    exitCode: CHECK_FAILED,
  },
  INSTALL_OTHER_METHOD: {
    means: "install does not change the method of an installation that exists.",
    example: ["chart", "operator"],
    say: (method: string, asked: string) => `the service is installed already, by ${method}, not by ${asked}`,
    fix: (method) =>
      method === "manifest"
        ? "vendorctl migrate operator"
        : `vendorctl install --method ${method}   # or first: vendorctl uninstall`,
    exitCode: CHECK_FAILED,
  },
  INSTALL_OTHER_DATAPLANE: {
    means: "install does not change the data plane of an installation that exists.",
    example: ["nftables", "BPF"],
    say: (runs: string, asked: string) => `the installed data plane is ${runs}, not ${asked}`,
    fix: (_runs, asked) => `vendorctl switch --to ${asked === "BPF" ? "bpf" : "standard"}`,
    exitCode: CHECK_FAILED,
  },
  INSTALL_NO_STABLE_ADDRESS: {
    means:
      "With eBPF, agents reach the API server without kube-proxy, so they need an address that stays. None was found in the cluster.",
    example: ["kubeadm-config has no controlPlaneEndpoint"],
    say: (why: string) => `eBPF at install time needs a stable address of the API server, and none is known: ${why}`,
    fix: () =>
      "give it with --api-server HOST:PORT, or install the nftables data plane now (vendorctl install) and switch later (vendorctl switch --to bpf)",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NOT_INSTALLED: {
    means: "There is no installation whose data plane could be switched.",
    say: () => "the service is not installed",
    fix: () => "vendorctl install",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NEEDS_OPERATOR: {
    means: "The data plane is switched by the operator, and this installation is from plain manifests.",
    say: () => "the service was installed from plain manifests, which cannot switch the data plane",
    fix: () => "vendorctl migrate operator",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NO_ADDRESS: {
    means:
      "With eBPF, agents reach the API server without kube-proxy, so they need an address that stays. None was found in the cluster.",
    example: ["kubeadm-config has no controlPlaneEndpoint"],
    say: (why: string) => `eBPF needs a stable address of the API server, and none is known: ${why}`,
    fix: () => "vendorctl switch --to bpf --api-server HOST:PORT",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NO_SERVICE_PROXY: {
    means: "The nftables data plane leaves Services to kube-proxy, and this cluster has none that could serve.",
    example: ["kube-proxy is not installed"],
    say: (how: string) => `the nftables data plane needs kube-proxy for Services, and here ${how}`,
    fix: () => "stay on eBPF, or add --force if no Service is used",
    exitCode: CHECK_FAILED,
  },
  CANARY_NODE_UNKNOWN: {
    means: "--canary names a node that the cluster does not have, or one with Windows.",
    example: ["node-9", "node-a, node-b"],
    say: (node: string, nodes: string) => `there is no Linux node ${node}; the nodes are ${nodes}`,
    fix: () => "give --canary one of these names, or omit it",
    exitCode: USAGE,
  },
  SWITCH_NODE_KEPT: {
    means: "A configuration of your own keeps some nodes on the other data plane, so a switch would never end.",
    example: ["DataplaneConfiguration node.node-b", "eBPF"],
    say: (configurations: string, to: string) =>
      `these nodes have a data plane configuration of their own that excludes ${to}: ${configurations}`,
    fix: () => "remove bpfEnabled from these, then switch again",
    exitCode: CHECK_FAILED,
  },
  PROXY_STILL_NEEDED: {
    means: "kube-proxy can be disabled only when eBPF serves Services. Otherwise Services would be cut off.",
    say: () => "kube-proxy serves Services: the data plane is not eBPF",
    fix: () => "vendorctl switch --to bpf",
    exitCode: CHECK_FAILED,
  },
  PROXY_CANNOT_BE_DISABLED: {
    means: "On this platform kube-proxy cannot be disabled.",
    example: ["the platform restores it"],
    say: (how: string) => `kube-proxy of this cluster cannot be disabled: ${how}`,
    fix: () => "vendorctl proxy status",
    exitCode: CHECK_FAILED,
  },
  PROXY_WOULD_FIGHT: {
    means: "Restoring kube-proxy while eBPF removes its rules would have the two undo each other.",
    say: () => "eBPF is enabled and removes kube-proxy's rules: the two would conflict",
    fix: () => "vendorctl switch --to standard   # or: vendorctl proxy restore --leave-rules",
    exitCode: CHECK_FAILED,
  },
  PROXY_KEPT_BY_OPERATOR: {
    means: "The operator manages kube-proxy, and would undo what you ask for.",
    say: () => "eBPF is enabled and the operator manages kube-proxy: it would disable it again",
    fix: (..._none) => "vendorctl switch --to standard",
    exitCode: CHECK_FAILED,
  },
  PROXY_ABSENT: {
    means: "This cluster has no kube-proxy that could be restored.",
    example: ["OpenShift has none"],
    say: (how: string) => `there is no kube-proxy to restore: ${how}`,
    exitCode: CHECK_FAILED,
  },
  UNINSTALL_NOTHING: {
    means: "There is nothing to remove from this cluster.",
    say: () => "the service is not installed",
    exitCode: CHECK_FAILED,
  },
  UNINSTALL_BY_HAND: {
    means: "vendorctl removes installations by the operator and the chart.",
    say: () => "the service was installed from plain manifests, which vendorctl does not remove",
    fix: () => "kubectl delete -f FILE   # the manifest it was installed from",
    exitCode: CHECK_FAILED,
  },
});
