import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { parseNetConf } from "./net-conf.ts";
import { type OverlayFacts, planOverlay } from "./overlay-plan.ts";

const node = (name: string, address: string, podCIDRs: string[]): KubeObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name },
  spec: { podCIDR: podCIDRs[0], podCIDRs },
  status: { addresses: [{ type: "InternalIP", address }] },
});
const link = {
  index: 2,
  name: "eth0",
  kind: undefined,
  mac: undefined,
  mtu: 1500,
  up: true,
  peer: undefined,
  master: undefined,
  vxlan: undefined,
};

function facts(backend: object, more: Partial<OverlayFacts> = {}): OverlayFacts {
  return {
    node: "a",
    nodes: [
      node("a", "192.0.2.1", ["10.244.0.0/24"]),
      node("b", "192.0.2.2", ["10.244.1.0/24"]),
      node("far", "198.51.100.3", ["10.244.2.0/24"]),
      node("new", "192.0.2.4", []),
    ],
    conf: parseNetConf(JSON.stringify({ Network: "10.244.0.0/16", Backend: backend })),
    masquerade: true,
    links: [link],
    addresses: [{ device: 2, address: "192.0.2.1/24" }],
    ...more,
  };
}

const routes = (given: OverlayFacts) =>
  planOverlay(given).routes.map(
    ({ route, overlay }) => `${route.destination} via ${route.gateway}${overlay ? " tunnel" : ""}`,
  );

describe("the overlay of a node", () => {
  it("leads to every podCIDR through VXLAN, with an end of its own at the first address", () => {
    const plan = planOverlay(facts({ Type: "vxlan" }));
    expect(routes(facts({ Type: "vxlan" }))).toEqual([
      "10.244.1.0/24 via 10.244.1.0 tunnel",
      "10.244.2.0/24 via 10.244.2.0 tunnel",
    ]);
    expect(plan.device).toMatchObject({
      vni: 1,
      port: 8472,
      local: "192.0.2.1",
      mtu: 1450,
      addresses: ["10.244.0.0/32"],
    });
    expect([...plan.peers.neighbours.keys()]).toEqual(["10.244.1.0", "10.244.2.0"]);
    expect([...plan.peers.forwarding.values()]).toEqual(["192.0.2.2", "198.51.100.3"]);
    expect(plan.subnetFile).toBe(
      "OVERLAY_NETWORK=10.244.0.0/16\nOVERLAY_SUBNET=10.244.0.0/24\nOVERLAY_MTU=1450\nOVERLAY_IPMASQ=true\n",
    );
    expect(plan.rules).toContain("ip saddr 10.244.0.0/16 ip daddr != { 10.244.0.0/16, 224.0.0.0/4 } masquerade");
    expect(plan.rules).toContain("saddr != { 192.0.2.1, 192.0.2.2, 192.0.2.4, 198.51.100.3 } drop");
  });

  it("leads to nodes of its subnet directly with DirectRouting, and tunnels to the others", () => {
    expect(routes(facts({ Type: "vxlan", DirectRouting: true }))).toEqual([
      "10.244.1.0/24 via 192.0.2.2",
      "10.244.2.0/24 via 10.244.2.0 tunnel",
    ]);
  });

  it("names the nodes that host-gw cannot reach, and has no device", () => {
    const plan = planOverlay(facts({ Type: "host-gw" }));
    expect(plan.device).toBeUndefined();
    expect(routes(facts({ Type: "host-gw" }))).toEqual(["10.244.1.0/24 via 192.0.2.2"]);
    expect(plan.problems).toEqual(["host-gw cannot reach node far: 198.51.100.3 is in another subnet"]);
  });

  it("waits for a podCIDR of its own, and says what gives one", () => {
    const alone = facts({ Type: "vxlan" }, { node: "new" });
    expect(() => planOverlay(alone)).toThrow(expect.objectContaining({ code: "OVERLAY_NO_POD_CIDR" }));
  });
});

describe("net-conf.json", () => {
  it.each([
    ["no JSON", "{"],
    ["no network", "{}"],
    ["host bits", '{"Network":"10.244.0.1/16"}'],
    ["another backend", '{"Network":"10.244.0.0/16","Backend":{"Type":"wireguard"}}'],
    ["a field that is not known", '{"Network":"10.244.0.0/16","SubnetLen":24}'],
    ["a VNI out of range", '{"Network":"10.244.0.0/16","Backend":{"Type":"vxlan","VNI":16777216}}'],
    ["no family", '{"EnableIPv4":false}'],
  ])("is refused with %s", (_, text) => {
    expect(() => parseNetConf(text)).toThrow(expect.objectContaining({ code: "OVERLAY_CONF" }));
  });

  it("takes both families", () => {
    const { networks } = parseNetConf('{"Network":"10.244.0.0/16","EnableIPv6":true,"IPv6Network":"fd00::/56"}');
    expect(networks).toHaveLength(2);
  });
});
