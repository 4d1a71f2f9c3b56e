import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestAgent } from "../../src/agent/admin.ts";
import { vendorNames } from "../../src/api/names.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import {
  attackLab,
  DATAPLANES,
  type Ear,
  onlyFrom,
  POLICIES,
  udp,
  whyNoAttacks,
  writeStatus,
} from "../attacks/attack-lab.ts";
import { stream } from "./lab-traffic.ts";
import {
  type ContainerPort,
  inside,
  type LabNode,
  type LabPod,
  type NodeLab,
  request,
  serve,
  until,
} from "./node-lab.ts";

const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
/** Programs at sockets, which serve 127.0.0.1 in eBPF, are at groups of processes. */
const GROUPS = realKernel().cgroup.root();

type Place = Parameters<typeof request>[0];

/** Ports of the node that lead to its pods, served by either data plane without a plugin of others. */
describe.skipIf(whyNoAttacks !== undefined).each(DATAPLANES)(
  `host ports, $dataplane${whyNoAttacks ? ` (${whyNoAttacks})` : ""}`,
  ({ bpf }) => {
    let lab: NodeLab;
    let [one, two] = [] as unknown as [LabNode, LabNode];
    const pods: Record<string, LabPod> = {};
    const ends: (() => void)[] = [];
    const ears: Ear[] = [];

    async function add(name: string, node: LabNode, ports: ContainerPort[] = []): Promise<LabPod> {
      const pod = await lab.addPod(name, node, { app: name }, {}, "default", ports);
      pods[name] = pod;
      await writeStatus(lab, pod);
      for (const family of [4, 6] as const) ends.push(await serve(pod, family === 4 ? 8080 : 8086, family));
      return pod;
    }
    beforeAll(async () => {
      lab = await attackLab({
        bpf,
        ...(GROUPS === undefined ? {} : { groups: GROUPS }),
        pools: [
          { cidr: "10.88.0.0/24", vxlanMode: "Always", blockSize: 28 },
          { cidr: "fd88::/64", vxlanMode: "Always", blockSize: 122 },
        ],
      });
      [one, two] = lab.nodes as [LabNode, LabNode];
      const at = one.addresses.v4;
      await add("web", one, [
        { containerPort: 8080, hostPort: 80 },
        { containerPort: 8086, hostPort: 86 },
        { containerPort: 5300, hostPort: 53, protocol: "UDP" },
        { containerPort: 9000, hostPort: 900 },
        { containerPort: 9001, hostPort: 901 },
      ]);
      ears.push(await udp(pods["web"]!, 5300, "web"));
      // As in Kubernetes' conformance test: one port, told apart by address and protocol.
      await add("loop", one, [{ containerPort: 8080, hostPort: 9090, hostIP: "127.0.0.1" }]);
      await add("named", one, [{ containerPort: 8080, hostPort: 9090, hostIP: at }]);
      await add("datagrams", one, [{ containerPort: 8080, hostPort: 9090, hostIP: at, protocol: "UDP" }]);
      ears.push(await udp(pods["datagrams"]!, 8080, "datagrams"));
      await add("near", one);
      await add("far", two);
    }, 180_000);
    afterAll(async () => {
      for (const end of ends) end();
      for (const ear of ears) ear.close();
      await lab?.close();
    });

    const described = () => one.vendor("node", "show", "services");
    const eventuallyIs = (is: () => Promise<boolean>) => until(is, described, 10_000);
    const answers = (from: Place, address: string, port: number) => request(from, address, port, 1);
    const expectAnswer = async (from: Place, address: string, port: number, answer: RegExp) => {
      await eventuallyIs(async () => answer.test((await answers(from, address, port)) ?? ""));
    };

    it("are reached from everywhere, with the client's address", async () => {
      const { v4, v6 } = one.addresses;
      await expectAnswer(lab.outside, v4, 80, new RegExp(`^web saw ${lab.outside.addresses.v4}$`));
      await expectAnswer(lab.outside, v6, 86, new RegExp(`^web saw ${lab.outside.addresses.v6}$`));
      await expectAnswer(pods["near"]!, v4, 80, new RegExp(`^web saw ${pods["near"]!.addresses[0]}$`));
      await expectAnswer(two, v4, 80, /^web saw /);
      await expectAnswer(pods["far"]!, v4, 80, /^web saw /);
    });

    it("are reached by the pod itself, and by processes of the node, also at 127.0.0.1", async () => {
      await expectAnswer(pods["web"]!, one.addresses.v4, 80, /^web saw /);
      await expectAnswer(one, one.addresses.v4, 80, /^web saw /);
      await expectAnswer(one, "127.0.0.1", 80, /^web saw /);
    });

    it("carry UDP", async () => {
      const ear = await udp(lab.outside, 40_000);
      ears.push(ear);
      await eventuallyIs(async () => {
        ear.send("?", one.addresses.v4, 53);
        ear.send("?", one.addresses.v4, 9090);
        const heard = ear.heard.map(({ text, from }) => `${text} ${from.address}`);
        return ["web", "datagrams"].every((text) => heard.includes(`${text} ${one.addresses.v4}`));
      });
    });

    it("may be the same for two pods at different addresses", async () => {
      await expectAnswer(one, "127.0.0.1", 9090, /^loop saw /);
      await expectAnswer(one, one.addresses.v4, 9090, /^named saw /);
      await expectAnswer(lab.outside, one.addresses.v4, 9090, /^named saw /);
    });

    it("are subject to policy, by the client's address", async () => {
      await lab.client.create(POLICIES, onlyFrom("named", "named", { app: "near" }));
      await eventuallyIs(async () => (await answers(lab.outside, one.addresses.v4, 9090)) === undefined);
      await expectAnswer(pods["near"]!, one.addresses.v4, 9090, /^named saw /);
    });

    it("do not let pods reach what listens at the node's loopback", async () => {
      const loopback = await serve({ name: "secret", netns: one.netns }, 7070, 4);
      ends.push(loopback);
      expect(await answers(one, "127.0.0.1", 7070)).toMatch(/^secret saw/);
      const attacker = pods["web"]!.netns.name;
      await inside(attacker, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet");
      await inside(attacker, "ip", "route", "del", "local", "127.0.0.0/8", "dev", "lo", "table", "local");
      await inside(attacker, "ip", "route", "del", "local", "127.0.0.1", "dev", "lo", "table", "local");
      await inside(attacker, "ip", "route", "add", "127.0.0.1", "via", "169.254.1.1", "dev", "eth0");
      expect(await answers(pods["web"]!, "127.0.0.1", 7070)).toBeUndefined();
      const sysctl = await inside(one.netns.name, "sh", "-c", "cat /proc/sys/net/ipv4/conf/ven*/route_localnet");
      expect(sysctl.output).toContain("1");
    });

    it("of an address that is not the node's, and of SCTP, are reported and not served", async () => {
      await add("greedy", one, [
        { containerPort: 8080, hostPort: 8443, hostIP: lab.outside.addresses.v4 },
        { containerPort: 8080, hostPort: 3868, protocol: "SCTP" },
      ]);
      const problems = () => one.vendor("node", "show", "problems");
      await until(async () => /Pod default\/greedy +HOST_PORT_UNSUPPORTED/.test(await problems()), problems, 10_000);
      expect(await problems()).toMatch(/10\.99\.0\.254 is no address of this node; port 3868 is SCTP/);
    });

    it("are served by the other data plane after a switch, for pods and connections that were there before", async () => {
      const way = (port: number) => ({ address: one.addresses.v4, port });
      const streams = [
        await stream(lab.outside, pods["web"]!, 9000, way(900)),
        await stream(pods["far"]!, pods["web"]!, 9001, way(901)),
      ];
      ends.push(...streams.map(({ close }) => close));
      const alive = () => Promise.all(streams.map((one) => one.alive()));
      expect(await alive()).toEqual([true, true]);
      const patch = { spec: { bpfEnabled: !bpf } };
      await lab.client.patch(SETTINGS, { name: "default" }, { type: "merge", patch });
      await until(
        async () => {
          const { table, dataplane } = await requestAgent(join(one.directory, "run"), { show: "switchover" });
          const isOver = Object.fromEntries(table.rows)["next"] === "nothing";
          return isOver && dataplane === (bpf ? "Nftables" : "BPF");
        },
        () => one.log().slice(-3_000),
        60_000,
      );
      await expectAnswer(lab.outside, one.addresses.v4, 80, new RegExp(`^web saw ${lab.outside.addresses.v4}$`));
      await expectAnswer(one, "127.0.0.1", 9090, /^loop saw /);
      await expectAnswer(pods["far"]!, one.addresses.v4, 80, /^web saw /);
      expect(await alive()).toEqual([true, true]);
    });

    it("are gone with the pod", async () => {
      await lab.removePod(pods["web"]!);
      await eventuallyIs(async () => (await answers(lab.outside, one.addresses.v4, 80)) === undefined);
      expect(await answers(one, "127.0.0.1", 80)).toBeUndefined();
      expect(await described()).not.toContain("default/web");
    });
  },
);
