import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Observation, SeenApiAddress, SeenNode, SeenProxy, SeenService } from "../observation.ts";

/** For tests of plans and checks: a healthy plain cluster with nothing installed, and whatever a row says is different. */
export interface Differently
  extends Partial<Omit<Observation, "service" | "proxy" | "apiAddress" | "server" | "tool" | "v3" | "kind">> {
  service?: Partial<SeenService>;
  proxy?: Partial<SeenProxy>;
  apiAddress?: Partial<SeenApiAddress>;
  server?: Partial<Observation["server"]>;
  tool?: Partial<Observation["tool"]>;
  v3?: Partial<Observation["v3"]>;
  kind?: Partial<Observation["kind"]>;
}

export function observed(differently: Differently = {}): Observation {
  const { service, proxy, apiAddress, server, tool, v3, kind, ...rest } = differently;
  return {
    names: vendorNames,
    nodes: [node("control-plane", { controlPlane: true }), node("worker-1"), node("worker-2")],
    crds: [],
    unsupported: [],
    leftovers: [],
    budgets: [],
    run: undefined,
    lock: { state: "open" },
    ...rest,
    tool: { version: "v3.31.3", ...tool },
    server: { version: "v1.36.4", host: "api.demo.internal", port: "6443", ...server },
    kind: { detected: undefined, evidence: "no platform left its marks", given: undefined, ...kind },
    service: { ...nothingInstalled, ...service },
    proxy: { ...runningProxy, ...proxy },
    apiAddress: { ...goodAddress, ...apiAddress },
    v3: { ...noV3, ...v3 },
  };
}

export function node(name: string, differently: Partial<SeenNode> = {}): SeenNode {
  const addresses = differently.addresses ?? [`172.18.0.${2 + (name.length % 200)}`];
  return {
    name,
    osImage: "Ubuntu 24.04.1 LTS",
    kernelVersion: "6.8.0-45-generic",
    architecture: "amd64",
    operatingSystem: "linux",
    addresses,
    controlPlane: false,
    addressAssignment: "unknown",
    ready: true,
    waitsForCni: false,
    statusAddresses: addresses.map((address) => ({ type: "InternalIP", address })),
    labels: { "kubernetes.io/os": "linux", "kubernetes.io/hostname": name },
    annotations: {},
    schedulable: true,
    ...differently,
  };
}

export function object(kind: string, name: string, body: object = {}, apiVersion = "v1"): KubeObject {
  return { apiVersion, kind, metadata: { name }, ...body };
}

const nothingInstalled: SeenService = {
  method: "none",
  datastore: "unknown",
  version: undefined,
  versionEvidence: "nothing in the cluster says a version",
  installation: undefined,
  apiServer: undefined,
  flowLogs: undefined,
  flowUI: undefined,
  statuses: [],
  dataplaneConfiguration: undefined,
  nodeConfigurations: [],
  kubeControllersConfiguration: undefined,
  clusterInformation: undefined,
  pools: [],
  operator: undefined,
  operatorLease: undefined,
  nodeAgents: undefined,
  agents: [],
  endpointMap: undefined,
  release: undefined,
  settings: undefined,
  injectors: [],
};

const runningProxy: SeenProxy = {
  daemonSet: {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "kube-proxy", namespace: "kube-system", labels: { "k8s-app": "kube-proxy" } },
    spec: { template: { spec: { containers: [{ name: "kube-proxy" }] } } },
  },
  mode: "iptables",
  modeEvidence: "mode: iptables in the config map kube-proxy",
  owner: undefined,
  parked: undefined,
  pods: { wanted: 3, ready: 3 },
  clusterConfiguration: undefined,
};

const goodAddress: SeenApiAddress = {
  candidates: [
    {
      host: "api.demo.internal",
      port: "6443",
      from: "controlPlaneEndpoint of kubeadm-config",
      sources: ["kubeadmConfig"],
      against: [],
    },
  ],
  clusterIPs: ["10.96.0.1"],
  servers: [{ address: "172.18.0.2", port: 6443 }],
  serviceCidrs: ["10.96.0.0/12"],
  podCidrs: ["10.244.0.0/16"],
  dnsDomain: "cluster.local",
};

const noV3: Observation["v3"] = {
  served: "none",
  hostEndpoints: [],
  globalNetworkPolicies: [],
  networkPolicies: [],
  tiers: [],
  profiles: [],
};
