import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  fewWithEveryTag,
  type NetworkPolicyCase,
  NetworkPolicyLab,
  networkPolicyCases,
} from "../calc/network-policy-lab.ts";
import { NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import { LivePolicyLab } from "./live-policy-lab.ts";
import { installNetwork, type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";

const all = networkPolicyCases();
const why = whyNoRealNodes ?? (all ? undefined : NO_CONFORMANCE_DATA);
/** All of them take a quarter of an hour on each plane. */
const FULL = process.env["NETNS_POLICY"] === "full";

const POOLS = { group: "crd.vendor.io", version: "v1", kind: "IPPool", plural: "ippools", namespaced: false };
/** The prefix the cases count on, for those who ask for an address in it by name and for nobody else. */
const POOL_OF_THE_CASES = {
  apiVersion: "crd.vendor.io/v1",
  kind: "IPPool",
  metadata: { name: "cases" },
  spec: { cidr: "192.168.242.0/24", vxlanMode: "Always", assignmentMode: "Manual" },
};

const DATAPLANES = ["Nftables", "BPF"] as const;

/** In turn for each data plane. All cases hold in the calculation of policy, and in each plane's own tests. */
function chosen(cases: readonly NetworkPolicyCase[], dataplane: (typeof DATAPLANES)[number]): NetworkPolicyCase[] {
  if (FULL) return [...cases];
  return fewWithEveryTag(cases).filter((_, at) => at % DATAPLANES.length === DATAPLANES.indexOf(dataplane));
}

describe.skipIf(why).each(DATAPLANES)(`NetworkPolicy with real sockets on %s${why ? `: ${why}` : ""}`, (dataplane) => {
  let cluster: RealCluster;
  let live: LivePolicyLab;
  beforeAll(async () => {
    cluster = await startReal({ nodes: 2 });
    await installNetwork(cluster, { dataplane, encapsulation: "VXLAN", families: [4] });
    await cluster.client.create(POOLS, POOL_OF_THE_CASES);
    live = new LivePolicyLab(cluster, cluster.nodeNames);
  });
  afterAll(async () => {
    live?.close();
    await cluster?.close();
  });

  if (!all) it("holds for the public cases", () => {});
  it.each(chosen(all ?? [], dataplane).map((one) => [one.Description, one] as const))("%s", async (_, { Steps }) => {
    live.clear();
    const world = new NetworkPolicyLab(live, "");
    for (const [index, { Actions = [], Allowed }] of Steps.entries()) {
      for (const action of Actions) world.act(action);
      await live.sync();
      const probes = [...world.probes(Allowed)].filter(({ protocol }) => protocol !== "SCTP");
      expect(await live.wrong(probes), `step ${index + 1}`).toEqual([]);
    }
  });
});
