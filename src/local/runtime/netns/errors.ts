import { defineErrors } from "../../../kit/errors.ts";

const UNAVAILABLE = 69;

export const errors = defineErrors({
  REAL_NODES_IMPOSSIBLE: {
    means: "Nodes with packets need root on Linux and some kernel features, which are missing here.",
    example: ["not root"],
    say: (why: string) => `nodes cannot be real here: ${why}`,
    fix: () => "run as root on Linux, or use simulated nodes: --runtime simulated",
    exitCode: UNAVAILABLE,
  },
  REAL_NODES_IN_USE: {
    means: "Another embedded cluster of the same name has nodes on this machine.",
    example: ["demo", 4711],
    say: (cluster: string, pid: number) => `the nodes of a cluster ${cluster} belong to process ${pid}, which runs`,
    fix: () => "choose another --name, or take that cluster down first",
  },
  NODE_DID_NOT_START: {
    means: "A node of an embedded cluster could not be made from namespaces and file systems.",
    example: ["node-a", "mount: operation not permitted"],
    say: (node: string, why: string) => `node ${node} could not be made: ${why}`,
    fix: () => "the kernel's own words are above; overlay, bpf and cgroup2 file systems are needed",
  },
  OUR_IMAGE_INCOMPLETE: {
    means: "A node of an embedded cluster runs the built programs, and they are not built.",
    example: ["dist/vendor.mjs"],
    say: (path: string) => `${path} is missing, and the programs of nodes are run from it`,
    fix: () => "build it with: npm run build",
  },
  CNI_NOT_INSTALLED: {
    means: "A pod waits for its network: no CNI plugin is installed on its node yet.",
    example: ["/etc/cni/net.d"],
    say: (directory: string) => `no network configuration found in ${directory}: cni plugin not initialized`,
    fix: () => "install the network: pods wait until its agent has put its plugin on the node",
  },
  CNI_FAILED: {
    means: "A CNI plugin of a node returned an error, so a pod was not connected or not removed.",
    example: ["vendor", "ADD", "the agent does not answer"],
    say: (plugin: string, command: string, why: string) => `plugin ${plugin} failed (${command.toLowerCase()}): ${why}`,
    fix: () => "see the log of the agent's pod on this node",
  },
  CONTAINER_NOT_RUNNING: {
    means: "kubectl exec was used on a container that has ended or has not started.",
    example: ["web"],
    say: (container: string) => `container "${container}" is not running`,
    fix: () => "see its state with: kubectl describe pod",
  },
  SERVICE_RULES_REFUSED: {
    means: "The embedded kube-proxy could not write its rules.",
    example: ["iptables-restore", "table nat does not exist"],
    say: (command: string, why: string) => `the rules of kube-proxy were refused by ${command}: ${why}`,
    fix: () => "choose another mode of kube-proxy: --proxy nftables",
  },
});
