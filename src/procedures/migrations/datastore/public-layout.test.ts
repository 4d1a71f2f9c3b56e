import { describe, expect, it } from "vitest";
import { calicoNames } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import { type Layout, layoutOf, type StoredObject } from "./layout.ts";
import { endpointOf } from "./public/pod-endpoint.ts";
import { byId, differences } from "./stored-objects.ts";

const layout: Layout = layoutOf(calicoNames);
const RESOURCES = "/calico/resources/v3/projectcalico.org/";
const IPAM = "/calico/ipam/v2/";
const METADATA = "projectcalico.org/metadata";

const place = (key: string, value: object | string) =>
  layout.place({ key, value: typeof value === "string" ? value : JSON.stringify(value), revision: 4 });
const placed = (key: string, value: object | string) => place(key, value) as StoredObject;
/** As agents read it from the Kubernetes API, once it was written there. */
const back = ({ kind, object }: StoredObject): KubeObject => kind.fromKubernetes(kind.toKubernetes(object))!;

const block = {
  ...{ cidr: "10.0.0.0/30", affinity: null, allocations: [0, null, null, null], unallocated: [1, 2, 3] },
  ...{ attributes: [{ handle_id: "one", secondary: null }], sequenceNumber: 2, deleted: false },
};
const values: [string, string, object | string, string][] = [
  ["a block without affinity", `${IPAM}assignment/ipv4/block/10.0.0.0-30`, block, "IPAMBlock 10-0-0-0-30"],
  [
    "an IPv6 block",
    `${IPAM}assignment/ipv6/block/fd00::-122`,
    { ...block, cidr: "fd00::/122" },
    "IPAMBlock fd00---122",
  ],
  [
    "an affinity",
    `${IPAM}host/node-a/ipv4/block/10.0.0.0-26`,
    { state: "confirmed", deleted: false },
    "BlockAffinity node-a-10-0-0-0-26",
  ],
  ["an affinity of before v3.0.7", `${IPAM}host/node-a/ipv4/block/10.0.0.0-26`, "", "BlockAffinity node-a-10-0-0-0-26"],
  [
    "an affinity of Services",
    `${IPAM}virtual/load-balancer/ipv4/block/10.1.0.0-26`,
    { state: "confirmed", deleted: false },
    "BlockAffinity load-balancer-10-1-0-0-26",
  ],
  ["a handle", `${IPAM}handle/Pod.ABC`, { block: { "10.0.0.0/30": 1 }, deleted: false }, "IPAMHandle pod.abc"],
  ["IPAM's settings", `${IPAM}config`, { strict_affinity: true, maxBlocksPerHost: 4 }, "IPAMConfig default"],
];

describe("IPAM in etcd", () => {
  it.each(values)("%s is an object of a CRD, and its own value again", (_what, key, value, id) => {
    const one = placed(key, value);
    expect(one.id).toBe(id);
    expect(one.kind.keyOf(one.object)).toBe(key);
    expect(differences(byId([one]), byId([{ ...one, object: back(one) }]))).toEqual([]);
    const written = placed(key, one.kind.written(back(one), undefined));
    expect(differences(byId([one]), byId([written]))).toEqual([]);
  });

  it("writes a block's fields as Calico's programs read them: null where there is none", () => {
    const one = placed(values[0]![1], block);
    expect(JSON.parse(one.kind.written(one.object, undefined))).toEqual({
      ...block,
      sequenceNumberForAllocation: null,
    });
    expect(one.object["spec"]).toMatchObject({ strictAffinity: false, attributes: [{ handle_id: "one" }] });
  });

  it("labels affinities by the hash with which Calico's IPAM finds them", () => {
    const { labels } = placed(values[2]![1], values[2]![2]).object.metadata;
    expect(labels).toEqual({
      "projectcalico.org/hostname-hash": "PY3TQE2E3XMTETLM2MJO3UITKPFB27YUJ4T4E5XGPEJON3SM4QAA",
      "projectcalico.org/affinity-type": "host",
      "projectcalico.org/ip-version": "4",
    });
  });

  it("shortens a name that Kubernetes would refuse, to another for each node", () => {
    const names = ["a", "b"].map(
      (last) => placed(`${IPAM}host/${"n".repeat(250)}${last}/ipv4/block/10.0.0.0-26`, "").object.metadata.name,
    );
    expect(names.map(({ length }) => length)).toEqual([252, 252]);
    expect(names[0]).not.toBe(names[1]);
  });
});

describe("v3 resources", () => {
  const uid = "0d2f6b0e-5d0c-4d0e-8f55-4f2f5b8f0a01";
  const owner = { apiVersion: "projectcalico.org/v3", kind: "Tier", name: "platform", uid };
  const metadata = { name: "web", labels: { team: "a" }, annotations: { note: "x" }, ownerReferences: [owner] };
  const policy = (name: string, annotations: object = {}) =>
    placed(`${RESOURCES}globalnetworkpolicies/${name}`, {
      metadata: { ...metadata, name, annotations: { ...metadata.annotations, ...annotations } },
      spec: { order: 1, ingress: null },
    });

  it.each([
    ["by its tier where it says none", "default.web", {}, "web"],
    ["as its users wrote it", "default.web", { [METADATA]: '{"name":"default.web"}' }, "default.web"],
    ["of another tier", "platform.web", {}, "platform.web"],
  ])("keep the name of a policy %s", (_what, name, annotations, users) => {
    const one = policy(name, annotations);
    const stored = one.kind.toKubernetes(one.object);
    expect(stored.metadata.name).toBe(name);
    expect(JSON.parse(stored.metadata.annotations![METADATA]!)).toMatchObject({ name: users });
    expect(differences(byId([one]), byId([{ ...one, object: back(one) }]))).toEqual([]);
    expect(one.object["spec"]).toEqual({ order: 1 });
  });

  it("keep users' labels and owners in one annotation, owners by the UID that the CRD has", () => {
    const one = policy("default.web");
    const { labels, annotations } = one.kind.toKubernetes(one.object).metadata;
    expect(labels).toBeUndefined();
    const kept = JSON.parse(annotations![METADATA]!) as KubeObject["metadata"];
    expect(kept).toMatchObject({ labels: { team: "a" }, annotations: { note: "x" } });
    expect(kept.ownerReferences![0]).toMatchObject({ apiVersion: "crd.projectcalico.org/v1" });
    expect(kept.ownerReferences![0]!.uid).not.toBe(uid);
    expect(back(one).metadata.ownerReferences).toEqual([owner]);
  });

  it("read objects that other tools wrote without that annotation", () => {
    const { kind } = policy("default.web");
    const plain = { apiVersion: "", kind: "", metadata: { name: "default.web", labels: { team: "a" } }, spec: {} };
    expect(kind.fromKubernetes(plain)!.metadata).toMatchObject({ labels: { team: "a" } });
    expect(kind.fromKubernetes(plain)!.metadata.annotations).toEqual({ [METADATA]: '{"name":"web"}' });
  });

  it.each([
    ["a copy of a NetworkPolicy", "networkpolicies/shop/knp.default.web"],
    ["a copy of an AdminNetworkPolicy", "globalnetworkpolicies/kanp.adminnetworkpolicy.web"],
    ["a namespace's profile", "profiles/kns.shop"],
    ["a pod's endpoint", "workloadendpoints/shop/node-k8s-web-eth0"],
  ])("leave %s to Kubernetes", (_what, key) => {
    expect(place(`${RESOURCES}${key}`, { metadata: { name: "x" }, spec: {} })).toBeUndefined();
  });

  it.each(["remoteclusters/x", "tiers/a/b", "networkpolicies/x"])("know no %s", (key) => {
    expect(() => place(`${RESOURCES}${key}`, {})).toThrow("of no kind");
  });
});

describe("nodes", () => {
  const key = `${RESOURCES}nodes/a`;
  const node = {
    metadata: {
      ...{ name: "a", uid: "u", labels: { rack: "1", zone: "z" } },
      annotations: { "projectcalico.org/kube-labels": '{"zone":"z"}' },
    },
    spec: {
      bgp: { ipv4Address: "10.0.0.1/24", asNumber: 64512 },
      orchRefs: [{ nodeName: "a", orchestrator: "k8s" }],
      interfaces: [{ name: "eth0", addresses: ["10.0.0.1"] }],
      addresses: [{ address: "10.0.0.1" }],
    },
    status: { wireguardPublicKey: "key" },
  };
  const one = placed(key, node);
  const inKubernetes = (object: KubeObject | undefined) => {
    const set = Object.entries(one.kind.annotations!(object)).filter(([, text]) => text !== null) as [string, string][];
    const annotations = { ...Object.fromEntries(set), other: "stays" };
    return { apiVersion: "v1", kind: "Node", metadata: { name: "a", annotations } };
  };

  it("are annotations of Kubernetes' Node, which has labels of its own", () => {
    expect(inKubernetes(one.object).metadata.annotations).toEqual({
      "projectcalico.org/IPv4Address": "10.0.0.1/24",
      "projectcalico.org/ASNumber": "64512",
      "projectcalico.org/Interfaces": '[{"name":"eth0","addresses":["10.0.0.1"]}]',
      "projectcalico.org/WireguardPublicKey": "key",
      "projectcalico.org/labels": '{"rack":"1"}',
      other: "stays",
    });
    const read = one.kind.fromKubernetes(inKubernetes(one.object))!;
    expect(differences(byId([one]), byId([{ ...one, object: read }]))).toEqual([]);
    expect(one.kind.fromKubernetes(inKubernetes(undefined))).toBeUndefined();
  });

  it("keep in etcd what is not carried, when they are carried back", () => {
    const changed = { ...one.object, spec: { IPv4Address: "10.0.0.2/24", RouteReflectorClusterID: "224.0.0.1" } };
    expect(JSON.parse(one.kind.written(changed, JSON.stringify(node)))).toMatchObject({
      metadata: node.metadata,
      spec: {
        bgp: { ipv4Address: "10.0.0.2/24", routeReflectorClusterID: "224.0.0.1" },
        orchRefs: node.spec.orchRefs,
        addresses: node.spec.addresses,
      },
      status: {},
    });
  });

  it("with nothing but a name are nothing to move", () => {
    expect(place(key, { metadata: { name: "a" }, spec: { orchRefs: node.spec.orchRefs } })).toBeUndefined();
  });
});

describe("a pod's endpoint", () => {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...{ name: "web-1", namespace: "shop", labels: { app: "web" } },
      annotations: { "cni.projectcalico.org/containerID": "c1", "cni.projectcalico.org/floatingIPs": '["192.0.2.1"]' },
    },
    spec: {
      ...{ nodeName: "node-a", serviceAccountName: "web" },
      containers: [{ ports: [{ name: "http", containerPort: 80 }, { containerPort: 81 }] }],
    },
    status: { phase: "Running", podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }] },
  };

  it("is what the CNI plugin writes with etcd", () => {
    expect(endpointOf(pod)).toMatchObject({
      key: `${RESOURCES}workloadendpoints/shop/node--a-k8s-web--1-eth0`,
      object: {
        metadata: { labels: { app: "web", "projectcalico.org/namespace": "shop" } },
        spec: {
          ...{ containerID: "c1", ipNetworks: ["10.0.0.1/32", "fd00::1/128"], profiles: ["kns.shop", "ksa.shop.web"] },
          ipNATs: [{ internalIP: "10.0.0.1", externalIP: "192.0.2.1" }],
          ports: [{ name: "http", protocol: "TCP", port: 80 }],
        },
      },
    });
  });

  it.each([
    ["in the node's network", { ...pod, spec: { ...pod.spec, hostNetwork: true } }],
    ["that is over", { ...pod, status: { ...pod.status, phase: "Succeeded" } }],
    ["without an address", { ...pod, status: {} }],
  ])("is none for a pod %s", (_what, other) => {
    expect(endpointOf(other)).toBeUndefined();
  });
});
