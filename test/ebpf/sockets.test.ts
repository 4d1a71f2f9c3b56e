import { mkdirSync, rmdirSync } from "node:fs";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fiveTupleLayout, nfConntrackEntryLayout, socketKeyLayout } from "../../src/gen/bpf/layout.gen.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { backendOf, service, UDP } from "./service-rows.ts";
import { type Client, NODE_ADDRESS, SocketLab } from "./socket-lab.ts";

const missing = whyNoPrograms();
const WEB = "default/web:http/tcp/4";
const DNS = "default/dns:dns/udp/4";
const ONE = ["10.65.0.1:8080"];
const THREE = ["10.65.0.1:8080", "10.65.0.2:8080", "10.65.0.3:8080"];
const TWO = THREE.slice(0, 2);
const mapped = (text: string) => Buffer.from([...Array(10).fill(0), 255, 255, ...text.split(".").map(Number)]);
const byBytes = ([a]: readonly Buffer[], [b]: readonly Buffer[]) => Buffer.compare(a!, b!);
const dns = (backends: readonly string[], change = {}) =>
  service(DNS, backends, { protocol: UDP, clusterAddress: "10.96.0.53", port: 53, ...change });

describe.skipIf(missing)(`the node's own sockets${missing ? ` (${missing})` : ""}`, () => {
  let lab: SocketLab;
  let client: Client;
  beforeEach(async () => {
    lab = await SocketLab.open();
    client = await lab.client();
    lab.mode("Active");
  });
  afterEach(() => lab?.close());

  const tcp = (host: string, port = 80, name = `${host}:${port}`) => client.ask({ do: "tcp", host, port, name });
  const udp = (host: string, port: number, name = "one") => client.ask({ do: "udp", host, port, name });
  const connected = (host: string, port: number, name = "one") => client.ask({ do: "udp-connected", host, port, name });

  it("are connected to a backend, and see the service", async () => {
    await lab.serve(
      service(WEB, ONE, { externalAddresses: ["198.51.100.1"], loadBalancerAddresses: ["198.51.100.2"] }),
      service("default/web:http/tcp/6", ["[fd65::1]:8080"], { family: 6, clusterAddress: "fd96::10" }),
    );
    expect(await tcp("10.96.0.10")).toEqual({ said: "10.65.0.1", peer: "10.96.0.10:80" });
    expect(await tcp("198.51.100.1")).toEqual({ said: "10.65.0.1", peer: "198.51.100.1:80" });
    expect(await tcp("198.51.100.2")).toEqual({ said: "10.65.0.1", peer: "198.51.100.2:80" });
    expect(await tcp("fd96::10")).toEqual({ said: "fd65::1", peer: "[fd96::10]:80" });
  });

  it("of IPv6 that speak IPv4 find services of IPv4", async () => {
    await lab.serve(service(WEB, ONE), dns(["10.65.0.2:8080"]));
    expect(await tcp("::ffff:10.96.0.10")).toEqual({ said: "10.65.0.1", peer: "[::ffff:10.96.0.10]:80" });
    expect(await udp("::ffff:10.96.0.53", 53)).toEqual({ said: "10.65.0.2", from: "[::ffff:10.96.0.53]:53" });
  });

  it("find node ports on every address of the node, and only there", async () => {
    lab.ownAddress(NODE_ADDRESS);
    await lab.serve(service(WEB, ONE, { nodePort: 30080 }));
    expect(await tcp("127.0.0.1", 30080)).toEqual({ said: "10.65.0.1", peer: "127.0.0.1:30080" });
    expect(await tcp(NODE_ADDRESS, 30080)).toEqual({ said: "10.65.0.1", peer: `${NODE_ADDRESS}:30080` });
    // An address that answers, but is none of the node's as far as anybody told.
    expect(await tcp("10.65.0.2", 30080)).toEqual({ error: "ECONNREFUSED" });
    expect(await tcp("10.65.0.2", 8080)).toEqual({ said: "10.65.0.2", peer: "10.65.0.2:8080" });
  });

  it("that are connected by UDP get answers from the service, and ask it who they are connected to", async () => {
    const v6 = { family: 6 as const, clusterAddress: "fd96::53" };
    await lab.serve(dns(ONE), dns(["[fd65::2]:8080"], { ...v6, id: "default/dns:dns/udp/6" }));
    const [v4, other] = ["10.96.0.53:53", "[fd96::53]:53"];
    expect(await connected("10.96.0.53", 53)).toEqual({ said: "10.65.0.1", from: v4, peer: v4 });
    expect(await connected("fd96::53", 53, "two")).toEqual({ said: "fd65::2", from: other, peer: other });
  });

  it("that are not connected stay with one backend of each service, and get its answers from the service", async () => {
    const other = dns(["10.65.0.3:8080"], { id: "default/other:dns/udp/4", clusterAddress: "10.96.0.54" });
    await lab.serve(dns(THREE), other);
    const first = await udp("10.96.0.53", 53);
    expect(first).toMatchObject({ from: "10.96.0.53:53" });
    for (let again = 0; again < 10; again++) expect(await udp("10.96.0.53", 53)).toEqual(first);
    expect(await udp("10.96.0.54", 53)).toEqual({ said: "10.65.0.3", from: "10.96.0.54:53" });
    expect(await udp("10.65.0.1", 8080)).toMatchObject({ said: "10.65.0.1" });
  });

  it("are left alone with bpfConnectTimeLoadBalancing: TCP as far as they are UDP, Disabled altogether; what was connected goes on", async () => {
    const rows = [service(WEB, ONE), dns(ONE)];
    await lab.serve(...rows);
    const before = await connected("10.96.0.53", 53, "before");
    expect(before.said).toBe("10.65.0.1");
    lab.translates = "TCP";
    await lab.serve(...rows);
    expect(await tcp("10.96.0.10")).toMatchObject({ said: "10.65.0.1" });
    // Nothing here is at packets, and nobody has this address.
    expect(await udp("10.96.0.53", 53)).toEqual({ error: "ENETUNREACH" });
    expect(await connected("10.96.0.53", 53, "fresh")).toEqual({ error: "ENETUNREACH" });
    lab.translates = "Disabled";
    await lab.serve(...rows);
    expect(await tcp("10.96.0.10", 80, "fresh")).toEqual({ error: "ENETUNREACH" });
    expect(await connected("10.96.0.53", 53, "before")).toEqual(before);
    lab.translates = "Enabled";
    await lab.serve(...rows);
    expect(await tcp("10.96.0.10", 80, "again")).toMatchObject({ said: "10.65.0.1" });
    expect(await udp("10.96.0.53", 53, "loose")).toMatchObject({ said: "10.65.0.1" });
  });

  it("that nothing translates from the start have no programs", async () => {
    lab.translates = "Disabled";
    await lab.serve(service(WEB, ONE));
    expect(lab.kernel.bpf.pins(`${lab.directory}/socket_links`)).toEqual([]);
  });

  it("of UDP leave a backend that goes: connected ones are closed, the others move, TCP stays", async () => {
    await lab.serve(service(WEB, ONE), dns(ONE));
    await connected("10.96.0.53", 53, "connected");
    await udp("10.96.0.53", 53, "loose");
    await tcp("10.96.0.10", 80, "web");
    const direct = await connected("10.65.0.1", 8080, "direct");
    expect(direct.said).toBe("10.65.0.1");
    await lab.serve(service(WEB, ["10.65.0.2:8080"]), dns(["10.65.0.2:8080"]));
    expect(await udp("10.96.0.53", 53, "loose")).toMatchObject({ said: "10.65.0.2" });
    expect(await connected("10.96.0.53", 53, "connected")).toEqual({ error: "ECONNABORTED" });
    expect(await connected("10.96.0.53", 53, "anew")).toMatchObject({ said: "10.65.0.2" });
    expect(await client.ask({ do: "again", name: "web" })).toEqual({ said: "10.65.0.1" });
    // It went to the backend by its own address: the service is not its business.
    expect(await connected("10.65.0.1", 8080, "direct")).toEqual(direct);
  });

  it("stay with a backend that only another service lost", async () => {
    const other = (backends: string[]) =>
      dns(backends, { id: "default/other:dns/udp/4", clusterAddress: "10.96.0.54" });
    await lab.serve(dns(ONE), other(ONE));
    const before = await connected("10.96.0.53", 53);
    await lab.serve(other(["10.65.0.2:8080"]));
    expect(await connected("10.96.0.53", 53)).toEqual(before);
  });

  it("are one client: they stay with the backend the node had, until it goes", async () => {
    await lab.serve(service(WEB, THREE, { affinitySeconds: 600 }));
    const { said } = await tcp("10.96.0.10", 80, "first");
    for (let again = 0; again < 12; again++) expect(await tcp("10.96.0.10", 80, `${again}`)).toMatchObject({ said });
    const left = THREE.filter((backend) => !backend.startsWith(`${said}:`));
    await lab.serve(service(WEB, left, { affinitySeconds: 600 }));
    const next = await tcp("10.96.0.10", 80, "next");
    expect(left).toContain(`${next.said}:8080`);
    for (let again = 0; again < 12; again++) expect((await tcp("10.96.0.10", 80, `n${again}`)).said).toBe(next.said);
  });

  it("get backends of the node where the service says so, and all of them on its external addresses", async () => {
    await lab.serve(
      service(WEB, THREE, {
        ...{ internalLocal: true, externalLocal: true, externalAddresses: ["198.51.100.1"] },
        localBackends: [backendOf("10.65.0.2:8080", true)],
      }),
    );
    const said = new Set<string | undefined>();
    for (let again = 0; again < 40; again++) said.add((await tcp("198.51.100.1", 80, `e${again}`)).said);
    expect([...said].sort()).toEqual(["10.65.0.1", "10.65.0.2", "10.65.0.3"]);
    for (let again = 0; again < 12; again++) expect((await tcp("10.96.0.10", 80, `c${again}`)).said).toBe("10.65.0.2");
  });

  it("are left alone where nobody answers, and where a load balancer takes only some clients", async () => {
    await lab.serve(
      service(WEB, []),
      service("default/some:http/tcp/4", ONE, {
        ...{ clusterAddress: "10.96.0.11", loadBalancerAddresses: ["198.51.100.2"], sourceRanges: ["203.0.113.0/24"] },
      }),
    );
    expect(await tcp("10.96.0.10")).toEqual({ error: "ENETUNREACH" });
    expect(await tcp("198.51.100.2")).toEqual({ error: "ENETUNREACH" });
    expect(lab.map("socket_peers").entries()).toEqual([]);
    expect(await tcp("10.96.0.11")).toMatchObject({ said: "10.65.0.1" });
  });

  it("are left alone while the mode is off; while it drains, only those that are known are translated", async () => {
    await lab.serve(service(WEB, ONE), dns(ONE));
    const known = await udp("10.96.0.53", 53, "known");
    const settled = await connected("10.96.0.53", 53, "connected");
    lab.mode("Draining");
    expect(await udp("10.96.0.53", 53, "known")).toEqual(known);
    expect(await connected("10.96.0.53", 53, "connected")).toEqual(settled);
    expect(await udp("10.96.0.53", 53, "new")).toEqual({ error: "ENETUNREACH" });
    expect(await tcp("10.96.0.10")).toEqual({ error: "ENETUNREACH" });
    lab.mode("Off");
    expect(await udp("10.96.0.53", 53, "known")).toEqual({ error: "ENETUNREACH" });
    expect(await connected("10.96.0.53", 53, "connected")).toMatchObject({ from: "10.65.0.1:8080" });
  });

  it("that the kernel translated before the node was handed over are left to it, until their backend goes", async () => {
    await lab.serve(dns(TWO));
    const conntrack = lab.kernel.conntrack(lab.netns);
    const flow = (sourcePort: number) => ({
      ...{ protocol: UDP, source: NODE_ADDRESS, sourcePort, destination: "10.96.0.53", destinationPort: 53 },
    });
    try {
      conntrack.insert({ original: flow(4001), destinationNat: { address: "10.65.0.1", port: 8080 }, timeout: 60 });
      conntrack.insert({ original: flow(4002), destinationNat: { address: "10.65.0.2", port: 8080 }, timeout: 60 });
      // As the agent tells the programs: from whatever address the socket will send.
      const [nowhere, service] = [Buffer.alloc(16), mapped("10.96.0.53")];
      const key = { src: nowhere, dst: service, sport: 4001, dport: 53, protocol: UDP };
      const value = { until: 1n << 62n, dst: mapped("10.65.0.1"), dport: 8080, mark: 0, reply: 0, tcpState: 0 };
      lab.map("old_flows").update(fiveTupleLayout.write(key), nfConntrackEntryLayout.write(value));
      expect(await client.ask({ do: "udp", host: "10.96.0.53", port: 53, from: 4001, name: "old" })).toEqual({
        error: "ENETUNREACH",
      });
      expect(await client.ask({ do: "udp", host: "10.96.0.53", port: 53, from: 4003, name: "new" })).toMatchObject({
        from: "10.96.0.53:53",
      });
      await lab.serve(dns(["10.65.0.2:8080"]));
      expect(conntrack.find(flow(4001))).toBeUndefined();
      expect(conntrack.find(flow(4002))).toBeDefined();
    } finally {
      conntrack.close();
    }
  });

  it("of pods, in network namespaces of their own, are not the node's", async () => {
    await lab.serve(service(WEB, ONE));
    const name = `${lab.netns.name}-pod`;
    const pod = lab.kernel.netns.create(name);
    try {
      const inside = await lab.client(pod);
      expect(await inside.ask({ do: "tcp", host: "10.96.0.10", port: 80 })).toEqual({ error: "ENETUNREACH" });
      await inside.close();
    } finally {
      pod.close();
      lab.kernel.netns.delete(name);
    }
  });

  it("notice nothing of an agent that goes and one that comes", async () => {
    await lab.serve(service(WEB, THREE, { affinitySeconds: 600 }), dns(THREE));
    const web = await tcp("10.96.0.10");
    const settled = await connected("10.96.0.53", 53);
    const loose = await udp("10.96.0.53", 53, "loose");
    const frontends = lab.map("frontends").entries();
    const links = () => lab.kernel.bpf.links().filter(({ cgroup }) => cgroup === lab.kernel.cgroup.id(lab.group));
    const before = links();
    expect(before).toHaveLength(8);
    await lab.stop();
    expect(await tcp("10.96.0.10", 80, "between")).toEqual(web);
    await lab.start();
    await lab.serve(service(WEB, THREE, { affinitySeconds: 600 }), dns(THREE));
    expect(lab.map("frontends").entries()).toEqual(frontends);
    expect(links().map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect(links().map(({ programId }) => programId)).not.toEqual(before.map(({ programId }) => programId));
    expect(await tcp("10.96.0.10", 80, "after")).toEqual(web);
    expect(await connected("10.96.0.53", 53)).toEqual(settled);
    expect(await udp("10.96.0.53", 53, "loose")).toEqual(loose);
    expect(await lab.dataplane.sweep()).toBe(0);
  });

  it("keep their hooks when the cgroup file system is no longer mounted, which is reported", async () => {
    await lab.serve(service(WEB, ONE));
    const web = await tcp("10.96.0.10");
    await lab.stop();
    const unmounted = join(lab.directory, "..", `${basename(lab.directory)}-cgroup`);
    mkdirSync(unmounted);
    try {
      await lab.start("maps", [], unmounted);
      await expect(lab.serve(service(WEB, ONE))).rejects.toThrow(/no cgroup2 is mounted there/);
      expect(await tcp("10.96.0.10", 80, "unmounted")).toEqual(web);
      await lab.stop();
    } finally {
      rmdirSync(unmounted);
    }
    await lab.start();
    await lab.serve(service(WEB, ONE));
    expect(await tcp("10.96.0.10", 80, "mounted again")).toEqual(web);
  });

  it("notice nothing of a release whose maps are others: services keep their numbers, clients their backends", async () => {
    await lab.serve(service(WEB, THREE, { affinitySeconds: 600 }), dns(THREE));
    const web = await tcp("10.96.0.10");
    const loose = await udp("10.96.0.53", 53, "loose");
    const frontends = lab.map("frontends").entries();
    await lab.stop();
    await lab.start("maps_after", ["maps"]);
    lab.mode("Active");
    await lab.serve(service(WEB, THREE, { affinitySeconds: 600 }), dns(THREE));
    expect(lab.map("frontends").entries().sort(byBytes)).toEqual(frontends.sort(byBytes));
    expect(await tcp("10.96.0.10", 80, "after")).toEqual(web);
    expect(await udp("10.96.0.53", 53, "loose")).toEqual(loose);
  });

  it("are let go of when everything is taken off the node", async () => {
    await lab.serve(service(WEB, ONE));
    await lab.dataplane.remove();
    expect(await tcp("10.96.0.10")).toEqual({ error: "ENETUNREACH" });
    expect(lab.kernel.bpf.pins(`${lab.directory}/socket_links`)).toEqual([]);
  });

  it("are spread evenly", async () => {
    const count = 4000;
    await lab.serve(dns(["10.65.0.1:8080", "10.65.0.2:8080", "10.65.0.3:8080", "10.65.0.4:8080"]));
    await client.ask({ do: "many", host: "10.96.0.53", port: 53, count });
    const byBackend = new Map<string, number>();
    for (const [key] of lab.map("socket_peers").entries()) {
      const backend = Buffer.from(socketKeyLayout.read(key).address).toString("hex");
      byBackend.set(backend, (byBackend.get(backend) ?? 0) + 1);
    }
    const counts = [...byBackend.values()];
    expect(counts).toHaveLength(4);
    // Seven times what chance does.
    for (const each of counts) expect(Math.abs(each - count / 4)).toBeLessThan(200);
  });
});
