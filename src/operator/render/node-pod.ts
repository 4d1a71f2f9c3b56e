import { BIRD_FILES } from "../../api/protocol/node-bgp.ts";
import { autodetectionMethod } from "./address-autodetection.ts";
import { CNI_CONFIG } from "./cni-config.ts";
import { apiEndpointEnv, type EnvVar, METRICS_ON_NODE, NODE_NAME, POD_IDENTITY, variable } from "./environment.ts";
import { imageFor } from "./image.ts";
import type { CertificateRef, RenderInputs } from "./inputs.ts";
import {
  agentPaths,
  cniPaths,
  initPaths,
  KUBELET_DIR,
  mountsOf,
  type NodePaths,
  RUN_PATH,
  volumesOf,
} from "./node-paths.ts";
import { platformOf } from "./platform.ts";
import {
  BRIEF_RESOURCES,
  containerPort,
  HEALTH_ON_NODE,
  LAST_WORDS,
  probes,
  pullSecrets,
  resourcesOf,
  TLS_ENV,
  TLS_MOUNTS,
  tlsVolumes,
} from "./pod-parts.ts";
import { NODE_PRIORITY } from "./priority-classes.ts";
import type { PodSpec } from "./workload-overrides.ts";

/** What the nftables data plane needs: to change the node's network, and to enter the network namespaces of its pods. */
const CAPABILITIES = ["NET_ADMIN", "NET_RAW", "SYS_ADMIN"];

/** The node's directories are root's, and the image's own user is `nobody`. */
export const AS_ROOT = { runAsUser: 0, runAsGroup: 0 } as const;

/** `cni-install` writes it, the agent writes it again when it is gone. */
const CNI_CONFIGURATION = [
  ...variable("CNI_CONF_DIR", "/host/cni/conf"),
  ...variable("CNI_CONF_NAME", CNI_CONFIG.file),
];

/** BIRD writes routes, opens sockets with a TTL and a password, and listens below port 1024. */
const BGP_CAPABILITIES = ["NET_ADMIN", "NET_BIND_SERVICE", "NET_RAW"];

/** What differs between the ways of installing the agent. */
export interface NodePodParts {
  account: string;
  /** None where there is no operator to make one. */
  certificate?: CertificateRef;
  env: readonly EnvVar[];
  envFrom?: readonly object[];
  /** Containers that are over before the agent starts, after `node-init`. */
  before?: readonly object[];
  /** Long-running containers in addition to the agent. */
  sidecars?: readonly object[];
  also?: { volumes: readonly object[]; mounts: readonly object[] };
  /** Instead of the readiness probe that asks the health port. */
  readinessProbe?: object;
}

export function nodePodSpec(inputs: RenderInputs, paths: NodePaths, parts: NodePodParts): PodSpec {
  const initContainers = [...nodeInit(inputs, paths), ...(parts.before ?? [])];
  const seen = [...agentPaths(paths), ...initPaths(paths), ...cniPaths(paths)];
  return {
    serviceAccountName: parts.account,
    hostNetwork: true,
    priorityClassName: NODE_PRIORITY,
    nodeSelector: { "kubernetes.io/os": "linux" },
    // Whatever is wrong with a node, its network comes first.
    tolerations: [{ operator: "Exists" }],
    terminationGracePeriodSeconds: 5,
    ...dns(inputs),
    ...pullSecrets(inputs),
    ...(initContainers.length > 0 ? { initContainers } : {}),
    containers: [agent(inputs, paths, parts), ...(parts.sidecars ?? [])],
    volumes: [
      ...volumesOf(seen),
      ...(parts.certificate ? tlsVolumes(parts.certificate) : []),
      ...(parts.also?.volumes ?? []),
    ],
  };
}

/** As the operator itself: where its pods can find the API server by name, so can these. */
function dns({ dns: carried }: RenderInputs): object {
  return {
    ...(carried?.policy ? { dnsPolicy: carried.policy } : {}),
    ...(carried?.config ? { dnsConfig: carried.config } : {}),
  };
}

function agent(inputs: RenderInputs, paths: NodePaths, parts: NodePodParts): object {
  const { installation, version } = inputs;
  const healthPort = healthPortOf(inputs);
  const metrics = installation.nodeMetricsPort;
  return {
    name: inputs.names.workloads.node,
    ...LAST_WORDS,
    image: imageFor(installation, version),
    command: ["vendor", "node"],
    env: [...agentEnv(inputs, paths), ...parts.env, ...(parts.certificate ? TLS_ENV : [])],
    ...(parts.envFrom ? { envFrom: parts.envFrom } : {}),
    ports: [containerPort("health", healthPort), ...(metrics ? [containerPort("metrics", metrics)] : [])],
    ...probes({ host: HEALTH_ON_NODE, port: healthPort }),
    ...(parts.readinessProbe ? { readinessProbe: parts.readinessProbe } : {}),
    resources: resourcesOf(inputs, "Node"),
    securityContext: paths.ebpf
      ? { ...AS_ROOT, privileged: true }
      : { ...AS_ROOT, privileged: false, capabilities: { drop: ["ALL"], add: CAPABILITIES } },
    volumeMounts: [
      ...mountsOf(agentPaths(paths)),
      ...(parts.certificate ? TLS_MOUNTS : []),
      ...(parts.also?.mounts ?? []),
    ],
  };
}

/** BIRD, in a container of its own: its sessions outlive the agent's container. */
export function bgpContainer({ installation, version }: RenderInputs): object[] {
  if (installation.vendorNetwork?.bgp !== "Enabled") return [];
  const { name, path } = RUN_PATH;
  return [
    {
      name: "bgp",
      ...LAST_WORDS,
      image: imageFor(installation, version),
      command: ["vendor", "bgp"],
      ...birdProbes(path),
      resources: { requests: { cpu: "20m", memory: "96Mi" } },
      securityContext: {
        ...AS_ROOT,
        privileged: false,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"], add: BGP_CAPABILITIES },
      },
      volumeMounts: [{ name, mountPath: path }],
    },
  ];
}

/**
 * Alive is what answers at the control socket; sessions are not asked for, since a router that is down is no fault of the node. BIRD waits for its
 * configuration, and is not dead while the agent has not written one.
 */
function birdProbes(runDirectory: string): object {
  const ask = ["birdc", "-r", "-s", `${runDirectory}/${BIRD_FILES.control}`, "show", "status"];
  const unlessWaiting = `test ! -e ${runDirectory}/${BIRD_FILES.configuration} || ${ask.join(" ")}`;
  return {
    livenessProbe: {
      exec: { command: ["sh", "-c", unlessWaiting] },
      ...{ periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    },
    readinessProbe: { exec: { command: ask }, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 3 },
  };
}

export function healthPortOf({ kind, healthPort = platformOf(kind).healthPort }: RenderInputs): number {
  return healthPort;
}

function agentEnv(inputs: RenderInputs, paths: NodePaths): EnvVar[] {
  const { installation, version } = inputs;
  const { cni, vendorNetwork: network = {}, nodeMetricsPort } = installation;
  return [
    NODE_NAME,
    ...POD_IDENTITY,
    ...variable("VENDOR_VERSION", version),
    ...apiEndpointEnv(inputs, true),
    ...variable("HEALTH_HOST", HEALTH_ON_NODE),
    ...variable("HEALTH_PORT", healthPortOf(inputs)),
    ...(nodeMetricsPort ? [...variable("METRICS_PORT", nodeMetricsPort), METRICS_ON_NODE] : []),
    ...variable("CNI_TYPE", cni?.type),
    ...(cni?.type === "Vendor" ? variable("HOST_PORTS", servesHostPorts(network) ? undefined : "Disabled") : []),
    ...variable("BGP", network.bgp === "Enabled" ? "Enabled" : undefined),
    ...variable("MTU", network.mtu),
    ...variable("IP_AUTODETECTION_METHOD", autodetectionMethod(network.nodeAddressAutodetectionV4)),
    ...variable("IP6_AUTODETECTION_METHOD", autodetectionMethod(network.nodeAddressAutodetectionV6)),
    ...variable("CGROUP_V2_PATH", paths.ebpf?.cgroupV2Path),
    ...(paths.cni ? CNI_CONFIGURATION : []),
    ...variable("KUBELET_DIR", paths.policySync && KUBELET_DIR),
  ];
}

/** With eBPF `hostPorts` is null, and host ports are served. */
function servesHostPorts({
  linuxDataplane,
  hostPorts,
}: NonNullable<RenderInputs["installation"]["vendorNetwork"]>): boolean {
  return linuxDataplane === "BPF" || hostPorts?.portMapping === "Enabled";
}

function nodeInit(inputs: RenderInputs, paths: NodePaths): object[] {
  const seen = initPaths(paths);
  if (seen.length === 0) return [];
  return [
    {
      name: "node-init",
      ...LAST_WORDS,
      image: imageFor(inputs.installation, inputs.version),
      command: ["vendor", "node-init"],
      env: variable("CGROUP_V2_PATH", paths.ebpf?.cgroupV2Path),
      resources: BRIEF_RESOURCES,
      // Mounting for the whole node is what only a privileged container may do.
      securityContext: paths.ebpf
        ? { ...AS_ROOT, privileged: true }
        : { ...AS_ROOT, privileged: false, capabilities: { drop: ["ALL"] } },
      volumeMounts: mountsOf(seen),
    },
  ];
}

/** Where the plugin's configuration comes from, and the other environment of the container that installs it. */
interface CniInstallParts {
  container: string;
  config: { name: string; key: string };
  env?: readonly EnvVar[];
}

/** Puts the CNI plugin and its configuration on the node; nothing where another plugin connects pods. */
export function cniInstall(inputs: RenderInputs, paths: NodePaths, parts: CniInstallParts): object[] {
  if (!paths.cni) return [];
  const { name, key } = parts.config;
  return [
    {
      name: parts.container,
      ...LAST_WORDS,
      image: imageFor(inputs.installation, inputs.version),
      command: ["vendor", "cni-install"],
      env: [
        NODE_NAME,
        ...variable("CNI_BIN_DIR", "/host/cni/bin"),
        // The plugin's first line names its interpreter as the node sees it.
        ...variable("CNI_BIN_HOST_DIR", paths.cni.binDir),
        ...CNI_CONFIGURATION,
        { name: "CNI_NETWORK_CONFIG", valueFrom: { configMapKeyRef: { name, key } } },
        ...(parts.env ?? []),
      ],
      resources: BRIEF_RESOURCES,
      securityContext: {
        ...AS_ROOT,
        privileged: false,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      },
      volumeMounts: mountsOf(cniPaths(paths)),
    },
  ];
}
