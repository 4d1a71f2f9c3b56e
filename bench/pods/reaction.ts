import type { KubeObject } from "../../src/api/object.ts";
import type { Client } from "../../src/cluster/client.ts";
import { NETWORK_POLICIES } from "../../src/cluster/kinds.ts";
import { type AgentLab, agentLab, type LabPod } from "./agent-lab.ts";
import { LoadProcess } from "./load-process.ts";

export interface ReactionPlan {
  counts: readonly number[];
  policies: number;
  pods: number;
}

/** Milliseconds, ordered. */
export interface ReactionResult {
  plane: "ebpf" | "nft";
  count: number;
  /** From asking the API server for a policy that forbids to the last packet it forbids. */
  enforced: number[];
  /** From asking it to take that policy away to the first packet. */
  lifted: number[];
  /** From asking the API server for a pod to the first reply of the pod. */
  firstReply: number[];
}

const APPS = 50;
const WITHIN_MS = 20_000;
const DENY = "deny";

/** The real agent with the real plugin: how long a change takes from the API server to the packets. */
export async function measureReaction(
  program: string,
  plan: ReactionPlan,
  progress: (text: string) => void,
): Promise<ReactionResult[]> {
  const results: ReactionResult[] = [];
  for (const plane of ["ebpf", "nft"] as const) {
    const lab = await agentLab(plane === "ebpf");
    const pinger = new LoadProcess(program);
    try {
      const client = await lab.addPod("client", { role: "client" });
      const server = await lab.addPod("server", { role: "server", app: "app-0" });
      let present = 0;
      for (const count of plan.counts) {
        progress(`agent, ${plane}, ${count} policies`);
        for (; present < count; present++) await lab.client.create(NETWORK_POLICIES, presentPolicy(present));
        results.push({ plane, count, ...(await measureWith({ lab, pinger, client, server }, plan, count)) });
      }
    } finally {
      pinger.stop();
      await lab.close();
    }
  }
  return results;
}

interface Scene {
  lab: AgentLab;
  pinger: LoadProcess;
  client: LabPod;
  server: LabPod;
}

async function measureWith(scene: Scene, plan: ReactionPlan, count: number) {
  const { lab, pinger, client } = scene;
  // Once for nothing: the agent may still be busy with the policies that were just made.
  await closeAndOpen(scene);
  const result = { enforced: [] as number[], lifted: [] as number[], firstReply: [] as number[] };
  for (let at = 0; at < plan.policies; at++) {
    const { enforced, lifted } = await closeAndOpen(scene);
    result.enforced.push(enforced);
    result.lifted.push(lifted);
  }
  for (let at = 0; at < plan.pods; at++) {
    const asked = process.hrtime.bigint();
    const { address } = await lab.addPod(`pod-${count}-${at}`, { app: `app-${at % APPS}` });
    pinger.order({ netns: client.netns, do: "ping", address, until: "reply", timeout: WITHIN_MS });
    result.firstReply.push(milliseconds(asked, await pinger.answer()));
  }
  for (const times of Object.values(result)) times.sort((a, b) => a - b);
  return result;
}

/** Forbids what flows, and allows it again. */
async function closeAndOpen({ lab, pinger, client, server }: Scene): Promise<{ enforced: number; lifted: number }> {
  const ping = { netns: client.netns, do: "ping", address: server.address, timeout: WITHIN_MS } as const;
  pinger.order({ ...ping, until: "quiet" });
  await pinger.answer();
  const closing = process.hrtime.bigint();
  await lab.client.create(NETWORK_POLICIES, denyPolicy());
  const enforced = milliseconds(closing, await pinger.answer());
  pinger.order({ ...ping, until: "reply" });
  const opening = process.hrtime.bigint();
  await removeDeny(lab.client);
  return { enforced, lifted: milliseconds(opening, await pinger.answer()) };
}

function milliseconds(from: bigint, { at }: { at?: string }): number {
  return Number(BigInt(at!) - from) / 1e6;
}

/** Every pod of the application is open to the client; each application has as many of these as there are policies to fifty. */
function presentPolicy(at: number): KubeObject {
  const from = [{ podSelector: { matchLabels: { role: "client" } } }];
  return policy(`present-${at}`, { podSelector: { matchLabels: { app: `app-${at % APPS}` } }, ingress: [{ from }] });
}

/** What a pod may send is not decided by any other policy here, so this one alone closes it. */
function denyPolicy(): KubeObject {
  return policy(DENY, { podSelector: { matchLabels: { role: "client" } }, policyTypes: ["Egress"] });
}

async function removeDeny(client: Client): Promise<void> {
  await client.delete(NETWORK_POLICIES, { namespace: "default", name: DENY });
}

function policy(name: string, spec: object): KubeObject {
  return { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name, namespace: "default" }, spec };
}

/** Of ordered values, the nearest one that is there. */
export function percentile(ordered: readonly number[], share: number): number {
  return ordered[Math.min(ordered.length - 1, Math.ceil(ordered.length * share) - 1)]!;
}
