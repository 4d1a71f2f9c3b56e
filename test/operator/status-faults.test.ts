import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject, ResourceKind } from "../../src/api/object.ts";
import type { Pod } from "../../src/api/workload-objects.ts";
import type { Client } from "../../src/cluster/client.ts";
import {
  API_SERVICES,
  CLUSTER_ROLES,
  CONFIG_MAPS,
  CRDS,
  DAEMON_SETS,
  DEPLOYMENTS,
  NAMESPACES,
  NODES,
  PODS,
  PRIORITY_CLASSES,
  SECRETS,
} from "../../src/cluster/kinds.ts";
import { createAuthority, issue } from "../../src/kit/x509.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import type { NodeSpec } from "../../src/local/runtime/node-runtime.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import {
  expectNotOk,
  type FaultLab,
  failure,
  flat,
  type Named,
  printFaults,
  startFaultLab,
  statusExiting,
  toolStatus,
  until,
  untilWell,
} from "../support/fault-lab.ts";
import { applyAll, applyOperator, documents, endpointMapOf, manifest } from "../support/operator-manifests.ts";
import { allStatuses } from "../support/operator-status.ts";

interface Fault {
  what: string;
  /** The VendorStatus that must report it; undefined where no operator can, and only `vendorctl status` looks. */
  part?: "network" | "ippools" | "apiserver" | "service-proxy" | "flow-logs" | "flow-ui";
  /** Reason of its condition; without `part`, vendorctl's own component. */
  reason: string;
  /** The cause, in words of the message. */
  says: RegExp;
  /** Of `vendorctl status`: 1 degraded (default), 2 unknown, or what its own failure has. */
  exit?: readonly number[];
  /** The rest of the cluster works: Available stays True with Degraded. */
  partial?: true;
  inject(lab: FaultLab): Promise<unknown>;
  remove(lab: FaultLab): Promise<unknown>;
}

const SYSTEM = "vendor-system";
const AGENTS = { namespace: SYSTEM, name: "vendor-node" };
const CONTROLLERS = { namespace: SYSTEM, name: "vendor-kube-controllers" };
const V3_API = { namespace: SYSTEM, name: "vendor-apiserver" };
const OPERATOR = { namespace: "vendor-operator", name: "vendor-operator" };
const INSTALLATION = { name: "default" };
const MAP = { namespace: "vendor-operator", name: "orchestrator-services-endpoint" };

type Ref = { name: string; namespace?: string };
const patched = (kind: ResourceKind, ref: Ref, patch: object) => (lab: FaultLab) =>
  lab.cluster.client.patch(kind, ref, { type: "merge", patch });
const client = (lab: FaultLab): Client => lab.cluster.client;

/** The pods of a workload behave badly, until null. */
const behaves = (kind: ResourceKind, ref: Ref, behaviour: string | null) =>
  patched(kind, ref, {
    spec: { template: { metadata: { annotations: { "local.vendor.io/behaviour": behaviour } } } },
  });
const misbehaving = (kind: ResourceKind, ref: Ref, behaviour: string): Pick<Fault, "inject" | "remove"> => ({
  inject: behaves(kind, ref, behaviour),
  remove: behaves(kind, ref, null),
});

const asked = (vendorNetwork: object, undone: object): Pick<Fault, "inject" | "remove"> => ({
  inject: patched(storedKind("installation"), INSTALLATION, { spec: { vendorNetwork } }),
  remove: patched(storedKind("installation"), INSTALLATION, { spec: { vendorNetwork: undone } }),
});

const created = (object: KubeObject): Pick<Fault, "inject" | "remove"> => ({
  inject: async (lab) => client(lab).create(await client(lab).resourceFor(object), object),
  remove: async (lab) => client(lab).delete(await client(lab).resourceFor(object), object.metadata),
});

const applied = async (lab: FaultLab, object: KubeObject) =>
  client(lab).apply(await client(lab).resourceFor(object), object, { fieldManager: "kubectl", force: true });

const flowResource = (kind: string): KubeObject => ({
  ...{ apiVersion: "operator.vendor.io/v1", kind, metadata: { name: "default" }, spec: {} },
});
const FLOW_LOGS = flowResource("FlowLogs");

const FLANNEL: KubeObject = {
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name: "kube-flannel-ds", namespace: "kube-flannel" },
  spec: {
    selector: { matchLabels: { app: "flannel" } },
    template: {
      metadata: { labels: { app: "flannel" } },
      spec: {
        hostNetwork: true,
        containers: [{ name: "kube-flannel", image: "ghcr.io/flannel-io/flannel:v0.27.4" }],
      },
    },
  },
};

const GUEST: NodeSpec = {
  name: "guest",
  internalIPs: ["172.18.0.99"],
  podCIDRs: ["10.244.99.0/24"],
  osImage: "Ubuntu 24.04.3 LTS",
  kernelVersion: "6.8.0-79-generic",
  architecture: "amd64",
  taints: [{ key: "story/guest", effect: "NoSchedule" }],
};
const joined = (spec: Partial<NodeSpec>): Pick<Fault, "inject" | "remove"> => ({
  inject: ({ cluster }) => cluster.kubelet.addNode({ ...GUEST, ...spec }),
  async remove({ cluster }) {
    await cluster.client.delete(NODES, { name: GUEST.name });
    await cluster.kubelet.removeNode(GUEST.name);
  },
});

const secondNode = ({ cluster }: FaultLab) => cluster.nodeNames[1] ?? "";

/** The API server asks again when an APIService is written. */
async function answerV3(lab: FaultLab, status: number | undefined): Promise<void> {
  lab.v3Answers = status;
  await patched(
    API_SERVICES,
    { name: "v3.vendor.io" },
    { metadata: { annotations: { "story/v3": `${status}` } } },
  )(lab);
}

/** Of the second node, as its kubelet finds it at its next look. */
async function configureCni(lab: FaultLab, cniConfigured: boolean): Promise<void> {
  const name = secondNode(lab);
  const { podCIDRs } = (await client(lab).get(NODES, { name }))["spec"] as { podCIDRs: string[] };
  await lab.cluster.runtime.addNode({ ...GUEST, name, podCIDRs, cniConfigured });
  await patched(NODES, { name }, { metadata: { annotations: { "story/cni": String(cniConfigured) } } })(lab);
}

const podOf = async (lab: FaultLab, app: string, namespace = SYSTEM) => {
  const { items } = await client(lab).list(PODS, { namespace, labelSelector: `k8s-app=${app}` });
  return items[0]?.metadata as Ref & { uid: string };
};

/** Cases before may have moved it: with its node it would be silent, too, for as long as Kubernetes waits for such a node. */
const nodeWithoutOperator = async (lab: FaultLab) => {
  const { items } = await client(lab).list<Pod>(PODS, { namespace: OPERATOR.namespace });
  const taken = new Set(items.map(({ spec }) => spec?.nodeName));
  return lab.cluster.nodeNames.find((name) => !taken.has(name)) ?? secondNode(lab);
};

const restartOperator = async (lab: FaultLab) =>
  lab.cluster.programs.kill((await podOf(lab, OPERATOR.name, OPERATOR.namespace)).uid);

/** Merged by name, as `kubectl patch` does: what the operator wrote stays. */
const containers =
  (container: object, pod: object = {}) =>
  (lab: FaultLab) => {
    const spec = { ...pod, containers: [{ name: CONTROLLERS.name, ...container }] };
    return client(lab).patch(DEPLOYMENTS, CONTROLLERS, { type: "strategic", patch: { spec: { template: { spec } } } });
  };
const volumes = (own: object[], volumeMounts: object[]) => containers({ volumeMounts }, { volumes: own });
const variables = (env: object[]) => containers({ env });

/** A Secret of another owner in the place of one of ours, as cert-manager would write it. */
async function foreignSecret(lab: FaultLab, name: string, days: { from: number; for: number }): Promise<void> {
  const day = 86_400_000;
  const notBefore = new Date(lab.clock.now() + days.from * day);
  const authority = createAuthority({ commonName: "theirs" }, new Date(lab.clock.now() - 90 * day), 3650);
  const names = [`vendor-api.${SYSTEM}.svc`];
  const pair = issue(authority, {
    subject: { commonName: "theirs" },
    usage: "server",
    names,
    notBefore,
    days: days.for,
  });
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  await client(lab).delete(SECRETS, { namespace: SYSTEM, name });
  const data = {
    "tls.crt": base64(pair.certificate),
    "tls.key": base64(pair.key),
    "ca.crt": base64(authority.certificate),
  };
  const metadata = { namespace: SYSTEM, name };
  // The operator makes its own again within a moment: theirs replaces it.
  await client(lab)
    .create(SECRETS, { apiVersion: "v1", kind: "Secret", metadata, type: "kubernetes.io/tls", data })
    .catch(async () => {
      const patch = { metadata: { labels: null }, data };
      await client(lab).patch(SECRETS, metadata, { type: "merge", patch });
    });
}

/** A wrong address, until the right one is in the map again: that alone makes it well. */
const endpointMapNames = (
  host: string,
  port?: string,
  then: (lab: FaultLab) => unknown = () => {},
): Pick<Fault, "inject" | "remove"> => ({
  async inject(lab) {
    await applied(lab, documents(endpointMapOf(host, port ?? new URL(lab.cluster.url).port))[0] as KubeObject);
    await then(lab);
  },
  remove: (lab) =>
    applied(lab, documents(endpointMapOf("api.story.internal", new URL(lab.cluster.url).port))[0] as KubeObject),
});

const FAULTS: readonly Fault[] = [
  {
    what: "certificate expired: the serving certificate of another owner",
    part: "apiserver",
    reason: "CertificateSecretUnusable",
    says: /vendor-apiserver-tls is not ours and cannot be used: its certificate has expired.* Fix: /,
    inject: (lab) => foreignSecret(lab, "vendor-apiserver-tls", { from: -60, for: 30 }),
    remove: (lab) => client(lab).delete(SECRETS, { namespace: SYSTEM, name: "vendor-apiserver-tls" }),
  },
  {
    what: "the certificate authority is damaged",
    part: "network",
    reason: "CertificateAuthorityBroken",
    says: /authority in Secret vendor-operator\/vendor-ca cannot be used: its certificate or key cannot be read.* Fix: /,
    inject: patched(SECRETS, { namespace: "vendor-operator", name: "vendor-ca" }, { data: { "tls.key": "AAAA" } }),
    remove: (lab) => client(lab).delete(SECRETS, { namespace: "vendor-operator", name: "vendor-ca" }),
  },
  // Early: controllers record few events of an object that has had many.
  {
    what: "the PriorityClass of the agents is gone: their pods are not created",
    part: "network",
    reason: "PodsNotCreated",
    says: /DaemonSet vendor-system\/vendor-node.* no PriorityClass with name system-node-critical was found/,
    inject: async (lab) => {
      await client(lab).delete(PRIORITY_CLASSES, { name: "system-node-critical" });
      await client(lab).delete(PODS, { ...(await podOf(lab, "vendor-node")), namespace: SYSTEM });
    },
    remove: (lab) =>
      client(lab).create(PRIORITY_CLASSES, {
        apiVersion: "scheduling.k8s.io/v1",
        kind: "PriorityClass",
        metadata: { name: "system-node-critical" },
        value: 2000001000,
      }),
  },
  {
    what: "the operator has 0 replicas",
    reason: "operator",
    says: /vendor-operator\/vendor-operator has 0 replicas/,
    exit: [2],
    inject: patched(DEPLOYMENTS, OPERATOR, { spec: { replicas: 0 } }),
    remove: patched(DEPLOYMENTS, OPERATOR, { spec: { replicas: 1 } }),
  },
  {
    what: "the operator hangs: its Lease is stale",
    reason: "operator",
    says: /has not renewed its lease since/,
    exit: [2],
    inject: async (lab) => {
      lab.onOperatorRequest = () => "hang";
    },
    remove: async (lab) => {
      lab.onOperatorRequest = undefined;
    },
  },
  {
    what: "the operator crashes again and again",
    reason: "operator",
    says: /vendor-operator-\w+-\w+ .*CrashLoopBackOff, last exit 1 \(the variable NAMESPACE is not set\)/,
    // Unknown once its lease is old, too.
    exit: [1, 2],
    async inject(lab) {
      lab.operatorCrash = new Error("the variable NAMESPACE is not set");
      await restartOperator(lab);
    },
    remove: async (lab) => {
      lab.operatorCrash = undefined;
    },
  },
  {
    what: "the image of a new operator cannot be pulled, the one before runs on",
    reason: "operator",
    says: /vendor-operator-\w+-\w+ .*ImagePullBackOff/,
    // On a busy machine the one before misses a renewal while time leaps, and what it reports is unknown then.
    exit: [1, 2],
    ...misbehaving(DEPLOYMENTS, OPERATOR, "pull-error"),
  },
  {
    what: "clock skew: the operator's clock is ten minutes behind",
    reason: "operator",
    says: /clock of the operator.* is 10 min.* behind/,
    inject: async (lab) => {
      lab.operatorSkewMs = -600_000;
      await restartOperator(lab);
    },
    remove: async (lab) => {
      lab.operatorSkewMs = 0;
      await restartOperator(lab);
    },
  },
  {
    what: "the image of the node agents cannot be pulled",
    part: "network",
    reason: "PodImagePullBackOff",
    says: /vendor-node-\w+ on node story-[\w-]+ container [\w-]+: ImagePullBackOff, .*Next: kubectl -n vendor-system describe pod/,
    ...misbehaving(DAEMON_SETS, AGENTS, "pull-error"),
  },
  {
    what: "the node agents crash again and again",
    part: "network",
    reason: "PodCrashLoopBackOff",
    says: /vendor-node-\w+ on node .* CrashLoopBackOff, last exit 3/,
    ...misbehaving(DAEMON_SETS, AGENTS, "exit:3"),
  },
  {
    what: "the node agents run and do not become ready",
    part: "network",
    reason: "PodNotReady",
    says: /vendor-node-\w+ on node .* runs and is not ready/,
    ...misbehaving(DAEMON_SETS, AGENTS, "never-ready"),
  },
  {
    what: "the image of kube-controllers cannot be pulled",
    part: "network",
    reason: "PodImagePullBackOff",
    says: /vendor-kube-controllers-\w+-\w+ .*ImagePullBackOff/,
    ...misbehaving(DEPLOYMENTS, CONTROLLERS, "pull-error"),
  },
  {
    what: "kube-controllers crashes again and again",
    part: "network",
    reason: "PodCrashLoopBackOff",
    says: /vendor-kube-controllers-\w+-\w+ .*CrashLoopBackOff, last exit 2/,
    ...misbehaving(DEPLOYMENTS, CONTROLLERS, "exit:2"),
  },
  {
    what: "all copies of the aggregated API are not ready",
    part: "apiserver",
    reason: "PodNotReady",
    says: /vendor-apiserver-\w+-\w+ .*runs and is not ready/,
    ...misbehaving(DEPLOYMENTS, V3_API, "never-ready"),
  },
  {
    what: "the aggregated API answers 503",
    part: "apiserver",
    reason: "APIServiceUnavailable",
    says: /APIService v3\.vendor\.io is not available since .*: .*HTTP 503\. Fix: kubectl describe apiservice/,
    inject: (lab) => answerV3(lab, 503),
    remove: (lab) => answerV3(lab, undefined),
  },
  {
    what: "the Secret of the registry's credentials does not exist",
    part: "network",
    reason: "PullSecretMissing",
    says: /imagePullSecrets names Secret vendor-operator\/registry, which does not exist.* Fix: /,
    inject: patched(storedKind("installation"), INSTALLATION, { spec: { imagePullSecrets: [{ name: "registry" }] } }),
    remove: patched(storedKind("installation"), INSTALLATION, { spec: { imagePullSecrets: null } }),
  },
  {
    what: "a node stops: its kubelet is silent",
    part: "network",
    reason: "NodeNotReady",
    says: /Node story-[\w-]+ is not ready.*Kubelet stopped posting node status/,
    inject: async (lab) => lab.cluster.kubelet.powerOff(await nodeWithoutOperator(lab)),
    async remove(lab) {
      for (const name of lab.cluster.nodeNames) await lab.cluster.kubelet.powerOn(name);
    },
  },
  {
    what: "the CNI configuration of a node is deleted",
    part: "network",
    reason: "CniConfigurationMissing",
    says: /no CNI configuration on story-[\w-]+, and the node agent runs there.*NetworkPluginNotReady.* Fix: kubectl -n vendor-system delete pod vendor-node-/,
    inject: (lab) => configureCni(lab, false),
    remove: (lab) => configureCni(lab, true),
  },
  {
    what: "no node takes the pods of kube-controllers",
    part: "network",
    reason: "PodUnschedulable",
    says: /vendor-kube-controllers-\w+-\w+ cannot be scheduled: /,
    inject: async (lab) => {
      const taints = [{ key: "story/full", effect: "NoSchedule" }];
      for (const name of lab.cluster.nodeNames) await patched(NODES, { name }, { spec: { taints } })(lab);
      await client(lab).delete(PODS, { ...(await podOf(lab, "vendor-kube-controllers")), namespace: SYSTEM });
    },
    async remove(lab) {
      for (const name of lab.cluster.nodeNames) await patched(NODES, { name }, { spec: { taints: null } })(lab);
    },
  },
  {
    what: "a volume of kube-controllers cannot be mounted",
    part: "network",
    reason: "PodNotStarted",
    says: /vendor-kube-controllers-\w+-\w+ .* Last event: MountVolume\.SetUp failed for volume "theirs" : secret "nowhere" not found/,
    inject: volumes(
      [{ name: "theirs", secret: { secretName: "nowhere" } }],
      [{ name: "theirs", mountPath: "/theirs" }],
    ),
    remove: volumes([{ name: "theirs", $patch: "delete" }], [{ mountPath: "/theirs", $patch: "delete" }]),
  },
  {
    what: "a variable of kube-controllers names a ConfigMap that does not exist",
    part: "network",
    reason: "PodCreateContainerConfigError",
    says: /vendor-kube-controllers-\w+-\w+ .*CreateContainerConfigError, configmap "nowhere" not found/,
    inject: variables([{ name: "THEIRS", valueFrom: { configMapKeyRef: { name: "nowhere", key: "a" } } }]),
    remove: variables([{ name: "THEIRS", $patch: "delete" }]),
  },
  {
    what: "the operator loses a right",
    part: "network",
    reason: "Forbidden",
    says: /The API server refused: .*forbidden/,
    inject: async (lab) => {
      lab.onOperatorRequest = ({ method, path }) =>
        method !== "GET" && path.includes("/clusterroles")
          ? failure(403, "Forbidden", 'clusterroles "vendor-node" is forbidden: User "operator" cannot patch')
          : undefined;
      await client(lab).delete(CLUSTER_ROLES, { name: "vendor-node" });
    },
    remove: async (lab) => {
      lab.onOperatorRequest = undefined;
    },
  },
  {
    what: "an admission webhook refuses what the operator writes",
    part: "network",
    reason: "Forbidden",
    says: /admission webhook "policy\.example\.com" denied the request: no privileged pods/,
    inject: async (lab) => {
      lab.onOperatorRequest = ({ method, path }) =>
        method !== "GET" && path.includes("/daemonsets")
          ? failure(403, "Forbidden", 'admission webhook "policy.example.com" denied the request: no privileged pods')
          : undefined;
      await client(lab).delete(DAEMON_SETS, AGENTS);
    },
    remove: async (lab) => {
      lab.onOperatorRequest = undefined;
    },
  },
  {
    what: "the API server fails each write of the operator",
    part: "network",
    reason: "RequestFailed",
    says: /Requests to the API server fail: etcdserver: request timed out/,
    inject: async (lab) => {
      lab.onOperatorRequest = ({ method, path }) =>
        method !== "GET" && path.includes("/serviceaccounts")
          ? failure(500, "InternalError", "etcdserver: request timed out")
          : undefined;
      await client(lab).delete(
        { group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts", namespaced: true },
        { namespace: SYSTEM, name: "vendor-node" },
      );
    },
    remove: async (lab) => {
      lab.onOperatorRequest = undefined;
    },
  },
  {
    what: "a custom resource definition is deleted",
    part: "network",
    reason: "DefinitionsMissing",
    says: /flowuis\.operator\.vendor\.io.* operator-crds\.yaml/,
    inject: (lab) => client(lab).delete(CRDS, { name: "flowuis.operator.vendor.io" }),
    async remove(lab) {
      const definition = documents(manifest("operator-crds.yaml")).find(
        ({ metadata }) => metadata.name === "flowuis.operator.vendor.io",
      );
      await applied(lab, definition as KubeObject);
    },
  },
  {
    what: "the endpoint map lacks a key",
    part: "network",
    reason: "EndpointKeyMissing",
    says: /lacks ORCHESTRATOR_SERVICE_PORT\. Fix: /,
    inject: patched(CONFIG_MAPS, MAP, { data: { ORCHESTRATOR_SERVICE_PORT: null } }),
    remove: (lab) =>
      patched(CONFIG_MAPS, MAP, { data: { ORCHESTRATOR_SERVICE_PORT: new URL(lab.cluster.url).port } })(lab),
  },
  {
    what: "DNS gone: the API server's name in the endpoint map does not resolve",
    part: "network",
    reason: "EndpointUnanswered",
    says: /does not answer the operator at api\.stroy\.internal:\d+, the address in ConfigMap .*: .*does not resolve.* Fix: kubectl -n vendor-operator edit configmap/,
    ...endpointMapNames("api.stroy.internal"),
  },
  {
    what: "the endpoint map has a wrong port, and the operator starts with it",
    part: "network",
    reason: "EndpointUnanswered",
    says: /does not answer the operator at api\.story\.internal:1, the address in ConfigMap .*refuse/,
    ...endpointMapNames("api.story.internal", "1", restartOperator),
  },
  {
    what: "wrong field: a pool with IPIP under eBPF",
    part: "network",
    reason: "EbpfIpipPool",
    says: /Pool 10\.244\.0\.0\/16 uses IPIP, which eBPF does not support\. Fix: /,
    ...asked({ ipPools: [{ cidr: "10.244.0.0/16", encapsulation: "IPIP" }] }, { ipPools: null }),
  },
  {
    what: "a node joins whose kernel is too old for eBPF",
    part: "network",
    reason: "EbpfKernelTooOld",
    says: /Node guest has Debian GNU\/Linux 10 \(buster\) with kernel 4\.19\.0-27-amd64, which needs .* Fix: /,
    ...joined({ osImage: "Debian GNU/Linux 10 (buster)", kernelVersion: "4.19.0-27-amd64" }),
  },
  {
    what: "a Windows node joins",
    part: "network",
    reason: "EbpfMixedCluster",
    says: /Node guest runs Windows\. Fix: /,
    ...joined({ osImage: "Windows Server 2022", kernelVersion: "10.0.20348.3932", operatingSystem: "windows" }),
  },
  {
    what: "the kernel of a node refuses the programs",
    part: "network",
    reason: "EbpfProgramsRefused",
    says: /Node story-[\w-]+: the verifier refuses the programs\. Fix: /,
    inject: (lab) =>
      patched(
        NODES,
        { name: secondNode(lab) },
        { metadata: { annotations: { "local.vendor.io/refuse-programs": "the verifier refuses the programs" } } },
      )(lab),
    remove: (lab) =>
      patched(
        NODES,
        { name: secondNode(lab) },
        { metadata: { annotations: { "local.vendor.io/refuse-programs": null } } },
      )(lab),
  },
  {
    what: "an IP pool of another owner overlaps",
    part: "ippools",
    reason: "PoolOfAnother",
    says: /IPPool theirs \(10\.244\.128\.0\/17\) was not created by the operator.* Fix: /,
    ...created({
      apiVersion: "crd.vendor.io/v1",
      kind: "IPPool",
      metadata: { name: "theirs" },
      spec: { cidr: "10.244.128.0/17", vxlanMode: "Always" },
    }),
  },
  {
    what: "another CNI plugin runs",
    part: "network",
    reason: "CniPluginOfAnother",
    says: /DaemonSet kube-flannel\/kube-flannel-ds: Flannel is this cluster's CNI plugin.* Fix: /,
    partial: true,
    async inject(lab) {
      await applied(lab, { apiVersion: "v1", kind: "Namespace", metadata: { name: "kube-flannel" } });
      await applied(lab, FLANNEL);
    },
    remove: (lab) => client(lab).delete(NAMESPACES, { name: "kube-flannel" }),
  },
  {
    what: "kube-proxy is restored by a GitOps tool",
    part: "service-proxy",
    reason: "ServiceProxyOfAnother",
    says: /kube-proxy is managed by Argo CD .* Fix: /,
    inject: patched(
      DAEMON_SETS,
      { namespace: "kube-system", name: "kube-proxy" },
      {
        metadata: {
          annotations: { "argocd.argoproj.io/tracking-id": "platform:apps/DaemonSet:kube-system/kube-proxy" },
        },
        spec: { template: { spec: { nodeSelector: { "non-vendor": null } } } },
      },
    ),
    remove: patched(
      DAEMON_SETS,
      { namespace: "kube-system", name: "kube-proxy" },
      { metadata: { annotations: { "argocd.argoproj.io/tracking-id": null } } },
    ),
  },
  {
    what: "a second operator in another namespace",
    part: "network",
    reason: "SecondOperator",
    says: /A second operator, in namespace elsewhere, was refused.* Fix: kubectl -n elsewhere delete deployment/,
    inject: (lab) =>
      patched(
        CONFIG_MAPS,
        { namespace: SYSTEM, name: "active-operator" },
        {
          metadata: {
            annotations: {
              "operator.vendor.io/refused-operator": `elsewhere ${new Date(lab.clock.now()).toISOString()}`,
            },
          },
        },
      )(lab),
    remove: patched(
      CONFIG_MAPS,
      { namespace: SYSTEM, name: "active-operator" },
      { metadata: { annotations: { "operator.vendor.io/refused-operator": null } } },
    ),
  },
  {
    what: "no node sends flows: all are simulated",
    part: "flow-logs",
    reason: "FlowNodesSilent",
    says: /No node sends flows: all nodes are simulated, and no packet moves\./,
    partial: true,
    ...created(FLOW_LOGS),
  },
  {
    what: "API down: vendorctl is not answered",
    reason: "vendorctl",
    says: /503|overloaded|unavailable/i,
    inject: async (lab) => {
      lab.apiOutage = 503;
    },
    remove: async (lab) => {
      lab.apiOutage = "none";
    },
  },
  {
    what: "the system namespace is deleted and does not go",
    part: "network",
    reason: "Forbidden",
    says: /vendor-system.*being terminated/,
    inject: async (lab) => {
      await patched(NAMESPACES, { name: SYSTEM }, { metadata: { finalizers: ["story/keeps"] } })(lab);
      await client(lab).delete(NAMESPACES, { name: SYSTEM });
    },
    remove: patched(NAMESPACES, { name: SYSTEM }, { metadata: { finalizers: null } }),
  },
];

const WITHIN_MS = 60_000;

describe("each fault is named within a minute where a user looks, nothing says ok, and it passes by itself", () => {
  let lab: FaultLab;
  const named: Named[] = [];

  beforeAll(async () => {
    lab = await startFaultLab();
  });
  afterAll(async () => {
    await lab?.close();
    printFaults(named);
  });

  it.each(FAULTS)("$what", async (fault) => {
    const { part, says, reason, exit = [1], partial } = fault;
    await fault.inject(lab);
    try {
      const look = async () => {
        if (!part) return toolSays();
        const status = (await allStatuses(lab.cluster.client))[part];
        const isNamed = status && status.available === Boolean(partial) && status.reason === reason;
        return isNamed && says.test(status.message) ? status.message : undefined;
      };
      const toolSays = async () => {
        const { out, err } = await toolStatus(lab);
        const text = flat(out + err);
        return says.test(text) && !out.startsWith("ok") ? text : undefined;
      };
      const everything = async () => [await allStatuses(lab.cluster.client), await toolStatus(lab)];
      const { seconds } = await until(lab, WITHIN_MS, look, everything);
      named.push({ fault: fault.what, component: part ?? reason, reason: part ? reason : "-", seconds });
      const shown = await statusExiting(lab, exit);
      expectNotOk(shown, exit);
      expect(flat(shown.out + shown.err)).toMatch(says);
    } finally {
      await fault.remove(lab);
    }
    await untilWell(lab);
  });
});

describe("an operator that starts with a wrong endpoint map, while nothing serves the Service", () => {
  let cluster: LocalCluster | undefined;
  afterAll(async () => cluster?.close());

  it("is not ready, and is so once the map is corrected, without a restart", async () => {
    cluster = await startCluster({ name: "wrongmap", kind: "generic", nodes: 1 });
    const { client, url } = cluster;
    await client.delete(DAEMON_SETS, { namespace: "kube-system", name: "kube-proxy" });
    const serving = async () => (await client.list(PODS, { labelSelector: "k8s-app=kube-proxy" })).items.length;
    await expect.poll(serving).toBe(0);
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: OPERATOR.namespace } };
    await applyAll(client, [namespace, ...documents(endpointMapOf("api.wrongmap.internal", "1"))]);
    await applyOperator(client, 1);
    const pod = async () => {
      const { items } = await client.list<Pod>(PODS, { namespace: OPERATOR.namespace });
      const { phase, containerStatuses = [] } = items[0]?.status ?? {};
      return { uid: items[0]?.metadata.uid, phase, ...containerStatuses[0] };
    };
    await expect.poll(pod).toMatchObject({ phase: "Running", ready: false });
    const { uid } = await pod();
    await applyAll(client, documents(endpointMapOf("api.wrongmap.internal", new URL(url).port)));
    await expect.poll(pod).toMatchObject({ uid, ready: true, restartCount: 0 });
  });
});
