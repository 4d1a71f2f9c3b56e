import { defineErrors } from "../../kit/errors.ts";

/** What can go wrong inside a step. */
export const errors = defineErrors({
  STEP_TARGET_MISSING: {
    means: "A step needs an object that the cluster no longer has.",
    example: ["Installation default"],
    say: (target: string) => `${target} does not exist`,
    fix: () => "make the plan again: the cluster has changed since",
  },
  STEP_CONFLICT: {
    means: "A step would change fields that another field manager owns and that the plan did not show.",
    example: ["Deployment vendor-operator/vendor-operator", "spec.replicas (kubectl-edit)"],
    say: (target: string, fields: string) => `${target} has fields of another field manager: ${fields}`,
    fix: () => "remove the fields from that manager, or make the plan again and let it take them over",
  },
  STEP_HOPELESS: {
    means:
      "A step waits for something that does not get better by waiting, such as an image that does not exist. The run stops.",
    example: ["Pod vendor-system/vendor-node-x", "Back-off pulling image (ImagePullBackOff)"],
    say: (what: string, why: string) => `${what} cannot recover by itself: ${why}`,
    fix: () => "repair it, then vendorctl resume; or vendorctl rollback",
  },
  STEP_POD_UNSCHEDULABLE: {
    means: "A step waits for a pod that does not fit on any node, or that no node may run. The run stops.",
    example: ["Pod vendor-system/vendor-kube-controllers-x", "0/3 nodes are available: 3 Insufficient cpu"],
    say: (pod: string, why: string) => `${pod} cannot be scheduled: ${why}`,
    fix: () =>
      "add a node or free resources, or delete the old pod or scale its Deployment down; then vendorctl resume",
  },
  STEP_STALLED: {
    means: "What a step waits for has not changed for a long time. The run stops; what it did stays.",
    example: ["DaemonSet vendor-system/vendor-node: 2 of 3 pods available", 10],
    say: (what: string, minutes: number) => `nothing has changed for ${minutes} minutes, still waiting for ${what}`,
    fix: () => "vendorctl status names the cause; repair it, then vendorctl resume (--timeout to wait longer)",
  },
  STEP_TOOL_MISSING: {
    means: "A step runs another program that is not on this machine. The run stops.",
    example: ["helm", "install helm, or run it where it is installed"],
    say: (program: string, _hint: string) => `${program} is needed for this step and is not installed`,
    fix: (_program, hint) => hint,
  },
  STEP_TOOL_FAILED: {
    means: "A step runs another program, and that ended with an error. The run stops.",
    example: ["helm upgrade vendor", 1, "another operation is in progress"],
    say: (command: string, exitCode: number, said: string) => `${command} ended with ${exitCode}: ${said}`,
    fix: () => "run it yourself to see its output, then vendorctl resume",
  },
  STEP_FILE_CHANGED: {
    means: "A published file is not the same as when the plan was made.",
    example: ["vendor-operator.yaml", "https://example.com/v3.31.3"],
    say: (file: string, from: string) => `${file} (${from}) is not the file the plan was made with`,
    fix: () => "make the plan again",
  },
  STEP_NODE_REFUSES_EBPF: {
    means:
      "The agent of a node reports that its kernel does not load the eBPF programs. kube-proxy goes on serving there.",
    example: ["node-b", "this kernel has no BTF"],
    say: (node: string, why: string) => `node ${node} cannot run eBPF: ${why}`,
    fix: () => "repair or replace the node, then vendorctl resume; or vendorctl rollback",
  },
  STEP_PROXY_SETTINGS_ELSEWHERE: {
    means: "The mode of kube-proxy is to be changed, and the platform keeps its configuration outside the cluster.",
    example: ["kube-system/kube-proxy"],
    say: (map: string) => `the configuration of kube-proxy is not in ConfigMap ${map}`,
    fix: () => "switch kube-proxy to iptables mode in the platform's configuration, then vendorctl resume",
  },
  STEP_NODE_NOT_CLEAN: {
    means: "An uninstall could not remove everything from a node.",
    example: ["node-b", "still on this node: interface vxlan.vendor"],
    say: (node: string, why: string) => `node ${node} could not be cleaned: ${why}`,
    fix: () => "run vendor node remove --yes on the node, or reboot it, then vendorctl resume",
  },
  STEP_NAMESPACE_TAKEN: {
    means: "A step needs a namespace of its own, and one of this name exists that is not from vendorctl.",
    example: ["vendor-node-cleanup"],
    say: (namespace: string) => `namespace ${namespace} exists and was not created by vendorctl`,
    fix: (namespace: string) => `kubectl delete namespace ${namespace}, then vendorctl resume`,
  },
  STEP_RESIDUE: {
    means: "After an uninstall, objects of the service exist again.",
    example: [2, "ConfigMap vendor-system/x, Secret vendor-system/y"],
    say: (count: number, named: string) => `${count} objects of the service still exist: ${named}`,
    fix: () => "find what creates them, delete them, then vendorctl resume",
  },
});
