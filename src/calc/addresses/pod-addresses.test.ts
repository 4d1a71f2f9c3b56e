import { describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { CalculationOptions } from "../calculation.ts";
import { createCalculator } from "../calculator.ts";
import { ModelCopy } from "../model-copy.ts";

const stored = (kind: string, name: string, spec: object): KubeObject => ({
  apiVersion: "crd.vendor.io/v1",
  kind,
  metadata: { name },
  spec,
});
const core = (kind: string, name: string, more: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind,
  metadata: { name },
  ...more,
});
const POOL = stored("IPPool", "pods", { cidr: "10.0.0.0/16" });
const NODES = [
  core("Node", "here", { status: { addresses: [{ type: "InternalIP", address: "172.16.0.1" }] } }),
  core("Node", "there", { status: { addresses: [{ type: "InternalIP", address: "172.16.0.2" }] } }),
];
const API_SERVER: KubeObject = {
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name: "kubernetes", namespace: "default", labels: { "kubernetes.io/service-name": "kubernetes" } },
  addressType: "IPv4",
  endpoints: [{ addresses: ["172.16.0.100"] }],
  ports: [{ port: 6443 }],
};
/** Everything named `app=x` in one set: whoever is in it is believed to have the address. */
const POLICY = stored("GlobalNetworkPolicy", "default.all", {
  selector: "all()",
  ingress: [{ action: "Allow", source: { selector: "has(app)" } }],
});

interface PodChoice {
  node?: string;
  status?: string[];
  annotation?: string;
  ending?: boolean;
}

function pod(name: string, { node = "here", status = [], annotation, ending }: PodChoice = {}): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: "shop",
      labels: { app: "x" },
      ...(annotation ? { annotations: { "cni.vendor.io/podIPs": annotation } } : {}),
      ...(ending ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: { nodeName: node, containers: [{ name: "main" }] },
    status: { phase: "Running", podIPs: status.map((ip) => ({ ip })) },
  };
}

/** A block of 10.0.1.0/28; `owners` by offset. */
function block(owners: Record<number, { pod?: string; node?: string; type?: string }>): KubeObject {
  const entries = Object.entries(owners);
  const allocations = Array.from({ length: 16 }, (_, at): number | null => {
    const index = entries.findIndex(([ordinal]) => Number(ordinal) === at);
    return index < 0 ? null : index;
  });
  const attributes = entries.map(([, facts], index) => ({
    handle_id: `h${index}`,
    secondary: { ...(facts.pod ? { namespace: "shop" } : {}), ...facts },
  }));
  return stored("IPAMBlock", "10-0-1-0-28", {
    ...{ cidr: "10.0.1.0/28", affinity: "host:there", allocations, attributes },
    unallocated: allocations.flatMap((index, at) => (index === null ? [at] : [])),
  });
}

function node(options: CalculationOptions = {}) {
  const calculator = createCalculator("here", vendorNames, options);
  const model = new ModelCopy();
  const settle = () => {
    const delta = calculator.takeDelta();
    if (delta) model.apply(delta);
  };
  return {
    calculator,
    model,
    tell(...objects: KubeObject[]) {
      for (const object of objects) calculator.set(object);
      settle();
    },
    forget(object: KubeObject) {
      calculator.remove(
        { group: object.apiVersion.includes("/") ? "crd.vendor.io" : "", kind: object.kind },
        object.metadata,
      );
      settle();
    },
    believed: () => [...model.ipSets.values()].flatMap(({ members }) => members),
    routes: () => [...model.routes.values()].filter(({ kind }) => kind === "local-workload").map(({ cidr }) => cidr),
    problems: () => [...model.problems.values()].map(({ message }) => message),
  };
}

const mine = pod("mine", { status: ["10.0.0.200"] });
const base = [core("Namespace", "shop"), POOL, ...NODES, API_SERVER, POLICY, mine];

describe("addresses of pods of this node", () => {
  it("are what the plugin recorded, whatever annotation and status claim", () => {
    const at = node();
    at.calculator.setLocalPod("shop/a", { addresses: ["10.0.0.5"], mac: "ee:01", connected: true });
    const claims = "10.0.0.5,10.0.0.9,8.8.8.8,169.254.169.254,172.16.0.2,172.16.0.100";
    at.tell(...base, pod("a", { status: ["10.0.0.5", "10.0.0.8"], annotation: claims }));
    expect(at.model.endpoints.get("shop/a")?.addresses).toEqual(["10.0.0.5/32"]);
    expect(at.routes().sort()).toEqual(["10.0.0.200/32", "10.0.0.5/32"]);
    expect(at.believed().sort()).toEqual(["10.0.0.200/32", "10.0.0.5/32"]);
    expect(at.problems()).toEqual([
      "the pod claims addresses that are not its own: 10.0.0.8 is not what this node's CNI plugin gave to the pod; " +
        "10.0.0.9 is not what this node's CNI plugin gave to the pod; 169.254.169.254 is a link-local address; " +
        "172.16.0.100 is an address of the API server; 172.16.0.2 is an address of node there; " +
        "8.8.8.8 is not what this node's CNI plugin gave to the pod",
    ]);
    at.tell(pod("a", { status: ["10.0.0.5"], annotation: "10.0.0.5" }));
    expect(at.problems()).toEqual([]);
  });

  it("are none once the plugin undid its interface, though the Pod stays", () => {
    const at = node();
    at.calculator.setLocalPod("shop/a", { addresses: ["10.0.0.5"], mac: "ee:01", connected: true });
    at.tell(...base, pod("a", { status: ["10.0.0.5"], ending: true }));
    expect(at.believed()).toContain("10.0.0.5/32");
    at.calculator.setLocalPod("shop/a", { addresses: ["10.0.0.5"], mac: "ee:01", connected: false });
    at.tell();
    expect(at.believed()).not.toContain("10.0.0.5/32");
    expect(at.problems()).toEqual([]);
  });
});

describe("addresses pods had", () => {
  it("are released when the pod goes, also where another has them by now", () => {
    const { calculator } = node();
    const far = (name: string) => pod(name, { node: "there", status: ["10.0.1.3"] });
    const take = () => calculator.takeDelta()?.released;
    for (const object of [...base, block({ 3: { pod: "one", node: "there" } }), far("one"), far("two")])
      calculator.set(object);
    calculator.inSync();
    expect(take()).toBeUndefined();
    calculator.set(block({ 3: { pod: "two", node: "there" } }));
    expect(take()).toEqual(["10.0.1.3/32"]);
    calculator.set(core("Node", "there", { status: { addresses: [] } }));
    expect(take()).toBeUndefined();
  });
});

describe("addresses Services claim", () => {
  const service = (externalIPs: string[], ingress: string[] = []): KubeObject => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "shop" },
    spec: { clusterIP: "10.96.0.9", clusterIPs: ["10.96.0.9"], ports: [{ name: "http", port: 80 }], externalIPs },
    status: { loadBalancer: { ingress: ingress.map((ip) => ({ ip })) } },
  });
  const served = (at: ReturnType<typeof node>) => {
    const [row] = at.model.services.values();
    return [...(row?.externalAddresses ?? []), ...(row?.loadBalancerAddresses ?? [])];
  };

  it("are not served where they are a node's, a pod's, the API server's or special, and the Service is named", () => {
    const at = node();
    const claims = ["172.16.0.2", "172.16.0.100", "10.0.0.200", "169.254.169.254", "127.0.0.1", "192.0.2.7"];
    at.tell(...base, service(claims, ["172.16.0.1", "192.0.2.8"]));
    expect(served(at)).toEqual(["192.0.2.7", "192.0.2.8"]);
    expect([...at.model.problems.keys()]).toEqual(["Service shop/web SERVICE_ADDRESS_REFUSED"]);
    expect(at.problems()[0]).toContain("10.0.0.200 is the address of pod shop/mine");
    expect(at.problems()[0]).toContain("172.16.0.1 is an address of node here");
    at.tell(service(["192.0.2.7"]));
    expect(at.problems()).toEqual([]);
  });

  it("are served once nothing else has them, and no longer once something does", () => {
    const at = node();
    at.tell(...base, service(["10.0.0.200", "172.16.0.9"]));
    expect(served(at)).toEqual(["172.16.0.9"]);
    at.forget(mine);
    expect(served(at)).toEqual(["10.0.0.200", "172.16.0.9"]);
    at.calculator.setApiServers(["172.16.0.9"]);
    at.tell();
    expect(served(at)).toEqual(["10.0.0.200"]);
  });

  it("are all served for kube-proxy, which does not compare", () => {
    const at = node({ unguardedServices: true });
    at.tell(...base, service(["172.16.0.2"]));
    expect(served(at)).toEqual(["172.16.0.2"]);
  });
});

describe("addresses of pods of other nodes", () => {
  it("are what IPAM gave them, before any status and whatever the annotation claims", () => {
    const at = node();
    at.tell(
      ...base,
      block({ 3: { pod: "far", node: "there" } }),
      pod("far", { node: "there", annotation: "10.0.1.9" }),
    );
    expect(at.believed().sort()).toEqual(["10.0.0.200/32", "10.0.1.3/32"]);
  });

  it("in the status count only where pools and IPAM do not contradict", () => {
    const at = node();
    at.tell(...base, block({ 3: { pod: "owner", node: "there" }, 4: { node: "there", type: "vxlanTunnelAddress" } }));
    const claimed = [
      "10.0.1.3",
      "10.0.1.4",
      "10.0.1.5",
      "8.8.8.8",
      "172.16.0.2",
      "172.16.0.100",
      "127.0.0.1",
      "10.0.7.7",
    ];
    at.tell(pod("thief", { node: "there", status: claimed }));
    expect(at.believed().sort()).toEqual(["10.0.0.200/32", "10.0.7.7/32"]);
    expect(at.problems()[0]).toContain("10.0.1.3 is an address IPAM gave to pod shop/owner");
    expect(at.problems()[0]).toContain("8.8.8.8 is in no IP pool");
  });

  it("go over to the pod IPAM names, though the one before is still there", () => {
    const at = node();
    const fin = { node: "there", status: ["10.0.1.3"], ending: true };
    at.tell(...base, block({ 3: { pod: "fin", node: "there" } }), pod("fin", fin), pod("next", { node: "there" }));
    const { "10.0.1.3/32": route } = Object.fromEntries(at.model.routes);
    expect(route).toBeUndefined();
    expect(at.believed()).toContain("10.0.1.3/32");
    at.tell(block({}));
    expect(at.believed()).not.toContain("10.0.1.3/32");
    at.tell(block({ 3: { pod: "next", node: "there" } }), pod("next", { node: "there", status: ["10.0.1.3"] }));
    expect(at.believed()).toContain("10.0.1.3/32");
    at.forget(pod("next"));
    expect(at.believed()).not.toContain("10.0.1.3/32");
  });

  it("of a pod of the same name on another node are not this pod's", () => {
    const at = node();
    at.tell(
      ...base,
      block({ 3: { pod: "moved", node: "elsewhere" } }),
      pod("moved", { node: "there", status: ["10.0.1.3"] }),
    );
    expect(at.believed()).not.toContain("10.0.1.3/32");
  });

  it("are looked at again when a node or the API server turns out to have one", () => {
    const at = node();
    at.tell(...base, pod("far", { node: "there", status: ["10.0.7.7"] }));
    expect(at.believed()).toContain("10.0.7.7/32");
    at.calculator.setApiServers(["10.0.7.7"]);
    at.tell();
    expect(at.believed()).not.toContain("10.0.7.7/32");
    at.calculator.setApiServers(["10.0.7.8"]);
    at.tell();
    expect(at.believed()).toContain("10.0.7.7/32");
    at.tell(core("Node", "new", { status: { addresses: [{ type: "InternalIP", address: "10.0.7.7" }] } }));
    expect(at.believed()).not.toContain("10.0.7.7/32");
  });

  it("may be of the prefix its node takes addresses from without IPAM", () => {
    const at = node();
    at.tell(...base, core("Node", "there", { spec: { podCIDRs: ["10.77.0.0/24"] } }));
    at.tell(pod("far", { node: "there", status: ["10.77.0.9"] }), pod("odd", { node: "there", status: ["10.78.0.9"] }));
    expect(at.believed().sort()).toEqual(["10.0.0.200/32", "10.77.0.9/32"]);
  });

  it("of another CNI plugin need no pool, and still are never a node's", () => {
    const at = node({ foreignAddresses: true });
    at.calculator.setPodInterfaces(new Map([["10.0.0.200", "ven1"]]));
    at.tell(...base, pod("far", { node: "there", status: ["192.0.2.7", "172.16.0.2", "169.254.169.254", "fe80::1"] }));
    expect(at.believed().sort()).toEqual(["10.0.0.200/32", "192.0.2.7/32"]);
  });
});
