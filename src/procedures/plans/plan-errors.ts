import { defineErrors } from "../../kit/errors.ts";

/** A plan that would break something is refused like a failed check. */
const CHECK_FAILED = 3;
const USAGE = 64;

/** Why install, switch, proxy and uninstall make no plan. */
export const errors = defineErrors({
  MANIFEST_NOT_YAML: {
    args: ["name", "problem"],
    say: (name: string, problem: string) => `${name} cannot be read: ${problem}`,
    fix: () => "check the file at --manifest-url, or leave the flag out to use the copy that came with this tool",
  },
  MANIFEST_NOT_OBJECTS: {
    args: ["name"],
    say: (name: string) => `${name} is not a list of objects with apiVersion, kind and a name`,
    fix: () => "check the file at --manifest-url, or leave the flag out to use the copy that came with this tool",
  },
  MANIFEST_WITHOUT_KIND: {
    args: ["name", "kind"],
    say: (name: string, kind: string) => `${name} has no ${kind} to edit`,
    fix: () => "check the file at --manifest-url, and that --names fits it",
  },
  MANIFEST_FIELD_IMPOSSIBLE: {
    args: ["name", "path"],
    say: (name: string, path: string) => `${path} cannot be set in ${name}: something above it is not a section`,
    fix: () => "give --set the path of a field, such as spec.vendorNetwork.mtu=1400",
    exitCode: USAGE,
  },
  INSTALL_EDIT_REFUSED: {
    args: ["message", "fix"],
    say: (message: string, _fix: string) => `what --set asks for cannot be: ${message}`,
    fix: (_message, fix) => fix,
    exitCode: USAGE,
  },
  INSTALL_OTHER_VERSION: {
    args: ["version", "wanted"],
    say: (version: string, wanted: string) => `${version} is installed already, and this tool installs ${wanted}`,
    fix: () => "vendorctl upgrade",
    exitCode: CHECK_FAILED,
  },
  INSTALL_OTHER_METHOD: {
    args: ["method", "asked"],
    say: (method: string, asked: string) => `it is installed already, by ${method}, not by ${asked}`,
    fix: (method) =>
      method === "manifest"
        ? "vendorctl upgrade"
        : `vendorctl install --method ${method}, or vendorctl uninstall first`,
    exitCode: CHECK_FAILED,
  },
  INSTALL_OTHER_DATAPLANE: {
    args: ["runs", "asked"],
    say: (runs: string, asked: string) => `the installation there runs ${runs}, not ${asked}`,
    fix: (_runs, asked) => `vendorctl switch --to ${asked === "BPF" ? "BPF" : "standard"}`,
    exitCode: CHECK_FAILED,
  },
  INSTALL_NO_STABLE_ADDRESS: {
    args: ["why"],
    say: (why: string) => `eBPF at install time needs a stable address of the API server, and none is known: ${why}`,
    fix: () =>
      "give it with --api-server HOST:PORT, or leave --dataplane out: then the standard data plane is installed, and vendorctl switch --to BPF follows later",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NOT_INSTALLED: {
    say: () => "there is no installation to switch",
    fix: () => "vendorctl install",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NEEDS_OPERATOR: {
    say: () => "it was installed from plain manifests, which have no switch",
    fix: () => "move to the operator first: vendorctl upgrade says how",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NO_ADDRESS: {
    args: ["why"],
    say: (why: string) => `eBPF needs the API server's real address, and none is known: ${why}`,
    fix: () => "vendorctl switch --to BPF --api-server HOST:PORT",
    exitCode: CHECK_FAILED,
  },
  SWITCH_NO_SERVICE_PROXY: {
    args: ["how"],
    say: (how: string) => `the standard data plane needs the service proxy for services, and here ${how}`,
    fix: () => "stay on eBPF; if services do not matter here, add --force",
    exitCode: CHECK_FAILED,
  },
  SWITCH_CANARY_UNKNOWN: {
    args: ["node", "nodes"],
    say: (node: string, nodes: string) => `there is no Linux node ${node} to begin with; there are ${nodes}`,
    fix: () => "give --canary the name of one of these, or leave it out",
    exitCode: USAGE,
  },
  SWITCH_NODE_KEPT: {
    args: ["configurations", "to"],
    say: (configurations: string, to: string) =>
      `nodes are kept from ${to} by their own configuration, so the switch could not end: ${configurations}`,
    fix: () => "take bpfEnabled out of these, then switch",
    exitCode: CHECK_FAILED,
  },
  PROXY_STILL_NEEDED: {
    say: () => "services are served by the service proxy: the data plane is not eBPF",
    fix: () =>
      "vendorctl switch --to BPF, which disables the proxy when every node has proved that eBPF serves; or add --force",
    exitCode: CHECK_FAILED,
  },
  PROXY_CANNOT_BE_DISABLED: {
    args: ["how"],
    say: (how: string) => `the service proxy of this cluster cannot be disabled now: ${how}`,
    fix: () => "vendorctl proxy status",
    exitCode: CHECK_FAILED,
  },
  PROXY_WOULD_FIGHT: {
    say: () => "eBPF is on and removes the service proxy's rules: the two would undo each other's work",
    fix: () =>
      "vendorctl switch --to standard, which restores the proxy first; or vendorctl proxy restore --leave-rules",
    exitCode: CHECK_FAILED,
  },
  PROXY_KEPT_BY_OPERATOR: {
    say: () => "eBPF is on and the operator looks after the service proxy: it would park it again",
    fix: (..._none) => "vendorctl switch --to standard, which brings the proxy back first",
    exitCode: CHECK_FAILED,
  },
  PROXY_ABSENT: {
    args: ["how"],
    say: (how: string) => `there is no service proxy to bring back: ${how}`,
    exitCode: CHECK_FAILED,
  },
  UNINSTALL_NOTHING: {
    say: () => "nothing of this service is installed",
    exitCode: CHECK_FAILED,
  },
  UNINSTALL_BY_HAND: {
    say: () => "it was installed from plain manifests, which vendorctl does not take away",
    fix: () => "delete what the manifest made, with the manifest: kubectl delete -f FILE",
    exitCode: CHECK_FAILED,
  },
});
