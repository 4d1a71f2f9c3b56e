import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { v3Places } from "../../src/api/resources/v3-places.ts";
import { NODES } from "../../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { type RunningCopy, runCopy } from "../controllers/run-program.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { type ClusterState, settledState, stateDifferences, untilState } from "../support/procedure-state.ts";

/**
 * A cluster that came from before v3.14: people made host endpoints by hand, and the temporary policy is still there. The first node has
 * one for all interfaces, which the migration moves; the last has one for a single interface, which it leaves alone.
 */

const stored = (noun: string) => v3Places(vendorNames).find((place) => place.noun === noun)!.stored;
const MIGRATE = ["migrate", "host-endpoints"];

describe("from one's own host endpoints to automatic ones", () => {
  let cluster: LocalCluster;
  let tool: InProcessVendorctl;
  let before: ClusterState;
  let controllers: RunningCopy;
  beforeAll(async () => {
    const installed = {
      version: "v3.30",
      method: "operator",
      autoHostEndpoints: false,
      cameFromBeforeV314: true,
    } as const;
    cluster = await startCluster({ name: "endpoints", kind: "generic", nodes: 3, installed });
    tool = inProcessVendorctl(cluster.kubeconfig);
    controllers = runCopy("controllers", cluster.server.transport());
    const { group } = vendorNames.groups.served;
    const known = async () => (await cluster.client.resources()).some((one) => one.group === group);
    await vi.waitUntil(known, { timeout: 120_000 });
    before = await settledState(cluster.client);
  });
  afterAll(async () => {
    tool.close();
    await controllers.stop();
    await cluster.close();
  });
  const endpoints = async () => {
    const { items } = await cluster.client.list<KubeObject>(stored("hostEndpoint"));
    return items.map(({ metadata }) => metadata.name).sort();
  };

  it("is refused while policies that act on no node now would start to, and names them", async () => {
    const { exit, err } = await tool.run(...MIGRATE, "-y");
    expect({ exit, err }).toMatchObject({ exit: 3, err: expect.stringContaining("[HOST_ENDPOINT_POLICIES_BITE]") });
    expect(err).toContain("policies would start to apply to nodes: deny-instance-metadata");
    expect(stateDifferences(before, await settledState(cluster.client))).toEqual([]);
  });

  it("shows what they would do, node by node, before anything is done", async () => {
    const plan = await tool.ok("plan", ...MIGRATE, "--accept-policies");
    expect(plan).toContain("policy deny-instance-metadata (all()) would start to decide egress of local traffic on");
    expect(plan).toContain("without a profile, which denies what no policy allows; the automatic endpoint allows it");
    expect(plan).toContain("allow-all-upgrade still allows all traffic on");
    expect(plan).toContain("Kept, because they are not for all interfaces:");
    expect(plan).not.toContain("Delete the temporary policy");
  });

  it("labels, enables, waits, deletes, in this order", async () => {
    const [first, , last] = cluster.nodeNames as [string, string, string];
    const out = await tool.ok(...MIGRATE, "--accept-policies", "--delete-temporary-policy", "-y");
    expect(out).toBeTruthy();
    const node = await cluster.client.get<KubeObject>(NODES, { name: first });
    expect(node.metadata.labels).toMatchObject({ environment: "production", "host-endpoint": "ingress" });
    expect(await endpoints()).toEqual([...cluster.nodeNames.map((name) => `${name}-auto-hep`), `${last}-eth1`].sort());
    const automatic = await cluster.client.get<KubeObject>(stored("hostEndpoint"), { name: `${first}-auto-hep` });
    expect(automatic.metadata.labels).toMatchObject({
      environment: "production",
      "host-endpoint": "ingress",
      "vendor.io/created-by": "vendor-kube-controllers",
    });
    const policies = await cluster.client.list<KubeObject>(stored("globalNetworkPolicy"));
    expect(policies.items.map(({ metadata }) => metadata.name)).toEqual(["default.deny-instance-metadata"]);
  });

  it("has nothing left to do the second time", async () => {
    const plan = JSON.parse(await tool.ok(...MIGRATE, "--accept-policies", "-y", "-o", "json"));
    expect(plan.steps).toEqual([]);
  });

  it("is taken back to what was there before", async () => {
    await tool.ok("rollback", "-y");
    expect(await untilState(cluster.client, before)).toEqual([]);
  });
});
