import type { KubeObject } from "../../src/api/object.ts";
import type { Client } from "../../src/cluster/client.ts";
import { NETWORK_POLICIES } from "../../src/cluster/kinds.ts";
import { type LabPod, type NodeLab, nodeLab, until } from "../agent/node-lab.ts";
import { Actor } from "./actor.ts";

/** Both data planes, with real packets between two nodes, for `describe.each`. */
export const PLANES = [
  { plane: "nftables", bpf: false },
  { plane: "eBPF", bpf: true },
] as const;

export const FAMILIES = [
  { name: "IPv4", family: 4, at: 0 },
  { name: "IPv6", family: 6, at: 1 },
] as const;

export type Member = "attacker" | "victim" | "near" | "far" | "outside";

/**
 * Two nodes with an overlay between them. `attacker`, `victim` and `near` are pods of the first node, `far` is one of the second,
 * `outside` is a machine of the nodes' segment.
 */
export interface AttackLab {
  nodes: NodeLab;
  pods: Record<Exclude<Member, "outside">, LabPod>;
  actors: Record<Member, Actor>;
  address(of: Member, family: 4 | 6): string;
  close(): Promise<void>;
}

export async function attackLab(bpf: boolean): Promise<AttackLab> {
  const nodes = await nodeLab({
    bpf,
    pools: [
      { cidr: "10.88.0.0/24", vxlanMode: "Always", blockSize: 28 },
      { cidr: "fd88::/112", vxlanMode: "Always" },
    ],
  });
  const actors: Actor[] = [];
  const close = async () => {
    for (const actor of actors) await actor.stop();
    await nodes.close();
  };
  try {
    await Promise.all(nodes.nodes.map((node) => node.start()));
    const [one, two] = nodes.nodes;
    const add = async (name: string, node = one!) => nodes.addPod(name, node, { app: name });
    const pods = {
      ...{ attacker: await add("attacker"), victim: await add("victim"), near: await add("near") },
      far: await add("far", two!),
    };
    const actor = (netns: LabPod["netns"]) => {
      const made = new Actor(netns);
      actors.push(made);
      return made;
    };
    return {
      ...{ nodes, pods, close },
      actors: {
        ...{ attacker: actor(pods.attacker.netns), victim: actor(pods.victim.netns) },
        ...{ near: actor(pods.near.netns), far: actor(pods.far.netns), outside: actor(nodes.outside.netns) },
      },
      address: (of, family) => {
        if (of === "outside") return family === 4 ? nodes.outside.addresses.v4 : nodes.outside.addresses.v6;
        return pods[of].addresses[family === 4 ? 0 : 1]!;
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

export interface Admitted {
  /** Name of the policy, and of the pod that it selects. */
  pod: Member;
  from: readonly Member[];
}

/** Lets only these pods reach one, on every port. */
export async function admit(client: Client, { pod, from }: Admitted): Promise<void> {
  const policy: KubeObject = {
    ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: pod, namespace: "default" } },
    spec: {
      podSelector: { matchLabels: { app: pod } },
      policyTypes: ["Ingress"],
      ingress: from.map((app) => ({ from: [{ podSelector: { matchLabels: { app } } }] })),
    },
  };
  await client.apply(NETWORK_POLICIES, policy, { fieldManager: "test", force: true });
}

/** Waits until a datagram of that text is heard, sending one after the other: the path is open then. */
export async function pathOpens(
  from: { actor: Actor; socket: string },
  to: { actor: Actor; socket: string; address: string; port: number },
  text: string,
): Promise<void> {
  await until(
    async () => {
      await from.actor.send(from.socket, to.address, to.port, text);
      return (await to.actor.heard(to.socket)).includes(text);
    },
    () => `${text} does not arrive at ${to.address}`,
  );
}
