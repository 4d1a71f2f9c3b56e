import { type Names, vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { customResourceDefinitions } from "../../api/schema/crd.ts";
import { kubeControllersRights, nodeAgentRights, type Rights, stored } from "../render/component-rules.ts";
import { controlPlaneReplicas, deployment, selectorOf } from "../render/control-plane.ts";
import { disruptionBudget } from "../render/disruption-budget.ts";
import { type EnvVar, HEALTH_ON_POD, NODE_NAME, POD_IDENTITY, variable } from "../render/environment.ts";
import { imageFor } from "../render/image.ts";
import type { RenderInputs } from "../render/inputs.ts";
import { CONTROLLERS_PORT } from "../render/kube-controllers.ts";
import { nodePaths } from "../render/node-paths.ts";
import { AS_ROOT, cniInstall, healthPortOf, nodePodSpec } from "../render/node-pod.ts";
import { BRIEF_RESOURCES, containerPort, HEALTH_ON_NODE, LAST_WORDS, probes } from "../render/pod-parts.ts";
import { policySyncDriver } from "../render/policy-sync-driver.ts";
import { CLUSTER_PRIORITY } from "../render/priority-classes.ts";
import { accountWithRights, READ, rule } from "../render/rbac.ts";
import {
  CNI_CONFIG_KEY,
  datastoreEnv,
  datastoreVolumes,
  fromSettings,
  manifestSettings,
  NET_CONF_KEY,
} from "./manifest-settings.ts";
import type { ManifestVariant } from "./manifest-variants.ts";
import { ordinaryInputs } from "./rendered-names.ts";

/** Everything one plain manifest holds, in the order to apply it. */
export function manifestObjects(variant: ManifestVariant, version: string, names: Names = vendorNames): KubeObject[] {
  const inputs = manifestInputs(variant, version, names);
  return [
    ...(variant.datastore === "api" ? storedDefinitions(names) : []),
    ...manifestSettings(inputs, variant),
    policySyncDriver(),
    ...nodeObjects(inputs, variant),
    ...controllersObjects(inputs, variant),
  ];
}

/** As for an ordinary cluster, but everything is in the orchestrator's system namespace. On etcd eBPF does not work, so nothing is there for it. */
function manifestInputs(variant: ManifestVariant, version: string, names: Names): RenderInputs {
  const { namespaces } = names;
  const here = { ...names, namespaces: { ...namespaces, system: namespaces.orchestratorSystem } };
  const inputs = ordinaryInputs(here, { kind: "generic", bpf: false });
  // The pods can run eBPF; it acts when the data plane configuration says so.
  return { ...inputs, version, bpf: variant.datastore === "api" };
}

function storedDefinitions(names: Names): KubeObject[] {
  return customResourceDefinitions(names).filter(({ spec }) => spec.group === names.groups.stored.group);
}

function nodeObjects(inputs: RenderInputs, variant: ManifestVariant): KubeObject[] {
  const { names } = inputs;
  const name = variant.networking === "overlay" ? names.workloads.overlayNode : names.workloads.node;
  const place = { name, namespace: names.namespaces.system };
  const { everywhere, atHome } = nodeRights(names, variant);
  const labels = selectorOf(name);
  return [
    ...accountWithRights(place, everywhere, atHome),
    {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { ...place, labels },
      spec: {
        selector: { matchLabels: labels },
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
        template: { metadata: { labels }, spec: nodePod(inputs, variant, name) },
      },
    },
  ];
}

/** Without an operator the agent itself makes the first pool; with etcd it keeps nothing of its own in the orchestrator. */
function nodeRights(names: Names, { datastore, networking }: ManifestVariant): Rights {
  const rights = nodeAgentRights(names, "generic");
  if (datastore === "etcd") return withoutStored(names, rights);
  if (networking !== "own") return rights;
  return { ...rights, everywhere: [...rights.everywhere, stored(names, ["ipPool"], ["create"])] };
}

function withoutStored({ groups }: Names, { everywhere, atHome }: Rights): Rights {
  return { everywhere: everywhere.filter(({ apiGroups }) => !apiGroups.includes(groups.stored.group)), atHome };
}

/** Two containers: the agent, and the one that connects the pods. */
function nodePod(inputs: RenderInputs, variant: ManifestVariant, account: string): object {
  const { names } = inputs;
  const paths = nodePaths(inputs);
  const overlay = variant.networking === "overlay";
  const install = cniInstall(inputs, paths, {
    // As an init container it must not have the name of a container of older releases: for a moment a pod template has both.
    container: overlay ? "cni-install" : "install-cni",
    config: { name: names.manifests.configMap, key: CNI_CONFIG_KEY },
    env: variable("STAY", overlay ? undefined : "true"),
  });
  return nodePodSpec(inputs, paths, {
    account,
    env: [
      ...datastoreEnv(names, variant),
      // A value, as in all releases before: applied over one, a reference to the ConfigMap would be refused.
      ...variable("NETWORKING_BACKEND", variant.networking === "own" ? "vxlan" : "none"),
      fromSettings(names, "MTU", "veth_mtu"),
      ...addressEnv(names, variant),
    ],
    envFrom: endpointMap(names),
    before: overlay ? install : [],
    sidecars: overlay
      ? [
          {
            ...overlayContainer(inputs),
            ...(variant.datastore === "etcd" ? { readinessProbe: servicesProbe(inputs) } : {}),
          },
        ]
      : install.map((container) => ({ ...container, readinessProbe: servicesProbe(inputs) })),
    also: datastoreVolumes(variant),
    readinessProbe: AGENT_READY,
  });
}

/**
 * A command, as in the manifests of all releases before: fields of a probe that is applied over another merge, and a probe with two handlers
 * is refused. A process each time costs more than a request to the agent, so it is asked less often.
 */
const AGENT_READY = {
  exec: { command: ["vendor", "node", "ready"] },
  periodSeconds: 10,
  timeoutSeconds: 10,
  failureThreshold: 3,
} as const;

/** Where pods' addresses come from: the first pool, or the podCIDRs of their node. */
function addressEnv(names: Names, { networking }: ManifestVariant): EnvVar[] {
  if (networking !== "own") return variable("USE_POD_CIDR", "true");
  return [
    fromSettings(names, "IPV4POOL_CIDR", "ipv4_pool_cidr"),
    ...variable("IPV4POOL_BLOCK_SIZE", 26),
    ...variable("IPV4POOL_VXLAN", "CrossSubnet"),
    ...variable("IPV4POOL_NAT_OUTGOING", "true"),
    ...variable("IPV4POOL_NODE_SELECTOR", "all()"),
  ];
}

/**
 * The second container is ready when the agent next to it watches the cluster's services. With the etcd datastore it cannot, so there
 * node pods are 1/2, and that is as it should be.
 */
function servicesProbe(inputs: RenderInputs): object {
  const httpGet = { host: HEALTH_ON_NODE, port: healthPortOf(inputs), path: "/readyz/services", scheme: "HTTP" };
  return { httpGet, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 };
}

/** Of its own, so that an agent and an overlay on one node do not meet. */
const OVERLAY_HEALTH_PORT = 9098;

/** Connects the nodes; the agent connects pods to their node, and enforces policy. */
function overlayContainer({ names, version, installation }: RenderInputs): object {
  return {
    name: "overlay",
    ...LAST_WORDS,
    image: imageFor(installation, version),
    command: ["vendor", "overlay"],
    env: [
      NODE_NAME,
      ...variable("HEALTH_HOST", HEALTH_ON_NODE),
      ...variable("HEALTH_PORT", OVERLAY_HEALTH_PORT),
      fromSettings(names, "IP_MASQ", "masquerade"),
      fromSettings(names, "NET_CONF", NET_CONF_KEY),
    ],
    envFrom: endpointMap(names),
    ...probes({ host: HEALTH_ON_NODE, port: OVERLAY_HEALTH_PORT }),
    resources: BRIEF_RESOURCES,
    securityContext: { ...AS_ROOT, privileged: false, capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] } },
    volumeMounts: [{ name: "var-run-vendor", mountPath: "/var/run/vendor" }],
  };
}

/** The API server's real address, if it is configured. */
function endpointMap({ endpointMap: { name } }: Names): object[] {
  return [{ configMapRef: { name, optional: true } }];
}

function controllersObjects(inputs: RenderInputs, variant: ManifestVariant): KubeObject[] {
  const { names } = inputs;
  const place = { name: names.workloads.kubeControllers, namespace: names.namespaces.system };
  const { everywhere, atHome } = controllersRights(names, variant);
  return [
    ...accountWithRights(place, everywhere, atHome),
    disruptionBudget(place),
    deployment(inputs, {
      name: place.name,
      program: "controllers",
      sized: "KubeControllers",
      replicas: controlPlaneReplicas(inputs),
      priorityClassName: CLUSTER_PRIORITY,
      certificate: undefined,
      env: [
        ...POD_IDENTITY,
        ...datastoreEnv(names, variant),
        HEALTH_ON_POD,
        ...variable("HEALTH_PORT", CONTROLLERS_PORT),
      ],
      ports: [containerPort("health", CONTROLLERS_PORT)],
      probe: { port: "health" },
      // With etcd a pod gets its network once it was copied there, and this is what copies. That holds for cluster DNS too, so etcd is found without it.
      ...(variant.datastore === "etcd" ? { hostNetwork: true, dnsPolicy: "Default" } : {}),
      also: { ...datastoreVolumes(variant), envFrom: endpointMap(names) },
      usesApi: true,
    }),
  ];
}

/** With etcd, policies too are copied there from the orchestrator. */
function controllersRights(names: Names, { datastore }: ManifestVariant): Rights {
  const rights = kubeControllersRights(names);
  if (datastore === "api") return rights;
  const { everywhere, atHome } = withoutStored(names, rights);
  return { everywhere: [...everywhere, rule("networking.k8s.io", ["networkpolicies"], READ)], atHome };
}
