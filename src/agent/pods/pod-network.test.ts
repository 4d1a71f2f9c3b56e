import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CniRequest, DELETIONS_DIRECTORY, deletionFile } from "../../api/protocol/cni.ts";
import { podInterfaceName } from "../../api/protocol/pod-network.ts";
import type { Transport } from "../../api/transport.ts";
import { kubernetesKinds } from "../../apiserver/kubernetes/kinds.ts";
import { type ApiServer, createApiServer } from "../../apiserver/server.ts";
import { type Client, createClient } from "../../cluster/client.ts";
import { errors as clusterErrors } from "../../cluster/errors.ts";
import { NAMESPACES, PODS } from "../../cluster/kinds.ts";
import type { Ipam } from "../../ipam/ipam.ts";
import type { Pool } from "../../ipam/ipam-kinds.ts";
import { fakeKernel } from "../../kernel/fake/fake-kernel.ts";
import { silentLog } from "../../kit/log.ts";
import { notedDeletions } from "./noted-deletions.ts";
import { podInterfaces } from "./pod-interface.ts";
import { type PodNetwork, podNetwork } from "./pod-network.ts";
import { podRecords } from "./pod-records.ts";

/** A node's pods over a kernel and an API server in memory. `policy` is asked before an interface opens. */
class Stage {
  readonly kernel = fakeKernel();
  readonly directory = mkdtempSync(join(tmpdir(), "pods-"));
  readonly given = new Map<string, string>();
  server!: ApiServer;
  people!: Client;
  apiDown = false;
  policy: () => Promise<void> = async () => {};
  podCidrs: string[] = [];

  async open(): Promise<void> {
    this.server = await createApiServer({ kinds: kubernetesKinds() });
    this.people = createClient(this.server.transport(), { userAgent: "story" });
    await this.people.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } });
  }

  async close(): Promise<void> {
    await this.server.close();
    rmSync(this.directory, { recursive: true });
  }

  /** A new life of the agent: with no memory but what is on disk and in the kernel. */
  start(): PodNetwork {
    const inner = this.server.transport();
    const transport: Transport = {
      request: async (request) => {
        if (this.apiDown) throw clusterErrors.CLUSTER_UNREACHABLE("https://api", "ECONNREFUSED");
        return await inner.request(request);
      },
      close: () => {},
    };
    return podNetwork({
      client: createClient(transport, { userAgent: "vendor-node" }),
      node: "n",
      ipam: this.ipam(),
      records: podRecords(join(this.directory, "pods")),
      notes: notedDeletions(this.directory),
      interfaces: podInterfaces(this.kernel, "/nowhere"),
      removePortmapRules: async () => [],
      loop: { inEffect: () => this.policy(), poke() {} },
      pools: () => [{ metadata: { name: "pool" }, spec: { cidr: "10.0.0.0/24" } } as unknown as Pool],
      namespace: () => undefined,
      nodeLabels: () => ({}),
      usesPodCidr: this.podCidrs.length > 0,
      podCidrs: () => this.podCidrs,
      mtu: () => 1450,
      log: silentLog,
    });
  }

  links(): string[] {
    return this.kernel
      .netlink()
      .links()
      .map(({ name }) => name)
      .filter((name) => name !== "lo");
  }

  /** What the plugin leaves of a DEL that found no agent. */
  note(containerId: string): void {
    const directory = join(this.directory, DELETIONS_DIRECTORY);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, deletionFile({ containerId, ifname: "eth0" })), "");
  }

  notes(): string[] {
    return notedDeletions(this.directory)
      .list()
      .map(({ containerId }) => containerId);
  }

  /** Policy is in effect only after `open`. `reached` resolves when an ADD waits for it. */
  holdPolicy(): { reached: Promise<void>; open(): void } {
    let [open, reach] = [(): void => {}, (): void => {}];
    const opened = new Promise<void>((resolve) => (open = resolve));
    const reached = new Promise<void>((resolve) => (reach = resolve));
    this.policy = () => {
      reach();
      return opened;
    };
    return { reached, open };
  }

  async pod(name: string): Promise<void> {
    const spec = { nodeName: "n", containers: [{ name: "main", image: "web" }] };
    await this.people.create(PODS, { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "shop" }, spec });
  }

  private ipam(): Ipam {
    const reach = () => {
      if (this.apiDown) throw clusterErrors.CLUSTER_UNREACHABLE("https://api", "ECONNREFUSED");
    };
    return {
      assign: async ({ owner }) => {
        reach();
        const address = this.given.get(owner.handle) ?? `10.0.0.${this.given.size + 1}`;
        this.given.set(owner.handle, address);
        return [address];
      },
      release: async (handle) => {
        reach();
        this.given.delete(handle);
      },
      addressesOf: async () => [],
      repair: async () => {},
      claimInUse: async () => {},
      allocated: () => [],
      giveBackOutside: async () => {},
      conflicts: () => [],
    };
  }
}

function request(pod: string, containerId: string, netns: string): CniRequest {
  return {
    ...{ command: "ADD", containerId, netns: `/run/netns/${netns}`, ifname: "eth0" },
    args: { K8S_POD_NAMESPACE: "shop", K8S_POD_NAME: pod },
    config: { cniVersion: "1.1.0", name: "vendor", type: "vendor" },
  };
}

describe("connecting pods", () => {
  let on: Stage;
  beforeEach(async () => {
    on = new Stage();
    await on.open();
    await on.pod("web");
    on.kernel.netns.create("one");
  });
  afterEach(() => on.close());

  it("pods that are added at once get different addresses of the node's podCIDR", async () => {
    on.podCidrs = ["10.1.0.0/24"];
    const names = ["a", "b", "c"];
    for (const name of names) {
      await on.pod(name);
      on.kernel.netns.create(name);
    }
    const network = on.start();
    const results = await Promise.all(names.map((name) => network.add(request(name, name, name))));
    const addresses = results.flatMap(({ ips }) => ips.map(({ address }) => address)).sort();
    expect(addresses).toEqual(["10.1.0.2/32", "10.1.0.3/32", "10.1.0.4/32"]);
  });

  it("the interface opens only when policy is in effect, and the cluster knows the addresses before that", async () => {
    const name = podInterfaceName("shop", "web");
    const seen: unknown[] = [];
    on.policy = async () => {
      const pod = await on.people.get(PODS, { namespace: "shop", name: "web" });
      seen.push(pod.metadata.annotations?.["cni.vendor.io/podIPs"], on.kernel.netlink().link(name)?.up);
    };
    const result = await on.start().add(request("web", "c1", "one"));
    expect(seen).toEqual(["10.0.0.1", false]);
    expect(on.kernel.netlink().link(name)?.up).toBe(true);
    expect(result.ips).toEqual([{ address: "10.0.0.1/32", interface: 1 }]);
    const inside = on.kernel.netlink(on.kernel.netns.open("one"));
    expect(inside.routes().map(({ destination, gateway }) => [destination, gateway])).toContainEqual([
      "0.0.0.0/0",
      "169.254.1.1",
    ]);
    expect(on.kernel.netlink().routes({ protocol: 80 })).toMatchObject([{ destination: "10.0.0.1/32" }]);
  });

  it("asked twice it answers the same, also in another life", async () => {
    const first = await on.start().add(request("web", "c1", "one"));
    expect(await on.start().add(request("web", "c1", "one"))).toEqual(first);
    on.start().check(request("web", "c1", "one"));
    expect(on.links()).toHaveLength(1);
  });

  it("killed while it waited for policy, the next life goes on or undoes it, and nothing is left", async () => {
    on.policy = async () => {
      throw new Error("killed");
    };
    await expect(on.start().add(request("web", "c1", "one"))).rejects.toThrow("killed");
    expect(on.kernel.netlink().link(podInterfaceName("shop", "web"))?.up).toBe(false);
    on.policy = async () => {};
    const life = on.start();
    await life.add(request("web", "c1", "one"));
    await life.remove({ containerId: "c1", ifname: "eth0" });
    await life.remove({ containerId: "c1", ifname: "eth0" });
    expect([on.links(), [...on.given]]).toEqual([[], []]);
    expect(podRecords(join(on.directory, "pods")).list()).toEqual([]);
  });

  it("without an API server no pod is connected, but one is removed, and its address given back later", async () => {
    const life = on.start();
    await life.add(request("web", "c1", "one"));
    on.apiDown = true;
    await expect(life.add(request("web", "c2", "one"))).rejects.toMatchObject({ code: "CLUSTER_UNREACHABLE" });
    await life.remove({ containerId: "c1", ifname: "eth0" });
    expect(on.links()).toEqual([]);
    expect(on.given.size).toBe(1);
    on.apiDown = false;
    await on.start().releaseLate();
    expect(on.given.size).toBe(0);
    expect(podRecords(join(on.directory, "pods")).list()).toEqual([]);
  });

  it("a pod's new sandbox takes the interface over, and the late end of the old one leaves it alone", async () => {
    const life = on.start();
    await life.add(request("web", "old", "one"));
    on.kernel.netns.create("two");
    await life.add(request("web", "new", "two"));
    await life.remove({ containerId: "old", ifname: "eth0" });
    expect(on.links()).toEqual([podInterfaceName("shop", "web")]);
    life.check(request("web", "new", "two"));
    expect([...on.given.keys()]).toEqual(["k8s-pod-network.new"]);
  });

  it("what no runtime knows is removed, and what one knows stays", async () => {
    const life = on.start();
    await on.pod("kept");
    on.kernel.netns.create("two");
    await life.add(request("web", "c1", "one"));
    await life.add(request("kept", "c2", "two"));
    await life.removeOthers([{ containerID: "c2", ifname: "eth0" }]);
    expect(on.links()).toEqual([podInterfaceName("shop", "kept")]);
  });

  it("a DEL noted while no agent ran is carried out without an API server, and the address released later", async () => {
    await on.start().add(request("web", "c1", "one"));
    on.note("c1");
    on.note("unknown");
    on.apiDown = true;
    const life = on.start();
    await life.removeNoted();
    expect([on.links(), on.notes(), on.given.size]).toEqual([[], [], 1]);
    on.apiDown = false;
    await life.releaseLate();
    expect(on.given.size).toBe(0);
  });

  it("a DEL noted before an ADD with the same container id leaves the interface of that ADD alone", async () => {
    await on.start().add(request("web", "c1", "one"));
    on.note("c1");
    const life = on.start();
    await life.add(request("web", "c1", "one"));
    expect(on.notes()).toEqual([]);
    for (const later of [life, on.start()]) {
      await later.removeNoted();
      await later.releaseLate();
      later.check(request("web", "c1", "one"));
    }
    expect([...on.given.keys()]).toEqual(["k8s-pod-network.c1"]);
  });

  it("a noted DEL whose turn comes after an ADD with the same container id does nothing", async () => {
    on.note("c1");
    const life = on.start();
    const policy = on.holdPolicy();
    const adding = life.add(request("web", "c1", "one"));
    const removing = life.removeNoted();
    policy.open();
    await Promise.all([adding, removing]);
    life.check(request("web", "c1", "one"));
  });

  it("a served DEL drops its note", async () => {
    const life = on.start();
    await life.add(request("web", "c1", "one"));
    on.note("c1");
    await life.remove({ containerId: "c1", ifname: "eth0" });
    expect(on.notes()).toEqual([]);
  });

  it.each([
    ["a late release", (life: PodNetwork) => life.releaseLate()],
    ["GC", (life: PodNetwork) => life.removeOthers([])],
  ])("%s whose turn comes after an ADD with the same container id does nothing", async (_what, act) => {
    const life = on.start();
    await life.add(request("web", "c1", "one"));
    on.apiDown = true;
    await life.remove({ containerId: "c1", ifname: "eth0" });
    on.apiDown = false;
    const policy = on.holdPolicy();
    const adding = life.add(request("web", "c1", "one"));
    // The record of the DEL is still the one it sees, and the ADD is before it.
    const acting = act(life);
    await policy.reached;
    policy.open();
    await Promise.all([adding, acting]);
    life.check(request("web", "c1", "one"));
    expect([...on.given.keys()]).toEqual(["k8s-pod-network.c1"]);
  });

  it.each([
    ["a pod nobody has heard of", request("nobody", "c1", "one"), "POD_UNKNOWN"],
    ["no pod at all", { ...request("web", "c1", "one"), args: {} }, "POD_UNNAMED"],
  ])("refuses %s", async (_case, asked, code) => {
    await expect(on.start().add(asked)).rejects.toMatchObject({ code });
    expect(on.links()).toEqual([]);
  });

  it("CHECK says what somebody took away", async () => {
    const life = on.start();
    await life.add(request("web", "c1", "one"));
    const inside = on.kernel.netlink(on.kernel.netns.open("one"));
    for (const address of inside.addresses()) inside.deleteAddress(address);
    expect(() => life.check(request("web", "c1", "one"))).toThrow(/does not have address 10\.0\.0\.1/);
    expect(() => life.check(request("web", "c9", "one"))).toThrow(/not made by this node/);
  });
});
