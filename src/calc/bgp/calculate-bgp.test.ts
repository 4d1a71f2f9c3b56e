import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { NODE_BGP } from "../../api/protocol/node-bgp.ts";
import type { BGPPeer } from "../../api/resources/bgp-peer.ts";
import type { ClusterNode } from "../model.ts";
import type { BgpInputs } from "./bgp-inputs.ts";
import { birdConfig } from "./bird-config.ts";
import { calculateBgp } from "./calculate-bgp.ts";

const object = (kind: string, name: string, spec: object) => ({
  ...{ apiVersion: "crd.vendor.io/v1", kind },
  ...{ metadata: { name }, spec },
});
const node = (name: string, annotations: Record<string, string> = {}): KubeObject => ({
  ...{ apiVersion: "v1", kind: "Node" },
  metadata: { name, labels: { name }, annotations },
});
const network = (at: number): ClusterNode => ({
  ...{ name: `n${at}`, local: at === 1, addressV4: `10.0.0.${at}`, addressV6: null },
  ...{ subnetV4: "10.0.0.0/24", subnetV6: null, addresses: [], dataplane: null },
  vtep: { mac: "", addressV4: null, addressV6: null },
});

function cluster(change: Partial<BgpInputs> = {}): BgpInputs {
  return {
    ...{ node: "n1", nodes: [node("n1"), node("n2"), node("n3")] },
    ...{ configurations: [], peers: [], filters: [], pools: [], switching: false },
    model: { nodes: new Map([1, 2, 3].map((at) => [`n${at}`, network(at)])), routes: new Map(), services: new Map() },
    password: () => undefined,
    ...change,
  };
}
const peer = (name: string, spec: object) => object("BGPPeer", name, spec) as BGPPeer;
const sessions = (change: Partial<BgpInputs>) =>
  calculateBgp(cluster(change)).model!.sessions.map(
    ({ name, asNumber, localAsNumber }) => `${name} ${localAsNumber}-${asNumber}`,
  );
const codes = (change: Partial<BgpInputs>) =>
  calculateBgp(cluster(change)).problems.map(({ object: of, code }) => `${of} ${code}`);

describe("with whom a node speaks", () => {
  it("with every other node, of whatever AS", () => {
    expect(sessions({})).toEqual(["mesh_10_0_0_2 64512-64512", "mesh_10_0_0_3 64512-64512"]);
    expect(sessions({ nodes: [node("n1"), node("n2", { [NODE_BGP.asNumber]: "64600" })] })).toEqual([
      "mesh_10_0_0_2 64512-64600",
    ]);
  });

  it("a reflector is in no mesh; a selector gives sessions to both ends", () => {
    const reflector = { [NODE_BGP.routeReflectorClusterId]: "1.0.0.1" };
    const peers = [peer("rr", { nodeSelector: "all()", peerSelector: 'name == "n2"' })];
    const nodes = [node("n1"), node("n2", reflector), node("n3")];
    expect(sessions({ nodes, peers })).toEqual(["mesh_10_0_0_3 64512-64512", "node_10_0_0_2 64512-64512"]);
    const { model } = calculateBgp(cluster({ node: "n2", nodes, peers }));
    expect(model!.sessions.map(({ name, reflectorClusterId }) => `${name} ${reflectorClusterId}`)).toEqual([
      "node_10_0_0_1 1.0.0.1",
      "node_10_0_0_3 1.0.0.1",
    ]);
  });

  it("with a router once, at the port it says, and never with itself", () => {
    const peers = [
      peer("a", { peerIP: "10.0.0.9:1179", asNumber: 65_001 }),
      peer("b", { peerIP: "10.0.0.9:1179", asNumber: 65_002 }),
      peer("c", { node: "n2", peerIP: "10.0.0.8", asNumber: 65_001 }),
      peer("d", { peerIP: "10.0.0.1", asNumber: 65_001 }),
    ];
    const configurations = [object("BGPConfiguration", "default", { nodeToNodeMeshEnabled: false })];
    expect(sessions({ peers, configurations })).toEqual(["peer_10_0_0_9_1179 64512-65001"]);
  });

  it("a session without its password or its filter is not there, and is reported", () => {
    const peers = [
      peer("a", { peerIP: "10.0.0.8", asNumber: 1, password: { secretKeyRef: { name: "s", key: "k" } } }),
      peer("b", { peerIP: "10.0.0.9", asNumber: 1, filters: ["gone"] }),
      peer("c", { nodeSelector: "a ==", peerIP: "10.0.0.7", asNumber: 1 }),
    ];
    const reported = [
      "BGPPeer a BGP_PASSWORD_MISSING",
      "BGPPeer b BGP_FILTER_MISSING",
      "BGPPeer c BGP_SELECTOR_MALFORMED",
    ];
    expect(codes({ peers })).toEqual(reported);
    expect(sessions({ peers })).toEqual(sessions({}));
    expect(codes({ peers: peers.slice(0, 1), password: () => 'with "quotes"' })).toEqual([
      "BGPPeer a BGP_PASSWORD_FORM",
    ]);
  });

  it("annotations and communities that cannot be read are reported, and not used", () => {
    const spec = { prefixAdvertisements: [{ cidr: "10.0.0.0/8", communities: ["nobody"] }] };
    expect(
      codes({
        nodes: [node("n1", { [NODE_BGP.asNumber]: "65x", [NODE_BGP.routeReflectorClusterId]: "one" })],
        configurations: [object("BGPConfiguration", "default", spec)],
      }),
    ).toEqual([
      "BGPConfiguration default BGP_COMMUNITY_MISSING",
      "Node n1 BGP_NODE_SETTING",
      "Node n1 BGP_NODE_SETTING",
    ]);
  });
});

it("the same objects in another order are the same text", () => {
  const peers = [peer("a", { peerIP: "10.0.0.8", asNumber: 1 }), peer("b", { peerIP: "10.0.0.9", asNumber: 1 })];
  const given = cluster({ peers });
  const turned = cluster({ peers: [...peers].reverse(), nodes: [...given.nodes].reverse() });
  expect(birdConfig(calculateBgp(turned).model!)).toBe(birdConfig(calculateBgp(given).model!));
});
