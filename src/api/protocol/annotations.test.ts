import { describe, expect, it } from "vitest";
import type { KubeObject } from "../object.ts";
import { holdAnnotations, isHold, nodeHold, releaseAnnotations } from "./node-hold.ts";
import { nodeInterfaces, nodeInterfacesAnnotations } from "./node-interfaces.ts";
import { nodeNetworkAnnotations, readNodeNetwork } from "./node-network.ts";
import { annotatedAddresses, podMac, podNetworkAnnotations } from "./pod-network.ts";
import { isSimulatedNode, simulatedNodeAnnotations } from "./simulated-node.ts";
import { formatSnapshot, parseSnapshot } from "./traffic-report.ts";

const annotated = (annotations: Record<string, string>): KubeObject => ({
  apiVersion: "v1",
  kind: "Thing",
  metadata: { name: "a", annotations },
});

/** The texts are what clusters have: written by one release, read by another. */
describe("annotations are written and read as clusters have them", () => {
  it("of a node that is held back for a switch", () => {
    expect(holdAnnotations("configuration-made")).toEqual({
      "procedures.vendor.io/held-by-switch": "configuration-made",
    });
    expect(releaseAnnotations()).toEqual({ "procedures.vendor.io/held-by-switch": null });
    expect(nodeHold(annotated({ "procedures.vendor.io/held-by-switch": "field-added" }))).toBe("field-added");
    expect(nodeHold(annotated({ "procedures.vendor.io/held-by-switch": "of a newer release" }))).toBe("field-added");
    expect(isHold(annotated({}))).toBe(false);
  });

  it("of a node without a kernel behind it", () => {
    expect(simulatedNodeAnnotations()).toEqual({ "local.vendor.io/on-paper": "true" });
    expect([isSimulatedNode({ "local.vendor.io/on-paper": "true" }), isSimulatedNode({})]).toEqual([true, false]);
  });

  it("of a node's addresses", () => {
    const network = {
      addressV4: "10.0.0.1/24",
      addressV6: undefined,
      tunnelAddressV4: "10.244.0.1",
      tunnelAddressV6: undefined,
      tunnelMac: "66:01:02:03:04:05",
    };
    const written = nodeNetworkAnnotations(network);
    expect(written).toEqual({
      "vendor.io/ipv4-address": "10.0.0.1/24",
      "vendor.io/ipv6-address": null,
      "vendor.io/ipv4-vxlan-address": "10.244.0.1",
      "vendor.io/ipv6-vxlan-address": null,
      "vendor.io/vxlan-mac": "66:01:02:03:04:05",
    });
    const there = Object.entries(written).filter((entry): entry is [string, string] => entry[1] !== null);
    expect(readNodeNetwork(annotated(Object.fromEntries(there)))).toEqual(network);
  });

  it("of a node's interfaces", () => {
    const written = nodeInterfacesAnnotations([{ name: "eth0", addresses: ["10.0.0.1"] }]);
    expect(written).toEqual({ "vendor.io/interfaces": '[{"name":"eth0","addresses":["10.0.0.1"]}]' });
    expect(nodeInterfaces(annotated(written))).toEqual([{ name: "eth0", addresses: ["10.0.0.1"] }]);
  });

  it("of a pod's interface", () => {
    const written = podNetworkAnnotations(["10.244.0.5", "fd00::5"], "EE:00:00:00:00:01");
    expect(written).toEqual({ "cni.vendor.io/podIPs": "10.244.0.5,fd00::5", "cni.vendor.io/mac": "EE:00:00:00:00:01" });
    expect(annotatedAddresses(annotated(written))).toEqual(["10.244.0.5/32", "fd00::5/128"]);
    expect(podMac(annotated(written))).toBe("ee:00:00:00:00:01");
  });
});

it("a probe's line is read as it was written, and anything else is not one", () => {
  const snapshot = { seconds: 1.5, rows: [] };
  expect(formatSnapshot(snapshot)).toBe('{"seconds":1.5,"rows":[]}\n');
  expect(parseSnapshot(formatSnapshot(snapshot))).toEqual(snapshot);
  expect(["", "starting", '{"seconds":"1"}'].map(parseSnapshot)).toEqual([undefined, undefined, undefined]);
});
