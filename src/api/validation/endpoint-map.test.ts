import { describe, expect, it } from "vitest";
import { calicoNames, vendorNames } from "../names.ts";
import type { KubeObject } from "../object.ts";
import { endpointMapProblems } from "./endpoint-map.ts";
import { type ClusterFacts, observeNode } from "./facts.ts";

function map(host: unknown, port: unknown = "6443", metadata = {}): KubeObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "orchestrator-services-endpoint", namespace: "vendor-operator", ...metadata },
    data: { ORCHESTRATOR_SERVICE_HOST: host, ORCHESTRATOR_SERVICE_PORT: port },
  };
}

function node(name: string, address: string, more: { controlPlane?: boolean; assignment?: string } = {}) {
  const { controlPlane = true, assignment } = more;
  const object = {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: controlPlane ? { "node-role.kubernetes.io/control-plane": "" } : {},
      annotations: assignment ? { [vendorNames.annotations.addressAssignment]: assignment } : {},
    },
    status: { addresses: [{ type: "InternalIP", address }], nodeInfo: { architecture: "amd64" } },
  };
  return observeNode(object as unknown as KubeObject, vendorNames);
}

const codes = (object: KubeObject, facts: ClusterFacts = {}) =>
  endpointMapProblems(object, facts).map((problem) => problem.code);

describe("the API server's address", () => {
  it.each([
    ["api.internal.demo.example", "443"],
    ["api.example.com.", "6443"],
    ["192.0.2.10", "6443"],
    ["2001:db8::10", "6443"],
    ["proxy.local", "6444"],
  ])("%s and %s are fine", (host, port) => expect(codes(map(host, port))).toEqual([]));

  it.each([
    ["https://api.example.com", ["ENDPOINT_HOST_HAS_SCHEME"]],
    ["api.example.com:6443", ["ENDPOINT_HOST_HAS_PORT"]],
    ["https://127.0.0.1:6443/", ["ENDPOINT_HOST_HAS_SCHEME", "ENDPOINT_HOST_HAS_PORT", "ENDPOINT_HOST_LOOPBACK"]],
    ["[2001:db8::1]:6443", ["ENDPOINT_HOST_HAS_PORT"]],
    ["", ["ENDPOINT_HOST_EMPTY"]],
    ["  ", ["ENDPOINT_HOST_EMPTY"]],
    ["localhost", ["ENDPOINT_HOST_LOOPBACK"]],
    ["127.0.1.1", ["ENDPOINT_HOST_LOOPBACK"]],
    ["::1", ["ENDPOINT_HOST_LOOPBACK"]],
    ["0.0.0.0", ["ENDPOINT_HOST_LOOPBACK"]],
    ["kubernetes.default.svc", ["ENDPOINT_HOST_CLUSTER_IP"]],
    ["api server", ["ENDPOINT_HOST_MALFORMED"]],
    ["api.example.com/v1", ["ENDPOINT_HOST_MALFORMED"]],
    ["10.0.0.256", ["ENDPOINT_HOST_MALFORMED"]],
    [undefined, ["ENDPOINT_KEY_MISSING"]],
    [12, ["ENDPOINT_VALUE_NOT_TEXT", "ENDPOINT_HOST_MALFORMED"]],
  ])("host %j: %j", (host, expected) => expect(codes(map(host))).toEqual(expected));

  it.each([
    [6443, ["ENDPOINT_VALUE_NOT_TEXT"]],
    ["0", ["ENDPOINT_PORT_MALFORMED"]],
    ["65536", ["ENDPOINT_PORT_MALFORMED"]],
    ["https", ["ENDPOINT_PORT_MALFORMED"]],
    ["", ["ENDPOINT_PORT_MALFORMED"]],
    [null, ["ENDPOINT_KEY_MISSING"]],
  ])("port %j: %j", (port, expected) => expect(codes(map("api.example.com", port))).toEqual(expected));

  it("is not the cluster IP", () => {
    expect(codes(map("10.96.0.1"), { apiClusterIPs: ["10.96.0.1"] })).toEqual(["ENDPOINT_HOST_CLUSTER_IP"]);
    expect(codes(map("10.96.7.7"), { serviceCidrs: ["10.96.0.0/12"] })).toEqual(["ENDPOINT_HOST_CLUSTER_IP"]);
  });

  it("is not a node's address that may change, nor one API server of several", () => {
    const dynamic = node("a", "192.0.2.1", { assignment: "dynamic" });
    const fixed = node("b", "192.0.2.2", { assignment: "static" });
    expect(codes(map("192.0.2.1"), { nodes: [dynamic] })).toEqual(["ENDPOINT_HOST_DYNAMIC"]);
    expect(codes(map("192.0.2.2"), { nodes: [fixed] })).toEqual([]);
    expect(codes(map("192.0.2.2"), { nodes: [fixed, dynamic] })).toEqual(["ENDPOINT_HOST_ONE_OF_MANY"]);
    expect(codes(map("192.0.2.9"), { nodes: [fixed, dynamic] })).toEqual([]);
  });

  it.each([
    ["iac", "api.internal.demo.example", "443", []],
    ["iac", "api.demo.example", "443", ["ENDPOINT_HOST_NOT_FOR_KIND"]],
    ["aks", "demo.hcp.example", "443", []],
    ["aks", "demo.hcp.example", "6443", ["ENDPOINT_PORT_NOT_FOR_KIND"]],
    ["eks", "192.0.2.1", "443", ["ENDPOINT_HOST_NOT_FOR_KIND"]],
    ["eks", "2001:db8::a", "443", ["ENDPOINT_HOST_NOT_FOR_KIND"]],
    ["mke", "proxy.local", "6444", []],
    ["mke", "api.example.com", "6443", ["ENDPOINT_HOST_NOT_FOR_KIND", "ENDPOINT_PORT_NOT_FOR_KIND"]],
    ["generic", "192.0.2.1", "6443", []],
    ["openshift", "192.0.2.1", "6443", []],
  ] as const)("on %s, %s:%s gives %j", (kind, host, port, expected) =>
    expect(codes(map(host, port), { kind })).toEqual(expected),
  );

  it("is in the map the operator reads, under the keys it reads", () => {
    expect(codes(map("a.example", "1", { name: "services", namespace: "default" }))).toEqual([
      "ENDPOINT_MAP_MISPLACED",
      "ENDPOINT_MAP_MISPLACED",
    ]);
    const misspelt = map("a.example");
    misspelt["data"] = { ORCHESTRATOR_SERVICES_HOST: "a.example", ORCHESTRATOR_SERVICE_PORT: "443" };
    expect(endpointMapProblems(misspelt)).toMatchObject([
      { code: "ENDPOINT_KEY_UNKNOWN", fix: "Did you mean ORCHESTRATOR_SERVICE_HOST?" },
      { code: "ENDPOINT_KEY_MISSING", path: "data.ORCHESTRATOR_SERVICE_HOST" },
    ]);
  });

  it("is checked the same under the public system's names", () => {
    const calico: KubeObject = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "kubernetes-services-endpoint", namespace: "tigera-operator" },
      data: { KUBERNETES_SERVICE_HOST: "https://api.example.com", KUBERNETES_SERVICE_PORT: "6443" },
    };
    expect(endpointMapProblems(calico, {}, calicoNames)).toMatchObject([
      { code: "ENDPOINT_HOST_HAS_SCHEME", path: "data.KUBERNETES_SERVICE_HOST", fix: "Write api.example.com." },
    ]);
  });
});
