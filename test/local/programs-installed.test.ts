import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { v3Uid } from "../../src/api/resources/v3-uid.ts";
import { API_SERVICES, CONFIG_MAPS } from "../../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";

const { groups, kinds } = vendorNames;
const policies = { plural: kinds.networkPolicy.plural, kind: kinds.networkPolicy.kind, namespaced: true };
const served = { ...groups.served, ...policies };
const stored = { ...groups.stored, ...policies };
const ref = { namespace: "shop", name: "allow-web" };
const storedRef = { namespace: "shop", name: "default.allow-web" };

describe("a cluster as an older version left it", () => {
  let cluster: LocalCluster;
  beforeAll(async () => {
    const installed = { version: "v3.27", method: "operator" } as const;
    cluster = await startCluster({ name: "older", kind: "generic", nodes: 2, installed });
  });
  afterAll(() => cluster.close());

  it("has a working v3 API, which is this one in the manner of that version", async () => {
    interface Conditioned extends KubeObject {
      status?: { conditions?: { type: string; status: string }[] };
    }
    await eventually(
      () => cluster.client.get<Conditioned>(API_SERVICES, { name: "v3.vendor.io" }),
      ({ status }) =>
        status?.conditions?.some(({ type, status: is }) => type === "Available" && is === "True") ?? false,
    );
    const seen = await cluster.client.get(served, ref);
    const kept = await cluster.client.get(stored, storedRef);
    expect(seen.metadata.uid).toBe(v3Uid(kept.metadata.uid!, "v3.27.5"));
    expect(seen.metadata.uid).not.toBe(v3Uid(kept.metadata.uid!, "v3.31.3"));
  });

  it("what its v3 resources own is there: they are served under the UIDs the owners were named by", async () => {
    const notes = await cluster.client.get(CONFIG_MAPS, { name: "allow-web-notes", namespace: "shop" });
    const seen = await cluster.client.get(served, ref);
    expect(notes.metadata.ownerReferences?.[0]?.uid).toBe(seen.metadata.uid);
  });
});
