import { typeOf } from "../src/agent/stored-kinds.ts";
import { vendorNames } from "../src/api/names.ts";
import type { KubeObject } from "../src/api/object.ts";
import { globalNetworkPolicy } from "../src/api/resources/network-policy.ts";
import { placesOf } from "../src/api/resources/resource.ts";
import type { Client } from "../src/cluster/client.ts";
import { createInformer, type Informer } from "../src/cluster/informer.ts";
import { inParallel } from "../src/kit/in-parallel.ts";
import { etcdClient } from "../test/datastore/etcd-client.ts";
import { median, type Row } from "./run.ts";

const POLICIES = placesOf(globalNetworkPolicy, vendorNames).stored;
const COUNT = 10_000;
const CHANGES = 100;
const OUTAGE_MS = 60_000;

const policy = (name: string): KubeObject => ({
  ...typeOf(POLICIES),
  metadata: { name },
  spec: { tier: "default", selector: `app == '${name}'`, ingress: [{ action: "Allow", protocol: "TCP" }] },
});

/** The datastore in the distribution's etcd: ten thousand policies, and how long until what is written is seen by who follows it, also after etcd failed. */
export async function run(): Promise<Row[]> {
  return [...(await ofThree()), ...(await ofOne())];
}

async function ofThree(): Promise<Row[]> {
  const { client, server, close } = await etcdClient({ members: 3 });
  const informer = createInformer<KubeObject>(client, POLICIES);
  try {
    await informer.synced;
    await seenAfter(client, informer, "warm");
    const alive = await seenAfter(client, informer, "alive");
    await server.members[0]!.kill();
    const lost = await seenAfter(client, informer, "member-lost");
    return [
      { name: "three members: a policy is written and seen", value: alive, unit: "ms" },
      { name: "the same right after the member in use was killed", value: lost, unit: "ms" },
    ];
  } finally {
    await informer.stop();
    await close();
  }
}

async function ofOne(): Promise<Row[]> {
  const { client, server, forget, close } = await etcdClient();
  try {
    const writing = await timeOf(() =>
      inParallel(
        Array.from({ length: COUNT }, (_, at) => `policy-${at}`),
        16,
        async (name) => void (await client.create(POLICIES, policy(name))),
      ),
    );
    const listing = await timeOf(() => client.list(POLICIES));
    const empty = heapBytes();
    const informer = createInformer<KubeObject>(client, POLICIES);
    const syncing = await timeOf(() => informer.synced);
    const memory = (heapBytes() - empty) / 2 ** 20;
    const changes: number[] = [];
    for (let at = 0; at < CHANGES; at++) changes.push(await seenAfter(client, informer, `change-${at}`));
    await server.members[0]!.kill();
    await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS));
    await server.members[0]!.start();
    const outage = await seenAfter(client, informer, "after-outage");
    const kept = informer.list().length;
    for (let at = 0; at < 3; at++) await client.create(POLICIES, policy(`forgotten-${at}`));
    await server.members[0]!.kill();
    await server.members[0]!.start();
    await forget();
    const compacted = await seenAfter(client, informer, "after-compaction");
    await informer.stop();
    return [
      { name: `${COUNT} policies: created, 16 at a time`, value: (COUNT / writing) * 1_000, unit: "1/s" },
      { name: `${COUNT} policies: listed`, value: listing, unit: "ms" },
      { name: `${COUNT} policies: an informer is in sync`, value: syncing, unit: "ms" },
      { name: `${COUNT} policies: memory of the informer`, value: memory, unit: "MiB" },
      { name: `${COUNT} policies: one more is written and seen`, value: median(changes), unit: "ms" },
      { name: "the same after etcd was away for 60 s, from its return", value: outage, unit: "ms" },
      { name: "policies known then", value: kept, unit: `of ${COUNT + CHANGES + 1}` },
      { name: "the same after a restart and a compaction", value: compacted, unit: "ms" },
    ];
  } finally {
    await close();
  }
}

/** From the first try to write it until an informer has it. */
async function seenAfter(client: Client, informer: Informer<KubeObject>, name: string): Promise<number> {
  const started = performance.now();
  const seen = new Promise<void>((resolve) => {
    const end = informer.onChange(({ object }) => {
      if (object.metadata.name !== name) return;
      resolve();
      queueMicrotask(() => end());
    });
  });
  for (;;) {
    try {
      await client.create(POLICIES, policy(name));
      break;
    } catch (error) {
      if ((error as { reason?: string }).reason === "AlreadyExists") break;
    }
  }
  await seen;
  return performance.now() - started;
}

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
