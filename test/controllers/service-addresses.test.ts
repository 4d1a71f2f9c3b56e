import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Condition, KubeObject } from "../../src/api/object.ts";
import { EVENTS, NODES, PODS, SERVICES } from "../../src/cluster/kinds.ts";
import { DATAPLANE_CONFIGURATIONS, typeOf } from "../../src/controllers/stored-kinds.ts";
import { addNode, type ControllersLab, controllersLab, eventually, read, type Started } from "./controllers-lab.ts";

/** The eBPF data plane refuses addresses that belong to something else. The owner of the Service reads that on the Service itself. */

const TYPE = "vendor.io/ExternalAddressesServed";
const SHOP = { namespace: "default", name: "shop" };
const FOREIGN = { type: "example.com/Checked", status: "True", reason: "Ok", message: "" } as const;

interface Shop extends KubeObject {
  spec: { externalIPs?: string[] };
  status: { loadBalancer?: object; conditions?: Condition[] };
}

let world: ControllersLab;
let started: Started;
beforeEach(async () => {
  world = await controllersLab();
  await addNode(world.client, "a", { addresses: [["InternalIP", "172.16.0.1"]] });
});
afterEach(() => world.close());

async function setEbpf(bpfEnabled: boolean): Promise<void> {
  const present = await read(world.client, DATAPLANE_CONFIGURATIONS, { name: "default" });
  if (present) {
    const patch = { spec: { bpfEnabled } };
    await world.client.patch(DATAPLANE_CONFIGURATIONS, { name: "default" }, { type: "merge", patch });
  } else {
    const made = { ...typeOf(DATAPLANE_CONFIGURATIONS), metadata: { name: "default" }, spec: { bpfEnabled } };
    await world.client.create(DATAPLANE_CONFIGURATIONS, made);
  }
}

async function addShop(externalIPs: string[]): Promise<void> {
  await world.client.create(SERVICES, {
    ...{ apiVersion: "v1", kind: "Service", metadata: { ...SHOP } },
    spec: { clusterIP: "10.96.0.9", clusterIPs: ["10.96.0.9"], ports: [{ port: 80 }], externalIPs },
  });
}

const setAddresses = (externalIPs: string[]) =>
  world.client.patch(SERVICES, SHOP, { type: "merge", patch: { spec: { externalIPs } } });

const shop = () => read<Shop>(world.client, SERVICES, SHOP);
const condition = async () => (await shop())?.status.conditions?.find(({ type }) => type === TYPE);
const refused = (words: string) =>
  eventually(condition, (found) => found?.status === "False" && (found.message ?? "").includes(words));
const served = () => eventually(condition, (found) => found === undefined);
const events = async () =>
  (await world.client.list<KubeObject & { message: string; reason: string }>(EVENTS, { namespace: "default" })).items
    .filter(({ reason }) => reason === "AddressRefused")
    .map(({ message }) => message);

/** Everything that was to be written is: a settled cluster makes no write. */
async function settled(): Promise<number> {
  const done = () =>
    /reconciles_total\{controller="service-addresses",result="ok"\} (\d+)/.exec(started.metrics())?.[1];
  const before = done();
  const label = { metadata: { labels: { look: `${Date.now()}` } } };
  await world.client.patch(NODES, { name: "a" }, { type: "merge", patch: label });
  await eventually(done, (count) => count !== before);
  return started.writes.filter((one) => one.includes("/services/")).length;
}

describe("a Service that claims addresses of others", () => {
  it("has a condition and an event that name the address, its owner and the fix; both owners of the status keep theirs", async () => {
    await setEbpf(true);
    await addShop(["172.16.0.1", "192.0.2.7"]);
    const status = {
      loadBalancer: { ingress: [{ ip: "192.0.2.9" }] },
      conditions: [{ ...FOREIGN, lastTransitionTime: "2026-01-01T00:00:00Z" }],
    };
    await world.client.patch(SERVICES, SHOP, { type: "merge", patch: { status } }, { subresource: "status" });
    started = world.start();
    const first = await refused("172.16.0.1 is an address of node a");
    expect(first).toMatchObject({ reason: "AddressRefused", lastTransitionTime: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect(first?.message).toContain("Remove these addresses from spec.externalIPs");
    expect(first?.message).not.toContain("192.0.2.7");
    expect(await eventually(events, (all) => all.length === 1)).toEqual([first?.message]);
    expect((await shop())?.status).toMatchObject({
      loadBalancer: { ingress: [{ ip: "192.0.2.9" }] },
      conditions: expect.arrayContaining([expect.objectContaining(FOREIGN), first]),
    });

    await setAddresses(["192.0.2.7"]);
    await served();
    expect((await shop())?.status.conditions).toMatchObject([FOREIGN]);
    expect(await settled()).toBe(2);
  });

  it("follows a pod, a node and the API server that have the address, and of their end", async () => {
    await setEbpf(true);
    await addShop(["10.0.0.5", "172.16.0.7", "172.16.0.100"]);
    started = world.start({ env: { KUBERNETES_SERVICE_HOST: "172.16.0.100" } });
    const since = (await refused("172.16.0.100 is an address of the API server"))?.lastTransitionTime;
    await world.client.create(PODS, {
      ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "victim", namespace: "default" } },
      spec: { nodeName: "a", containers: [{ name: "main", image: "x" }] },
    });
    const podStatus = { phase: "Running", podIP: "10.0.0.5", podIPs: [{ ip: "10.0.0.5" }] };
    const victim = { namespace: "default", name: "victim" };
    await world.client.patch(PODS, victim, { type: "merge", patch: { status: podStatus } }, { subresource: "status" });
    await refused("10.0.0.5 is the address of pod default/victim");
    await addNode(world.client, "b", { addresses: [["InternalIP", "172.16.0.7"]] });
    // The status is False all the time: since when stays.
    expect(await refused("172.16.0.7 is an address of node b")).toMatchObject({ lastTransitionTime: since });
    await world.client.delete(NODES, { name: "b" });
    await world.client.delete(PODS, victim, { gracePeriodSeconds: 0 });
    await eventually(condition, (found) => !/victim|node b/.test(found?.message ?? "victim"));
    await setAddresses(["10.0.0.5", "172.16.0.7"]);
    await served();
  });

  it("has no condition while kube-proxy serves Services, and loses it with the switch to nftables", async () => {
    await setEbpf(false);
    await addShop(["172.16.0.1"]);
    started = world.start();
    expect(await settled()).toBe(0);
    await setEbpf(true);
    await refused("172.16.0.1 is an address of node a");
    await setEbpf(false);
    await served();
    expect((await shop())?.status).toEqual({ loadBalancer: {} });
  });

  it("has the condition of the program that leads next, at no further write", async () => {
    await setEbpf(true);
    await addShop(["172.16.0.1"]);
    started = world.start();
    const first = await refused("172.16.0.1");
    await started.stop();
    started = world.start();
    expect(await settled()).toBe(0);
    expect(await condition()).toEqual(first);
    await started.stop();
    await setAddresses([]);
    started = world.start();
    await served();
  });
});
