/** What each program that `vendor` starts is for, in the order it is listed. */
const PROGRAMS: Readonly<Record<string, string>> = {
  operator: "Install the service and keep it as the Installation asks",
  controllers: "Run cluster-wide controllers: IPAM, host endpoints, profiles",
  apiserver: "Serve the v3 API",
  "flow-logs": "Collect flow logs",
  "flow-ui": "Serve the flow UI",
  "pre-delete": "Delete the custom resources before helm removes the operator",
  node: "Run the node agent",
  bgp: "Run BIRD with the configuration that the node agent writes",
  overlay: "Connect the podCIDRs of nodes, by VXLAN or by routes",
  "node-init": "Prepare a node: mount the BPF file system and cgroup v2",
  "cni-install": "Install the CNI plugin on a node",
  "policy-sidecar": "Answer a mesh's proxy for one pod, by its HTTP policy",
  cni: "Run as CNI plugin, as the container runtime calls it",
};

const TOOLS: Readonly<Record<string, string>> = {
  "node show": "Print what the agent has written to this node's kernel",
  "node ready": "Print whether this node's agent is ready, and why not",
  "node remove": "Remove everything the agent has written to this node",
  "node rescue": "Disable eBPF on this node without the API server",
  probe: "Serve, connect to or measure a network path",
};

/** `vendor --help`: the programs of a container, and the tools of a node. */
export function vendorHelp(): string {
  const list = (items: Readonly<Record<string, string>>) =>
    Object.entries(items).map(([name, text]) => `  ${name.padEnd(16)}${text}`);
  return [
    "Run one of the service's programs. Containers start it; people use vendorctl.",
    "",
    "Programs:",
    ...list(PROGRAMS),
    "",
    "Tools, on a node or in its agent's container:",
    ...list(TOOLS),
    "",
    "Usage: vendor <program>",
    'Use "vendor node --help" or "vendor probe --help" for the options of a tool.',
    "",
  ].join("\n");
}
