import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import type { Pool } from "../../ipam/ipam-kinds.ts";
import { V4, V6 } from "../../kit/ip.ts";
import { choosePools, tunnelPools } from "./choose-pools.ts";

const pool = (name: string, cidr: string, spec: Partial<Pool["spec"]> = {}): Pool =>
  ({ apiVersion: "crd.vendor.io/v1", kind: "IPPool", metadata: { name }, spec: { cidr, ...spec } }) as unknown as Pool;

const named = (kind: string, annotations: Record<string, string> = {}, labels: Record<string, string> = {}) =>
  ({ apiVersion: "v1", kind, metadata: { name: "web", namespace: "shop", annotations, labels } }) as KubeObject;

const POOLS = [
  pool("everybody", "10.0.0.0/24"),
  pool("rack-1", "10.1.0.0/24", { nodeSelector: "rack == '1'" }),
  pool("payments", "10.2.0.0/24", { namespaceSelector: "team == 'payments'" }),
  pool("by-name", "10.3.0.0/24", { assignmentMode: "Manual" }),
  pool("off", "10.4.0.0/24", { disabled: true }),
  pool("tunnels", "10.5.0.0/24", { allowedUses: ["Tunnel"], vxlanMode: "Always" }),
  pool("six", "fd00::/64", { vxlanMode: "CrossSubnet" }),
];

function chosen(
  pod: Record<string, string> = {},
  {
    rack = "2",
    team = "web",
    namespace = {},
  }: { rack?: string; team?: string; namespace?: Record<string, string> } = {},
) {
  const { v4, v6, addresses } = choosePools(POOLS, {
    pod: named("Pod", pod),
    namespace: named("Namespace", namespace, { team }),
    nodeLabels: { rack },
  });
  return { v4: v4.map(({ metadata }) => metadata.name), v6: v6.map(({ metadata }) => metadata.name), addresses };
}

describe("which pools a pod takes from", () => {
  it("those whose selectors have its node and its namespace, by name; nothing that is off, or for others", () => {
    expect(chosen()).toEqual({ v4: ["everybody"], v6: ["six"], addresses: [] });
    expect(chosen({}, { rack: "1" }).v4).toEqual(["everybody", "rack-1"]);
    expect(chosen({}, { team: "payments" }).v4).toEqual(["everybody", "payments"]);
  });

  it("those it asks for by name or prefix, or its namespace does; a pod's own wish wins", () => {
    const wish = (text: string) => ({ "cni.vendor.io/ipv4pools": text });
    expect(chosen(wish('["by-name"]')).v4).toEqual(["by-name"]);
    expect(chosen(wish('["10.3.0.0/24"]')).v4).toEqual(["by-name"]);
    expect(chosen({}, { namespace: wish('["by-name"]') }).v4).toEqual(["by-name"]);
    expect(chosen(wish('["everybody"]'), { namespace: wish('["by-name"]') }).v4).toEqual(["everybody"]);
  });

  it.each([
    ["a pool that is off", { "cni.vendor.io/ipv4pools": '["off"]' }],
    ["a pool of other nodes", { "cni.vendor.io/ipv4pools": '["rack-1"]' }],
    ["no list", { "cni.vendor.io/ipv4pools": "everybody" }],
    ["an address of no pool", { "cni.vendor.io/ipAddrs": '["192.0.2.1"]' }],
  ])("refuses %s", (_case, annotations) => {
    expect(() => chosen(annotations)).toThrow(expect.objectContaining({ code: "POD_ANNOTATION" }));
  });

  it("an address it asks for may be of any pool its node may use", () => {
    expect(chosen({ "cni.vendor.io/ipAddrs": '["10.3.0.9"]' }).addresses).toEqual(["10.3.0.9"]);
  });

  it("says so when there is none", () => {
    const asker = { pod: named("Pod"), namespace: undefined, nodeLabels: {} };
    expect(() => choosePools([], asker)).toThrow(expect.objectContaining({ code: "IPAM_NO_POOL" }));
  });

  it("the node's own end of the overlay comes from pools that use it", () => {
    expect(tunnelPools(POOLS, V4, {}).map(({ metadata }) => metadata.name)).toEqual(["tunnels"]);
    expect(tunnelPools(POOLS, V6, {}).map(({ metadata }) => metadata.name)).toEqual(["six"]);
  });
});
