import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments, stringify } from "yaml";
import { calicoNames } from "../../src/api/names.ts";
import { groupVersion, type KubeObject } from "../../src/api/object.ts";
import { rolledOut } from "../../src/api/protocol/rollout.ts";
import type { Workload } from "../../src/api/workload-objects.ts";
import type { Client } from "../../src/cluster/client.ts";
import { DAEMON_SETS, DEPLOYMENTS } from "../../src/cluster/kinds.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";

export const CALICO_VERSION = "v3.31.3";
const SYSTEM = "kube-system";
const { groups, kinds } = calicoNames;

/** Which CRDs the file has, as `plural Kind`. */
const FEW_KINDS = [
  "felixconfigurations FelixConfiguration",
  "ippools IPPool",
  "clusterinformations ClusterInformation",
  "ipamblocks IPAMBlock",
];

/** Plain manifests of the public system in the parts that are looked at: in our own words, with its names. */
export const agentsFile = ({ typha = false, definitions = FEW_KINDS.map(openDefinition) }) => `---
apiVersion: v1
kind: ServiceAccount
metadata: { name: calico-node, namespace: kube-system }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: calico-cni-plugin, namespace: kube-system }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: calico-kube-controllers, namespace: kube-system }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: calico-kube-controllers, namespace: kube-system }
spec: { maxUnavailable: 1, selector: { matchLabels: { k8s-app: calico-kube-controllers } } }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: calico-config, namespace: kube-system }
data:
  typha_service_name: ${typha ? "calico-typha" : "none"}
  calico_backend: bird
  veth_mtu: "0"
  cni_network_config: |-
    { "name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": [
      { "type": "calico", "mtu": __CNI_MTU__, "ipam": { "type": "calico-ipam" } },
      { "type": "portmap", "snat": true, "capabilities": { "portMappings": true } } ] }
---
${definitions.map((one) => stringify(one)).join("---\n")}---
${["calico-node", "calico-cni-plugin", "calico-kube-controllers"].map(rightsOf).join("---\n")}---
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: calico-node, namespace: kube-system, labels: { k8s-app: calico-node } }
spec:
  selector: { matchLabels: { k8s-app: calico-node } }
  updateStrategy: { type: RollingUpdate, rollingUpdate: { maxUnavailable: 1 } }
  template:
    metadata: { labels: { k8s-app: calico-node } }
    spec:
      nodeSelector: { kubernetes.io/os: linux }
      tolerations: [{ operator: Exists }]
      serviceAccountName: calico-node
      initContainers:
        - name: install-cni
          image: quay.io/calico/cni:${CALICO_VERSION}
          env:
            - { name: CNI_CONF_NAME, value: 10-calico.conflist }
            - name: CNI_NETWORK_CONFIG
              valueFrom: { configMapKeyRef: { name: calico-config, key: cni_network_config } }
            - name: KUBERNETES_NODE_NAME
              valueFrom: { fieldRef: { fieldPath: spec.nodeName } }
            - name: CNI_MTU
              valueFrom: { configMapKeyRef: { name: calico-config, key: veth_mtu } }
      containers:
        - name: calico-node
          image: quay.io/calico/node:${CALICO_VERSION}
          env:
            - { name: DATASTORE_TYPE, value: kubernetes }
            - name: NODENAME
              valueFrom: { fieldRef: { fieldPath: spec.nodeName } }
            - name: CALICO_NETWORKING_BACKEND
              valueFrom: { configMapKeyRef: { name: calico-config, key: calico_backend } }
            - { name: IP, value: autodetect }
            - { name: CALICO_IPV4POOL_IPIP, value: Always }
            - name: FELIX_IPINIPMTU
              valueFrom: { configMapKeyRef: { name: calico-config, key: veth_mtu } }
            - { name: FELIX_DEFAULTENDPOINTTOHOSTACTION, value: ACCEPT }
            - { name: FELIX_IPV6SUPPORT, value: "false" }
            - { name: FELIX_HEALTHENABLED, value: "true" }${
              typha
                ? `
            - name: FELIX_TYPHAK8SSERVICENAME
              valueFrom: { configMapKeyRef: { name: calico-config, key: typha_service_name } }`
                : ""
            }
          resources: { requests: { cpu: 250m } }
      volumes:
        - { name: lib-modules, hostPath: { path: /lib/modules } }
        - { name: var-run-calico, hostPath: { path: /var/run/calico } }
        - { name: var-lib-calico, hostPath: { path: /var/lib/calico } }
        - { name: xtables-lock, hostPath: { path: /run/xtables.lock } }
        - { name: cni-bin-dir, hostPath: { path: /opt/cni/bin } }
        - { name: cni-net-dir, hostPath: { path: /etc/cni/net.d } }
---
${stringify(deployment(SYSTEM, "calico-kube-controllers", 1))}${typha ? `---\n${stringify(deployment(SYSTEM, "calico-typha", 1))}` : ""}`;

const operatorFile = () =>
  [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "tigera-operator" } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "tigera-operator", namespace: "tigera-operator" } },
    deployment("tigera-operator", "tigera-operator", 1, "quay.io/tigera/operator:v1.40.3"),
  ]
    .map((object) => stringify(object))
    .join("---\n");

const definitionsFile = () =>
  [kinds.installation, kinds.status, kinds.apiServer]
    .map(({ kind, plural }) => stringify(definition([plural, kind], "operator")))
    .join("---\n");

function openDefinition(words: string): KubeObject {
  return definition(words.split(" ") as [string, string], "stored");
}

function definition([plural, kind]: [string, string], group: "operator" | "stored"): KubeObject {
  const { group: name, version } = groups[group];
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } };
  const subresources = group === "operator" ? { subresources: { status: {} } } : {};
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${name}` },
    spec: {
      ...{ group: name, scope: "Cluster" },
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      versions: [{ name: version, served: true, storage: true, ...subresources, schema }],
    },
  };
}

function rightsOf(name: string): string {
  const rbac = "rbac.authorization.k8s.io";
  const rules = [{ apiGroups: [""], resources: ["nodes"], verbs: ["get"] }];
  const role = { apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata: { name }, rules };
  const binding = {
    ...{ apiVersion: `${rbac}/v1`, kind: "ClusterRoleBinding", metadata: { name } },
    roleRef: { apiGroup: rbac, kind: "ClusterRole", name },
    subjects: [{ kind: "ServiceAccount", name, namespace: SYSTEM }],
  };
  return `${stringify(role)}---\n${stringify(binding)}`;
}

/** A workload of the public system with one container of its image. */
export function deployment(
  namespace: string,
  name: string,
  replicas: number,
  image = `quay.io/calico/${name.replace("calico-", "")}:${CALICO_VERSION}`,
): KubeObject {
  const labels = { "k8s-app": name };
  const controllers = { env: [{ name: "ENABLED_CONTROLLERS", value: "node,loadbalancer" }] };
  const container = { name, image, ...(name === "calico-kube-controllers" ? controllers : {}) };
  const tolerations = [{ key: "CriticalAddonsOnly", operator: "Exists" }];
  const spec = { nodeSelector: { "kubernetes.io/os": "linux" }, tolerations, containers: [container] };
  return {
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace } },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

/** A folder with the release's files; gives back the address of the release. */
export function writeCalicoRelease(folder: string, version = CALICO_VERSION): string {
  const release = join(folder, version);
  mkdirSync(join(release, "manifests"), { recursive: true });
  const files = {
    "calico.yaml": agentsFile({}),
    "calico-typha.yaml": agentsFile({ typha: true }),
    "operator-crds.yaml": definitionsFile(),
    "tigera-operator.yaml": operatorFile(),
  };
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(release, "manifests", name), text.replaceAll(CALICO_VERSION, version));
  return `file://${release}`;
}

/** Applies a plain manifest as kubectl does, and what its agents write when they start. */
export async function applyCalicoManifest(client: Client, { typha = false } = {}): Promise<void> {
  const stored = groupVersion(groups.stored);
  const pool = {
    ...{ cidr: "10.244.0.0/16", ipipMode: "Always", vxlanMode: "Never", natOutgoing: true, blockSize: 26 },
    ...{ nodeSelector: "all()", allowedUses: ["Workload", "Tunnel"], assignmentMode: "Automatic" },
  };
  const own = (kind: string, name: string, spec: object) => ({ apiVersion: stored, kind, metadata: { name }, spec });
  const documents = parseAllDocuments(agentsFile({ typha })).flatMap(
    (document) => (document.toJS() as KubeObject | null) ?? [],
  );
  for (const object of [
    ...documents,
    own("FelixConfiguration", "default", { bpfEnabled: false }),
    own("IPPool", "default-ipv4-ippool", pool),
    own("ClusterInformation", "default", { calicoVersion: CALICO_VERSION, datastoreReady: true }),
  ]) {
    const kind = await eventually(
      () => client.resourceFor(object).catch(() => undefined),
      (found) => found !== undefined,
      PATIENCE_MS,
    );
    await client.apply(kind!, object, { fieldManager: "kubectl", force: true });
  }
  await untilCalicoRuns(client);
}

const PATIENCE_MS = 60_000;

/** Until every workload of the manifest has rolled out. */
export async function untilCalicoRuns(client: Client): Promise<void> {
  const ours = async (kind: typeof DEPLOYMENTS) =>
    (await client.list<KubeObject>(kind, { namespace: SYSTEM })).items
      .filter(({ metadata }) => metadata.name.startsWith("calico-"))
      .map((one) => ({ ...one, kind: kind.kind }) as unknown as Workload);
  await eventually(
    async () => [...(await ours(DAEMON_SETS)), ...(await ours(DEPLOYMENTS))],
    (workloads) => workloads.length > 1 && workloads.every((workload) => rolledOut(workload)),
    PATIENCE_MS,
  );
}
