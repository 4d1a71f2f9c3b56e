import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { readIpamReport } from "../../src/api/protocol/ipam-report.ts";
import { allocationsOf } from "../../src/api/resources/ipam-allocation.ts";
import { EVENTS, NAMESPACES, PODS, SERVICES } from "../../src/cluster/kinds.ts";
import {
  BLOCK_AFFINITIES,
  CONFIGURATIONS,
  IP_POOLS,
  IP_RESERVATIONS,
  IPAM_BLOCKS,
  IPAM_HANDLES,
  typeOf,
} from "../../src/controllers/stored-kinds.ts";
import type { Block, Pool } from "../../src/ipam/ipam-kinds.ts";
import { etcdClient } from "../datastore/etcd-client.ts";
import { hasEtcd, NO_ETCD } from "../support/etcd-server.ts";
import { type ControllersLab, controllersLab, eventually, read, type Started } from "./controllers-lab.ts";
import { runCopy } from "./run-program.ts";

/** Services of type LoadBalancer get addresses of IP pools that are for them. */

interface Service extends KubeObject {
  status: { loadBalancer?: { ingress?: { ip?: string; hostname?: string; ipMode?: string }[] } };
}
type Client = ControllersLab["client"];

const poolObject = (name: string, cidr: string, spec: Partial<Pool["spec"]> = {}): KubeObject => ({
  ...typeOf(IP_POOLS),
  metadata: { name },
  spec: { cidr, blockSize: cidr.includes(":") ? 124 : 30, allowedUses: ["LoadBalancer"], ...spec },
});

let serial = 10;
const serviceObject = (name: string, spec: object = {}, annotations: Record<string, string> = {}): KubeObject => {
  serial += 1;
  const clusterIPs = [`10.96.0.${serial}`];
  return {
    ...{ apiVersion: "v1", kind: "Service", metadata: { namespace: "default", name, annotations } },
    spec: { type: "LoadBalancer", clusterIP: clusterIPs[0], clusterIPs, ports: [{ port: 80 }], ...spec },
  };
};
const DUAL = { ipFamilies: ["IPv6", "IPv4"], ipFamilyPolicy: "RequireDualStack" };
const CLASS = { loadBalancerClass: "vendor" };
const ref = (name: string) => ({ namespace: "default", name });

const ingressOf = async (client: Client, name: string) =>
  (await read<Service>(client, SERVICES, ref(name)))?.status.loadBalancer?.ingress?.map(
    ({ ip, hostname }) => ip ?? hostname,
  ) ?? [];
const blocksOf = async (client: Client) => (await client.list<Block>(IPAM_BLOCKS)).items;
/** `ADDRESS NAMESPACE/NAME` of what is allocated to Services. */
const allocatedIn = async (client: Client) =>
  (await blocksOf(client))
    .flatMap(allocationsOf)
    .flatMap(({ address, owner }) => (owner.kind === "service" ? [`${address} ${owner.namespace}/${owner.name}`] : []))
    .sort();

let world: ControllersLab;
let client: Client;
let started: Started;
beforeEach(async () => {
  world = await controllersLab();
  client = world.client;
});
afterEach(() => world.close());

const addPool = (name: string, cidr: string, spec?: Partial<Pool["spec"]>) =>
  client.create(IP_POOLS, poolObject(name, cidr, spec));
const addService = (name: string, spec?: object, annotations?: Record<string, string>) =>
  client.create(SERVICES, serviceObject(name, spec, annotations));
const annotate = (name: string, annotations: Record<string, string | null>) =>
  client.patch(SERVICES, ref(name), { type: "merge", patch: { metadata: { annotations } } });
const writeIngress = (name: string, ingress: object[] | null) =>
  client.patch(
    SERVICES,
    ref(name),
    { type: "merge", patch: { status: { loadBalancer: { ingress } } } },
    { subresource: "status" },
  );
const ingress = (name: string) => ingressOf(client, name);
const has = (name: string, wanted: (addresses: string[]) => boolean) =>
  eventually(
    () => ingress(name) as Promise<string[]>,
    (found) => wanted(found),
  );
const hasOne = (name: string, start: string) => has(name, (found) => found.length === 1 && found[0]!.startsWith(start));
const hasNone = (name: string) => has(name, (found) => found.length === 0);
const allocated = () => allocatedIn(client);
const events = async (reason: string) =>
  (await client.list<KubeObject & { message: string; reason: string }>(EVENTS, { namespace: "default" })).items
    .filter((event) => event.reason === reason)
    .map(({ message }) => message);
const said = (reason: string, words: string) =>
  eventually(
    () => events(reason),
    (all) => all.some((message) => message.includes(words)),
  );
const configure = (loadBalancer: object | null) =>
  client.patch(
    CONFIGURATIONS,
    { name: "default" },
    { type: "merge", patch: { spec: { controllers: { loadBalancer } } } },
  );
const configured = (words: string) =>
  eventually(
    async () => JSON.stringify((await read(client, CONFIGURATIONS, { name: "default" }))?.["status"] ?? {}),
    (text) => text.includes(words),
  );

describe("a Service of type LoadBalancer", () => {
  it("gets an address of each of its families, in their order, and gives them back when it goes", async () => {
    await addPool("services", "203.0.113.0/28");
    await addPool("services-v6", "2001:db8:9::/120");
    await addPool("pods", "10.244.0.0/16", { allowedUses: ["Workload"], blockSize: 26 });
    await addService("one");
    await addService("both", DUAL);
    await addService("inside", { type: "ClusterIP" });
    started = world.start();
    await hasOne("one", "203.0.113.");
    const both = await has("both", (found) => found.length === 2);
    expect(both.map((address) => address.split(/[.:]/)[0])).toEqual(["2001", "203"]);
    expect(await ingress("inside")).toEqual([]);
    expect(await allocated()).toEqual(
      [`${(await ingress("one"))[0]} default/one`, ...both.map((address) => `${address} default/both`)].sort(),
    );
    const blocks = await blocksOf(client);
    expect(new Set(blocks.map(({ spec }) => spec.affinity))).toEqual(new Set(["virtual:load-balancer"]));
    await said("LoadBalancerAddressAssigned", "of IPPool services-v6");

    await client.delete(SERVICES, ref("both"));
    await eventually(allocated, (left) => left.length === 1);
    // Without its type it keeps nothing; with it, it gets one again.
    await client.patch(SERVICES, ref("one"), { type: "merge", patch: { spec: { type: "ClusterIP" } } });
    await eventually(allocated, (left) => left.length === 0);
    await hasNone("one");
    await eventually(
      async () => (await client.list(IPAM_HANDLES)).items,
      (handles) => handles.length === 0,
    );
    for (const name of ["services", "services-v6"]) await client.delete(IP_POOLS, { name });
    await eventually(
      async () => [...(await blocksOf(client)), ...(await client.list(BLOCK_AFFINITIES)).items],
      (left) => left.length === 0,
    );
  });

  it("keeps its address through a restart, a block that was lost, and writes nothing when settled", async () => {
    await addPool("services", "203.0.113.0/28");
    await addService("first");
    await addService("second");
    started = world.start();
    const [first] = await hasOne("first", "203.");
    const [second] = await hasOne("second", "203.");
    await started.stop();
    for (const { metadata } of await blocksOf(client)) await client.delete(IPAM_BLOCKS, { name: metadata.name });
    for (const { metadata } of (await client.list(IPAM_HANDLES)).items)
      await client.delete(IPAM_HANDLES, { name: metadata.name });
    for (const { metadata } of (await client.list(BLOCK_AFFINITIES)).items) {
      await client.delete(BLOCK_AFFINITIES, { name: metadata.name });
    }
    // By its name it is looked at before those that have an address.
    await addService("always-new");
    started = world.start();
    await hasOne("always-new", "203.");
    await eventually(allocated, (all) => all.length === 3);
    expect([await ingress("first"), await ingress("second")]).toEqual([[first], [second]]);
    const writes = () => started.writes.filter((one) => /services\/|ipam/.test(one)).length;
    const before = writes();
    await client.patch(SERVICES, ref("first"), { type: "merge", patch: { metadata: { labels: { look: "again" } } } });
    const looks = () => /reconciles_total\{controller="load-balancer",result="ok"\} (\d+)/.exec(started.metrics())?.[1];
    const looked = looks();
    await client.patch(SERVICES, ref("second"), { type: "merge", patch: { metadata: { labels: { look: "again" } } } });
    await eventually(looks, (now) => now !== looked);
    expect(writes()).toBe(before);
  });

  it("asks for addresses and pools by annotation, and is told on the object why it gets none", async () => {
    await addPool("by-name", "198.51.100.0/28", { assignmentMode: "Manual" });
    await addPool("services", "203.0.113.0/28");
    await client.create(IP_RESERVATIONS, {
      ...typeOf(IP_RESERVATIONS),
      metadata: { name: "gateway" },
      spec: { reservedCIDRs: ["198.51.100.0/29"] },
    } as KubeObject);
    await addService("named", {}, { "vendor.io/ipv4pools": '["by-name"]' });
    await addService("exact", {}, { "vendor.io/loadBalancerIPs": '["203.0.113.7"]' });
    started = world.start();
    await has("exact", ([ip]) => ip === "203.0.113.7");
    const [named] = await hasOne("named", "198.51.100.");
    expect(Number(named!.split(".")[3])).toBeGreaterThan(7);

    await addService("same", {}, { "vendor.io/loadBalancerIPs": '["203.0.113.7"]' });
    await said("LoadBalancerAddressMissing", "address 203.0.113.7 is taken by Service default/exact");
    await addService("nowhere", {}, { "vendor.io/loadBalancerIPs": '["192.0.2.1"]' });
    await said("LoadBalancerAddressMissing", "192.0.2.1 is in no IPPool for load balancers");
    await addService("unreadable", {}, { "vendor.io/ipv4pools": "by-name" });
    await said("LoadBalancerAddressMissing", "by-name is not a JSON list of strings");
    expect(started.metrics()).toContain("vendor_controllers_services_without_address 3");

    // What cannot be understood takes nothing away; what can be, does.
    await annotate("named", { "vendor.io/ipv4pools": '["no-such"]' });
    await said("LoadBalancerAddressMissing", "no-such is no IPv4 IPPool for load balancers");
    expect(await ingress("named")).toEqual([named]);
    await annotate("named", { "vendor.io/ipv4pools": null });
    await hasOne("named", "203.0.113.");
    await client.delete(SERVICES, ref("exact"));
    await has("same", ([ip]) => ip === "203.0.113.7");
  });

  it("waits for a free address, which its pool, a namespace selector and the report of the controllers name", async () => {
    await client.create(PODS, {
      ...{ apiVersion: "v1", kind: "Pod", metadata: { namespace: "vendor-system", name: "vendor-kube-controllers" } },
      spec: { containers: [{ name: "main", image: "vendor" }] },
    });
    await addPool("few", "203.0.113.0/30", { namespaceSelector: "team == 'shop'" });
    for (const name of ["a", "b", "c", "d", "e"]) await addService(name);
    started = world.start();
    await said("LoadBalancerAddressMissing", "no IPPool for load balancers may give this Service an IPv4 address");
    await client.patch(
      NAMESPACES,
      { name: "default" },
      { type: "merge", patch: { metadata: { labels: { team: "shop" } } } },
    );
    await eventually(allocated, (all) => all.length === 4);
    await said("LoadBalancerAddressMissing", "no address is free in few");
    const report = async () => {
      const own = await client.get<KubeObject>(PODS, { namespace: "vendor-system", name: "vendor-kube-controllers" });
      return readIpamReport(own.metadata.annotations)?.servicesWithoutAddress ?? [];
    };
    const [lacking] = await eventually(report, (found) => found.length === 1 && found[0]!.why.includes("few"), 60_000);
    await client.delete(SERVICES, ref("abcde".split("").find((name) => `default/${name}` !== lacking!.service)!));
    await hasOne(lacking!.service.split("/")[1]!, "203.");
  });

  it("of another controller or class is left to it, and served if its class is ours", async () => {
    await addPool("services", "203.0.113.0/28");
    await addService("cloud");
    await writeIngress("cloud", [{ hostname: "lb.example.com" }]);
    await addService("metal", { loadBalancerClass: "example.com/metal" });
    await addService("ours", CLASS);
    await writeIngress("ours", [{ ip: "192.0.2.9", ipMode: "VIP" }]);
    started = world.start();
    await hasOne("ours", "203.");
    await said("LoadBalancerOfAnother", "Another controller has assigned lb.example.com");
    expect(await ingress("cloud")).toEqual(["lb.example.com"]);
    expect(await ingress("metal")).toEqual([]);
    // The other controller comes later: it has the last word, and our address is free again.
    await addService("late");
    await hasOne("late", "203.");
    await writeIngress("late", [{ ip: "192.0.2.77" }]);
    await eventually(allocated, (all) => all.length === 1);
    expect(await ingress("late")).toEqual(["192.0.2.77"]);
    await writeIngress("late", null);
    await hasOne("late", "203.");
  });

  it("must ask for its address with RequestedServicesOnly; turned off, nothing is assigned and nothing taken away", async () => {
    await addPool("services", "203.0.113.0/28");
    started = world.start();
    await configured("AllServices");
    await configure({ assignIPs: "RequestedServicesOnly" });
    await configured("RequestedServicesOnly");
    await addService("silent");
    await addService("asking", {}, { "vendor.io/ipv4pools": '["203.0.113.0/28"]' });
    await addService("class", CLASS);
    await hasOne("asking", "203.");
    await hasOne("class", "203.");
    expect(await ingress("silent")).toEqual([]);
    await configure({ assignIPs: "AllServices" });
    await hasOne("silent", "203.");
    await configure({ assignIPs: "RequestedServicesOnly" });
    await hasNone("silent");
    await client.patch(
      CONFIGURATIONS,
      { name: "default" },
      { type: "merge", patch: { spec: { controllers: { loadBalancer: null, node: {} } } } },
    );
    await eventually(
      async () => JSON.stringify((await read(client, CONFIGURATIONS, { name: "default" }))?.["status"] ?? {}),
      (text) => !text.includes("loadBalancer"),
    );
    expect(await ingress("asking")).toHaveLength(1);
    expect(await allocated()).toHaveLength(2);
  });

  it("has one address, and none is lost, wherever the controllers are killed", async () => {
    await addPool("services", "203.0.113.0/30");
    await addService("web");
    for (let writes = 0; writes < 12; writes++) {
      let left = writes;
      const one = world.start({
        fault: (request) =>
          /ipam|blockaff|services\//.test(request.path) && request.method !== "GET" && left-- <= 0
            ? "refused"
            : undefined,
      });
      await eventually(
        () => /reconciles_total\{controller="load-balancer",result="(?:ok|failed|raced)"\} \d/.test(one.metrics()),
        (done) => done,
      );
      await one.stop();
    }
    started = world.start();
    const [web] = await hasOne("web", "203.");
    expect(await allocated()).toEqual([`${web} default/web`]);
    await client.delete(SERVICES, ref("web"));
    await eventually(allocated, (all) => all.length === 0);
  });
});

const missing = hasEtcd() ? undefined : NO_ETCD;
it.skipIf(missing)(
  `the address is kept in etcd where that is the datastore${missing ? ` (${missing})` : ""}`,
  async () => {
    const datastore = await etcdClient();
    await datastore.client.create(IP_POOLS, poolObject("services", "203.0.113.0/28"));
    await addService("web");
    const copy = runCopy("only", world.server.transport(), datastore.server.env);
    const [web] = await hasOne("web", "203.");
    expect(await allocatedIn(datastore.client)).toEqual([`${web} default/web`]);
    await client.delete(SERVICES, ref("web"));
    await eventually(
      () => allocatedIn(datastore.client),
      (left) => left.length === 0,
    );
    await copy.stop();
    await datastore.close();
  },
);
