import { describe, expect, it } from "vitest";
import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import { createCalculator } from "./calculator.ts";
import { ModelCopy } from "./model-copy.ts";

const stored = (kind: string, name: string, spec: object, more: object = {}): KubeObject => ({
  apiVersion: "crd.vendor.io/v1",
  kind,
  metadata: { name, ...more },
  spec,
});
const namespace = (name: string, labels = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels },
});
const pod = (name: string, ip: string, labels = {}, node = "here", more: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "shop", labels, ...more },
  spec: { nodeName: node, containers: [{ name: "main", ports: [{ name: "http", containerPort: 8080 }] }] },
  status: { phase: "Running", podIPs: [{ ip }] },
});

/** A node called `here` that was told some objects; `runScenario` gives what changed. */
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
  return { calculator, model, tell };
}

describe("pods and policies", () => {
  const webOnly = stored(
    "NetworkPolicy",
    "default.web-only",
    {
      tier: "default",
      order: 10,
      selector: 'app == "db"',
      types: ["Ingress"],
      ingress: [
        {
          action: "Allow",
          protocol: "TCP",
          source: { selector: 'app == "web"' },
          destination: { ports: ["http", 9000] },
        },
      ],
    },
    { namespace: "shop" },
  );

  it("a pod of this node gets its policies in order; the sets they mean hold pods of every node", () => {
    const { model } = nodeThatKnows(
      namespace("shop"),
      pod("db", "10.0.0.1", { app: "db" }),
      pod("web", "10.0.9.1", { app: "web" }, "elsewhere"),
      webOnly,
    );
    const endpoint = model.endpoints.get("shop/db");
    expect(endpoint?.ingress).toEqual({
      tiers: [{ name: "default", endAction: "deny", policies: ["np/shop/default.web-only"] }],
      profiles: ["kns.shop"],
    });
    expect(endpoint?.egress).toEqual({ tiers: [], profiles: ["kns.shop"] });
    expect(endpoint?.interfaceName).toMatch(/^ven[0-9a-f]{11}$/);
    expect([...model.endpoints.keys()]).toEqual(["shop/db"]);
    const sets = [...model.ipSets.values()].map(({ kind, members, meaning }) => ({ kind, members, meaning }));
    expect(sets.sort((a, b) => (a.kind < b.kind ? -1 : 1))).toEqual([
      { kind: "net", members: ["10.0.9.1/32"], meaning: '(app == "web" && vendor.io/namespace == "shop")' },
      {
        kind: "net-port",
        members: ["10.0.0.1/32,tcp:8080", "10.0.9.1/32,tcp:8080"],
        meaning: 'http/tcp of vendor.io/namespace == "shop"',
      },
    ]);
    const [rule] = model.policies.get("np/shop/default.web-only")!.ingress;
    expect(rule).toMatchObject({
      id: "np/shop/default.web-only;ingress;0",
      action: "allow",
      protocol: 6,
      dstPorts: [[9000, 9000]],
    });
  });

  it("one more pod elsewhere is one more member, and nothing else", () => {
    const { tell } = nodeThatKnows(
      namespace("shop"),
      pod("db", "10.0.0.1", { app: "db" }),
      pod("web", "10.0.9.1", { app: "web" }, "elsewhere"),
      webOnly,
    );
    const delta = tell(pod("web-2", "10.0.9.2", { app: "web" }, "elsewhere"))!;
    expect(delta.ipSets.change.map(({ add, remove }) => [...add, ...remove]).sort()).toEqual([
      ["10.0.9.2/32"],
      ["10.0.9.2/32,tcp:8080"],
    ]);
    const { ipSets: _, inSync: __, settings, released, ...tables } = delta;
    expect([settings, released]).toEqual([undefined, undefined]);
    expect(Object.values(tables).every(({ set, remove }) => set.length + remove.length === 0)).toBe(true);
  });

  it("a policy nobody here has is not in the model, nor its sets", () => {
    const { model, calculator, tell } = nodeThatKnows(namespace("shop"), pod("db", "10.0.0.1", { app: "db" }), webOnly);
    calculator.remove({ group: "", kind: "Pod" }, { namespace: "shop", name: "db" });
    tell();
    expect([model.policies.size, model.ipSets.size, model.endpoints.size, model.profiles.size]).toEqual([0, 0, 0, 0]);
  });

  it("a finished pod is gone, one on the host's network never was there", () => {
    const { model, tell } = nodeThatKnows(namespace("shop"), pod("job", "10.0.0.5"));
    expect([...model.endpoints.keys()]).toEqual(["shop/job"]);
    const done = pod("job", "10.0.0.5");
    tell({ ...done, status: { ...(done["status"] as object), phase: "Succeeded" } });
    const proxy = pod("proxy", "172.16.0.1");
    tell({ ...proxy, spec: { ...(proxy["spec"] as object), hostNetwork: true } });
    expect([...model.endpoints.keys()]).toEqual([]);
  });

  it("a pod is known by what this node's plugin made, before the orchestrator writes its status", () => {
    const { calculator, model, tell } = nodeThatKnows(namespace("shop"));
    calculator.setLocalPod("shop/early", { addresses: ["10.0.0.7", "fd00::7"], mac: "ee:00", connected: true });
    tell({ ...pod("early", ""), status: { phase: "Pending" } });
    const { addresses, mac } = model.endpoints.get("shop/early") ?? {};
    expect({ addresses, mac }).toEqual({ addresses: ["10.0.0.7/32", "fd00::7/128"], mac: "ee:00" });
  });

  it("no pod passes for one of another namespace by its own labels", () => {
    const allowOps = stored("GlobalNetworkPolicy", "default.ops", {
      namespaceSelector: 'vendor.io/name == "shop"',
      ingress: [{ action: "Allow", source: { namespaceSelector: 'vendor.io/name == "ops"' } }],
    });
    const liar = pod("liar", "10.0.0.9", { "pcns.vendor.io/name": "ops", "vendor.io/namespace": "ops" });
    const { model } = nodeThatKnows(namespace("shop"), liar, allowOps);
    expect([...model.ipSets.values()].map(({ members }) => members)).toEqual([[]]);
  });

  it.each(["pcns.access", "pcsa.access", "vendor.io/serviceaccount", "projectcalico.org/namespace"])(
    "the label %s selects no pod, network set or host endpoint that was given it by hand",
    (label) => {
      const policy = stored("GlobalNetworkPolicy", "default.ops", {
        selector: "all()",
        ingress: [{ action: "Allow", source: { selector: `${label} == "db"` } }],
      });
      const labels = { [label]: "db" };
      const host = { node: "here", interfaceName: "eth0", expectedIPs: ["192.0.2.1"] };
      const { model } = nodeThatKnows(
        namespace("shop"),
        pod("liar", "10.0.0.9", labels),
        stored("NetworkSet", "liar", { nets: ["192.0.2.0/24"] }, { namespace: "shop", labels }),
        stored("GlobalNetworkSet", "liar", { nets: ["192.0.2.0/24"] }, { labels }),
        stored("HostEndpoint", "liar", host, { labels }),
        policy,
      );
      expect([...model.ipSets.values()].map(({ members }) => members)).toEqual([[]]);
    },
  );
});

describe("what cannot be put into effect", () => {
  it("is told with a code; a rule that cannot be read denies, for what it meant is not known", () => {
    const { model } = nodeThatKnows(
      namespace("shop"),
      pod("db", "10.0.0.1"),
      stored("GlobalNetworkPolicy", "default.raw", { doNotTrack: true, applyOnForward: true }),
      stored("GlobalNetworkPolicy", "default.typo", { selector: "app = 'x'" }),
      stored("GlobalNetworkPolicy", "default.half", {
        types: ["Ingress"],
        ingress: [{ action: "Allow", protocol: "TCP" }, { action: "Allow", protocol: "TPC" }, { action: "Allow" }],
      }),
    );
    expect([...model.problems.keys()].sort()).toEqual([
      "GlobalNetworkPolicy default.half RULE_UNREADABLE",
      "GlobalNetworkPolicy default.raw DO_NOT_TRACK_UNSUPPORTED",
      "GlobalNetworkPolicy default.typo SELECTOR_UNREADABLE",
    ]);
    expect([...model.policies.keys()]).toEqual(["gnp/default.half"]);
    expect(model.policies.get("gnp/default.half")!.ingress.map(({ action }) => action)).toEqual(["allow", "deny"]);
  });
});

describe("routes", () => {
  const node = (name: string, address: string, more: object = {}): KubeObject => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, annotations: { "vendor.io/ipv4-address": address, ...more } },
  });
  const block = (cidr: string, owner: string, secondary: Record<string, string>[] = []): KubeObject =>
    stored("IPAMBlock", cidr.replace(/[./]/g, "-"), {
      cidr,
      affinity: `host:${owner}`,
      allocations: [...secondary.keys()],
      unallocated: [],
      attributes: secondary.map((facts, index) => ({ handle_id: `h${index}`, secondary: facts })),
    });
  const pool = (vxlanMode: string, ipipMode = "Never") =>
    stored("IPPool", "pods", { cidr: "10.0.0.0/16", vxlanMode, ipipMode, natOutgoing: true });
  const cluster = [node("here", "172.16.0.1/24"), node("near", "172.16.0.2/24"), node("far", "172.16.9.3/24")];

  function waysOf(mode: string, ipipMode?: string) {
    const { model } = nodeThatKnows(
      pool(mode, ipipMode),
      ...cluster,
      block("10.0.1.0/26", "near"),
      block("10.0.2.0/26", "far"),
    );
    return ["10.0.1.0/26", "10.0.2.0/26"].map((cidr) => {
      const { encapsulation, nextHop, sameSubnet } = model.routes.get(cidr)!;
      return `${encapsulation} by ${nextHop}${sameSubnet ? ", near" : ""}`;
    });
  }

  it("pods of other nodes are sent to directly, by tunnel, or by tunnel only where the node is not near", () => {
    expect(waysOf("Never")).toEqual(["none by 172.16.0.2, near", "none by 172.16.9.3"]);
    expect(waysOf("Always")).toEqual(["vxlan by 172.16.0.2, near", "vxlan by 172.16.9.3"]);
    expect(waysOf("CrossSubnet")).toEqual(["none by 172.16.0.2, near", "vxlan by 172.16.9.3"]);
    expect(waysOf("Never", "Always")).toEqual(["ipip by 172.16.0.2, near", "ipip by 172.16.9.3"]);
    expect(waysOf("Never", "CrossSubnet")).toEqual(["none by 172.16.0.2, near", "ipip by 172.16.9.3"]);
  });

  it("each pool has its own tunnel, nodes' addresses in it go there too, and a pool may ask for readiness", () => {
    const tunnelled = block("10.0.1.0/26", "near", [{ node: "near", type: "ipipTunnelAddress" }]);
    const other = stored("IPPool", "other", { cidr: "10.1.0.0/16", vxlanMode: "Always" });
    const { model, tell } = nodeThatKnows(
      pool("Never", "Always"),
      other,
      ...cluster,
      tunnelled,
      block("10.1.0.0/26", "far"),
    );
    const way = (cidr: string) => [model.routes.get(cidr)?.encapsulation, model.routes.get(cidr)?.nextHop];
    expect([way("10.0.1.0/26"), way("10.0.1.0/32"), way("10.1.0.0/26")]).toEqual([
      ["ipip", "172.16.0.2"],
      ["ipip", "172.16.0.2"],
      ["vxlan", "172.16.9.3"],
    ]);
    expect(model.settings.tunnels).toEqual(["ipip", "vxlan"]);
    tell(pool("Always"));
    expect([way("10.0.1.0/26"), way("10.0.1.0/32")]).toEqual([
      ["vxlan", "10.0.1.0"],
      ["vxlan", null],
    ]);
    expect(model.settings.tunnels).toEqual(["vxlan"]);
    const ready = pool("Never");
    tell({ ...ready, metadata: { ...ready.metadata, annotations: { "vendor.io/ready-tunnels": "ipip,gre" } } });
    expect([way("10.0.1.0/26"), model.settings.tunnels]).toEqual([
      ["none", "172.16.0.2"],
      ["ipip", "vxlan"],
    ]);
  });

  it("an IPv6 pool does not travel in IPIP", () => {
    const v6 = stored("IPPool", "six", { cidr: "fd00::/64", ipipMode: "Always" });
    expect(nodeThatKnows(v6).model.settings.tunnels).toEqual([]);
  });

  it("own pods are behind their interfaces, the rest of an own block is nowhere", () => {
    const { model } = nodeThatKnows(
      pool("Always"),
      ...cluster,
      stored("IPAMBlock", "10.0.0.0/26", {
        ...{ cidr: "10.0.0.0/26", affinity: "host:here", unallocated: [], allocations: [null, 0] },
        attributes: [{ handle_id: "h", secondary: { namespace: "shop", pod: "db", node: "here" } }],
      }),
      namespace("shop"),
      pod("db", "10.0.0.1"),
    );
    const kinds = [...model.routes].map(([cidr, { kind }]) => `${cidr} ${kind}`).sort();
    expect(kinds).toEqual([
      "10.0.0.0/16 pool",
      "10.0.0.0/26 blackhole",
      "10.0.0.1/32 local-workload",
      "172.16.0.1/32 local-host",
      "172.16.0.2/32 remote-host",
      "172.16.9.3/32 remote-host",
    ]);
    expect(model.routes.get("10.0.0.1/32")).toMatchObject({ natOutgoing: true, inPool: true });
  });

  it("an address another node has out of a block goes there, a tunnel's address is that of a node", () => {
    const { model } = nodeThatKnows(
      pool("Always"),
      ...cluster,
      block("10.0.1.0/26", "near", [
        { node: "far", pod: "lent", namespace: "shop" },
        { node: "far", type: "vxlanTunnelAddress" },
        { node: "near", pod: "own", namespace: "shop" },
      ]),
    );
    expect(model.routes.get("10.0.1.0/32")).toMatchObject({
      kind: "remote-workload",
      node: "far",
      nextHop: "10.0.1.1",
    });
    expect(model.routes.get("10.0.1.1/32")).toMatchObject({ kind: "remote-host", node: "far", tunnel: true });
    expect(model.routes.has("10.0.1.2/32")).toBe(false);
    expect(model.nodes.get("far")!.vtep.addressV4).toBe("10.0.1.1");
  });

  it("a node's heartbeat changes nothing", () => {
    const { tell } = nodeThatKnows(pool("Always"), ...cluster);
    expect(tell({ ...cluster[1]!, status: { conditions: [{ lastHeartbeatTime: "now" }] } })).toBeUndefined();
  });
});

describe("settings and host endpoints", () => {
  it("a node's own configuration goes before the default, field by field", () => {
    const { model } = nodeThatKnows(
      stored("DataplaneConfiguration", "default", { bpfEnabled: true, vxlanPort: 8472 }),
      stored("DataplaneConfiguration", "node.here", { vxlanPort: 4790 }),
      stored("DataplaneConfiguration", "node.elsewhere", { vxlanPort: 1 }),
    );
    expect(model.settings).toMatchObject({ dataplane: "BPF", vxlan: { vni: 4096, port: 4790 } });
    expect(model.settings.failsafe.inbound).toContainEqual({ protocol: 6, port: 22, net: null });
  });

  it("a Service at an excluded address is not asked there by eBPF, until the prefix is taken away; the API server's always is", () => {
    const service = (name: string, clusterIP: string) => ({
      ...{ apiVersion: "v1", kind: "Service", metadata: { name, namespace: "default" } },
      spec: { clusterIP, externalIPs: ["192.0.2.7"], ports: [{ port: 53 }] },
    });
    const excluding = (...bpfExcludeCIDRsFromNAT: string[]) =>
      stored("DataplaneConfiguration", "default", { bpfExcludeCIDRsFromNAT });
    const { model, tell } = nodeThatKnows(service("dns", "10.96.0.10"), service("kubernetes", "10.96.0.1"));
    const asked = () => [...model.services.values()].map((one) => [one.clusterAddress, ...one.externalAddresses]);
    expect(asked()).toEqual([
      ["10.96.0.10", "192.0.2.7"],
      ["10.96.0.1", "192.0.2.7"],
    ]);
    tell(excluding("10.96.0.0/16"));
    expect(asked()).toEqual([
      [null, "192.0.2.7"],
      ["10.96.0.1", "192.0.2.7"],
    ]);
    tell(excluding("10.96.0.10/32", "192.0.2.7/32"));
    expect(asked()).toEqual([[null], ["10.96.0.1", "192.0.2.7"]]);
    tell(excluding());
    expect(asked()[0]).toEqual(["10.96.0.10", "192.0.2.7"]);
  });

  it("a setting that nobody acts on is told, until it is taken away", () => {
    const { model, tell } = nodeThatKnows(
      stored("DataplaneConfiguration", "default", { bpfEnabled: true, floatingIPs: "Enabled", bpfPSNATPorts: "1:9" }),
      stored("DataplaneConfiguration", "node.elsewhere", { floatingIPs: "Enabled" }),
    );
    expect([...model.problems.values()]).toMatchObject([
      {
        ...{ code: "SETTINGS_WITHOUT_EFFECT", object: { name: "default" } },
        message: "in this release these settings have no effect: bpfPSNATPorts, floatingIPs",
      },
    ]);
    tell(stored("DataplaneConfiguration", "default", { bpfEnabled: true }));
    expect(model.problems.size).toBe(0);
  });

  it("an automatic endpoint has the profile that allows all; policy puts it before, forwarded packets only where told", () => {
    const gnp = (name: string, spec: object) => stored("GlobalNetworkPolicy", name, { selector: "has(node)", ...spec });
    const { model } = nodeThatKnows(
      stored(
        "HostEndpoint",
        "here-auto-hep",
        { node: "here", interfaceName: "*", expectedIPs: ["172.16.0.1"], profiles: ["vendor-default-allow"] },
        { labels: { node: "" } },
      ),
      gnp("default.normal", { ingress: [{ action: "Deny", protocol: "UDP" }] }),
      gnp("default.forward", { applyOnForward: true, ingress: [{ action: "Deny", protocol: "TCP" }] }),
      gnp("default.before", { applyOnForward: true, preDNAT: true, ingress: [{ action: "Deny", protocol: "SCTP" }] }),
    );
    const endpoint = model.hostEndpoints.get("here-auto-hep")!;
    const names = (tiers: { policies: string[] }[]) => tiers.flatMap(({ policies }) => policies);
    expect(names(endpoint.preDNAT)).toEqual(["gnp/default.before"]);
    expect(names(endpoint.forward.ingress)).toEqual(["gnp/default.forward"]);
    expect(names(endpoint.normal.ingress)).toEqual(["gnp/default.forward", "gnp/default.normal"]);
    expect(endpoint.profiles).toEqual(["vendor-default-allow"]);
    expect(endpoint.preDNAT[0]!.endAction).toBe("pass");
  });
});

describe("being in sync", () => {
  it("is told once, even if nothing else changed", () => {
    const { calculator } = nodeThatKnows();
    expect(calculator.takeDelta()).toBeUndefined();
    calculator.inSync();
    expect(calculator.takeDelta()?.inSync).toBe(true);
    expect(calculator.takeDelta()).toBeUndefined();
  });
});

describe("a field of a later release", () => {
  const web = pod("web", "10.0.0.1", { app: "web" });
  const ruleOf = (object: KubeObject, id: string) => {
    const { model } = nodeThatKnows(namespace("shop"), web, object);
    const { ingress } = model.policies.get(id)!;
    return { ingress, problems: [...model.problems.values()].map(({ code, message }) => `${code} ${message}`) };
  };

  it("makes a rule deny, since without it the rule would match too much", () => {
    for (const rule of [
      { action: "Allow", hostName: "example.org" },
      { action: "Allow", source: { domains: ["example.org"] } },
    ]) {
      const policy = stored("GlobalNetworkPolicy", "default.later", {
        tier: "default",
        types: ["Ingress"],
        ingress: [rule],
      });
      const { ingress, problems } = ruleOf(policy, "gnp/default.later");
      expect(ingress).toEqual([{ id: "gnp/default.later;ingress;0", action: "deny" }]);
      expect(problems).toEqual([expect.stringMatching(/^RULE_UNREADABLE .*(hostName|domains)/)]);
    }
  });

  it("makes a NetworkPolicy of the orchestrator allow nothing in that direction", () => {
    for (const rule of [
      { from: [{ podSelector: {}, accounts: [] }] },
      { from: [{ podSelector: {} }], methods: ["GET"] },
      { from: [{ podSelector: {} }], ports: [{ protocol: "TCP", port: 80, direction: "in" }] },
    ]) {
      const policy: KubeObject = {
        ...{
          apiVersion: "networking.k8s.io/v1",
          kind: "NetworkPolicy",
          metadata: { name: "later", namespace: "shop" },
        },
        spec: { podSelector: {}, ingress: [rule] },
      };
      const { ingress, problems } = ruleOf(policy, "knp/shop/later");
      expect(ingress).toEqual([]);
      expect(problems).toEqual([expect.stringMatching(/^RULE_UNREADABLE /)]);
    }
  });
});
