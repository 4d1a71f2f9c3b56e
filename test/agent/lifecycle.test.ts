import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { DELETIONS_DIRECTORY, deletionFile } from "../../src/api/protocol/cni.ts";
import { podInterfaceName } from "../../src/api/protocol/pod-network.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { NETWORK_POLICIES, NODES, PODS, SERVICES } from "../../src/cluster/kinds.ts";
import { type ConnectLoop, connectLoop, datagramStream, type Stream, stream } from "./lab-traffic.ts";
import {
  inside,
  type LabNode,
  type LabPod,
  type NodeLab,
  nodeLab,
  request,
  serve,
  until,
  whyNoNodes,
} from "./node-lab.ts";
import { CANARY_PORT, PolicySwaps } from "./policy-swaps.ts";

const why = whyNoNodes();
const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
/** A few every time; 50 in the long run, which also says how much was tried. */
const KILLS = Number(process.env["AGENT_KILLS"] ?? 2);
const isLong = process.env["AGENT_KILLS"] !== undefined;

/** An agent that is killed, started again and told to change its data plane: what was denied stays denied, what was open stays open. */
describe.skipIf(why !== undefined)(`an agent's lives${why ? ` (${why})` : ""}`, () => {
  let lab: NodeLab;
  let node: LabNode;
  let [client, server, closed]: LabPod[] = [];
  const ends: (() => void)[] = [];
  beforeAll(async () => {
    lab = await nodeLab({ bpf: false, nodes: 1, pools: [{ cidr: "10.88.0.0/24", vxlanMode: "Never", blockSize: 28 }] });
    node = lab.nodes[0]!;
    await node.start();
    client = await lab.addPod("client", node, { role: "client" });
    server = await lab.addPod("server", node, { role: "server" });
    closed = await lab.addPod("closed", node, { access: "none" });
    await lab.client.create(NETWORK_POLICIES, {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "closed", namespace: "default" },
      spec: { podSelector: { matchLabels: { access: "none" } }, policyTypes: ["Ingress"] },
    });
    for (const pod of [server, closed]) ends.push(await serve(pod!, 8080, 4));
    ends.push(await serve(closed!, CANARY_PORT, 4));
    await until(
      async () => (await request(client!, closed!.addresses[0]!, 8080)) === undefined,
      () => node.log(),
    );
  });
  afterAll(async () => {
    for (const end of ends) end();
    await lab?.close();
  });

  async function bothHold(during: (flowing: Stream, knocking: ConnectLoop) => Promise<void>): Promise<void> {
    const flowing = await stream(client!, server!, 9000);
    const knocking = connectLoop(client!, closed!.addresses[0]!, 8080);
    try {
      await during(flowing, knocking);
      const { passed, tried } = await knocking.stop();
      expect(passed, "connections that were denied").toBe(0);
      expect(tried).toBeGreaterThan(5);
      expect(await flowing.alive(), `the connection that was open\n${node.log().slice(-3000)}`).toBe(true);
    } finally {
      await knocking.stop();
      flowing.close();
    }
  }

  const PLANES = [
    ["nftables", false],
    ["eBPF", true],
  ] as const;
  it.each(PLANES)(
    "says which data plane acts after it changed to %s, and no packet saw the change",
    async (_name, bpf) => {
      await bothHold(async (_flowing, knocking) => {
        await lab.client.patch(SETTINGS, { name: "default" }, { type: "merge", patch: { spec: { bpfEnabled: bpf } } });
        await until(
          async () =>
            (await node.vendor("node", "show", "settings", "-o", "json")).includes(`"${bpf ? "BPF" : "Nftables"}"`),
          () => node.log(),
        );
        await knocking.more(10);
      });
      // The plane of before goes a step after the new one acts.
      const ours = bpf ? ["table inet vendor-nat", "table inet vendor-keep"] : ["table inet vendor"];
      const tables = async () => (await inside(node.netns.name, "nft", "list", "tables")).output.trim();
      await until(async () => (await tables()) === ours.join("\n"), tables);
    },
    60_000,
  );

  it.each(PLANES)(
    `with %s, killed ${KILLS} times and started again, with policies swapped before, meanwhile and after`,
    async (name, bpf) => {
      const swaps = new PolicySwaps(lab.client, client!.addresses[0]!);
      // Whoever expects an answer waits for it: a busy machine is slow.
      const canaryAnswers = async () =>
        (await request(client!, closed!.addresses[0]!, CANARY_PORT, swaps.canaryIsOpen ? 5 : 1)) !== undefined;
      const inEffect = async () => {
        try {
          await until(
            async () => (await canaryAnswers()) === swaps.canaryIsOpen,
            () => `swap ${swaps.count} is not in effect`,
          );
        } catch (error) {
          const tables = ["policies", "endpoints", "ip-sets", "counters"].map((table) =>
            node.vendor("node", "show", table),
          );
          const told = [(error as Error).message, ...(await Promise.all(tables)), node.log().slice(-3000)];
          throw new Error(told.join("\n"));
        }
      };
      await lab.client.patch(SETTINGS, { name: "default" }, { type: "merge", patch: { spec: { bpfEnabled: bpf } } });
      await swaps.next();
      await inEffect();
      const denied = await datagramStream(client!, closed!, 8082);
      const allowed = await datagramStream(client!, server!, 8082);
      const stopBoth = () => Promise.all([denied.stop(), allowed.stop()]);
      try {
        await bothHold(async (flowing, knocking) => {
          for (let life = 0; life < KILLS; life++) {
            await swaps.next();
            // Every other life ends in the middle of it.
            if (life % 2 === 0) await inEffect();
            await node.kill();
            await swaps.next();
            await Promise.all([knocking.more(2), denied.more(50)]);
            const starting = node.start();
            await swaps.next();
            await starting;
            await inEffect();
            expect(await flowing.alive(), `life ${life}`).toBe(true);
          }
        });
        const [rain, sun] = await stopBoth();
        expect(rain.heard, "datagrams that were denied").toBe(0);
        expect(rain.sent).toBeGreaterThan(50 * KILLS);
        expect(sun.heard, "of the datagrams that were allowed").toBeGreaterThan(sun.sent / 2);
        if (isLong) console.log(name, { kills: KILLS, swaps: swaps.count, denied: rain, allowed: sun });
      } finally {
        await stopBoth();
      }
    },
    60_000 + KILLS * 20_000,
  );

  it("leaves eBPF only when kube-proxy serves, if the cluster has it on this node and the kernel knows of none", async () => {
    const ref = { namespace: "kube-system", name: "kube-proxy-here" };
    const spec = { nodeName: node.name, hostNetwork: true, containers: [{ name: "main", image: "kube-proxy" }] };
    const metadata = { ...ref, labels: { "k8s-app": "kube-proxy" } };
    const show = async (): Promise<string> => await node.vendor("node", "show", "switchover", "-o", "json");
    const setBpf = (bpfEnabled: boolean) =>
      lab.client.patch(SETTINGS, { name: "default" }, { type: "merge", patch: { spec: { bpfEnabled } } });
    await setBpf(true);
    await until(async () => (await show()).includes('"Active"'), show);
    await lab.client.create(SERVICES, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "any", namespace: "default" },
      spec: { clusterIP: "10.96.0.99", ports: [{ port: 80 }] },
    });
    await lab.client.create(PODS, { apiVersion: "v1", kind: "Pod", metadata, spec });
    await setBpf(false);
    await until(async () => /"proxy"|"Draining"|"none"/.test(await show()), show);
    expect(await show()).toMatch(/"Active".*"proxy"/s);
    await lab.client.delete(PODS, ref, { gracePeriodSeconds: 0 });
    await until(async () => (await show()).includes('"none"'), show);
    await lab.client.delete(SERVICES, { namespace: "default", name: "any" });
    await setBpf(true);
    await until(async () => (await show()).includes('"Active"'), show);
  }, 90_000);

  it("CHECK is well of what it made, and says what is missing after somebody took it away", async () => {
    expect(await node.cni("CHECK", server!)).toEqual({ code: 0, output: undefined });
    const pod = await lab.addPod("cut", node);
    await inside(pod.netnsName, "ip", "route", "del", "default");
    expect(await node.cni("CHECK", pod)).toMatchObject({
      code: 1,
      output: { msg: expect.stringMatching(/no default route/) },
    });
    // Asked to connect it again, as a runtime may after a crash of its own, it makes it whole.
    expect((await node.cni("ADD", pod)).code).toBe(0);
    expect((await node.cni("CHECK", pod)).code).toBe(0);
    await lab.removePod(pod);
  });

  it("while the agent is down the plugin says to come back later, and pods go on", async () => {
    await node.kill();
    expect(await node.cni("ADD", server!)).toMatchObject({ code: 1, output: { code: 11 } });
    expect(await node.cni("STATUS", server!)).toMatchObject({ code: 1, output: { code: 50 } });
    expect(await request(client!, server!.addresses[0]!, 8080)).toMatch(/^server saw/);
    expect(await node.vendor("node", "show", "pods")).toContain("default/server");
    await node.start();
  });

  it("a pod can be deleted while the agent is down, and an ADD with its container id keeps its interface", async () => {
    const pod = await lab.addPod("retried", node);
    const notes = join(node.directory, "run", DELETIONS_DIRECTORY);
    const deletion = { containerId: pod.containerId, ifname: "eth0" };
    const hostInterfaces = async () => (await inside(node.netns.name, "ip", "-o", "link")).output;
    const interfaceName = podInterfaceName("default", "retried");
    await node.kill();
    expect(await node.cni("DEL", pod)).toMatchObject({ code: 0 });
    expect(readdirSync(notes)).toEqual([deletionFile(deletion)]);
    expect(await hostInterfaces()).toContain(interfaceName);
    await node.start();
    expect(await hostInterfaces()).not.toContain(interfaceName);
    expect(readdirSync(notes)).toEqual([]);
    expect((await node.cni("ADD", pod)).code).toBe(0);
    // A note that the running agent has not seen, as when it started while the plugin wrote it.
    mkdirSync(notes, { recursive: true });
    writeFileSync(join(notes, deletionFile(deletion)), "");
    expect((await node.cni("ADD", pod)).code).toBe(0);
    await node.kill();
    await node.start();
    expect(await node.cni("CHECK", pod), node.log().slice(-3000)).toEqual({ code: 0, output: undefined });
    await lab.removePod(pod);
  });

  it("GC removes what no runtime knows any more, and nothing else", async () => {
    const lost = await lab.addPod("lost", node);
    const keep = [client!, server!, closed!].map(({ containerId }) => ({ containerID: containerId, ifname: "eth0" }));
    expect((await node.cni("GC", lost, { "cni.dev/valid-attachments": keep })).code).toBe(0);
    const pods = await node.vendor("node", "show", "pods");
    expect(pods).not.toContain("default/lost");
    expect(pods).toContain("default/server");
    expect(await request(client!, server!.addresses[0]!, 8080)).toMatch(/^server saw/);
    await lab.removePod(lost);
  });

  it("tells the cluster how its node is reached, and that its network is there", async () => {
    const { metadata, status } = await lab.client.get(NODES, { name: node.name });
    expect(metadata.annotations).toMatchObject({
      "vendor.io/ipv4-address": "10.99.0.1/24",
      "vendor.io/ipv6-address": "fd99::1/64",
    });
    expect(status).toMatchObject({ conditions: [{ type: "NetworkUnavailable", status: "False" }] });
  });

  it("everything of ours can be taken off the node", async () => {
    for (const pod of [client!, server!, closed!]) await lab.removePod(pod);
    await node.kill();
    const kubelet = join(node.directory, "kubelet");
    const others = ["plugins/csi.example.com/csi.sock", "plugins_registry/csi.example.com-reg.sock"];
    const ours = [
      "plugins/csi.vendor.io/csi.sock",
      "plugins_registry/csi.vendor.io-reg.sock",
      "plugins/nodeagent~uds/",
    ];
    for (const path of [...ours, ...others]) {
      mkdirSync(join(kubelet, dirname(`${path}x`)), { recursive: true });
      if (!path.endsWith("/")) writeFileSync(join(kubelet, path), "");
    }
    await node.vendor("node", "remove", "--yes");
    const listed = async (...command: string[]) => (await inside(node.netns.name, ...command)).output;
    expect(await listed("nft", "list", "tables")).toBe("");
    expect(await listed("ip", "-o", "link")).not.toMatch(/ven|vxlan/);
    expect(await listed("ip", "route", "show", "table", "all", "proto", "80")).toBe("");
    expect(existsSync(join(node.directory, "state"))).toBe(false);
    expect(existsSync(join(node.directory, "bpf", "vendor"))).toBe(false);
    expect(readdirSync(join(kubelet, "plugins"))).toEqual(["csi.example.com"]);
    expect(readdirSync(join(kubelet, "plugins_registry"))).toEqual(["csi.example.com-reg.sock"]);
  });
});
