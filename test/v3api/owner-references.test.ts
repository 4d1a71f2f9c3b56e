import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { type ApiServer, createApiServer } from "../../src/apiserver/server.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { isNotFound } from "../../src/cluster/failures.ts";
import { API_SERVICES, CONFIG_MAPS } from "../../src/cluster/kinds.ts";
import { startControllers } from "../../src/local/controllers/start-controllers.ts";
import { frontProxy, startV3Server, type V3Server, v3ApiService } from "../support/v3-api.ts";

/**
 * What the specification warns of: from v3.28 on v3 resources have other UIDs, so what is owned by one under the old UID has lost its
 * owner, and the orchestrator's garbage collector takes it.
 */

const SETS = { group: "vendor.io", version: "v3", kind: "NetworkSet", plural: "networksets", namespaced: true };

let server: ApiServer;
let client: Client;
let v3: V3Server;
let controllers: { stop(): Promise<void> };

beforeAll(async () => {
  server = await createApiServer({ kinds: kubernetesKinds(), resolveService: () => v3?.address(), frontProxy });
  client = createClient(server.transport(), { userAgent: "story" });
  v3 = await startV3Server(server, { version: "v3.27.4" });
  await client.create(API_SERVICES, v3ApiService(v3.authority));
  controllers = startControllers({ transport: server.transport() });
});
afterAll(async () => {
  await controllers.stop();
  await v3.stop();
  await server.close();
});

const configMap = (name: string, owner?: KubeObject): KubeObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    name,
    namespace: "default",
    ...(owner && {
      ownerReferences: [
        { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.metadata.name, uid: owner.metadata.uid! },
      ],
    }),
  },
});
const exists = async (name: string) => {
  try {
    await client.get(CONFIG_MAPS, { namespace: "default", name });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
};

describe("an object owned by a v3 resource", () => {
  it("is kept while its owner has the UID it names, and goes when an upgrade gives the owner another", async () => {
    const metadata = { name: "owner", namespace: "default" };
    const made = { apiVersion: "vendor.io/v3", kind: "NetworkSet", metadata, spec: { nets: ["10.0.0.0/8"] } };
    await expect.poll(() => client.create(SETS, made).then(() => true, String)).toBe(true);
    const owner = await client.get(SETS, metadata);
    await client.create(CONFIG_MAPS, configMap("owned", owner));
    await client.create(CONFIG_MAPS, configMap("free"));
    // The collector is at work, and knows this API: what names an owner that never was goes.
    const nobody = { ...owner, metadata: { ...owner.metadata, uid: "00000000-0000-4000-8000-000000000000" } };
    await client.create(CONFIG_MAPS, configMap("orphan", nobody));
    await expect.poll(() => exists("orphan")).toBe(false);
    expect(await exists("owned")).toBe(true);

    await v3.restart("v3.28.0");
    await expect.poll(() => exists("owned")).toBe(false);
    expect(await exists("free")).toBe(true);
    const now = await client.get(SETS, metadata);
    expect(now.metadata.uid).not.toBe(owner.metadata.uid);

    await client.create(CONFIG_MAPS, configMap("owned", now));
    await client.create(CONFIG_MAPS, configMap("orphan", nobody));
    await expect.poll(() => exists("orphan")).toBe(false);
    expect(await exists("owned")).toBe(true);
  });
});
