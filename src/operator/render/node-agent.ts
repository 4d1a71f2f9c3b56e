import type { KubeObject } from "../../api/object.ts";
import { autodetectionMethod } from "./address-autodetection.ts";
import { CNI_CONFIG, cniConfigHash, cniConfigMap } from "./cni-config.ts";
import { nodeAgentRights } from "./component-rules.ts";
import { selectorOf } from "./control-plane.ts";
import { apiEndpointEnv, type EnvVar, POD_IDENTITY, variable } from "./environment.ts";
import { flowLogsAddress } from "./flow-logs.ts";
import { imageFor } from "./image.ts";
import type { RenderInputs } from "./inputs.ts";
import {
  agentPaths,
  cniPaths,
  initPaths,
  mountsOf,
  type NodePaths,
  nodePaths,
  volumesOf,
} from "./node-agent-volumes.ts";
import { platformOf } from "./platform.ts";
import {
  BRIEF_RESOURCES,
  constraintAnnotation,
  containerPort,
  hashAnnotation,
  hashAnnotations,
  probes,
  pullSecrets,
  resourcesOf,
  TLS_ENV,
  TLS_MOUNTS,
  tlsVolumes,
} from "./pod-parts.ts";
import { NODE_PRIORITY } from "./priority-classes.ts";
import { accountWithRights } from "./rbac.ts";

/** What the standard data plane needs: to change the node's network, and to enter the network namespaces of its pods. */
const CAPABILITIES = ["NET_ADMIN", "NET_RAW", "SYS_ADMIN"];

/** The agent on every Linux node. */
export function nodeAgent(inputs: RenderInputs): KubeObject[] {
  const { names, kind } = inputs;
  const place = { name: names.workloads.node, namespace: names.namespaces.system };
  const { everywhere, atHome } = nodeAgentRights(names, kind);
  const paths = pathsOf(inputs);
  return [
    ...accountWithRights(place, everywhere, atHome),
    ...(paths.cni ? [cniConfigMap(inputs)] : []),
    daemonSet(inputs, paths),
  ];
}

function pathsOf(inputs: RenderInputs): NodePaths {
  const { installation, names, bpf, cgroupV2Path = names.paths.cgroupV2 } = inputs;
  const driver = inputs.kind === "eks" ? installation.vendorNetwork?.flexVolumePath : undefined;
  // The driver's directory is made of its maker and its name; the path may or may not end with a slash.
  const flexVolume = driver ? `${driver.replace(/\/+$/, "")}/nodeagent~uds` : undefined;
  return nodePaths(installation, bpf ? { cgroupV2Path } : undefined, flexVolume);
}

function daemonSet(inputs: RenderInputs, paths: NodePaths): KubeObject {
  const { names, installation, kind } = inputs;
  const name = names.workloads.node;
  const labels = selectorOf(name);
  const certificate = inputs.certificates.node;
  const { type = "RollingUpdate", rollingUpdate = { maxUnavailable: 1 } } = installation.nodeUpdateStrategy ?? {};
  const seen = [...agentPaths(paths), ...initPaths(paths), ...cniPaths(paths)];
  const initContainers = [...nodeInit(inputs, paths), ...cniInstall(inputs, paths)];
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name, namespace: names.namespaces.system, labels },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: { type, rollingUpdate },
      template: {
        metadata: {
          labels,
          annotations: {
            ...hashAnnotations(inputs, certificate),
            ...(paths.cni ? hashAnnotation(CNI_CONFIG.name, cniConfigHash(inputs)) : {}),
            ...constraintAnnotation(kind, "privileged"),
          },
        },
        spec: {
          serviceAccountName: name,
          hostNetwork: true,
          priorityClassName: NODE_PRIORITY,
          nodeSelector: { "kubernetes.io/os": "linux" },
          // Whatever is wrong with a node, its network comes first.
          tolerations: [{ operator: "Exists" }],
          terminationGracePeriodSeconds: 5,
          ...dns(inputs),
          ...pullSecrets(inputs),
          ...(initContainers.length > 0 ? { initContainers } : {}),
          containers: [agent(inputs, paths)],
          volumes: [...volumesOf(seen), ...tlsVolumes(certificate)],
        },
      },
    },
  };
}

/** As the operator itself: where its pods can find the API server by name, so can these. */
function dns({ dns: carried }: RenderInputs): object {
  return {
    ...(carried?.policy ? { dnsPolicy: carried.policy } : {}),
    ...(carried?.config ? { dnsConfig: carried.config } : {}),
  };
}

function agent(inputs: RenderInputs, paths: NodePaths): object {
  const { installation, version, kind } = inputs;
  const { healthPort } = platformOf(kind);
  return {
    name: inputs.names.workloads.node,
    image: imageFor(installation, version),
    command: ["vendor", "node"],
    env: agentEnv(inputs, paths),
    ports: [
      containerPort("health", healthPort),
      ...(installation.nodeMetricsPort ? [containerPort("metrics", installation.nodeMetricsPort)] : []),
    ],
    // On the node's network the port is the node's: it is asked, and answers, on loopback only.
    ...probes({ host: "localhost", port: healthPort }),
    resources: resourcesOf(inputs, "Node"),
    securityContext: paths.ebpf
      ? { privileged: true }
      : { privileged: false, capabilities: { drop: ["ALL"], add: CAPABILITIES } },
    volumeMounts: [...mountsOf(agentPaths(paths)), ...TLS_MOUNTS],
  };
}

function agentEnv(inputs: RenderInputs, paths: NodePaths): EnvVar[] {
  const { installation, kind, version, names } = inputs;
  const { healthPort, podInterfacePrefix } = platformOf(kind);
  const { cni, vendorNetwork: network = {}, nodeMetricsPort } = installation;
  return [
    ...POD_IDENTITY,
    ...variable("VENDOR_VERSION", version),
    ...apiEndpointEnv(inputs, true),
    ...variable("CLUSTER_KIND", kind),
    ...variable("HEALTH_PORT", healthPort),
    ...variable("METRICS_PORT", nodeMetricsPort),
    ...variable("CNI_TYPE", cni?.type),
    ...variable("IPAM_TYPE", cni?.ipam?.type),
    ...(cni?.type === "Vendor" ? [] : variable("POD_INTERFACE_PREFIX", podInterfacePrefix)),
    ...variable("MTU", network.mtu),
    ...variable("IP_AUTODETECTION_METHOD", autodetectionMethod(network.nodeAddressAutodetectionV4)),
    ...variable("IP6_AUTODETECTION_METHOD", autodetectionMethod(network.nodeAddressAutodetectionV6)),
    ...variable("CGROUP_V2_PATH", paths.ebpf?.cgroupV2Path),
    ...(inputs.flowLogs ? variable("FLOW_LOGS_SERVER", flowLogsAddress(names)) : []),
    ...TLS_ENV,
  ];
}

function nodeInit(inputs: RenderInputs, paths: NodePaths): object[] {
  const seen = initPaths(paths);
  if (seen.length === 0) return [];
  return [
    {
      name: "node-init",
      image: imageFor(inputs.installation, inputs.version),
      command: ["vendor", "node-init"],
      env: [
        ...POD_IDENTITY,
        ...variable("CGROUP_V2_PATH", paths.ebpf?.cgroupV2Path),
        ...variable("FLEX_VOLUME_DIR", paths.flexVolume ? "/host/flexvolume" : undefined),
      ],
      resources: BRIEF_RESOURCES,
      // Mounting for the whole node is what only a privileged container may do.
      securityContext: paths.ebpf ? { privileged: true } : { privileged: false, capabilities: { drop: ["ALL"] } },
      volumeMounts: mountsOf(seen),
    },
  ];
}

function cniInstall(inputs: RenderInputs, paths: NodePaths): object[] {
  if (!paths.cni) return [];
  return [
    {
      name: "cni-install",
      image: imageFor(inputs.installation, inputs.version),
      command: ["vendor", "cni-install"],
      env: [
        ...POD_IDENTITY,
        ...variable("CNI_BIN_DIR", "/host/cni/bin"),
        ...variable("CNI_CONF_DIR", "/host/cni/conf"),
        ...variable("CNI_CONF_NAME", CNI_CONFIG.file),
        { name: "CNI_NETWORK_CONFIG", valueFrom: { configMapKeyRef: { name: CNI_CONFIG.name, key: CNI_CONFIG.key } } },
      ],
      resources: BRIEF_RESOURCES,
      // Root, because the node's directories are root's; nothing else.
      securityContext: { privileged: false, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
      volumeMounts: mountsOf(cniPaths(paths)),
    },
  ];
}
