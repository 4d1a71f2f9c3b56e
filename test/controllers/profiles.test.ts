import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import type { Profile } from "../../src/api/resources/profile.ts";
import { NAMESPACES, SERVICE_ACCOUNTS } from "../../src/cluster/kinds.ts";
import { PROFILES, typeOf } from "../../src/controllers/stored-kinds.ts";
import { type ControllersLab, controllersLab, eventually, read, type Started } from "./controllers-lab.ts";

/** Profiles for namespaces and service accounts: what every pod has by where it is. */

type StoredProfile = KubeObject & Profile;

let world: ControllersLab;
let started: Started;
beforeEach(async () => {
  world = await controllersLab();
  started = world.start();
});
afterEach(() => world.close());

const profile = (name: string) => read<StoredProfile>(world.client, PROFILES, { name });
const until = (name: string, is: (found: StoredProfile | undefined) => boolean) => eventually(() => profile(name), is);
const namespace = (name: string, labels: Record<string, string> = {}) =>
  world.client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } });
const account = (name: string, labels: Record<string, string> = {}) =>
  world.client.create(SERVICE_ACCOUNTS, {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name, namespace: "default", labels },
  });

/** What the orchestrator does to a deleted namespace once nothing is left in it. */
async function emptied(name: string): Promise<void> {
  const going = await world.client.get<KubeObject>(NAMESPACES, { name });
  expect(await profile(`kns.${name}`)).toBeDefined();
  await world.client.raw({
    method: "PUT",
    path: `/api/v1/namespaces/${name}/finalize`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...going, spec: { finalizers: [] } }),
  });
}

describe("profiles", () => {
  it("a namespace has one that allows all and hands on its labels; it follows them, and ends with it", async () => {
    await namespace("shop", { team: "a", tier: "gold" });
    const made = await until("kns.shop", (found) => found !== undefined);
    expect(made?.spec).toEqual({
      ingress: [{ action: "Allow" }],
      egress: [{ action: "Allow" }],
      labelsToApply: {
        "pcns.kubernetes.io/metadata.name": "shop",
        "pcns.team": "a",
        "pcns.tier": "gold",
        "pcns.vendor.io/name": "shop",
      },
    });
    const patch = { metadata: { labels: { team: "b", tier: null } } };
    await world.client.patch(NAMESPACES, { name: "shop" }, { type: "merge", patch });
    await until("kns.shop", (found) => {
      const labels = found?.spec.labelsToApply ?? {};
      return labels["pcns.team"] === "b" && labels["pcns.tier"] === undefined;
    });
    await world.client.delete(NAMESPACES, { name: "shop" });
    await emptied("shop");
    await until("kns.shop", (found) => found === undefined);
  });

  it("a service account has one that only hands on its labels, dots in its name or not", async () => {
    await account("build.bot", { robot: "yes" });
    const made = await until("ksa.default.build.bot", (found) => found !== undefined);
    expect(made?.spec).toEqual({ labelsToApply: { "pcsa.robot": "yes", "pcsa.vendor.io/name": "build.bot" } });
    await world.client.delete(SERVICE_ACCOUNTS, { namespace: "default", name: "build.bot" });
    await until("ksa.default.build.bot", (found) => found === undefined);
  });

  it("hand edits are put back, even one that takes the label off; a deletion is undone", async () => {
    await until("kns.default", (found) => found !== undefined);
    const patch = {
      metadata: { labels: { "vendor.io/created-by": null, mine: "yes" } },
      spec: { ingress: [{ action: "Deny" }], labelsToApply: { "pcns.vendor.io/name": "other" } },
    };
    await world.client.patch(PROFILES, { name: "kns.default" }, { type: "merge", patch });
    const back = await until("kns.default", (found) => JSON.stringify(found?.spec.ingress) === '[{"action":"Allow"}]');
    expect(back?.spec.labelsToApply?.["pcns.vendor.io/name"]).toBe("default");
    expect(back?.metadata.labels).toEqual({ mine: "yes", "vendor.io/created-by": "vendor-kube-controllers" });
    await world.client.delete(PROFILES, { name: "kns.default" });
    await until("kns.default", (found) => found !== undefined);
  });

  it("a profile somebody made stays, also one named after a namespace that is not there", async () => {
    for (const name of ["own", "kns.nowhere"]) {
      await world.client.create(PROFILES, { ...typeOf(PROFILES), metadata: { name }, spec: {} });
    }
    const before = await Promise.all(["own", "kns.nowhere"].map(profile));
    await namespace("later");
    await until("kns.later", (found) => found !== undefined);
    expect(await Promise.all(["own", "kns.nowhere"].map(profile))).toEqual(before);
  });

  it("what went while the program was away goes when it is back; what is right already is not written again", async () => {
    await account("left");
    await account("stays");
    await until("ksa.default.left", (found) => found !== undefined);
    await until("ksa.default.stays", (found) => found !== undefined);
    await started.stop();
    await world.client.delete(SERVICE_ACCOUNTS, { namespace: "default", name: "left" });
    const second = world.start();
    await until("ksa.default.left", (found) => found === undefined);
    await eventually(second.metrics, (text) => /controller="profiles",result="ok"} [5-9]/.test(text));
    const path = "/apis/crd.vendor.io/v1/profiles";
    expect(second.writes).toEqual([`DELETE ${path}/ksa.default.left`]);
  });
});
