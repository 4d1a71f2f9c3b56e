import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject, OwnerReference } from "../../src/api/object.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { type ApiServer, createApiServer } from "../../src/apiserver/server.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { API_SERVICES, CONFIG_MAPS, NAMESPACES, SECRETS } from "../../src/cluster/kinds.ts";
import { inParallel } from "../../src/kit/in-parallel.ts";
import { startControllers } from "../../src/local/controllers/start-controllers.ts";
import { ownedThroughV3 } from "../../src/procedures/owned-through-v3.ts";
import { ownerReferenceSteps } from "../../src/procedures/plans/migrations/owner-references.ts";
import { runSteps } from "../support/run-steps.ts";
import { upgradeScenario } from "../support/upgrade-scenario.ts";
import { frontProxy, startV3Server, type V3Server, v3ApiService } from "../support/v3-api.ts";

/**
 * From v3.28 on v3 resources have other UIDs. Whatever names one as its owner under the old UID has lost its owner, and the orchestrator's
 * garbage collector takes it: here at work on thousands of objects, once with the rescue and once without.
 */

const OWNED = 600;
const SETS = { group: "vendor.io", version: "v3", kind: "NetworkSet", plural: "networksets", namespaced: true };
const POLICIES = { ...SETS, kind: "NetworkPolicy", plural: "networkpolicies" };
const patience = { timeout: 240_000, interval: 100 };

let server: ApiServer;
let client: Client;
let v3: V3Server;
let controllers: { stop(): Promise<void> };
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "owner-references-"));
  server = await createApiServer({ kinds: kubernetesKinds(), resolveService: () => v3?.address(), frontProxy });
  client = createClient(server.transport(), { userAgent: "vendorctl" });
  v3 = await startV3Server(server, { version: "v3.27.4" });
  await client.create(API_SERVICES, v3ApiService(v3.authority));
  await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "team" } });
  await vi.waitFor(() => client.list(SETS), patience);
  controllers = startControllers({ transport: server.transport() });
});
afterAll(async () => {
  await controllers.stop();
  await v3.stop();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

const owner = async (kind: typeof SETS, name: string, spec: object) => {
  const apiVersion = `${kind.group}/${kind.version}`;
  const metadata = { name, namespace: "team" };
  const made = await client.create<KubeObject>(kind, { apiVersion, kind: kind.kind, metadata, spec });
  return { apiVersion, kind: kind.kind, name, uid: made.metadata.uid! };
};
const notes = (name: string, ownerReferences: OwnerReference[]): KubeObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "team", ownerReferences },
  data: { why: name },
});
const there = async () => {
  const { items } = await client.list<KubeObject>(CONFIG_MAPS, { namespace: "team" });
  return new Map(items.map(({ metadata }) => [metadata.name, metadata] as const));
};
/** The collector is awake and has seen everything up to now: what names an owner that never was is gone. */
const collectorHasLooked = async (name: string) => {
  const nobody = {
    apiVersion: "vendor.io/v3",
    kind: "NetworkSet",
    name: "nobody",
    uid: "00000000-0000-4000-8000-000000000000",
  };
  await client.create(CONFIG_MAPS, notes(name, [nobody]));
  await expect.poll(async () => (await there()).has(name), patience).toBe(false);
};

/** Another version serves v3, and the orchestrator's controllers are started anew, as on an upgraded control plane: they look at everything. */
const upgradeTo = async (version: string) => {
  await v3.restart(version);
  await vi.waitFor(() => client.list(SETS), patience);
  await controllers.stop();
  controllers = startControllers({ transport: server.transport() });
};

describe("an upgrade across v3.28 with the garbage collector running", () => {
  it(`loses none of ${OWNED} owned objects with the rescue, and without it all that have no other owner`, async () => {
    const set = await owner(SETS, "partners", { nets: ["192.0.2.0/24"] });
    const policy = await owner(POLICIES, "allow-web", { selector: "app == 'web'" });
    const root = await client.create<KubeObject>(SECRETS, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "root", namespace: "team" },
    } as KubeObject);
    const other = { apiVersion: "v1", kind: "Secret", name: "root", uid: root.metadata.uid! };
    const everyThird = (i: number) => (i % 3 === 0 ? [other, policy] : [i % 2 === 0 ? set : policy]);
    await inParallel(
      Array.from({ length: OWNED }, (_, i) => i),
      32,
      async (i) => void (await client.create(CONFIG_MAPS, notes(`owned-${i}`, everyThird(i)))),
    );
    // A v3 resource may itself be owned by one.
    const inner = { name: "inner", namespace: "team", ownerReferences: [policy] };
    await client.create(SETS, {
      apiVersion: "vendor.io/v3",
      kind: "NetworkSet",
      metadata: inner,
      spec: {},
    } as KubeObject);
    await collectorHasLooked("first-look");
    const before = await there();
    expect(before.size).toBeGreaterThanOrEqual(OWNED);

    const owned = await ownedThroughV3(client, vendorNames);
    expect(owned).toHaveLength(OWNED + 1);
    const file = join(folder, "proof.json");
    const steps = ownerReferenceSteps(owned, vendorNames, { file });
    const said = await runSteps(client, steps.before);
    expect(said).toContain(`${OWNED + 1} owner references saved`);
    expect(await ownedThroughV3(client, vendorNames)).toEqual([]);
    expect((await there()).get("owned-3")?.ownerReferences).toEqual([other]);

    await upgradeTo("v3.31.3");
    await collectorHasLooked("second-look");

    const after = await runSteps(client, steps.after);
    expect(after).toContain(`all ${OWNED + 1} objects are unchanged; 0 lost`);
    await collectorHasLooked("third-look");
    const now = await there();
    expect(now.size).toBe(before.size);
    for (const [name, { uid }] of before) expect(now.get(name)?.uid).toBe(uid);
    const renewed = await client.get<KubeObject>(SETS, { name: "partners", namespace: "team" });
    expect(renewed.metadata.uid).not.toBe(set.uid);
    expect(now.get("owned-2")?.ownerReferences).toEqual([{ ...set, uid: renewed.metadata.uid }]);
    const stored = { ...SETS, group: "crd.vendor.io", version: "v1" };
    const innerNow = await client.get<KubeObject>(stored, { name: "inner", namespace: "team" });
    expect(innerNow.metadata.ownerReferences?.[0]).toMatchObject({
      apiVersion: "crd.vendor.io/v1",
      name: "default.allow-web",
    });
    const proof = JSON.parse(readFileSync(file, "utf8"));
    expect(proof).toMatchObject({ restored: { added: OWNED + 1 }, proved: OWNED + 1, lost: [], goneOwners: [] });
    expect(proof.references).toHaveLength(OWNED + 1);

    // Without it: the UIDs change back, and nobody takes the references away first.
    await upgradeTo("v3.27.4");
    const left = async () => [...(await there()).keys()].filter((name) => name.startsWith("owned-")).length;
    await expect.poll(left, patience).toBe(Math.ceil(OWNED / 3));
  });
});

describe("vendorctl upgrade from v3.27 to this version", () => {
  const MANY = 10_000;
  it(`loses none of ${MANY} owned objects`, async ({ skip }) => {
    if (process.env["OWNED_OBJECTS"] !== "full") skip("a long run: npm run test:long -- owner-references");
    const story = await upgradeScenario("v3.27", "operator");
    try {
      const { client: api } = story.cluster;
      const found = await api.get<KubeObject>(POLICIES, { name: "allow-web", namespace: "shop" });
      const { apiVersion, kind, metadata } = found;
      const reference = { apiVersion, kind, name: metadata.name, uid: metadata.uid! };
      const uids = new Map<string, string>();
      await inParallel(
        Array.from({ length: MANY }, (_, i) => `owned-${i}`),
        32,
        async (name) => {
          const object = notes(name, [reference]);
          const made = await api.create(CONFIG_MAPS, {
            ...object,
            metadata: { ...object.metadata, namespace: "shop" },
          });
          uids.set(name, made.metadata.uid!);
        },
      );
      const said = await story.ok("upgrade", "-y", "--timeout", "5m");
      expect(said).toContain(`all ${MANY + 3} objects are unchanged; 0 lost`);
      const { items } = await api.list<KubeObject>(CONFIG_MAPS, { namespace: "shop" });
      const now = new Map(items.map((item) => [item.metadata.name, item.metadata]));
      const renewed = await api.get<KubeObject>(POLICIES, { name: "allow-web", namespace: "shop" });
      expect(renewed.metadata.uid).not.toBe(reference.uid);
      for (const [name, uid] of uids) {
        expect(now.get(name)).toMatchObject({ uid, ownerReferences: [{ ...reference, uid: renewed.metadata.uid }] });
      }
    } finally {
      await story.close();
    }
  });
});
