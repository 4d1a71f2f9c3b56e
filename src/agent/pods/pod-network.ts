import { createHash } from "node:crypto";
import type { KubeObject } from "../../api/object.ts";
import type { CniDeletion, CniRequest, CniResult } from "../../api/protocol/cni.ts";
import { podInterfaceName, podNetworkAnnotations } from "../../api/protocol/pod-network.ts";
import type { Client } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { PODS } from "../../cluster/kinds.ts";
import { handleId } from "../../ipam/handles.ts";
import type { Ipam } from "../../ipam/ipam.ts";
import type { Pool } from "../../ipam/ipam-kinds.ts";
import type { Log } from "../../kit/log.ts";
import { errors } from "../errors.ts";
import { choosePools } from "../ipam/choose-pools.ts";
import type { ModelLoop } from "../model-loop.ts";
import { fromNodeCidrs } from "./node-cidrs.ts";
import type { NotedDeletions } from "./noted-deletions.ts";
import { GATEWAYS, type PodInterfaces } from "./pod-interface.ts";
import type { PodRecord, PodRecords } from "./pod-records.ts";

export interface PodNetworkParts {
  client: Client;
  node: string;
  ipam: Ipam;
  records: PodRecords;
  notes: NotedDeletions;
  interfaces: PodInterfaces;
  /** Removes rules for host ports that the plugin of earlier releases wrote for a container; gives the chains that went. */
  removePortmapRules(containerId: string): Promise<string[]>;
  loop: Pick<ModelLoop, "inEffect" | "poke">;
  /** What is followed of the cluster. */
  pools(): readonly Pool[];
  namespace(name: string): KubeObject | undefined;
  nodeLabels(): Readonly<Record<string, string>>;
  /** Prefixes of the node's own for pods, where no pools are used. */
  podCidrs(): readonly string[];
  /** Whatever the plugin's configuration says of IPAM. */
  usesPodCidr: boolean;
  mtu(): number;
  log: Log;
}

export interface PodNetwork {
  add(request: CniRequest): Promise<CniResult>;
  remove(request: Pick<CniRequest, "containerId" | "ifname">): Promise<void>;
  check(request: CniRequest): void;
  /** Carries out the DELs that were noted while no agent listened, but for the addresses, which `releaseLate` releases. Needs no API server. */
  removeNoted(): Promise<void>;
  /** Removes every interface but these. */
  removeOthers(valid: readonly { containerID: string; ifname: string }[]): Promise<void>;
  /** Gives back what could not be given back when it should have been. */
  releaseLate(): Promise<void>;
}

const POLICY_MS = 30_000;
/** How long a DEL waits for the API server before it releases the addresses later. */
const RELEASE_MS = 5_000;

/**
 * Connects pods. In this order: addresses are assigned, the record is on disk, the interface is created but down, the pod is annotated,
 * policy is in effect, the interface opens. Stopped anywhere, the record says what there is to undo, and asking again goes on from there.
 */
export function podNetwork(parts: PodNetworkParts): PodNetwork {
  const turns = new Map<string, Promise<unknown>>();
  // One pod's calls one after the other; different pods do not wait for each other.
  const inTurn = <T>(containerId: string, work: () => Promise<T>): Promise<T> => {
    const mine = (turns.get(containerId) ?? Promise.resolve()).then(work, work);
    const settled = mine.catch(() => {});
    turns.set(containerId, settled);
    void settled.then(() => turns.get(containerId) === settled && turns.delete(containerId));
    return mine;
  };
  return {
    add: (request) => inTurn(request.containerId, () => addPod(parts, request)),
    remove: ({ containerId, ifname }) => inTurn(containerId, () => removePod(parts, containerId, ifname)),
    check(request) {
      const record = parts.records.get(request.containerId, request.ifname);
      const name = podName(request);
      if (record?.state !== "ready") throw errors.POD_INTERFACE_WRONG(name, "it was not made by this node");
      const problem = parts.interfaces.problem(record);
      if (problem) throw errors.POD_INTERFACE_WRONG(name, problem);
    },
    async removeOthers(valid) {
      const keep = new Set(valid.map(({ containerID, ifname }) => `${containerID}/${ifname}`));
      const others = parts.records.list().filter((one) => !keep.has(`${one.containerId}/${one.ifname}`));
      for (const record of others) {
        const { containerId, ifname } = record;
        await inTurn(containerId, async () => {
          if (isCurrent(parts, record)) await removePod(parts, containerId, ifname);
        });
      }
    },
    async removeNoted() {
      for (const deletion of parts.notes.list()) {
        await inTurn(deletion.containerId, async () => {
          // An ADD or DEL that had its turn first has carried it out.
          if (parts.notes.has(deletion)) await disconnect(parts, deletion);
        }).catch((error: unknown) => parts.log.warn({ ...deletion, error }, "a noted DEL failed"));
      }
    },
    async releaseLate() {
      for (const record of parts.records.list()) {
        if (record.state !== "removing") continue;
        await inTurn(record.containerId, async () => {
          if (isCurrent(parts, record)) await releaseAddresses(parts, record);
        });
      }
    },
  };
}

/** False once an ADD or DEL of the same interface had its turn: what was decided by the record before no longer holds. */
function isCurrent({ records }: Pick<PodNetworkParts, "records">, record: PodRecord): boolean {
  return records.get(record.containerId, record.ifname) === record;
}

async function addPod(parts: PodNetworkParts, request: CniRequest): Promise<CniResult> {
  const { client, records, interfaces, loop, notes } = parts;
  // The DEL came first: carried out later, it would remove what is added now.
  if (notes.has(request)) await removePod(parts, request.containerId, request.ifname);
  const { namespace, pod: name } = podOf(request);
  const pod = await readPod(client, namespace, name);
  const known = records.get(request.containerId, request.ifname);
  if (known?.state === "ready" && known.netns === request.netns && !interfaces.problem(known)) {
    return resultOf(known);
  }
  const record = await prepare(parts, request, pod);
  await interfaces.make(record, request.config.container_settings?.allow_ip_forwarding === true);
  await reportToCluster(client, pod, record);
  const wanted = record.addresses.map((address) => `${address}/${address.includes(":") ? 128 : 32}`);
  const patience = (request.config.policy_setup_timeout_seconds ?? 0) * 1000 || POLICY_MS;
  await loop.inEffect(
    `${namespace}/${name}`,
    ({ endpoints }) => {
      const endpoint = endpoints.get(`${namespace}/${name}`);
      return endpoint !== undefined && wanted.every((address) => endpoint.addresses.includes(address));
    },
    patience,
  );
  interfaces.open(record);
  const ready: PodRecord = { ...record, state: "ready" };
  records.put(ready);
  // Routes of links that were down could not be made before.
  loop.poke();
  return resultOf(ready);
}

/** Takes the pod's addresses, and writes down what is about to be made before any of it is. */
async function prepare(parts: PodNetworkParts, request: CniRequest, pod: KubeObject): Promise<PodRecord> {
  const { containerId, ifname, netns } = request;
  const { namespace = "default", name } = pod.metadata;
  const handle = handleId("k8s-pod-network", containerId, ...(ifname === "eth0" ? [] : [ifname]));
  const blank: PodRecord = {
    containerId,
    ifname,
    netns,
    namespace,
    pod: name,
    interfaceName: podInterfaceName(namespace, name),
    mac: macFor(containerId, ifname),
    mtu: request.config.mtu || parts.mtu(),
    handle,
    addresses: parts.records.get(containerId, ifname)?.addresses ?? [],
    ...(isHostLocal(parts, request) && { hostLocal: true }),
    state: "adding",
  };
  if (blank.hostLocal) {
    // In one step: the records are the only memory of what is taken, and other pods are added meanwhile.
    const record = { ...blank, addresses: podCidrAddresses(parts, request) };
    parts.records.put(record);
    return record;
  }
  parts.records.put(blank);
  const addresses = await assignAddresses(parts, pod, handle);
  const record = { ...blank, addresses };
  parts.records.put(record);
  return record;
}

function podCidrAddresses({ records, podCidrs }: PodNetworkParts, { containerId, ifname }: CniRequest): string[] {
  const others = records.list().filter((one) => one.containerId !== containerId || one.ifname !== ifname);
  const mine = records.get(containerId, ifname)?.addresses ?? [];
  return fromNodeCidrs(podCidrs(), new Set(others.flatMap(({ addresses }) => addresses)), mine);
}

function isHostLocal({ usesPodCidr }: Pick<PodNetworkParts, "usesPodCidr">, { config }: CniRequest): boolean {
  return usesPodCidr || config.ipam?.type === "host-local";
}

async function assignAddresses(parts: PodNetworkParts, pod: KubeObject, handle: string): Promise<string[]> {
  const { namespace = "default", name } = pod.metadata;
  const asker = { pod, namespace: parts.namespace(namespace), nodeLabels: parts.nodeLabels() };
  const { v4, v6, addresses } = choosePools(parts.pools(), asker);
  const facts = { node: parts.node, namespace, pod: name };
  return await parts.ipam.assign({ owner: { handle, facts }, v4, v6, addresses });
}

/** Written before the interface goes up: policy is calculated from the pod's annotations. */
async function reportToCluster(client: Client, pod: KubeObject, { addresses, mac }: PodRecord): Promise<void> {
  const annotations = podNetworkAnnotations(addresses, mac);
  const has = pod.metadata.annotations ?? {};
  if (Object.entries(annotations).every(([key, value]) => has[key] === value)) return;
  // The version of the object stays out of it: others write to the pod as well. Its identity stays in.
  const patch = { metadata: { uid: pod.metadata.uid, annotations } };
  await client.patch(PODS, pod.metadata, { type: "merge", patch }, { subresource: "status" });
}

async function removePod(parts: PodNetworkParts, containerId: string, ifname: string): Promise<void> {
  const removing = await disconnect(parts, { containerId, ifname });
  // Nothing was made here, or all of it is undone: both are what was asked for.
  if (!removing) return;
  await releaseAddresses(parts, removing);
  parts.loop.poke();
}

/** Removes the interface. The record stays, for the addresses; a note of the DEL goes, since the record says the same now. */
async function disconnect(parts: PodNetworkParts, deletion: CniDeletion): Promise<PodRecord | undefined> {
  const { records, interfaces, notes } = parts;
  await dropPortmapRules(parts, deletion.containerId);
  const record = records.get(deletion.containerId, deletion.ifname);
  const removing: PodRecord | undefined = record && { ...record, state: "removing" };
  if (record && removing) {
    const isNowAnothers = records
      .list()
      .some((other) => other !== record && other.interfaceName === record.interfaceName && other.state !== "removing");
    if (!isNowAnothers && record.state !== "removing") await interfaces.remove(record);
    records.put(removing);
  }
  notes.drop(deletion);
  return removing;
}

/** Also of a container without a record, which another CNI plugin connected before us. What cannot be removed does not keep the pod. */
async function dropPortmapRules({ removePortmapRules, log }: PodNetworkParts, containerId: string): Promise<void> {
  try {
    const chains = await removePortmapRules(containerId);
    if (chains.length > 0) log.info({ containerId, chains }, "removed rules of the plugin portmap");
  } catch (error) {
    log.warn({ containerId, error }, "rules of the plugin portmap were not removed");
  }
}

/** The record is deleted last: it lists what is still to be released. Without an API server it stays. */
async function releaseAddresses(parts: PodNetworkParts, record: PodRecord): Promise<void> {
  const { ipam, records, log } = parts;
  const released = ipam.release(record.handle, record.addresses).then(
    () => {
      // It may end after this turn, in that of an ADD, whose record this is not.
      if (isCurrent(parts, record)) records.remove(record);
    },
    (error: unknown) => log.warn({ pod: `${record.namespace}/${record.pod}`, error }, "addresses are released later"),
  );
  let timer: NodeJS.Timeout | undefined;
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, RELEASE_MS);
  });
  await Promise.race([released, enough]);
  clearTimeout(timer);
}

async function readPod(client: Client, namespace: string, name: string): Promise<KubeObject> {
  try {
    return await client.get<KubeObject>(PODS, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) throw errors.POD_UNKNOWN(`${namespace}/${name}`);
    throw error;
  }
}

function podOf({ args }: Pick<CniRequest, "args">): { namespace: string; pod: string } {
  const { K8S_POD_NAMESPACE: namespace, K8S_POD_NAME: pod } = args;
  if (!namespace || !pod) throw errors.POD_UNNAMED();
  return { namespace, pod };
}

function podName({ args }: Pick<CniRequest, "args">): string {
  return `${args["K8S_POD_NAMESPACE"] ?? ""}/${args["K8S_POD_NAME"] ?? ""}`;
}

/** The same for the same container, so that an answer given twice is the same answer. Locally administered, of one machine. */
function macFor(containerId: string, ifname: string): string {
  const bytes = createHash("sha256").update(`${containerId} ${ifname}`).digest().subarray(0, 6);
  bytes[0] = (bytes[0]! & 0xfc) | 0x02;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}

function resultOf({ interfaceName, ifname, mac, mtu, netns, addresses }: PodRecord): CniResult {
  return {
    interfaces: [
      { name: interfaceName, mac: "ee:ee:ee:ee:ee:ee", mtu },
      { name: ifname, mac, mtu, sandbox: netns },
    ],
    ips: addresses.map((address) => ({ address: `${address}/${address.includes(":") ? 128 : 32}`, interface: 1 })),
    routes: addresses.map((address) =>
      address.includes(":") ? { dst: "::/0", gw: GATEWAYS.v6 } : { dst: "0.0.0.0/0", gw: GATEWAYS.v4 },
    ),
  };
}
