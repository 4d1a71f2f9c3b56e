import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import type { HostEndpoint } from "../../src/api/resources/host-endpoint.ts";
import { EVENTS, NODES } from "../../src/cluster/kinds.ts";
import { CONFIGURATIONS, HOST_ENDPOINTS, IPAM_BLOCKS, PROFILES, typeOf } from "../../src/controllers/stored-kinds.ts";
import { fakeClock } from "../../src/kit/fake-clock.ts";
import { addNode, type ControllersLab, controllersLab, eventually, read } from "./controllers-lab.ts";

/** Automatic host endpoints, as somebody with kubectl sees them. */

type Endpoint = KubeObject & HostEndpoint;

let world: ControllersLab;
beforeEach(async () => {
  world = await controllersLab();
});
afterEach(() => world.close());

const endpoint = (name: string) => read<Endpoint>(world.client, HOST_ENDPOINTS, { name });
const names = async () => (await world.endpoints()).map(({ metadata }) => metadata.name).sort();
const switchTo = (autoCreate: "Enabled" | "Disabled", more: object = {}) => {
  const patch = { spec: { controllers: { node: { hostEndpoint: { autoCreate, ...more } } } } };
  return eventually(
    () => world.client.patch(CONFIGURATIONS, { name: "default" }, { type: "merge", patch }).catch(() => undefined),
    (object) => object !== undefined,
  );
};
const settled = (is: (names: string[]) => boolean) => eventually(names, is);
const userEndpoint = (name: string, labels: Record<string, string> = {}): Endpoint => ({
  ...typeOf(HOST_ENDPOINTS),
  metadata: { name, labels },
  spec: { node: "a", interfaceName: "eth1" },
});

describe("automatic host endpoints", () => {
  it("appear for every node when they are turned on, and say everything about it", async () => {
    await addNode(world.client, "a", {
      labels: { zone: "eu-1", role: "db" },
      addresses: [
        ["Hostname", "a.example"],
        ["ExternalIP", "203.0.113.7"],
        ["InternalIP", "10.0.0.1"],
        ["InternalIP", "fd00::1"],
        ["InternalIP", "10.0.0.1"],
      ],
    });
    world.start();
    await eventually(
      () => read(world.client, PROFILES, { name: "vendor-default-allow" }),
      (profile) => profile !== undefined,
    );
    expect(await names()).toEqual([]);
    await switchTo("Enabled");
    await settled((all) => all.length === 1);
    expect(await endpoint("a-auto-hep")).toMatchObject({
      apiVersion: "crd.vendor.io/v1",
      metadata: { labels: { zone: "eu-1", role: "db", "vendor.io/created-by": "vendor-kube-controllers" } },
      spec: {
        node: "a",
        interfaceName: "*",
        expectedIPs: ["10.0.0.1", "fd00::1", "203.0.113.7"],
        profiles: ["vendor-default-allow"],
      },
    });
    expect(await read(world.client, PROFILES, { name: "vendor-default-allow" })).toMatchObject({
      spec: { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] },
    });
  });

  it("follow their node: its labels, also those it loses, its addresses, its tunnels, its end", async () => {
    await addNode(world.client, "a", { labels: { old: "1", kept: "1" } });
    world.start();
    await switchTo("Enabled");
    await settled((all) => all.length === 1);
    const patch = { metadata: { labels: { old: null, kept: "2", fresh: "1" } } };
    await world.client.patch(NODES, { name: "a" }, { type: "merge", patch });
    const labels = { kept: "2", fresh: "1", "vendor.io/created-by": "vendor-kube-controllers" };
    const isLabelled = (object?: Endpoint) =>
      JSON.stringify(Object.entries(object?.metadata.labels ?? {}).sort()) ===
      JSON.stringify(Object.entries(labels).sort());
    await eventually(() => endpoint("a-auto-hep"), isLabelled);

    await world.client.create(IPAM_BLOCKS, {
      ...typeOf(IPAM_BLOCKS),
      metadata: { name: "192-168-0-0-30" },
      spec: {
        cidr: "192.168.0.0/30",
        affinity: "host:a",
        allocations: [null, 0, null, null],
        unallocated: [0, 2, 3],
        attributes: [{ handle_id: "vxlan-tunnel-addr-a", secondary: { node: "a", type: "vxlanTunnelAddress" } }],
      },
    });
    await eventually(
      () => endpoint("a-auto-hep"),
      (object) => object?.spec.expectedIPs?.join() === "10.0.0.1,192.168.0.1",
    );

    await world.client.delete(NODES, { name: "a" });
    await settled((all) => all.length === 0);
  });

  it("are put back after a hand edit and made again after a hand deletion; annotations are left alone", async () => {
    await addNode(world.client, "a", { labels: { role: "db" } });
    await addNode(world.client, "b");
    world.start();
    await switchTo("Enabled");
    await settled((all) => all.length === 2);
    const before = await endpoint("a-auto-hep");
    const edit = {
      metadata: { labels: { role: "web", mine: "yes" }, annotations: { note: "seen" } },
      spec: {
        node: "b",
        interfaceName: "eth0",
        expectedIPs: ["1.2.3.4"],
        profiles: [],
        ports: [{ name: "x", port: 1, protocol: "TCP" }],
      },
    };
    await world.client.patch(HOST_ENDPOINTS, { name: "a-auto-hep" }, { type: "merge", patch: edit });
    const after = await eventually(
      () => endpoint("a-auto-hep"),
      (object) => object?.spec.interfaceName === "*" && object.spec.node === "a",
    );
    expect(after?.spec).toEqual(before?.spec);
    expect(after?.metadata.labels).toEqual(before?.metadata.labels);
    expect(after?.metadata.annotations).toEqual({ note: "seen" });
    expect(after?.metadata.uid).toBe(before?.metadata.uid);

    await world.client.delete(HOST_ENDPOINTS, { name: "b-auto-hep" });
    await eventually(
      () => endpoint("b-auto-hep"),
      (object) => object !== undefined,
    );
    await world.client.patch(
      PROFILES,
      { name: "vendor-default-allow" },
      { type: "merge", patch: { spec: { ingress: [{ action: "Deny" }] } } },
    );
    await eventually(
      () => read<KubeObject>(world.client, PROFILES, { name: "vendor-default-allow" }),
      (object) => JSON.stringify(object?.["spec"] ?? {}).includes('"ingress":[{"action":"Allow"}]'),
    );
  });

  it("go with the switch, all of them, and nobody else's", async () => {
    await addNode(world.client, "a");
    await addNode(world.client, "b");
    await world.client.create(HOST_ENDPOINTS, userEndpoint("mine"));
    await world.client.create(
      HOST_ENDPOINTS,
      userEndpoint("gone-auto-hep", { "vendor.io/created-by": "someone-else" }),
    );
    const before = await world.endpoints();
    world.start();
    await switchTo("Enabled");
    await settled((all) => all.length === 4);
    await switchTo("Disabled");
    await settled((all) => all.length === 2);
    expect(await world.endpoints()).toEqual(before);
  });

  it("are known by their label, never by their name: a name that is taken stays its owner's, and is told", async () => {
    await addNode(world.client, "a");
    await addNode(world.client, "b");
    await world.client.create(HOST_ENDPOINTS, userEndpoint("a-auto-hep", { mine: "yes" }));
    const before = await endpoint("a-auto-hep");
    const { metrics } = world.start();
    await switchTo("Enabled");
    await settled((all) => all.includes("b-auto-hep"));
    const events = await eventually(
      async () => (await world.client.list<KubeObject>(EVENTS, { namespace: "default" })).items,
      (items) => items.length > 0,
    );
    expect(events[0]).toMatchObject({
      reason: "HostEndpointNameTaken",
      type: "Warning",
      involvedObject: { kind: "HostEndpoint", name: "a-auto-hep" },
      message: expect.stringContaining("Rename or delete it."),
    });
    expect(await endpoint("a-auto-hep")).toEqual(before);
    expect(metrics()).toContain("vendor_controllers_host_endpoint_conflicts 1");
    // Its owner gives way.
    await world.client.delete(HOST_ENDPOINTS, { name: "a-auto-hep" });
    await eventually(
      () => endpoint("a-auto-hep"),
      (object) => object?.spec.interfaceName === "*",
    );
    await eventually(metrics, (text) => text.includes("vendor_controllers_host_endpoint_conflicts 0"));
  });

  it("have a name even where the node's is too long for one", async () => {
    const long = `${"n".repeat(63)}.${"o".repeat(63)}.${"d".repeat(63)}.${"e".repeat(58)}`;
    await addNode(world.client, long);
    await addNode(world.client, "short");
    world.start();
    await switchTo("Enabled");
    const [first, second] = await settled((all) => all.length === 2);
    expect([first, second]).toContain("short-auto-hep");
    const hashed = [first, second].find((name) => name !== "short-auto-hep") as string;
    expect(hashed).toMatch(/^[a-z0-9]{35,43}-auto-hep$/);
    expect((await endpoint(hashed))?.spec.node).toBe(long);
    await world.client.delete(NODES, { name: long });
    await settled((all) => all.join() === "short-auto-hep");
  });

  it("come from templates too: by prefix, by interface, for the nodes that are selected", async () => {
    const interfaces = JSON.stringify([
      { name: "eth0", addresses: ["10.0.0.1"] },
      { name: "Bond_1", addresses: ["10.9.0.1", "fd00::9"] },
    ]);
    await addNode(world.client, "a", { labels: { role: "db" }, annotations: { "vendor.io/interfaces": interfaces } });
    await addNode(world.client, "b", { labels: { role: "web" }, addresses: [["InternalIP", "10.9.0.2"]] });
    world.start();
    await switchTo("Enabled", {
      createDefaultHostEndpoint: "Disabled",
      templates: [
        { generateName: "net9", interfaceCIDRs: ["10.9.0.0/16"], labels: { role: "nine" } },
        { generateName: "nic", interfacePattern: "^(eth|Bond_)[0-9]", nodeSelector: "role == 'db'" },
        { generateName: "none", interfaceCIDRs: ["172.16.0.0/12"] },
      ],
    });
    const all = await eventually(
      async () => (await world.endpoints()) as Endpoint[],
      (found) => found.length === 4,
    );
    const shown = all
      .map(({ metadata, spec }) => [
        metadata.name.replace(/^[a-z0-9]{35,43}-/, "HASH-"),
        metadata.labels?.["role"],
        spec.interfaceName,
        spec.expectedIPs,
      ])
      .sort();
    expect(shown).toEqual([
      ["HASH-auto-hep", "db", "Bond_1", ["10.9.0.1", "fd00::9"]],
      ["a-net9-auto-hep", "nine", undefined, ["10.9.0.1"]],
      ["a-nic-eth0-auto-hep", "db", "eth0", ["10.0.0.1"]],
      ["b-net9-auto-hep", "nine", undefined, ["10.9.0.2"]],
    ]);
  });

  it("are written once: a settled cluster, a full look every five minutes and a restart make no write", async () => {
    for (let i = 0; i < 20; i++) await addNode(world.client, `n${i}`, { labels: { index: `${i}` } });
    const clock = fakeClock(Date.now());
    const first = world.start({ clock });
    await switchTo("Enabled");
    await settled((all) => all.length === 20);
    await eventually(
      () => read<KubeObject>(world.client, CONFIGURATIONS, { name: "default" }),
      (object) => JSON.stringify(object?.["status"] ?? {}).includes('"autoCreate":"Enabled"'),
    );
    const count = first.writes.length;
    await clock.advance(3 * 300_000);
    expect(first.writes.slice(count)).toEqual([]);
    await first.stop();
    const second = world.start();
    await eventually(second.metrics, (text) => text.includes('controller="host-endpoints",result="ok"} 20'));
    expect(second.writes).toEqual([]);
  });

  it("the configuration is made with nothing but its name, and its status says what is in force", async () => {
    world.start({ env: { AUTO_HOST_ENDPOINTS: "enabled" } });
    const made = await eventually(
      () => read<KubeObject>(world.client, CONFIGURATIONS, { name: "default" }),
      (object) => object?.["status"] !== undefined,
    );
    expect(made?.["spec"] ?? {}).toEqual({});
    expect(made?.["status"]).toEqual({
      runningConfig: {
        logSeverityScreen: "Info",
        healthChecks: "Enabled",
        prometheusMetricsPort: 9094,
        controllers: {
          node: {
            reconcilerPeriod: "5m",
            leakGracePeriod: "15m",
            hostEndpoint: { autoCreate: "Enabled", createDefaultHostEndpoint: "Enabled", templates: [] },
          },
          loadBalancer: { assignIPs: "AllServices" },
        },
      },
    });
  });

  it("a configuration that cannot be right changes nothing: what was in force stays, also after a restart", async () => {
    await addNode(world.client, "a");
    const first = world.start();
    await switchTo("Enabled");
    await settled((all) => all.length === 1);
    await switchTo("Disabled", { templates: [{ generateName: "x", interfacePattern: "(" }] });
    await eventually(
      async () => (await world.client.list<KubeObject>(EVENTS, { namespace: "default" })).items,
      (items) => items.some((event) => event["reason"] === "InvalidConfiguration"),
    );
    expect(await names()).toEqual(["a-auto-hep"]);
    await first.stop();
    const second = world.start();
    await addNode(world.client, "b");
    await settled((all) => all.join() === "a-auto-hep,b-auto-hep");
    await switchTo("Disabled", { templates: [] });
    await settled((all) => all.length === 0);
    await second.stop();
  });
});
