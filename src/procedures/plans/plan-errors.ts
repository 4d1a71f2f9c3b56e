import { defineErrors } from "../../kit/errors.ts";

/** A plan that would break something is refused like a failed check. */
const CHECK_FAILED = 3;
const USAGE = 64;

/** Why install, switch, proxy and uninstall make no plan. */
export const errors = defineErrors({
  MANIFEST_NOT_YAML: {
    args: ["name", "problem"],
    say: (name: string, problem: string) => `${name} cannot be read: ${problem}`,
    fix: () => "check the file at --manifest-url, or omit the flag to use the copy in this tool",
  },
  MANIFEST_NOT_OBJECTS: {
    args: ["name"],
    say: (name: string) => `${name} is not a list of objects with apiVersion, kind and a name`,
    fix: () => "check the file at --manifest-url, or omit the flag to use the copy in this tool",
  },
  MANIFEST_WITHOUT_KIND: {
    args: ["name", "kind"],
    say: (name: string, kind: string) => `${name} has no ${kind} to edit`,
    fix: () => "check the file at --manifest-url, and that --names fits it",
  },
  MANIFEST_FIELD_IMPOSSIBLE: {
    args: ["name", "path"],
    say: (name: string, path: string) => `${path} cannot be set in ${name}: a field above it is not an object`,
    fix: () => "give --set the path of a field, such as spec.vendorNetwork.mtu=1400",
    exitCode: USAGE,
  },
  INSTALL_EDIT_REFUSED: {
    args: ["message", "fix"],
    say: (message: string, _fix: string) => `--set is not valid: ${message}`,
    fix: (_message, fix) => fix,
    exitCode: USAGE,
  },
  INSTALL_OTHER_VERSION: {
    args: ["version", "available version"],
    say: (version: string, wanted: string) => `${version} is installed already, and this tool installs ${wanted}`,
    fix: () => "vendorctl upgrade",
    exitCode: CHECK_FAILED,
  },
  INSTALL_OTHER_METHOD: {
    args: ["method", "asked"],
    say: (method: string, asked: string) => `the service is installed already, by ${method}, not by ${asked}`,
    fix: (method) =>
      method === "manifest"
        ? "vendorctl upgrade"
        : `vendorctl install --method ${method}   # or first: vendorctl uninstall`,
    exitCode: CHECK_FAILED,
  },
  INSTALL_OTHER_DATAPLANE: {
    args: ["runs", "asked"],
    say: (runs: string, asked: string) => `the installed data plane is ${runs}, not ${asked}`,
    fix: (_runs, asked) => `vendorctl switch --to ${asked === "BPF" ? "bpf" : "standard"}`,
    exitCode: CHECK_FAILED,
  },
  INSTALL_NO_STABLE_ADDRESS: {
    args: ["why"],
    say: (why: string) => `eBPF at install time needs a stable address of the API server, and none is known: ${why}`,
    fix: () =>
      "give it with --api-server HOST:PORT, or install the nftables data plane now (vendorctl install) and switch later (vendorctl switch --to bpf)",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NOT_INSTALLED: {
    say: () => "the service is not installed",
    fix: () => "vendorctl install",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NEEDS_OPERATOR: {
    say: () => "the service was installed from plain manifests, which cannot switch the data plane",
    fix: () => "move to the operator first; see docs/guide/upgrade.md",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NO_ADDRESS: {
    args: ["why"],
    say: (why: string) => `eBPF needs a stable address of the API server, and none is known: ${why}`,
    fix: () => "vendorctl switch --to bpf --api-server HOST:PORT",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NO_SERVICE_PROXY: {
    args: ["how"],
    say: (how: string) => `the nftables data plane needs kube-proxy for Services, and here ${how}`,
    fix: () => "stay on eBPF, or add --force if no Service is used",
    exitCode: CHECK_FAILED,
  },
  SWITCH_CANARY_UNKNOWN: {
    args: ["node", "nodes"],
    say: (node: string, nodes: string) => `there is no Linux node ${node}; the nodes are ${nodes}`,
    fix: () => "give --canary one of these names, or omit it",
    exitCode: USAGE,
  },
  SWITCH_NODE_KEPT: {
    args: ["configurations", "to"],
    say: (configurations: string, to: string) =>
      `these nodes have a data plane configuration of their own that excludes ${to}: ${configurations}`,
    fix: () => "remove bpfEnabled from these, then switch again",
    exitCode: CHECK_FAILED,
  },
  PROXY_STILL_NEEDED: {
    say: () => "kube-proxy serves Services: the data plane is not eBPF",
    fix: () => "vendorctl switch --to bpf",
    exitCode: CHECK_FAILED,
  },
  PROXY_CANNOT_BE_DISABLED: {
    args: ["how"],
    say: (how: string) => `kube-proxy of this cluster cannot be disabled: ${how}`,
    fix: () => "vendorctl proxy status",
    exitCode: CHECK_FAILED,
  },
  PROXY_WOULD_FIGHT: {
    say: () => "eBPF is enabled and removes kube-proxy's rules: the two would conflict",
    fix: () => "vendorctl switch --to standard   # or: vendorctl proxy restore --leave-rules",
    exitCode: CHECK_FAILED,
  },
  PROXY_KEPT_BY_OPERATOR: {
    say: () => "eBPF is enabled and the operator manages kube-proxy: it would disable it again",
    fix: (..._none) => "vendorctl switch --to standard",
    exitCode: CHECK_FAILED,
  },
  PROXY_ABSENT: {
    args: ["how"],
    say: (how: string) => `there is no kube-proxy to restore: ${how}`,
    exitCode: CHECK_FAILED,
  },
  UNINSTALL_NOTHING: {
    say: () => "the service is not installed",
    exitCode: CHECK_FAILED,
  },
  UNINSTALL_BY_HAND: {
    say: () => "the service was installed from plain manifests, which vendorctl does not remove",
    fix: () => "kubectl delete -f FILE   # the manifest it was installed from",
    exitCode: CHECK_FAILED,
  },
});
