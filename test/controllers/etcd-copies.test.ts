import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject, ResourceKind } from "../../src/api/object.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { type ApiServer, createApiServer } from "../../src/apiserver/server.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { CRDS, NAMESPACES, NETWORK_POLICIES, NODES, PODS, SERVICE_ACCOUNTS } from "../../src/cluster/kinds.ts";
import { CONFIGURATIONS, PROFILES } from "../../src/controllers/stored-kinds.ts";
import { type EtcdClient, etcdClient } from "../datastore/etcd-client.ts";
import { hasEtcd, NO_ETCD } from "../support/etcd-server.ts";
import { eventually } from "./controllers-lab.ts";
import { runCopy } from "./run-program.ts";

const missing = hasEtcd() ? undefined : NO_ETCD;

describe.skipIf(missing)(`the controllers on the etcd datastore${missing ? ` (${missing})` : ""}`, () => {
  let server: ApiServer;
  let client: Client;
  let datastore: EtcdClient;
  beforeAll(async () => {
    server = await createApiServer({ kinds: kubernetesKinds() });
    client = createClient(server.transport(), { userAgent: "story" });
    datastore = await etcdClient();
    for (const name of ["shop", "vendor-system"])
      await make("v1", "Namespace", NAMESPACES, { name, labels: { team: name } });
  });
  afterAll(async () => {
    await server.close();
    await datastore.close();
  });

  const make = (
    apiVersion: string,
    kind: string,
    at: ResourceKind,
    metadata: KubeObject["metadata"],
    more: object = {},
  ) => client.create<KubeObject>(at, { apiVersion, kind, metadata, ...more });
  const names = async (kind: ResourceKind) =>
    (await datastore.client.list<KubeObject>(kind)).items.map(({ metadata }) => metadata.name);
  const copied = (kind: ResourceKind, wanted: string[]) =>
    eventually(
      () => names(kind),
      (found) => JSON.stringify(found) === JSON.stringify(wanted),
    );

  it("copy what agents read, follow its changes, and keep profiles and settings there too", async () => {
    await make(
      "v1",
      "Pod",
      PODS,
      { name: "web", namespace: "shop", labels: { app: "web" } },
      {
        spec: { nodeName: "n1", containers: [{ name: "main", image: "x", env: [{ name: "SECRET", value: "s" }] }] },
      },
    );
    await make("v1", "Node", NODES, { name: "n1" });
    await make("v1", "ServiceAccount", SERVICE_ACCOUNTS, { name: "clerk", namespace: "shop" });
    await make(
      "networking.k8s.io/v1",
      "NetworkPolicy",
      NETWORK_POLICIES,
      { name: "deny", namespace: "shop" },
      {
        spec: { podSelector: {} },
      },
    );
    const copy = runCopy("first", server.transport(), datastore.server.env);
    await copied(PODS, ["web"]);
    await copied(NODES, ["n1"]);
    await copied(SERVICE_ACCOUNTS, ["clerk"]);
    await copied(NETWORK_POLICIES, ["deny"]);
    await copied(NAMESPACES, ["shop", "vendor-system"]);
    const ref = { name: "web", namespace: "shop" };
    const pod = await datastore.client.get<KubeObject>(PODS, ref);
    expect(pod.metadata.uid).toBe((await client.get<KubeObject>(PODS, ref)).metadata.uid);
    expect(JSON.stringify(pod)).not.toContain("SECRET");
    await client.patch(PODS, ref, { type: "merge", patch: { metadata: { labels: { app: "new" } } } });
    await eventually(
      () => datastore.client.get<KubeObject>(PODS, ref),
      ({ metadata }) => metadata.labels?.["app"] === "new",
    );
    await eventually(
      () => names(PROFILES),
      (found) => found.includes("kns.shop") && found.includes("ksa.shop.clerk"),
    );
    await eventually(
      async () => (await datastore.client.list<KubeObject>(CONFIGURATIONS)).items[0]?.["status"],
      (status) => JSON.stringify(status ?? {}).includes('"etcdV3CompactionPeriod":"10m"'),
    );
    expect((await copy.ask("/readyz")).status).toBe(200);
    expect((await client.list(CRDS)).items).toEqual([]);
    await copy.stop();
  });

  it("remove what went away while none of them ran", async () => {
    await client.delete(PODS, { name: "web", namespace: "shop" }, { gracePeriodSeconds: 0 });
    await client.delete(NETWORK_POLICIES, { name: "deny", namespace: "shop" });
    expect(await names(PODS)).toEqual(["web"]);
    const copy = runCopy("second", server.transport(), datastore.server.env);
    await copied(PODS, []);
    await copied(NETWORK_POLICIES, []);
    await copy.stop();
  });
});
