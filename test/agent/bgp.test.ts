import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { askBird, bgpPlaces } from "../../src/agent/bgp/bird-control.ts";
import { BGP_FILTERS, BGP_PEERS, NODE_STATUSES, type NodeStatus, typeOf } from "../../src/agent/stored-kinds.ts";
import { NODES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import {
  type BgpLab,
  bgpLab,
  createService,
  enableBgp,
  learned,
  NODE_AS,
  problemsOf,
  sessionsOf,
  setBackends,
  vendorctlOn,
} from "./bgp-lab.ts";
import { whyNoBgp } from "./frr-router.ts";
import { type LabPod, request, serve, until, whyNoNodes } from "./node-lab.ts";

const why = whyNoNodes() ?? whyNoBgp();
const RANGES = { serviceClusterIPs: [{ cidr: "10.96.0.0/16" }], serviceLoadBalancerIPs: [{ cidr: "203.0.113.0/24" }] };

/** What a router that wants to harm announces; the last is an honest route. */
const HOSTILE = [
  "0.0.0.0/0",
  "10.88.0.0/24",
  "10.88.0.0/25",
  "10.88.0.16/28",
  "10.88.0.17/32",
  "10.99.0.0/25",
  "10.96.1.0/24",
  "169.254.0.0/16",
  "198.51.100.0/24",
];

describe.skipIf(why !== undefined)(`BGP with routers of another maker, nftables${why ? ` (${why})` : ""}`, () => {
  let lab: BgpLab;
  const pods: LabPod[] = [];
  const ends: (() => void)[] = [];
  beforeAll(async () => {
    lab = await bgpLab(
      {
        bpf: false,
        pools: [
          { cidr: "10.88.0.0/24", vxlanMode: "Never", blockSize: 28 },
          { cidr: "fd88::/112", vxlanMode: "Never" },
        ],
      },
      [
        { name: "tor1", at: 201, asNumber: 65_001 },
        { name: "tor2", at: 202, asNumber: 65_001 },
        { name: "reflector", at: 203, asNumber: NODE_AS },
        { name: "hostile", at: 204, asNumber: 65_666, afterwards: HOSTILE.map((net) => `  network ${net}`) },
      ],
      { ...RANGES, nodeToNodeMeshEnabled: false },
    );
    for (const [at, node] of lab.nodes.entries()) {
      const pod = await lab.addPod(`pod-${at}`, node);
      pods.push(pod);
      ends.push(await serve(pod, 8080, 4));
    }
  });
  afterAll(async () => {
    for (const end of ends) end();
    await lab?.close();
  });

  const diagnosis = async () =>
    [
      ...(await Promise.all(lab.nodes.map((node) => node.vendor("node", "show", "bgp")))),
      ...(await Promise.all(lab.nodes.map(problemsOf))).flat(),
      ...Object.values(lab.routers).map(({ name }) => name),
      ...lab.bgp.map((daemon) => daemon.log().slice(-2_000)),
    ].join("\n");
  const nextHops = async (router: string, net: string) =>
    (await lab.routers[router]!.routes(net.includes(":") ? 6 : 4)).get(net)?.used ?? [];
  const becomes = async <T>(is: () => Promise<T>, wanted: T) =>
    await until(
      async () => JSON.stringify(await is()) === JSON.stringify(wanted),
      async () => `${JSON.stringify(await is())} instead of ${JSON.stringify(wanted)}\n${await diagnosis()}`,
    );
  const blockOf = (pod: LabPod) => `10.88.0.${Math.floor(Number(pod.addresses[0]!.split(".")[3]) / 16) * 16}/28`;

  it("the routers learn the block of each node in both families, and reach pods by it", async () => {
    for (const [at, pod] of pods.entries()) {
      await becomes(() => nextHops("tor1", blockOf(pod)), [`10.99.0.${at + 1}`]);
      const inV6 = async () =>
        [...(await lab.routers["tor1"]!.routes(6)).values()].filter(({ used }) => used.includes(`fd99::${at + 1}`))
          .length;
      await becomes(async () => (await inV6()) > 0, true);
      await becomes(() => request(lab.routers["tor1"]!, pod.addresses[0]!, 8080), `${pod.name} saw 10.99.0.201`);
    }
  });

  it("a route reflector brings each node the blocks of the others, and nothing else inside the pools", async () => {
    const [one, two] = lab.nodes;
    const ofOthers = async (node = one!) => (await learned(node)).filter((route) => route.startsWith("10.88."));
    await becomes(() => ofOthers(one!), [`${blockOf(pods[1]!)} via 10.99.0.2`]);
    await becomes(() => ofOthers(two!), [`${blockOf(pods[0]!)} via 10.99.0.1`]);
  });

  it("a hostile router gets an honest route in, and no default route, pool, block, Service or network of the node", async () => {
    await becomes(
      async () => (await learned(lab.nodes[0]!)).filter((route) => route.endsWith("10.99.0.204")),
      ["198.51.100.0/24 via 10.99.0.204"],
    );
    expect((await lab.routers["hostile"]!.routes(4)).size).toBeGreaterThanOrEqual(HOSTILE.length);
  });

  it("a BGPFilter lets a default route in; without the filter the session is not there", async () => {
    const { client } = lab;
    const metadata = { name: "hostile-v4" };
    const rule = { action: "Accept", matchOperator: "Equal", cidr: "0.0.0.0/0" };
    const filter = { ...typeOf(BGP_FILTERS), metadata: { name: "default-route" }, spec: { importV4: [rule] } };
    await client.create(BGP_FILTERS, filter);
    await client.patch(BGP_PEERS, metadata, { type: "merge", patch: { spec: { filters: ["default-route"] } } });
    await becomes(async () => (await learned(lab.nodes[0]!)).includes("default via 10.99.0.204"), true);
    await client.delete(BGP_FILTERS, filter.metadata);
    await becomes(async () => Object.keys(await sessionsOf(lab.nodes[0]!)).includes("peer_10_99_0_204"), false);
    expect((await problemsOf(lab.nodes[0]!)).join("\n")).toContain("BGP_FILTER_MISSING");
    await client.patch(BGP_PEERS, metadata, { type: "merge", patch: { spec: { filters: null } } });
    await becomes(async () => (await sessionsOf(lab.nodes[0]!))["peer_10_99_0_204"], "Established");
    await becomes(async () => (await learned(lab.nodes[0]!)).includes("default via 10.99.0.204"), false);
  });

  it("Service ranges come from every node, a local Service from nodes with a ready backend, and goes within a second of the last", async () => {
    await createService(lab, "local", { clusterIP: "10.96.0.10", balancer: "203.0.113.10", local: true }, [pods[0]!]);
    await becomes(() => nextHops("tor1", "203.0.113.0/24"), ["10.99.0.1", "10.99.0.2"]);
    await becomes(() => nextHops("tor1", "203.0.113.10/32"), ["10.99.0.1"]);
    await setBackends(lab, "local", pods);
    await becomes(() => nextHops("tor1", "203.0.113.10/32"), ["10.99.0.1", "10.99.0.2"]);
    await becomes(() => nextHops("tor2", "10.96.0.10/32"), ["10.99.0.1", "10.99.0.2"]);
    const began = performance.now();
    await setBackends(lab, "local", []);
    await becomes(() => nextHops("tor1", "203.0.113.10/32"), []);
    const took = performance.now() - began;
    expect(took).toBeLessThan(patience(1_000));
  });

  it("a NodeStatus says what BIRD has, as often as it asks, and vendorctl node prints it", async () => {
    const { client } = lab;
    await enableBgp(lab);
    const create = (name: string, spec: object) =>
      client.create<NodeStatus>(NODE_STATUSES, { ...typeOf(NODE_STATUSES), metadata: { name }, spec } as NodeStatus);
    const read = async (name: string) => (await client.get<NodeStatus>(NODE_STATUSES, { name })).status;
    await create("often", { node: "node-1", classes: ["Agent", "BGP"], updatePeriodSeconds: 1 });
    await create("once", { node: "node-1", classes: ["Agent"], updatePeriodSeconds: 0 });
    await create("of-another", { node: "node-9", classes: ["BGP"] });
    const state = async (peer: string) =>
      (await read("often"))?.bgp?.peersV4?.find(({ peerIP }) => peerIP === peer)?.state;
    await becomes(() => state("10.99.0.201"), "Established");
    await becomes(async () => (await read("once"))?.lastUpdated !== undefined, true);
    const [often, once] = [await read("often"), await read("once")];
    expect(often?.agent?.birdV4).toMatchObject({
      ...{ state: "Ready", version: expect.stringMatching(/^2\./), routerID: "10.99.0.1" },
      lastBootTime: expect.stringMatching(/\d\d:\d\d/),
    });
    expect(often?.bgp).toMatchObject({ numberEstablishedV4: 4, numberNotEstablishedV4: 0, numberEstablishedV6: 4 });
    expect(often?.bgp?.peersV4?.map(({ peerIP, type }) => `${peerIP} ${type}`).sort()).toEqual(
      [201, 202, 203, 204].map((at) => `10.99.0.${at} GlobalPeer`),
    );
    expect(once?.bgp).toBeUndefined();
    expect(await read("of-another")).toBeUndefined();

    // What the router ends is known from BIRD, with its words; what was asked once stays as it was.
    await lab.routers["tor2"]!.vtysh("configure terminal", "router bgp 65001", "neighbor 10.99.0.1 shutdown");
    await becomes(async () => (await state("10.99.0.202")) !== "Established", true);
    const ended = (await read("often"))?.bgp;
    expect(ended).toMatchObject({ numberEstablishedV4: 3, numberNotEstablishedV4: 1 });
    const info = async () => (await read("often"))?.bgp?.peersV4?.find(({ peerIP }) => peerIP === "10.99.0.202")?.info;
    await becomes(async () => (await info()) !== "", true);
    const rows = (await vendorctlOn(lab.nodes[0]!, "node", "node-1", "bgp")).output.split("\n");
    expect(rows[0]).toMatch(/^PEER +TYPE +STATE +SINCE +INFO$/);
    expect(rows.find((row) => row.startsWith("10.99.0.201 "))).toMatch(/GlobalPeer +Established +\d\d:\d\d/);
    expect(rows.find((row) => row.startsWith("10.99.0.202 "))).not.toContain("Established");
    expect((await read("once"))?.lastUpdated).toBe(once?.lastUpdated);
    await lab.routers["tor2"]!.vtysh("configure terminal", "router bgp 65001", "no neighbor 10.99.0.1 shutdown");
    await becomes(() => state("10.99.0.202"), "Established");
    await lab.bgp[0]!.kill();
    await becomes(async () => (await read("often"))?.agent?.birdV4, { state: "NotReady" });
    expect(await state("10.99.0.201")).toBe("Unknown");
    expect(await vendorctlOn(lab.nodes[0]!, "node", "node-1", "bgp")).toMatchObject({
      ...{ code: 2, output: expect.stringContaining("BIRD does not answer on node-1 [NODE_DAEMON_SILENT]") },
    });
    lab.bgp[0]!.start();
    await becomes(() => state("10.99.0.201"), "Established");
    const json = JSON.parse((await vendorctlOn(lab.nodes[0]!, "node", "node-1", "bgp", "-o", "json")).output);
    expect(json).toMatchObject({ node: "node-1", agent: { birdV4: { state: "Ready" } } });
    for (const name of ["often", "once", "of-another"]) await client.delete(NODE_STATUSES, { name });
    // Of vendorctl's own nothing is left.
    expect((await client.list(NODE_STATUSES)).items).toEqual([]);
  });

  it("a node that is drained announces no Service while another node does", async () => {
    await createService(lab, "drained", { clusterIP: "10.96.0.11", balancer: "203.0.113.11", local: true }, pods);
    await becomes(() => nextHops("tor1", "203.0.113.11/32"), ["10.99.0.1", "10.99.0.2"]);
    const drain = (unschedulable: boolean | null) =>
      lab.client.patch(NODES, { name: "node-2" }, { type: "merge", patch: { spec: { unschedulable } } });
    await drain(true);
    await becomes(() => nextHops("tor1", "203.0.113.11/32"), ["10.99.0.1"]);
    await becomes(() => nextHops("tor1", "203.0.113.0/24"), ["10.99.0.1"]);
    await drain(null);
    await becomes(() => nextHops("tor1", "203.0.113.11/32"), ["10.99.0.1", "10.99.0.2"]);
  });

  it("no connection is lost while the agent, then BIRD, is killed and started again", async () => {
    const [node] = lab.nodes;
    const router = lab.routers["tor1"]!;
    await becomes(() => nextHops("tor1", blockOf(pods[0]!)), ["10.99.0.1"]);
    let [asked, lost, going] = [0, 0, true];
    const traffic = (async () => {
      while (going) {
        asked++;
        if ((await request(router, pods[0]!.addresses[0]!, 8080, 2)) === undefined) lost++;
      }
    })();
    const dropped = async () =>
      JSON.parse(await router.vtysh("show bgp neighbors 10.99.0.1 json"))["10.99.0.1"].connectionsDropped;
    const before = await dropped();
    await node!.kill();
    await node!.start();
    await becomes(async () => (await sessionsOf(node!))["peer_10_99_0_201"], "Established");
    expect(await dropped()).toBe(before);
    const kept = [`${blockOf(pods[1]!)} via 10.99.0.2`, "198.51.100.0/24 via 10.99.0.204"];
    const inV4 = async () => (await learned(node!)).filter((route) => /^(10|198)\./.test(route));
    await becomes(inV4, kept);
    await lab.bgp[0]!.kill();
    expect(await inV4()).toEqual(kept);
    lab.bgp[0]!.start();
    await becomes(async () => (await sessionsOf(node!))["peer_10_99_0_201"], "Established");
    await becomes(inV4, kept);
    going = false;
    await traffic;
    expect(lost).toBe(0);
    expect(asked).toBeGreaterThan(10);
  });

  it("an agent without BGP removes what BIRD had learned", async () => {
    const [, node] = lab.nodes;
    await becomes(async () => (await learned(node!)).length > 0, true);
    await lab.bgp[1]!.kill();
    await node!.stop();
    expect(await learned(node!)).not.toEqual([]);
    lab.without.add(node!.name);
    await node!.start();
    await becomes(() => learned(node!), []);
    lab.without.delete(node!.name);
    await node!.stop();
    lab.bgp[1]!.start();
    await node!.start();
    await becomes(async () => (await sessionsOf(node!))["peer_10_99_0_201"], "Established");
  });
});

describe.skipIf(why !== undefined)(`BGP with a router of another maker, eBPF${why ? ` (${why})` : ""}`, () => {
  let lab: BgpLab;
  const pods: LabPod[] = [];
  const ends: (() => void)[] = [];
  beforeAll(async () => {
    const groups = realKernel().cgroup.root();
    lab = await bgpLab(
      {
        bpf: true,
        pools: [{ cidr: "10.88.0.0/24", vxlanMode: "Never", blockSize: 28 }],
        ...(groups === undefined ? {} : { groups }),
      },
      [{ name: "tor", at: 201, asNumber: 65_001 }],
      RANGES,
    );
    for (const [at, node] of lab.nodes.entries()) {
      const pod = await lab.addPod(`pod-${at}`, node);
      pods.push(pod);
      ends.push(await serve(pod, 8080, 4));
    }
  });
  afterAll(async () => {
    for (const end of ends) end();
    await lab?.close();
  });

  it("nodes have sessions with each other", async () => {
    for (const [at, node] of lab.nodes.entries()) {
      const name = `mesh_10_99_0_${2 - at}`;
      await until(
        async () => (await sessionsOf(node))[name] === "Established",
        async () => JSON.stringify(await sessionsOf(node)),
      );
    }
  });

  // Its peer is another BIRD, which was up before: a router in its first two minutes says that it starts too, and is not waited for.
  it("a BIRD that ends again before its sessions are back has removed no route", async () => {
    const [node, other] = lab.nodes;
    const recovering = async () => {
      const { control } = bgpPlaces(join(node!.directory, "run"));
      const status = await askBird(control, "show status").catch(() => undefined);
      return status?.some(({ text }) => text.includes("recovery in progress"));
    };
    const routes = async () => (await learned(node!)).join(", ");
    const kept = await routes();
    expect(kept).toContain(`via ${other!.addresses.v4}`);
    const seen = new Set<string>();
    let watching = true;
    const watch = (async () => {
      while (watching) seen.add(await routes());
    })();
    for (const way of ["kill", "stop", "stop"] as const) {
      await lab.bgp[0]![way]();
      lab.bgp[0]!.start();
      await until(
        async () => (await recovering()) !== undefined,
        () => `${way}: BIRD does not answer`,
      );
    }
    await until(
      async () => (await recovering()) === false && (await sessionsOf(node!))["mesh_10_99_0_2"] === "Established",
      async () => `sessions ${JSON.stringify(await sessionsOf(node!))}`,
    );
    watching = false;
    await watch;
    expect([...seen]).toEqual([kept]);
  });

  it("the router sends to both nodes that have a backend of a Service, and each answers the client itself", async () => {
    await createService(lab, "web", { clusterIP: "10.96.0.20", balancer: "203.0.113.20", local: true }, pods);
    const used = async () => (await lab.routers["tor"]!.routes(4)).get("203.0.113.20/32")?.used ?? [];
    await until(
      async () => (await used()).length === 2,
      async () => `next hops ${JSON.stringify(await used())}`,
    );
    const answers = new Set<string | undefined>();
    await until(
      async () => {
        for (let at = 0; at < 8; at++) answers.add(await request(lab.routers["tor"]!, "203.0.113.20", 80));
        return answers.size >= 2 && !answers.has(undefined);
      },
      () => `answers ${JSON.stringify([...answers])}`,
    );
    expect([...answers].sort()).toEqual(pods.map(({ name }) => `${name} saw 10.99.0.201`));
  });
});
