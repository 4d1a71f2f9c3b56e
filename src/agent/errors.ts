import { defineErrors } from "../kit/errors.ts";

/** sysexits: a usage error / a temporary failure / a configuration error. */
const USAGE = 64;
const TRY_LATER = 75;
const CONFIG = 78;

export const errors = defineErrors({
  AGENT_ENV: {
    means: "An environment variable of the node agent has a value that the agent cannot use. The agent does not start.",
    example: ["NODE_METRICS_PORT", "many", "a port"],
    say: (name: string, value: string, wanted: string) => `$${name} is "${value}", which is not ${wanted}`,
    fix: (name: string, _value: string, wanted: string) => `set $${name} to ${wanted}, or omit it`,
    exitCode: CONFIG,
  },
  AGENT_ENV_MISSING: {
    means:
      "The node agent needs an environment variable that its container does not have. The published manifests set it.",
    example: ["NODENAME", "the name of this node"],
    say: (name: string, what: string) => `$${name} is not set: it is ${what}`,
    fix: (name: string) => `set $${name} in the container's environment`,
    exitCode: CONFIG,
  },
  OVERLAY_CONF: {
    means: "The configuration of the overlay cannot be used. Nodes keep the overlay they have.",
    example: ["Network is missing"],
    say: (why: string) => `net-conf.json of the overlay cannot be used: ${why}`,
    fix: () => "correct the key net-conf.json of the ConfigMap, apply it, and restart the DaemonSet",
    exitCode: CONFIG,
  },
  OVERLAY_NODE: {
    means: "The overlay of a node cannot be set up.",
    example: ["node-a", "it has no address"],
    say: (node: string, why: string) => `node ${node} cannot take part in the overlay: ${why}`,
    fix: () => "the overlay retries; check that the kubelet of the node has registered it",
  },
  OVERLAY_NO_POD_CIDR: {
    means: "A node has no pod CIDR of the overlay's network, so its pods get no addresses.",
    example: ["node-a", "10.244.0.0/16"],
    say: (node: string, networks: string) => `node ${node} has no spec.podCIDR in ${networks}`,
    fix: () =>
      "start kube-controller-manager with --allocate-node-cidrs and --cluster-cidr, and set Network of net-conf.json to the cluster CIDR",
  },
  OVERLAY_NODE_FAR: {
    means:
      "With the host-gw backend a node must be in the same subnet, and this one is not. Its pods are not reached from here.",
    example: ["node-b", "192.0.2.7"],
    say: (node: string, address: string) => `host-gw cannot reach node ${node}: ${address} is in another subnet`,
    fix: () => "set Backend.Type of net-conf.json to vxlan, with DirectRouting for nodes of one subnet",
  },
  AGENT_FIRST_POOL: {
    means:
      "The variables of the manifest that ask for the first IP pools cannot be used, so there is no pool and pods get no address.",
    example: ["IPV4POOL_CIDR", "10.244.0.0 is no CIDR"],
    say: (variables: string, why: string) =>
      `the variables $${variables} describe a pool that cannot be created: ${why}`,
    fix: () => "correct them in the DaemonSet, or the ConfigMap they come from, and apply it again",
    exitCode: CONFIG,
  },
  AGENT_POLICY_SYNC: {
    means:
      "The agent cannot serve policy to the sidecars of its node. Pods with a sidecar do not start there, and running ones keep the policy they have.",
    example: ["listen EACCES: permission denied"],
    say: (why: string) => `sidecars of this node's pods get no policy: ${why}`,
    fix: () => "see docs/guide/sidecars.md; or remove spec.policySyncPathPrefix of the DataplaneConfiguration",
  },
  AGENT_MAP_FULL: {
    means:
      "A BPF map of a node is full or nearly full. What does not fit, such as new Services or connections, has no effect on that node.",
    example: ["conntrack", 512000, 512000],
    say: (map: string, entries: number, most: number) => `BPF map ${map} has ${entries} of at most ${most} entries`,
    fix: () =>
      "run fewer Services, backends or connections on this node; vendor node show problems lists the full maps",
  },
  WORKLOAD_CONNTRACK_LIMIT: {
    means:
      "A pod has used up its share of a node's connection table, so that it cannot take the entries of others. Its new connections are dropped; its existing ones go on.",
    example: ["shop/crawler", "nf_conntrack", 26214, 26214],
    say: (pod: string, table: string, entries: number, limit: number) =>
      `pod ${pod} has ${entries} of at most ${limit} entries in ${table} of this node: new connections that it opens are dropped`,
    fix: () =>
      "find out why the pod opens so many connections; if they are legitimate, let it reuse connections, spread it over more nodes, or raise spec.workloadConntrackPercent of the DataplaneConfiguration",
  },
  OVERLAY_UNREACHABLE: {
    means:
      "The agents of two nodes send packets to each other through the overlay, and they do not arrive in one direction. Pods on these nodes cannot reach each other.",
    example: ["node-a", "node-b", "UDP port 4789", "no answer since 10:04:05"],
    say: (from: string, to: string, path: string, evidence: string) =>
      `the overlay loses packets from node ${from} to node ${to} (${path}): ${evidence}`,
    fix: (from: string, to: string, path: string) =>
      `allow ${path} in firewalls and security groups between node ${from} and node ${to}`,
  },
  OVERLAY_MTU: {
    means:
      "Small packets between two nodes arrive through the overlay, and packets of the pods' MTU do not. Connections between pods open, and stall when they carry data.",
    example: ["node-a", "node-b", "UDP port 4789", 1450, 1500],
    say: (from: string, to: string, path: string, bytes: number, mtu: number) =>
      `the overlay loses packets of ${bytes} bytes from node ${from} to node ${to} (${path}), smaller ones arrive: the network carries less than ${mtu} bytes`,
    fix: (_from: string, _to: string, _path: string, bytes: number, mtu: number) =>
      `raise the MTU of the network between the nodes to ${mtu}, or set spec.vendorNetwork.mtu of the Installation to less than ${bytes}; pods that are created then have it`,
  },
  AGENT_NOT_APPLIED: {
    means:
      "The agent could not bring the kernel of its node to the desired state. The node keeps what it had, and the agent tries again.",
    example: ["nftables refused a transaction"],
    say: (why: string) => `the desired state cannot be applied on this node: ${why}`,
    fix: () => "the agent retries; see its log, and what else changes the network of this node",
  },
  AGENT_SWITCH_FAILED: {
    means: "A step of a node's switchover to the other data plane failed. The node goes on with the data plane it had.",
    example: ["the kernel refused the program of the uplink"],
    say: (why: string) => `the data plane of this node cannot be changed, the old one stays: ${why}`,
    fix: () => "the agent retries; vendor node show switchover has the step, the log of the agent the details",
  },
  BPF_FILE_SYSTEM_UNMOUNTED: {
    means:
      "The BPF file system of a node was unmounted while eBPF acts there. Its programs and maps live on with the agent that runs, and end with it: when it restarts, connections through them break, and pods of the node are not filtered until the new agent is ready.",
    example: ["/sys/fs/bpf"],
    say: (path: string) =>
      `the BPF file system of this node is not mounted at ${path} any more: the programs and maps of eBPF end when this agent does`,
    fix: () =>
      "drain the node, then delete its vendor-node pod: its init container mounts the file system again; a reboot does the same",
  },
  AGENT_TASK_FAILED: {
    means: "A periodic task of a node's agent fails. Other tasks go on, and this one is tried again.",
    example: ["ipam", "the API server does not answer"],
    say: (task: string, why: string) => `the task "${task}" of this node's agent fails: ${why}`,
    fix: () => "the agent retries; see its log",
  },
  AGENT_NOT_READY: {
    means:
      "The CNI plugin asked the agent to connect a pod before the agent was ready. The pod stays in ContainerCreating until it is.",
    example: ["the first policies are being read"],
    say: (why: string) => `the node's agent is not ready: ${why}`,
    fix: () =>
      "the container runtime retries; see the log of the agent's pod: kubectl -n vendor-system logs ds/vendor-node",
    exitCode: TRY_LATER,
  },
  AGENT_NOT_RUNNING: {
    means: "The CNI plugin or a vendor node command could not reach the agent of its node.",
    example: ["/run/vendor/agent.sock", "connect ENOENT"],
    say: (socket: string, why: string) => `the agent does not answer at ${socket}: ${why}`,
    fix: () => "kubectl -n vendor-system get pods -o wide",
    exitCode: TRY_LATER,
  },
  AGENT_RUNS: {
    means: "A command that removes everything from a node was run while the agent of that node still runs.",
    example: ["/run/vendor/agent.sock"],
    say: (socket: string) => `the agent of this node is running: it answers at ${socket}`,
    fix: () => "delete its DaemonSet first; the agent would restore what is removed",
    exitCode: CONFIG,
  },
  NODE_NOT_CLEAN: {
    means: "After a node was cleaned, something of the service is still in its kernel or on its disk.",
    example: [["interface vxlan.vendor", "route 10.244.1.0/24"]],
    say: (left: readonly string[]) => `still on this node: ${left.join(", ")}`,
    fix: () => "vendor node remove --yes again, or reboot the node",
  },
  AGENT_NO_TABLE: {
    means: "vendor node show was given a name that is not one of its tables.",
    example: ["flows", ["endpoints", "problems", "routes"]],
    say: (name: string, _known: readonly string[]) => `there is no table "${name}"`,
    fix: (_name: string, known: readonly string[]) => `show one of: ${known.join(", ")}`,
    exitCode: USAGE,
  },
  AGENT_NO_ADDRESS: {
    means:
      "The agent found no address of its node with the configured autodetection method, so other nodes cannot reach it.",
    example: ["IPv4", "interface=eth9"],
    say: (family: string, method: string) => `the node has no ${family} address that "${method}" finds`,
    fix: () =>
      "set nodeAddressAutodetectionV4 or nodeAddressAutodetectionV6 of the Installation, or $IP_AUTODETECTION_METHOD or $IP6_AUTODETECTION_METHOD of a plain manifest, to what finds one",
    exitCode: CONFIG,
  },
  POD_UNNAMED: {
    means:
      "The CNI plugin was called without the name of a pod: by hand, or by a runtime that is not one of Kubernetes.",
    say: () => "CNI_ARGS name no pod: there is no K8S_POD_NAMESPACE or no K8S_POD_NAME",
    fix: () => "call the plugin as a container runtime of Kubernetes does",
  },
  POD_UNKNOWN: {
    means: "The container runtime asks to connect a pod that the API server no longer has. It was deleted meanwhile.",
    example: ["shop/web-1"],
    say: (pod: string) => `there is no pod ${pod} to connect`,
    fix: () => "none needed: the container runtime removes the rest of the pod",
  },
  POD_POLICY_LATE: {
    means:
      "A new pod is not started before its policies are in effect, and they were not in time. The container runtime tries again.",
    example: ["shop/web-1", "the agent was busy"],
    say: (pod: string, why: string) => `policy of pod ${pod} was not in effect in time: ${why}`,
    fix: () => "see `vendor node show endpoints` on the pod's node; the container runtime retries",
    exitCode: TRY_LATER,
  },
  POD_INTERFACE_WRONG: {
    means: "The network interface of a running pod is not as the agent made it. Something else changed it.",
    example: ["shop/web-1", "it has no address"],
    say: (pod: string, what: string) => `the interface of pod ${pod} is not as it was made: ${what}`,
    fix: () => "delete the pod; its replacement gets a new interface",
  },
  POD_ANNOTATION: {
    means: "An annotation of a pod asks for addresses or pools in a way that cannot be met. The pod is not started.",
    example: ["shop/web-1", "cni.vendor.io/ipv4pools", "blue"],
    say: (pod: string, annotation: string, value: string) => `pod ${pod} asks for ${annotation} "${value}"`,
    fix: (_pod: string, annotation: string) =>
      `write ${annotation} as a JSON list, of pools that exist and may be used`,
  },
  IPAM_NO_POOL: {
    means:
      "No IP pool may be used for a pod: there is none, or the selectors of each exclude it. The pod is not started.",
    example: ["shop/web-1"],
    say: (pod: string) => `no pool may give pod ${pod} an address`,
    fix: () => "add an IPPool, or see nodeSelector, namespaceSelector, allowedUses and disabled of those there are",
  },
  IPAM_ADDRESS_CONFLICT: {
    means: "Two pods have the same address. Traffic to it reaches only one of them.",
    example: ["10.244.1.7", "shop/web-1", "pod shop/db-0"],
    say: (address: string, pod: string, other: string) =>
      `pod ${pod} has address ${address}, which is allocated to ${other}`,
    fix: () => "delete one of the two pods; its replacement gets another address",
  },
  CNI_CONFIGURATION_SHADOWED: {
    means:
      "A node has a CNI configuration of another plugin that sorts before ours, and the container runtime uses the first. New pods on that node are connected by the other plugin.",
    example: ["05-cilium.conflist", "10-vendor.conflist"],
    say: (file: string, ours: string) =>
      `the container runtime of this node uses the CNI configuration ${file}, which sorts before ${ours}: new pods are not connected by this service`,
    fix: (file: string) =>
      `remove the other CNI plugin, and its file ${file} from the node's CNI configuration directory`,
  },
  NODE_SETUP_FAILED: {
    means: "The init container of the agent could not prepare its node, for example mount the BPF file system.",
    example: ["mount /sys/fs/bpf", "operation not permitted"],
    say: (what: string, why: string) => `the node could not be prepared: ${what}: ${why}`,
    fix: () => "run the container privileged, with the node's directories mounted as the manifests have it",
    exitCode: CONFIG,
  },
  BGP_DAEMON_DOWN: {
    means:
      "The agent cannot reach BIRD, which runs in the container bgp of the agent's pod. Routes that were learned stay in the kernel; peers keep ours for the restart time.",
    example: ["connect ENOENT /var/run/vendor/bgp/bird.ctl"],
    say: (why: string) => `BIRD does not answer on this node: ${why}`,
    fix: () => "read the log of the container bgp of the agent's pod on that node",
  },
  BGP_DAEMON_ENDED: {
    means: "BIRD ended by itself. Its container ends too, and the kubelet starts it again.",
    example: ["signal SIGSEGV"],
    say: (why: string) => `BIRD ended: ${why}`,
    fix: () => "read the lines before this one in the container's log",
  },
  BGP_CONFIGURATION_REFUSED: {
    means: "BIRD's own check refused the configuration that the agent wrote. The last good one stays in use.",
    example: ["line 40:1 syntax error"],
    say: (why: string) => `BIRD refuses the new configuration, and the one before stays: ${why}`,
    fix: () => "undo the last change of a BGPConfiguration, BGPPeer or BGPFilter, and report the message",
  },
  BGP_SESSION_DOWN: {
    means: "A BGP session of the node is not established.",
    example: ["10.0.0.254:179", "Active", "Socket: Connection refused"],
    say: (peer: string, state: string, why: string) =>
      `the session with ${peer} is not established: ${state}${why ? `, last error: ${why}` : ""}`,
    fix: () => "compare address, AS numbers and password on both sides, and let TCP port 179 through between them",
  },
  BGP_PASSWORD_MISSING: {
    means: "The Secret of a session's password, or its key, is not there or the agents may not read it.",
    example: ["key password of Secret bgp-secrets cannot be read: the sessions are not there without their password"],
    say: (what: string) => what,
    fix: () =>
      "create the Secret in the agents' namespace, and let the agents' service account get it: see docs/guide/bgp.md",
  },
  BGP_PASSWORD_FORM: {
    means: "The password of a session has characters that cannot be used, or is too long for TCP MD5.",
    example: ["key password of Secret bgp-secrets is not a password of 1 to 80 printable ASCII characters"],
    say: (what: string) => what,
    fix: () => "choose another password, on both sides",
  },
  BGP_FILTER_MISSING: {
    means: "A BGPPeer names a BGPFilter that does not exist. Without it routes might pass that it refuses.",
    example: ["there is no BGPFilter no-default: the sessions are not there without it"],
    say: (what: string) => what,
    fix: () => "create the BGPFilter, or remove its name from spec.filters of the BGPPeer",
  },
  BGP_COMMUNITY_MISSING: {
    means: "A BGPConfiguration names a community in prefixAdvertisements that is not in communities.",
    example: ['"internal" in prefixAdvertisements is neither a community nor the name of one'],
    say: (what: string) => what,
    fix: () => "add it to spec.communities, or write its value",
  },
  BGP_SELECTOR_MALFORMED: {
    means: "A selector of a BGPPeer cannot be read.",
    example: ["a selector cannot be read: no node has its sessions"],
    say: (what: string) => what,
    fix: () => "correct nodeSelector and peerSelector of the BGPPeer",
  },
  BGP_NODE_SETTING: {
    means: "An annotation of a Node that sets its AS number or its route reflector cluster cannot be read.",
    example: ['the AS number of the node, "65x", is not a number from 1 to 4294967295: it is not used'],
    say: (what: string) => what,
    fix: () => "correct the annotation of the Node",
  },
  FLOWS_NOT_SENT: {
    means:
      "The agent cannot send its flows to vendor-flow-logs. They wait on the node; when there are too many, they are merged and not lost.",
    example: ["vendor-flow-logs does not answer"],
    say: (why: string) => `flows could not be sent for a minute: ${why}`,
    fix: () =>
      "see whether the pods of vendor-flow-logs are ready: kubectl -n vendor-system get pods -l k8s-app=vendor-flow-logs",
  },
  PROBE_CANNOT_LISTEN: {
    means: "The server of a connectivity probe could not open its port.",
    example: ["TCP 8080", "address in use"],
    say: (port: string, why: string) => `the probe cannot listen on ${port}: ${why}`,
    fix: () => "choose a port that is free",
  },
});
