import { describe, expect, it } from "vitest";
import type { PodRecord } from "../../src/agent/pods/pod-records.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { podInterfaceName } from "../../src/api/protocol/pod-network.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import { IPAM_BLOCKS, IPAM_HANDLES } from "../../src/ipam/ipam-kinds.ts";
import { type ControllersLab, controllersLab } from "../controllers/controllers-lab.ts";
import { type IpamAgent, type IpamLab, ipamLab } from "./ipam-lab.ts";

/** Blocks are lost, restored or were never ours; the pods run on. No address of theirs is assigned again. */

const POOL = [{ cidr: "10.0.0.0/26", blockSize: 29 }];

async function withLab(work: (lab: IpamLab, world: ControllersLab) => Promise<void>): Promise<void> {
  const world = await controllersLab();
  try {
    await work(await ipamLab(world, POOL), world);
  } finally {
    await world.close();
  }
}

const owner = (name: string, node: string) => ({
  handle: `k8s-pod-network.${name}`,
  facts: { node, namespace: "default", pod: name },
});

const ask = (agent: IpamAgent, lab: IpamLab, name: string, node: string) =>
  agent.ipam.assign({ owner: owner(name, node), v4: lab.pools, v6: [] }).then(([address]) => address as string);

async function runningPod({ client }: ControllersLab, name: string, node: string, address: string): Promise<void> {
  const spec = { nodeName: node, containers: [{ name: "main", image: "web" }] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec };
  await client.create(PODS, pod);
  const status = { phase: "Running", podIP: address, podIPs: [{ ip: address }] };
  const patch = { type: "merge", patch: { status } } as const;
  await client.patch(PODS, { namespace: "default", name }, patch, { subresource: "status" });
}

function recordOf(name: string, address: string): PodRecord {
  const place = { containerId: name, ifname: "eth0", netns: `/run/netns/${name}`, namespace: "default", pod: name };
  const { handle } = owner(name, "");
  const made = { interfaceName: podInterfaceName("default", name), mac: "02:00:00:00:00:01", mtu: 1450 };
  return { ...place, ...made, handle, addresses: [address], state: "ready" };
}

async function deleteAll({ client }: ControllersLab): Promise<void> {
  for (const kind of [IPAM_BLOCKS, IPAM_HANDLES]) {
    for (const { metadata } of (await client.list<KubeObject>(kind)).items) await client.delete(kind, metadata);
  }
}

describe("pods that run while the blocks are gone", () => {
  it("keep their addresses: those with a record under its handle, the others under the pod's name", () =>
    withLab(async (lab, world) => {
      await runningPod(world, "recorded", "a", "10.0.0.9");
      await runningPod(world, "reported", "a", "10.0.0.10");
      await runningPod(world, "elsewhere", "b", "10.0.0.17");
      const a = await lab.agent("a", { records: [recordOf("recorded", "10.0.0.9")] });
      const b = await lab.agent("b");
      const given = await Promise.all(
        Array.from({ length: 12 }, (_, at) => ask(at % 2 ? a : b, lab, `new-${at}`, at % 2 ? "a" : "b")),
      );
      expect(given.filter((address) => ["10.0.0.9", "10.0.0.10", "10.0.0.17"].includes(address))).toEqual([]);
      expect(new Set(given).size).toBe(given.length);
      const owners = await lab.givenOut();
      expect(owners).toContain("10.0.0.9 k8s-pod-network.recorded");
      expect(owners.filter((line) => /^10\.0\.0\.(10|17) pod-in-use\.default\./.test(line))).toHaveLength(2);
      // The block goes to the node that has pods in it.
      const affinity = (await lab.blocks()).map(({ spec }) => `${spec.cidr} ${spec.affinity}`);
      expect(affinity).toEqual(expect.arrayContaining(["10.0.0.8/29 host:a", "10.0.0.16/29 host:b"]));
      // Released by the DEL of the container.
      await a.ipam.release("k8s-pod-network.recorded", []);
      expect((await lab.givenOut()).filter((line) => line.startsWith("10.0.0.9 "))).toEqual([]);
      for (const agent of [a, b]) await agent.stop();
    }));

  it("keep them while the agent of their node has not started, and in a pool with nothing else left", () =>
    withLab(async (lab, world) => {
      for (let at = 0; at < 60; at++) await runningPod(world, `far-${at}`, "b", `10.0.0.${at}`);
      const a = await lab.agent("a");
      const given = [];
      for (let at = 0; at < 4; at++) given.push(await ask(a, lab, `new-${at}`, "a"));
      expect(given.sort()).toEqual(["10.0.0.60", "10.0.0.61", "10.0.0.62", "10.0.0.63"]);
      await expect(ask(a, lab, "fifth", "a")).rejects.toMatchObject({ code: "IPAM_EXHAUSTED" });
      await expect(
        a.ipam.assign({ owner: owner("named", "a"), v4: lab.pools, v6: [], addresses: ["10.0.0.7"] }),
      ).rejects.toMatchObject({ code: "IPAM_ADDRESS_TAKEN", message: expect.stringContaining("default/far-7") });
      await a.stop();
    }));

  it("keep them when the blocks are deleted under a running agent, or restored from an older backup", () =>
    withLab(async (lab, world) => {
      const records: PodRecord[] = [];
      const a = await lab.agent("a", { records });
      const connect = async (name: string) => {
        const address = await ask(a, lab, name, "a");
        await runningPod(world, name, "a", address);
        records.push(recordOf(name, address));
        return address;
      };
      const first = await connect("first");
      const [backup] = await lab.blocks();
      const second = await connect("second");
      await deleteAll(world);
      const third = await connect("third");
      expect(new Set([first, second, third]).size).toBe(3);
      const [block] = await lab.blocks();
      await world.client.replace(IPAM_BLOCKS, {
        ...block!,
        spec: { ...backup!.spec, sequenceNumber: (block!.spec.sequenceNumber ?? 0) + 1 },
      });
      const fourth = await connect("fourth");
      expect(new Set([first, second, third, fourth]).size).toBe(4);
      expect(await lab.givenOut()).toEqual(
        [first, second, third, fourth]
          .map((address, at) => `${address} k8s-pod-network.${["first", "second", "third", "fourth"][at]}`)
          .sort(),
      );
      await a.stop();
    }));

  it("an interface that has an address keeps it, though no pod is known for it", () =>
    withLab(async (lab) => {
      const routes = Array.from({ length: 62 }, (_, at) => ({
        address: `10.0.0.${at}`,
        interfaceName: podInterfaceName("default", `gone-${at}`),
      }));
      const a = await lab.agent("a", { routes });
      const given = [await ask(a, lab, "first", "a"), await ask(a, lab, "second", "a")];
      expect(given.sort()).toEqual(["10.0.0.62", "10.0.0.63"]);
      await expect(ask(a, lab, "third", "a")).rejects.toMatchObject({ code: "IPAM_EXHAUSTED" });
      await a.stop();
    }));

  it("an address that is allocated to another pod is reported", () =>
    withLab(async (lab, world) => {
      const a = await lab.agent("a");
      const taken = await ask(a, lab, "first", "a");
      await a.stop();
      await runningPod(world, "second", "a", taken);
      const next = await lab.agent("a");
      await next.ipam.claimInUse();
      expect(next.ipam.conflicts()).toEqual([
        { address: taken, pod: "default/second", allocatedTo: "pod default/first" },
      ]);
      await next.stop();
    }));
});

describe("reserved addresses", () => {
  it("are assigned only to a pod that requests one by name", () =>
    withLab(async (lab) => {
      await lab.reserve("10.0.0.0/27", "10.0.0.32/29", "10.0.0.63");
      const a = await lab.agent("a");
      const given = [];
      for (let at = 0; at < 23; at++) given.push(await ask(a, lab, `new-${at}`, "a"));
      const values = given.map((address) => Number(address.split(".")[3])).sort((one, other) => one - other);
      expect(values).toEqual(Array.from({ length: 23 }, (_, at) => 40 + at));
      await expect(ask(a, lab, "late", "a")).rejects.toMatchObject({ code: "IPAM_EXHAUSTED" });
      expect(
        await a.ipam.assign({ owner: owner("named", "a"), v4: lab.pools, v6: [], addresses: ["10.0.0.3"] }),
      ).toEqual(["10.0.0.3"]);
      // No block is claimed that has nothing to give.
      expect((await lab.blocks()).map(({ spec }) => spec.cidr).sort()).toEqual(
        ["10.0.0.0/29", "10.0.0.40/29", "10.0.0.48/29", "10.0.0.56/29"].sort(),
      );
      await a.stop();
    }));
});
