import { defineErrors } from "../../../kit/errors.ts";

const UNAVAILABLE = 69;

export const errors = defineErrors({
  REAL_NODES_IMPOSSIBLE: {
    args: ["why"],
    say: (why: string) => `nodes cannot be real here: ${why}`,
    fix: () => "run as root on Linux, or use simulated nodes: --runtime simulated",
    exitCode: UNAVAILABLE,
  },
  REAL_NODES_IN_USE: {
    args: ["cluster", "pid"],
    say: (cluster: string, pid: number) => `the nodes of a cluster ${cluster} belong to process ${pid}, which runs`,
    fix: () => "choose another --name, or take that cluster down first",
  },
  NODE_DID_NOT_START: {
    args: ["node", "why"],
    say: (node: string, why: string) => `node ${node} could not be made: ${why}`,
    fix: () => "the kernel's own words are above; overlay, bpf and cgroup2 file systems are needed",
  },
  OUR_IMAGE_INCOMPLETE: {
    args: ["path"],
    say: (path: string) => `${path} is missing, and the programs of nodes are run from it`,
    fix: () => "build it with: npm run build",
  },
  CNI_NOT_INSTALLED: {
    args: ["directory"],
    say: (directory: string) => `no network configuration found in ${directory}: cni plugin not initialized`,
    fix: () => "install the network: pods wait until its agent has put its plugin on the node",
  },
  CNI_FAILED: {
    args: ["plugin", "command", "why"],
    say: (plugin: string, command: string, why: string) => `plugin ${plugin} failed (${command.toLowerCase()}): ${why}`,
    fix: () => "see the log of the agent's pod on this node",
  },
  CONTAINER_NOT_RUNNING: {
    args: ["container"],
    say: (container: string) => `container "${container}" is not running`,
    fix: () => "see its state with: kubectl describe pod",
  },
  SERVICE_RULES_REFUSED: {
    args: ["command", "why"],
    say: (command: string, why: string) => `the rules of kube-proxy were refused by ${command}: ${why}`,
    fix: () => "choose another mode of kube-proxy: --proxy nftables",
  },
});
