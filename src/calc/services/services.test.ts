import { describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { createCalculator } from "../calculator.ts";
import type { ServicePort } from "../model.ts";
import { ModelCopy } from "../model-copy.ts";
import { plainServicePort } from "../testing/service-port.ts";

interface Given {
  labels?: Record<string, string>;
  spec?: object;
  ingress?: object[];
}

const service = ({ labels = {}, spec = {}, ingress = [] }: Given = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web", namespace: "shop", labels },
  spec: {
    type: "ClusterIP",
    clusterIP: "10.96.0.10",
    clusterIPs: ["10.96.0.10"],
    ports: [{ name: "http", port: 80, protocol: "TCP" }],
    ...spec,
  },
  status: { loadBalancer: { ingress } },
});

const endpoint = (address: string, node: string, more: object = {}) => ({
  addresses: [address],
  nodeName: node,
  ...more,
});

const READY = { conditions: { ready: true, serving: true, terminating: false } };
const ENDING = { conditions: { ready: false, serving: true, terminating: true } };
const WITHDRAWN = { conditions: { ready: false, serving: true, terminating: false } };
const FAILING = { conditions: { ready: false, serving: false, terminating: false } };

const slice = (name: string, endpoints: object[], more: object = {}): KubeObject => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name, namespace: "shop", labels: { "kubernetes.io/service-name": "web" } },
  addressType: "IPv4",
  endpoints,
  ports: [{ name: "http", port: 8080, protocol: "TCP" }],
  ...more,
});

const node = (zone: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "here", labels: { "topology.kubernetes.io/zone": zone } },
});

function nodeThatKnows(...objects: KubeObject[]) {
  const calculator = createCalculator("here", vendorNames);
  const model = new ModelCopy();
  const tell = (...more: KubeObject[]) => {
    for (const object of more) calculator.set(object);
    const delta = calculator.takeDelta();
    if (delta) model.apply(delta);
    return delta;
  };
  tell(...objects);
  const web = (id = "shop/web:http/tcp/4"): ServicePort => {
    const found = model.services.get(id);
    if (!found) throw new Error(`there is no ${id}, only ${[...model.services.keys()].join(", ") || "nothing"}`);
    return found;
  };
  return { calculator, model, tell, web };
}

const addresses = (backends: ServicePort["clusterBackends"]) => backends.map(({ address }) => address);

describe("what a service is asked at", () => {
  it("a port of a service is one row with its address, its rules and who answers", () => {
    const { model } = nodeThatKnows(
      service(),
      slice("web-1", [endpoint("10.0.9.1", "there"), endpoint("10.0.0.1", "here")]),
    );
    expect([...model.services.values()]).toEqual([
      plainServicePort({
        clusterBackends: [
          { address: "10.0.0.1", port: 8080, local: true, node: "here" },
          { address: "10.0.9.1", port: 8080, local: false, node: "there" },
        ],
      }),
    ]);
  });

  it("a service of both families is asked in both, each with the backends of its own", () => {
    const { web, model } = nodeThatKnows(
      service({ spec: { clusterIPs: ["10.96.0.10", "FD00:96::A"], externalIPs: ["2001:db8::2", "192.0.2.2"] } }),
      slice("web-4", [endpoint("10.0.0.1", "here")]),
      slice("web-6", [endpoint("fd00::0:1", "here")], { addressType: "IPv6" }),
    );
    expect(model.services.size).toBe(2);
    expect([web().externalAddresses, addresses(web().clusterBackends)]).toEqual([["192.0.2.2"], ["10.0.0.1"]]);
    expect(web("shop/web:http/tcp/6")).toMatchObject({
      family: 6,
      clusterAddress: "fd00:96::a",
      externalAddresses: ["2001:db8::2"],
      clusterBackends: [{ address: "fd00::1" }],
    });
  });

  it("endpoints of a slice that are loopback, link-local, multicast or unspecified are left out", () => {
    const odd = ["127.0.0.1", "169.254.169.254", "224.0.0.1", "0.0.0.0"].map((address) => endpoint(address, "here"));
    const { web } = nodeThatKnows(service(), slice("web-1", [...odd, endpoint("10.0.0.1", "here")]));
    expect(addresses(web().clusterBackends)).toEqual(["10.0.0.1"]);
  });

  it("a family the service has no cluster address of has nothing, even with an external address of it", () => {
    const { model } = nodeThatKnows(service({ spec: { externalIPs: ["2001:db8::2"] } }));
    expect([...model.services.keys()]).toEqual(["shop/web:http/tcp/4"]);
  });

  it.each([
    ["is headless", service({ spec: { clusterIP: "None", clusterIPs: ["None"] } })],
    ["has no address yet", service({ spec: { clusterIP: "", clusterIPs: [] } })],
    ["is a name for something outside", service({ spec: { type: "ExternalName", clusterIP: "", clusterIPs: [] } })],
    ["is labelled for another proxy", service({ labels: { "service.kubernetes.io/service-proxy-name": "mesh" } })],
    ["is labelled headless", service({ labels: { "service.kubernetes.io/headless": "" } })],
  ])("a service that %s is nobody's business here", (_, object) => {
    const { model } = nodeThatKnows(object, slice("web-1", [endpoint("10.0.0.1", "here")]));
    expect(model.services.size).toBe(0);
  });

  it("a service that is taken over by another proxy goes, and comes back when it is given back", () => {
    const { model, tell } = nodeThatKnows(service(), slice("web-1", [endpoint("10.0.0.1", "here")]));
    const taken = tell(service({ labels: { "service.kubernetes.io/service-proxy-name": "mesh" } }))!;
    expect(taken.services).toEqual({ set: [], remove: ["shop/web:http/tcp/4"] });
    tell(service());
    expect(addresses(model.services.get("shop/web:http/tcp/4")!.clusterBackends)).toEqual(["10.0.0.1"]);
  });

  it("a load balancer's address counts unless the balancer speaks for the client itself", () => {
    const { web } = nodeThatKnows(
      service({
        spec: { type: "LoadBalancer" },
        ingress: [
          { ip: "192.0.2.9" },
          { ip: "192.0.2.8", ipMode: "VIP" },
          { ip: "192.0.2.7", ipMode: "Proxy" },
          { hostname: "lb.example" },
        ],
      }),
    );
    expect(web().loadBalancerAddresses).toEqual(["192.0.2.8", "192.0.2.9"]);
  });

  it("source ranges are read with blanks around them; those of the other family alone let nobody in", () => {
    const ranges = (...texts: string[]) =>
      nodeThatKnows(service({ spec: { loadBalancerSourceRanges: texts } })).web().sourceRanges;
    expect(ranges()).toBeNull();
    expect(ranges(" 203.0.113.0/25", "192.168.0.7/24 ")).toEqual(["192.168.0.0/24", "203.0.113.0/25"]);
    expect(ranges("2001:db8::/32")).toEqual([]);
    expect(ranges("somewhere")).toEqual([]);
  });

  it("affinity lasts three hours unless told otherwise", () => {
    const seconds = (spec: object) => nodeThatKnows(service({ spec })).web().affinitySeconds;
    expect(seconds({ sessionAffinity: "None" })).toBe(0);
    expect(seconds({ sessionAffinity: "ClientIP" })).toBe(10_800);
    const config = { clientIP: { timeoutSeconds: 30 } };
    expect(seconds({ sessionAffinity: "ClientIP", sessionAffinityConfig: config })).toBe(30);
  });

  it("SCTP ports are left out and told, the other ports of the service work", () => {
    const ports = [
      { name: "http", port: 80, protocol: "TCP" },
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "diameter", port: 3868, protocol: "SCTP" },
    ];
    const { model, tell } = nodeThatKnows(service({ spec: { ports } }));
    expect([...model.services.keys()].sort()).toEqual(["shop/web:dns/udp/4", "shop/web:http/tcp/4"]);
    expect([...model.problems.values()]).toEqual([
      {
        id: "Service shop/web SCTP_SERVICE_UNSUPPORTED",
        kind: "Service",
        object: { name: "web", namespace: "shop" },
        code: "SCTP_SERVICE_UNSUPPORTED",
        message: "SCTP is not supported: port 3868 of this Service is not served in eBPF mode",
      },
    ]);
    tell(service());
    expect(model.problems.size).toBe(0);
  });
});

describe("who answers", () => {
  it("a port is answered at the slices' port of its name and protocol, whatever the number", () => {
    const ports = [
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "dns-tcp", port: 53, protocol: "TCP" },
    ];
    const { web } = nodeThatKnows(
      service({ spec: { ports } }),
      slice("web-1", [endpoint("10.0.0.1", "here")], {
        ports: [
          { name: "dns", port: 5353, protocol: "UDP" },
          { name: "dns-tcp", port: 5354, protocol: "TCP" },
          { name: "dns", port: 9, protocol: "TCP" },
        ],
      }),
    );
    expect(web("shop/web:dns/udp/4").clusterBackends).toMatchObject([{ port: 5353 }]);
    expect(web("shop/web:dns-tcp/tcp/4").clusterBackends).toMatchObject([{ port: 5354 }]);
  });

  it("a service with one port without a name finds slices whose port has none", () => {
    const { web } = nodeThatKnows(
      service({ spec: { ports: [{ port: 80 }] } }),
      slice("web-1", [endpoint("10.0.0.1", "here")], { ports: [{ name: "", port: 8080 }] }),
    );
    expect(addresses(web("shop/web:/tcp/4").clusterBackends)).toEqual(["10.0.0.1"]);
  });

  it("an endpoint listed in two slices answers once: the healthier entry counts, and a local one before all", () => {
    const { web } = nodeThatKnows(
      service({ spec: { internalTrafficPolicy: "Local" } }),
      slice("web-1", [endpoint("10.0.0.1", "here", FAILING), endpoint("10.0.0.2", "there", READY)]),
      slice("web-2", [endpoint("10.0.0.1", "here", READY), endpoint("10.0.0.2", "here", READY)]),
    );
    expect(addresses(web().localBackends)).toEqual(["10.0.0.1", "10.0.0.2"]);
  });

  it("of two entries of equal health the first slice by name counts, whichever came first", () => {
    const hinted = (address: string, zone: string) =>
      endpoint(address, "there", { ...READY, hints: { forZones: [{ name: zone }] } });
    const slices = [
      slice("web-2", [hinted("10.0.0.1", "b")]),
      slice("web-1", [hinted("10.0.0.1", "a"), hinted("10.0.0.2", "b")]),
    ];
    for (const arrival of [slices, slices.toReversed()]) {
      const { web, tell } = nodeThatKnows(node("b"), service());
      for (const object of arrival) tell(object);
      expect(addresses(web().clusterBackends)).toEqual(["10.0.0.2"]);
    }
  });

  it.each([
    ["labelled for another proxy", { "service.kubernetes.io/service-proxy-name": "mesh" }, {}],
    ["labelled headless", { "service.kubernetes.io/headless": "" }, {}],
    ["that holds names", {}, { addressType: "FQDN" }],
    ["of one family that holds an address of the other", {}, { addressType: "IPv6" }],
    ["without the number of the port", {}, { ports: [{ name: "http", protocol: "TCP" }] }],
  ])("a slice %s adds nobody", (_, labels, more) => {
    const listed = slice("web-1", [endpoint("10.0.0.1", "here")], more);
    const { metadata } = listed;
    const { model } = nodeThatKnows(service({ spec: { clusterIPs: ["10.96.0.10", "fd96::a"] } }), {
      ...listed,
      metadata: { ...metadata, labels: { ...metadata.labels, ...labels } },
    });
    expect([...model.services.values()].map(({ clusterBackends }) => clusterBackends)).toEqual([[], []]);
  });

  it("backends that end are asked only when no other is left, and failing ones never", () => {
    const { web, tell } = nodeThatKnows(
      service(),
      slice("web-1", [endpoint("10.0.0.1", "here", READY), endpoint("10.0.0.2", "here", ENDING)]),
    );
    expect(addresses(web().clusterBackends)).toEqual(["10.0.0.1"]);
    tell(slice("web-1", [endpoint("10.0.0.1", "here", FAILING), endpoint("10.0.0.2", "here", ENDING)]));
    expect(addresses(web().clusterBackends)).toEqual(["10.0.0.2"]);
    tell(slice("web-1", [endpoint("10.0.0.1", "here", FAILING), endpoint("10.0.0.2", "here", WITHDRAWN)]));
    expect(web()).toMatchObject({ clusterBackends: [], anyBackends: false });
  });

  it("a pod that ends and is said to be ready all the same, as with publishNotReadyAddresses, is asked", () => {
    const published = { conditions: { ready: true, serving: false, terminating: true } };
    const { web } = nodeThatKnows(service(), slice("web-1", [endpoint("10.0.0.1", "here", published)]));
    expect(addresses(web().clusterBackends)).toEqual(["10.0.0.1"]);
  });

  it("hints keep clients in their zone once this node's zone is known, and no longer when it moves", () => {
    const hinted = (address: string, zone: string) =>
      endpoint(address, "there", { ...READY, hints: { forZones: [{ name: zone }] } });
    const { web, tell } = nodeThatKnows(service(), slice("web-1", [hinted("10.0.0.1", ""), hinted("10.0.0.2", "b")]));
    expect(addresses(web().clusterBackends)).toEqual(["10.0.0.1", "10.0.0.2"]);
    tell(slice("web-1", [hinted("10.0.0.1", "a"), hinted("10.0.0.2", "b")]));
    tell(node("b"));
    expect(addresses(web().clusterBackends)).toEqual(["10.0.0.2"]);
    tell(node("c"));
    expect(addresses(web().clusterBackends)).toEqual(["10.0.0.1", "10.0.0.2"]);
  });

  it("hints for this node come before those for its zone, unless one backend has none", () => {
    const hinted = (address: string, forNodes: string[]) =>
      endpoint(address, "there", {
        ...READY,
        hints: { forZones: [{ name: "a" }], forNodes: forNodes.map((name) => ({ name })) },
      });
    const { web, tell } = nodeThatKnows(
      node("a"),
      service(),
      slice("web-1", [hinted("10.0.0.1", ["here"]), hinted("10.0.0.2", ["there"])]),
    );
    expect(addresses(web().clusterBackends)).toEqual(["10.0.0.1"]);
    tell(slice("web-1", [hinted("10.0.0.1", ["here"]), hinted("10.0.0.2", [])]));
    expect(addresses(web().clusterBackends)).toEqual(["10.0.0.1", "10.0.0.2"]);
  });

  it("an external rule without an external address is no rule", () => {
    const backends = slice("web-1", [endpoint("10.0.0.1", "here")]);
    const { web, tell } = nodeThatKnows(service({ spec: { externalTrafficPolicy: "Local" } }), backends);
    expect(web()).toMatchObject({ externalLocal: false, localBackends: [] });
    const ports = [{ name: "http", port: 80, protocol: "TCP", nodePort: 30_080 }];
    tell(service({ spec: { type: "NodePort", externalTrafficPolicy: "Local", ports } }));
    expect(web()).toMatchObject({ externalLocal: true, nodePort: 30_080, localBackends: [{ address: "10.0.0.1" }] });
  });

  it("balancers are told how many pods of this node are ready, and none once they end although these still answer", () => {
    const balanced = service({
      spec: {
        type: "LoadBalancer",
        externalTrafficPolicy: "Local",
        healthCheckNodePort: 32_000,
        ports: [
          { name: "http", port: 80, protocol: "TCP", nodePort: 30_080 },
          { name: "https", port: 443, protocol: "TCP", nodePort: 30_443 },
        ],
      },
    });
    const ports = [
      { name: "http", port: 8080, protocol: "TCP" },
      { name: "https", port: 8443, protocol: "TCP" },
    ];
    const here = (conditions: object) => slice("web-1", [endpoint("10.0.0.1", "here", conditions)], { ports });
    const { web, tell } = nodeThatKnows(balanced, here(READY));
    expect(web()).toMatchObject({ healthCheckNodePort: 32_000, healthCheckBackends: 1 });
    tell(here(ENDING));
    expect(web()).toMatchObject({ healthCheckBackends: 0, localBackends: [{ address: "10.0.0.1" }] });
    tell({ ...balanced, spec: { ...(balanced["spec"] as object), type: "NodePort" } });
    expect(web().healthCheckNodePort).toBeNull();
  });
});

describe("one change", () => {
  it("of a slice touches its service and no other", () => {
    const other = { ...slice("other-1", []), metadata: { name: "other-1", namespace: "bank" } };
    const { tell } = nodeThatKnows(
      service(),
      { ...service({ spec: { clusterIPs: ["10.96.0.11"] } }), metadata: { name: "other", namespace: "bank" } },
      slice("web-1", [endpoint("10.0.0.1", "here")]),
      other,
    );
    const delta = tell(slice("web-1", [endpoint("10.0.0.2", "here")]))!;
    expect(delta.services.set.map(({ id }) => id)).toEqual(["shop/web:http/tcp/4"]);
    const { services: _, inSync: __, ipSets: ___, settings, released, ...tables } = delta;
    expect([settings, released]).toEqual([undefined, undefined]);
    expect(Object.values(tables).every(({ set, remove }) => set.length + remove.length === 0)).toBe(true);
  });

  it("of what nobody asks about, as a failing backend that fails on, is none", () => {
    const { tell } = nodeThatKnows(service(), slice("web-1", [endpoint("10.0.0.1", "here", FAILING)]));
    expect(tell(slice("web-1", [endpoint("10.0.0.2", "here", FAILING)]))).toBeUndefined();
  });

  it("that renames a port removes the old row with the same delta", () => {
    const { tell } = nodeThatKnows(service());
    const delta = tell(service({ spec: { ports: [{ name: "www", port: 80 }] } }))!;
    expect(delta.services.remove).toEqual(["shop/web:http/tcp/4"]);
    expect(delta.services.set.map(({ id }) => id)).toEqual(["shop/web:www/tcp/4"]);
  });

  it("that removes the last slice leaves a service that refuses; removing the service leaves nothing", () => {
    const { calculator, tell, web, model } = nodeThatKnows(service(), slice("web-1", [endpoint("10.0.0.1", "here")]));
    calculator.remove({ group: "discovery.k8s.io", kind: "EndpointSlice" }, { name: "web-1", namespace: "shop" });
    tell();
    expect(web()).toMatchObject({ clusterBackends: [], anyBackends: false });
    calculator.remove({ group: "", kind: "Service" }, { name: "web", namespace: "shop" });
    tell();
    expect(model.services.size).toBe(0);
  });
});
