import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../../api/object.ts";
import { DEPLOYMENTS, ENDPOINT_SLICES, ENDPOINTS, SERVICES } from "../../../cluster/kinds.ts";
import { type SmallCluster, smallCluster, template } from "../testing/small-cluster.ts";
import type { Deployment, EndpointSlice, Pod, Service } from "../workload-types.ts";
import { planEndpointSlices } from "./endpoint-slice-plan.ts";

function service(spec: Partial<Service["spec"]> = {}): Service {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "default", uid: "s1" },
    spec: { selector: { app: "web" }, ports: [{ name: "http", port: 80, targetPort: 8080 }], ...spec },
  };
}

function pod(n: number, status: Partial<Pod["status"]> = {}, metadata: Partial<Pod["metadata"]> = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `p${n}`, namespace: "default", uid: `u${n}`, labels: { app: "web" }, ...metadata },
    spec: { nodeName: "node-0", containers: [{ name: "main", ports: [{ name: "web", containerPort: 8000 + n }] }] },
    status: {
      phase: "Running",
      podIPs: [{ ip: `10.0.${n >> 8}.${n & 255}` }, { ip: `fd00::${n.toString(16)}` }],
      conditions: [{ type: "Ready", status: "True" }],
      ...status,
    },
  };
}

const zone = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "node-0", labels: { "topology.kubernetes.io/zone": "a" } },
};

function plan(pods: Pod[], slices: EndpointSlice[] = [], spec: Partial<Service["spec"]> = {}) {
  return planEndpointSlices({ service: service(spec), pods, slices, node: () => zone });
}

describe("the endpoints of a service", () => {
  it("are its pods, with their node, zone and readiness", () => {
    const { create } = plan([pod(1), pod(2, { conditions: [] })]);
    expect(create).toHaveLength(1);
    expect(create[0]?.ports).toEqual([{ name: "http", port: 8080, protocol: "TCP" }]);
    expect(create[0]?.endpoints[0]).toEqual({
      addresses: ["10.0.0.1"],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: "node-0",
      zone: "a",
      targetRef: { kind: "Pod", name: "p1", namespace: "default", uid: "u1" },
    });
    expect(create[0]?.endpoints[1]?.conditions).toEqual({ ready: false, serving: false, terminating: false });
  });

  it("still serve while they terminate, but are no longer ready", () => {
    const leaving = pod(1, {}, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    const { create } = plan([leaving]);
    expect(create[0]?.endpoints[0]?.conditions).toEqual({ ready: false, serving: true, terminating: true });
  });

  it("have one slice per family, and one per set of ports a name stands for", () => {
    const dual = plan([pod(1)], [], { ipFamilies: ["IPv4", "IPv6"] });
    expect(dual.create.map(({ addressType }) => addressType)).toEqual(["IPv4", "IPv6"]);
    const named = plan([pod(1), pod(2)], [], { ports: [{ name: "http", port: 80, targetPort: "web" }] });
    expect(named.create.map(({ ports }) => ports[0]?.port)).toEqual([8001, 8002]);
  });

  it("fill slices of a hundred, and a change touches only the slice it is in", () => {
    const pods = Array.from({ length: 250 }, (_, n) => pod(n));
    const slices = plan(pods).create.map((slice, n) => ({ ...slice, metadata: { ...slice.metadata, name: `s${n}` } }));
    expect(slices.map(({ endpoints }) => endpoints.length)).toEqual([100, 100, 50]);
    const changed = pods.map((each, n) => (n === 150 ? pod(n, { conditions: [] }) : each));
    const next = plan(changed, slices);
    expect(next.create).toEqual([]);
    expect(next.update.map(({ metadata }) => metadata.name)).toEqual(["s1"]);
    expect(plan(pods, slices)).toEqual({ create: [], update: [], remove: [] });
  });

  it("are an empty slice, not none, when no pod is there", () => {
    const { create } = plan([]);
    expect(create.map(({ endpoints }) => endpoints)).toEqual([[]]);
  });
});

describe("in a cluster", () => {
  let cluster: SmallCluster;
  afterEach(() => cluster.stop());

  it("slices and the older Endpoints follow the pods", async () => {
    cluster = await smallCluster();
    const deployment: Deployment = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace: "default" },
      spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: template("web") },
    };
    const { uid: _, ...metadata } = service().metadata;
    await cluster.client.create(SERVICES, { ...service(), metadata });
    await cluster.client.create(DEPLOYMENTS, deployment);
    const addresses = (object: KubeObject) => JSON.stringify(object["subsets"] ?? []).match(/"ip":/g)?.length ?? 0;
    const ref = { name: "web", namespace: "default" };
    await cluster.until<KubeObject>(ENDPOINTS, ref, (object) => addresses(object) === 2);
    const { items } = await cluster.client.list<EndpointSlice>(ENDPOINT_SLICES, { namespace: "default" });
    expect(items).toHaveLength(1);
    expect(items[0]?.endpoints.every(({ conditions }) => conditions.ready)).toBe(true);
    expect(items[0]?.metadata.labels?.["kubernetes.io/service-name"]).toBe("web");
    await cluster.client.delete(SERVICES, ref);
    await cluster.untilGone(ENDPOINT_SLICES, items[0]!.metadata);
  });
});
