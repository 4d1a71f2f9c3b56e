import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import type { Noun } from "../../src/api/names.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { VERSION } from "../../src/api/tables/release.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { DAEMON_SETS, PODS } from "../../src/cluster/kinds.ts";
import { readEtcdOptions } from "../../src/datastore/config.ts";
import type { EtcdConnection } from "../../src/datastore/etcd/etcd-connection.ts";
import { readFolder } from "../../src/datastore/etcd/etcd-keys.ts";
import { openEtcdDatastore } from "../../src/datastore/open-datastore.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import type { EtcdServer } from "./etcd-server.ts";
import { manifest } from "./operator-manifests.ts";

const SYSTEM = "kube-system";
const PATIENCE_MS = 60_000;

/** The text of a published etcd manifest as its head asks to edit it: where etcd is, and what to show it. */
export function filledIn(text: string, { env }: Pick<EtcdServer, "env">): string {
  const { ETCD_USERNAME = "", ETCD_PASSWORD = "" } = env;
  const [name, password] = [ETCD_USERNAME, ETCD_PASSWORD].map((text) => Buffer.from(text).toString("base64"));
  const user = name === "" ? "" : `\n  etcd-username: ${name}\n  etcd-password: ${password}`;
  const base64 = (variable: string) => (env[variable] ? readFileSync(env[variable]).toString("base64") : '""');
  return text
    .replaceAll("https://<ETCD_IP>:<ETCD_PORT>", env["ETCD_ENDPOINTS"] as string)
    .replace('etcd-ca: ""', `etcd-ca: ${base64("ETCD_CA_CERT_FILE")}`)
    .replace('etcd-cert: ""', `etcd-cert: ${base64("ETCD_CERT_FILE")}`)
    .replace('etcd-key: ""', `etcd-key: ${base64("ETCD_KEY_FILE")}${user}`);
}

/** Applies it as kubectl does, and waits until its pods run; agents on etcd are never READY 2/2. */
export async function applyEtcdManifest(client: Client, file: string, etcd: Pick<EtcdServer, "env">): Promise<void> {
  for (const document of parseAllDocuments(filledIn(manifest(file), etcd))) {
    const object = document.toJS() as KubeObject | null;
    if (!object) continue;
    await client.apply(await client.resourceFor(object), object, { fieldManager: "kubectl", force: true });
  }
  await untilEtcdManifestRuns(client);
}

async function untilEtcdManifestRuns(client: Client): Promise<void> {
  await eventually(
    async () => {
      const sets = (await client.list<KubeObject>(DAEMON_SETS, { namespace: SYSTEM })).items;
      const pods = (await client.list<Pod>(PODS, { namespace: SYSTEM })).items;
      return { sets, ours: pods.filter(({ metadata }) => metadata.name.startsWith("vendor-")) };
    },
    ({ sets, ours }) =>
      sets.some(isUpdated) &&
      ours.length > 2 &&
      ours.every(({ metadata, status }) => !metadata.deletionTimestamp && status?.phase === "Running"),
    PATIENCE_MS,
  );
}

function isUpdated({ metadata, status }: KubeObject): boolean {
  const { observedGeneration, desiredNumberScheduled, updatedNumberScheduled } = (status ?? {}) as Record<
    string,
    number
  >;
  return (
    metadata.name.startsWith("vendor-") &&
    observedGeneration === metadata.generation &&
    (desiredNumberScheduled ?? 0) > 0 &&
    updatedNumberScheduled === desiredNumberScheduled
  );
}

export interface EtcdData {
  /** As programs of the service read and write it. */
  client: Client;
  etcd: EtcdConnection;
  /** Every value by its key, as JSON. */
  values(): Promise<ReadonlyMap<string, KubeObject>>;
  close(): void;
}

export function etcdData({ env }: Pick<EtcdServer, "env">): EtcdData {
  const nowhere = { request: () => Promise.reject(new Error("there is no Kubernetes here")), close: () => {} };
  const { copies, transport, etcd } = openEtcdDatastore(readEtcdOptions(env)!, nowhere);
  return {
    client: createClient(copies, { userAgent: "story" }),
    etcd,
    async values() {
      const { values } = await readFolder(etcd, "/vendor/resources/");
      return new Map(values.map(({ key, value }) => [key, JSON.parse(value) as KubeObject]));
    },
    close: () => transport.close(),
  };
}

/** An object of the service as it is stored. */
function storedObjectOf(noun: Noun, name: string, spec: object, namespace?: string): KubeObject {
  const { group, version, kind } = storedKind(noun);
  const metadata = { name, ...(namespace !== undefined && { namespace }) };
  return { apiVersion: `${group}/${version}`, kind, metadata, spec } as KubeObject;
}

export const create = (client: Client, noun: Noun, name: string, spec: object, namespace?: string) =>
  client.create<KubeObject>(storedKind(noun), storedObjectOf(noun, name, spec, namespace));

const HANDLE = "k8s-pod-network.0123456789abcdef";

/** What the programs of a cluster with two nodes, and its people, would have written. */
export async function seedEtcd(client: Client, nodes: readonly string[]): Promise<void> {
  const { singleton } = vendorNames;
  const information = {
    vendorVersion: VERSION,
    clusterGUID: "0d2f6b0e-5d0c-4d0e-8f55-4f2f5b8f0a01",
    datastoreReady: true,
  };
  await create(client, "clusterInformation", singleton, information);
  await create(client, "ipPool", "blue", {
    cidr: "10.7.0.0/16",
    vxlanMode: "Always",
    natOutgoing: true,
    blockSize: 26,
  });
  await create(client, "tier", "platform", { order: 100 });
  const policy = {
    tier: "platform",
    order: 1,
    selector: "app == 'web'",
    types: ["Ingress"],
    ingress: [{ action: "Allow" }],
  };
  await create(client, "globalNetworkPolicy", "platform.web", policy);
  await create(client, "networkPolicy", "platform.shop", policy, "default");
  await create(client, "globalNetworkSet", "offices", { nets: ["192.0.2.0/24"] });
  for (const [at, node] of nodes.entries()) {
    const cidr = `10.7.0.${at * 64}/26`;
    const name = cidr.replace(/[./]/g, "-");
    const affinity = { state: "confirmed", node, cidr, deleted: false };
    await create(client, "blockAffinity", `${node}-${name}`, affinity);
    const taken = at === 0 ? [0] : [];
    const block = {
      cidr,
      affinity: `host:${node}`,
      allocations: Array.from({ length: 64 }, (_, ordinal) => (taken.includes(ordinal) ? 0 : null)),
      unallocated: Array.from({ length: 64 }, (_, ordinal) => ordinal).filter((ordinal) => !taken.includes(ordinal)),
      attributes: taken.map(() => ({ handle_id: HANDLE, secondary: { node, namespace: "default", pod: "web" } })),
      deleted: false,
    };
    await create(client, "ipamBlock", name, block);
    if (at === 0)
      await create(client, "ipamHandle", HANDLE, { handleID: HANDLE, block: { [cidr]: 1 }, deleted: false });
  }
}
