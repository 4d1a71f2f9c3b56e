import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { calicoNames } from "../../src/api/names.ts";
import { groupVersion, type KubeObject } from "../../src/api/object.ts";
import { v3Places } from "../../src/api/resources/v3-places.ts";
import type { Client } from "../../src/cluster/client.ts";
import { NAMESPACES, SERVICE_ACCOUNTS } from "../../src/cluster/kinds.ts";
import { readEtcdOptions } from "../../src/datastore/config.ts";
import { EtcdConnection } from "../../src/datastore/etcd/etcd-connection.ts";
import { deleteKey, readFolder, readKey, writeKey } from "../../src/datastore/etcd/etcd-keys.ts";
import { agentsFile, CALICO_VERSION, untilCalicoRuns } from "./calico-manifest.ts";
import type { EtcdServer } from "./etcd-server.ts";

/** The public system on etcd: its manifests in the parts that a migration looks at, and the values that its programs write, in our own words. */
export const RESOURCES = "/calico/resources/v3/projectcalico.org/";
export const IPAM = "/calico/ipam/v2/";

const MAP = "valueFrom: { configMapKeyRef: { name: calico-config, key:";
const ETCD_ENV = `- name: ETCD_ENDPOINTS
              ${MAP} etcd_endpoints } }
            - name: ETCD_CA_CERT_FILE
              ${MAP} etcd_ca } }
            - name: ETCD_CERT_FILE
              ${MAP} etcd_cert } }
            - name: ETCD_KEY_FILE
              ${MAP} etcd_key } }`;

const SECRET = `---
apiVersion: v1
kind: Secret
type: Opaque
metadata: { name: calico-etcd-secrets, namespace: kube-system }
data: {}
`;

const onEtcd = () =>
  SECRET +
  agentsFile({ definitions: [] })
    .replace(/---\n---/g, "---")
    .replace(
      "data:\n  typha",
      'data:\n  etcd_endpoints: "http://<ETCD_IP>:<ETCD_PORT>"\n  etcd_ca: ""\n  etcd_cert: ""\n  etcd_key: ""\n  typha',
    )
    .replace("- { name: DATASTORE_TYPE, value: kubernetes }", ETCD_ENV)
    .replace(
      "          resources: { requests: { cpu: 250m } }",
      "          volumeMounts: [{ name: etcd-certs, mountPath: /calico-secrets }]\n          resources: { requests: { cpu: 250m } }",
    )
    .replace(
      "      volumes:\n",
      "      volumes:\n        - { name: etcd-certs, secret: { secretName: calico-etcd-secrets, defaultMode: 0400 } }\n",
    )
    .replace("node,loadbalancer", "policy,namespace,serviceaccount,workloadendpoint,node,loadbalancer");

/** A folder with `calico-etcd.yaml` and `calico.yaml` of a release; gives back its address. */
export function writeCalicoEtcdRelease(folder: string, version = CALICO_VERSION): string {
  const release = join(folder, version);
  mkdirSync(join(release, "manifests"), { recursive: true });
  const files = { "calico-etcd.yaml": onEtcd(), "calico.yaml": agentsFile({ definitions: definitions() }) };
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(release, "manifests", name), text.replaceAll(CALICO_VERSION, version));
  return `file://${release}`;
}

type Schema = { type: string; [field: string]: unknown };
const [TEXT, FLAG, NUMBER]: Schema[] = [{ type: "string" }, { type: "boolean" }, { type: "integer" }];
const listOf = (items: object): Schema => ({ type: "array", items });
const OPEN: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const mapOf = (additionalProperties: object | undefined): Schema => ({ type: "object", additionalProperties });
const whole = (properties: Record<string, Schema | undefined>, required: string[]): Schema => ({
  ...{ type: "object", properties, required },
});

/** IPAM's CRDs, with the types of the public ones: `deleted` is a text in one and a flag in the others. */
const STRICT: Readonly<Record<string, Schema>> = {
  IPAMBlock: whole(
    {
      ...{ cidr: TEXT, affinity: TEXT, deleted: FLAG, strictAffinity: FLAG },
      ...{ allocations: listOf({ ...NUMBER, nullable: true }), unallocated: listOf(NUMBER!) },
      attributes: listOf({ type: "object", properties: { handle_id: TEXT, secondary: mapOf(TEXT) } }),
      sequenceNumber: { ...NUMBER!, default: 0 },
      sequenceNumberForAllocation: mapOf(NUMBER),
    },
    ["allocations", "attributes", "cidr", "strictAffinity", "unallocated"],
  ),
  BlockAffinity: whole({ cidr: TEXT, deleted: TEXT, node: TEXT, state: TEXT, type: TEXT }, [
    ...["cidr", "deleted", "node", "state"],
  ]),
  IPAMHandle: whole({ block: mapOf(NUMBER), deleted: FLAG, handleID: TEXT }, ["block", "handleID"]),
  IPAMConfig: whole({ autoAllocateBlocks: FLAG, maxBlocksPerHost: NUMBER, strictAffinity: FLAG }, [
    ...["autoAllocateBlocks", "strictAffinity"],
  ]),
  IPPool: whole({ cidr: TEXT, ipipMode: TEXT, natOutgoing: FLAG, blockSize: NUMBER }, ["cidr"]),
};

function definitions(): KubeObject[] {
  const kinds = v3Places(calicoNames)
    .filter(({ noun }) => noun !== "profile")
    .map(({ stored }) => stored);
  return kinds.map(({ kind, plural, namespaced }) => {
    const { group, version: name } = calicoNames.groups.stored;
    const schema = { openAPIV3Schema: { type: "object", properties: { spec: STRICT[kind] ?? OPEN, status: OPEN } } };
    return {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${plural}.${group}` },
      spec: {
        ...{ group, scope: namespaced ? "Namespaced" : "Cluster" },
        names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
        versions: [{ name, served: true, storage: true, schema }],
      },
    };
  });
}

/** Applies `calico-etcd.yaml` as kubectl does, once its head was edited as it asks. */
export async function applyCalicoEtcd(client: Client, { env }: Pick<EtcdServer, "env">): Promise<void> {
  const base64 = (variable: string) => readFileSync(env[variable]!).toString("base64");
  const files = { "etcd-ca": "ETCD_CA_CERT_FILE", "etcd-cert": "ETCD_CERT_FILE", "etcd-key": "ETCD_KEY_FILE" };
  const data = Object.fromEntries(
    Object.entries(files).flatMap(([key, variable]) => (env[variable] ? [[key, base64(variable)]] : [])),
  );
  let text = onEtcd().replaceAll("http://<ETCD_IP>:<ETCD_PORT>", env["ETCD_ENDPOINTS"]!);
  for (const file of Object.keys(data)) {
    const key = file.replace("-", "_");
    text = text.replace(`${key}: ""`, `${key}: "/calico-secrets/${file}"`);
  }
  for (const document of parseAllDocuments(text, { version: "1.1" })) {
    const object = document.toJS() as KubeObject | null;
    if (!object) continue;
    const filled = object.kind === "Secret" ? { ...object, data } : object;
    await client.apply(await client.resourceFor(filled), filled, { fieldManager: "kubectl", force: true });
  }
  await untilCalicoRuns(client);
}

export interface CalicoEtcd {
  etcd: EtcdConnection;
  put(key: string, value: object | string): Promise<void>;
  remove(key: string): Promise<void>;
  /** Every value by its key, as its bytes. */
  values(): Promise<ReadonlyMap<string, string>>;
  close(): void;
}

export function calicoEtcd({ env }: Pick<EtcdServer, "env">): CalicoEtcd {
  const etcd = new EtcdConnection(readEtcdOptions(env)!);
  return {
    etcd,
    async put(key, value) {
      const before = await readKey(etcd, key);
      const text = typeof value === "string" ? value : JSON.stringify(value);
      await writeKey(etcd, key, text, before?.revision ?? 0);
    },
    async remove(key) {
      const before = await readKey(etcd, key);
      if (before) await deleteKey(etcd, key, before.revision);
    },
    values: async () =>
      new Map((await readFolder(etcd, "/calico/")).values.map(({ key, value }) => [key, value] as const)),
    close: () => etcd.close(),
  };
}

let made = 0;

/** A v3 resource as etcd has it. */
export function resource(kind: string, name: string, spec: object, more: object = {}): object {
  made++;
  const uid = `0d2f6b0e-5d0c-4d0e-8f55-${String(made).padStart(12, "0")}`;
  const metadata = { name, uid, creationTimestamp: "2024-05-01T12:00:00Z", ...more };
  return { kind, apiVersion: groupVersion(calicoNames.groups.served), metadata, spec };
}

const policyName = (name: string) => ({ annotations: { "projectcalico.org/metadata": JSON.stringify({ name }) } });
export const HANDLE = "k8s-pod-network.0123456789abcdef";
const POD_ADDRESS = "10.244.0.1";

/** What the programs of a cluster with these nodes, and its people, would have written. */
export async function seedCalicoEtcd({ put }: CalicoEtcd, nodes: readonly string[]): Promise<void> {
  const information = { calicoVersion: CALICO_VERSION, clusterGUID: "0d2f6b0e5d0c4d0e8f554f2f5b8f0a01" };
  const add = (plural: string, object: object) => {
    const { name, namespace } = (object as KubeObject).metadata;
    return put(`${RESOURCES}${plural}/${namespace ? `${namespace}/` : ""}${name}`, object);
  };
  const open = { ...information, clusterType: "k8s,bgp", datastoreReady: true };
  await add("clusterinformations", resource("ClusterInformation", "default", open));
  const pool = { cidr: "10.244.0.0/16", ipipMode: "Always", natOutgoing: true, blockSize: 26 };
  await add("ippools", resource("IPPool", "default-ipv4-ippool", pool));
  await add("felixconfigurations", resource("FelixConfiguration", "default", { bpfEnabled: false }));
  await add("bgpconfigurations", resource("BGPConfiguration", "default", { asNumber: 64512 }));
  await add("tiers", resource("Tier", "default", { order: 1000000 }));
  await add("tiers", resource("Tier", "platform", { order: 100 }));
  const spec = { tier: "default", order: 1, selector: "app == 'web'", types: ["Ingress"] };
  const labels = { team: "shop", "projectcalico.org/tier": "platform" };
  const platform = { ...policyName("platform.shop"), labels, namespace: "default" };
  await add("globalnetworkpolicies", resource("GlobalNetworkPolicy", "default.web", spec, policyName("web")));
  await add("networkpolicies", resource("NetworkPolicy", "platform.shop", { ...spec, tier: "platform" }, platform));
  const staged = { ...policyName("next"), namespace: "default" };
  await add("stagednetworkpolicies", resource("StagedNetworkPolicy", "default.next", spec, staged));
  await add("globalnetworksets", resource("GlobalNetworkSet", "offices", { nets: ["192.0.2.0/24"] }, { labels }));
  await add("networksets", resource("NetworkSet", "shops", { nets: ["198.51.100.0/24"] }, { namespace: "default" }));
  const endpoint = { node: nodes[0], interfaceName: "eth0", expectedIPs: ["10.0.0.1"] };
  await add("hostendpoints", resource("HostEndpoint", "edge", endpoint, { labels: { role: "edge" } }));
  const knp = resource("NetworkPolicy", "knp.default.web", spec, { namespace: "default" });
  await add("networkpolicies", knp);
  await put("/calico/felix/v2/no-region/host/last_reported_status", '{"up":true}');
  await put(`${IPAM}config`, { auto_allocate_blocks: true });
  for (const [at, node] of nodes.entries()) {
    const kubeLabels = { "kubernetes.io/hostname": node };
    const rack = { ...kubeLabels, rack: `r${at}` };
    const known = { annotations: { "projectcalico.org/kube-labels": JSON.stringify(kubeLabels) }, labels: rack };
    const bgp = { ipv4Address: `10.0.0.${at + 1}/24`, ipv4IPIPTunnelAddr: `10.244.0.${at * 64}` };
    const orchRefs = [{ nodeName: node, orchestrator: "k8s" }];
    const clusterId = at === 0 ? { asNumber: 64513, routeReflectorClusterID: "224.0.0.1" } : {};
    await add("nodes", resource("Node", node, { bgp: { ...bgp, ...clusterId }, orchRefs }, known));
    const cidr = `10.244.0.${at * 64}`;
    await put(`${IPAM}host/${node}/ipv4/block/${cidr}-26`, { state: "confirmed", deleted: false });
    const tunnel = { handle_id: `ipip-tunnel-addr-${node}`, secondary: { node, type: "ipipTunnelAddress" } };
    const pod = { handle_id: HANDLE, secondary: { node, namespace: "default", pod: "web-1" } };
    const taken = at === 0 ? 2 : 1;
    await put(`${IPAM}assignment/ipv4/block/${cidr}-26`, {
      cidr: `${cidr}/26`,
      affinity: `host:${node}`,
      allocations: Array.from({ length: 64 }, (_, ordinal) => (ordinal < taken ? ordinal : null)),
      unallocated: Array.from({ length: 64 - taken }, (_, ordinal) => ordinal + taken),
      attributes: at === 0 ? [tunnel, pod] : [tunnel],
      sequenceNumber: 7,
      sequenceNumberForAllocation: at === 0 ? { 0: 1, 1: 6 } : { 0: 1 },
      deleted: false,
    });
    await put(`${IPAM}handle/${tunnel.handle_id}`, { block: { [`${cidr}/26`]: 1 }, deleted: false });
  }
  await put(`${IPAM}handle/${HANDLE}`, { block: { "10.244.0.0/26": 1 }, deleted: false });
  const web = {
    orchestrator: "k8s",
    node: nodes[0],
    pod: "web-1",
    endpoint: "eth0",
    ipNetworks: [`${POD_ADDRESS}/32`],
  };
  const gone = resource("WorkloadEndpoint", `${nodes[0]!.replaceAll("-", "--")}-k8s-web--1-eth0`, web, {
    namespace: "default",
  });
  await add("workloadendpoints", gone);
}

/** Its copy in etcd is seeded with the rest. */
export const COPIED_POLICY: KubeObject = {
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name: "web", namespace: "default" },
  spec: { podSelector: {}, policyTypes: ["Ingress"] },
};

/** What calico-kube-controllers make of namespaces, service accounts and policies of Kubernetes there. */
export async function playCalicoControllers({ put }: CalicoEtcd, client: Client): Promise<void> {
  for (const { metadata } of (await client.list<KubeObject>(NAMESPACES)).items)
    await put(`${RESOURCES}profiles/kns.${metadata.name}`, resource("Profile", `kns.${metadata.name}`, {}));
  for (const { metadata } of (await client.list<KubeObject>(SERVICE_ACCOUNTS)).items) {
    const name = `ksa.${metadata.namespace}.${metadata.name}`;
    await put(`${RESOURCES}profiles/${name}`, resource("Profile", name, {}));
  }
}
