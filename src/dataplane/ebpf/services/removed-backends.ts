/** What the kernel still remembers of a backend that a service does not have any more, and must not. */
import { setImmediate } from "node:timers/promises";
import {
  affinityKeyLayout,
  affinityLayout,
  CONNTRACK_FLAG,
  conntrackEntryLayout,
  FORWARD_PATH,
  fiveTupleLayout,
  frontendLayout,
  SOCKET_FLAG,
  socketKeyLayout,
  socketPeerLayout,
} from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap, MapEntry } from "../../../kernel/bpf/bpf-port.ts";
import type { ConntrackPort } from "../../../kernel/conntrack/conntrack-port.ts";
import type { SocketsPort } from "../../../kernel/conntrack/sockets-port.ts";
import { addressText, reversedKey } from "../net-bytes.ts";
import { backendName, frontendKey } from "./service-rows.ts";

export interface RemovedBackends {
  readonly protocol: number;
  /** Whether clients stay with their backend. */
  readonly affinity: boolean;
  /** Address and port as in the maps, one after the other, as text. */
  readonly backends: ReadonlySet<string>;
}

/** By the number of the service. */
export type RemovedByService = ReadonlyMap<number, RemovedBackends>;

const UDP = 17;
/** Address and port. */
const NAME_BYTES = 18;

/** Deletes what would choose the backend again: session affinities, and choices of sockets that are not connected. */
export async function deleteAffinities(
  gone: RemovedByService,
  affinities: BpfMap,
  socketChoices: BpfMap,
): Promise<void> {
  const all = [...gone.values()];
  if (all.some(({ affinity }) => affinity)) {
    const { service } = affinityKeyLayout.at;
    const { address } = affinityLayout.at;
    await removeWhere(affinities, ([key, value]) => isRemoved(gone, key.readUInt32LE(service), value, address));
  }
  if (all.some(({ protocol }) => protocol === UDP)) {
    const { service, address } = socketPeerLayout.at;
    await removeWhere(socketChoices, ([, value]) => isRemoved(gone, value.readUInt32LE(service), value, address));
  }
}

/**
 * Ends what is on its way to the backend by UDP, which would never notice: its next packet is the first of another flow. TCP connections
 * are left to end by themselves: their backend may still be answering.
 */
export async function deleteUdpConntrack(gone: RemovedByService, flows: BpfMap): Promise<void> {
  const { protocol } = fiveTupleLayout.at;
  const { flags, path, service, to } = conntrackEntryLayout.at;
  const [destination, destinationPort] = [to + fiveTupleLayout.at.dst, to + fiveTupleLayout.at.dport];
  await removeWhere(
    flows,
    ([key, value]) => {
      if (key[protocol] !== UDP || hasFlag(value, flags, CONNTRACK_FLAG.CT_REPLY)) return false;
      // Or the backend's node translates it: here it only leads there.
      if (!hasFlag(value, flags, CONNTRACK_FLAG.CT_NAT) && value[path] !== FORWARD_PATH.PATH_OVERLAY) return false;
      const backends = gone.get(value.readUInt32LE(service))?.backends;
      return backends?.has(nameAt(value, destination, destinationPort)) ?? false;
    },
    ([key, value]) => {
      const sent = hasFlag(value, flags, CONNTRACK_FLAG.CT_NAT) ? value.subarray(to, to + fiveTupleLayout.size) : key;
      return [key, reversedKey(sent)];
    },
  );
}

/** The same of flows the kernel still translates, from before the node was handed over: the proxy that would have ended them is gone. */
export async function deleteUdpNfConntrack(
  gone: RemovedByService,
  frontends: BpfMap,
  conntrack: ConntrackPort,
): Promise<void> {
  const numberAt = (key: string) => {
    const value = frontends.lookup(Buffer.from(key, "latin1"));
    return value?.readUInt32LE(frontendLayout.at.service);
  };
  for (const { original, reply, destinationNat } of await conntrack.list()) {
    if (original.protocol !== UDP || !destinationNat) continue;
    const name = backendName(reply.source, reply.sourcePort);
    if (![...gone.values()].some(({ backends }) => backends.has(name))) continue;
    const { destination, destinationPort } = original;
    const anyAddress = destination.includes(":") ? "::" : "0.0.0.0";
    const keys = [destination, anyAddress].map((address) => frontendKey(address, destinationPort, UDP));
    const service = numberAt(keys[0]!) ?? numberAt(keys[1]!);
    // An address without a frontend was of a service that is gone as a whole.
    if (service === undefined || gone.get(service)?.backends.has(name)) conntrack.delete(original);
  }
}

/** Connected UDP sockets of the node are closed under the feet of their holders: they see an error and connect again. How many. */
export async function closeUdpSockets(
  gone: RemovedByService,
  socketPeers: BpfMap,
  sockets: SocketsPort,
): Promise<number> {
  const { service, protocol, flags } = socketPeerLayout.at;
  const { cookie, address, port } = socketKeyLayout.at;
  const cookies = new Map<string, Set<bigint>>();
  await removeWhere(socketPeers, ([key, value]) => {
    if (value[protocol] !== UDP || !hasFlag(value, flags, SOCKET_FLAG.SOCKET_CONNECTED)) return false;
    if (!isRemoved(gone, value.readUInt32LE(service), key, address)) return false;
    const name = `${key.readUInt16LE(port)} ${addressText(key.subarray(address, address + 16))}`;
    cookies.set(name, (cookies.get(name) ?? new Set()).add(key.readBigUInt64LE(cookie)));
    return true;
  });
  let closed = 0;
  for (const [name, own] of cookies) {
    const [destinationPort, destination] = name.split(" ") as [string, string];
    // A socket may have been connected elsewhere since: only those that still are there.
    const selection = { protocol: "udp" as const, destination, destinationPort: Number(destinationPort), cookies: own };
    closed += sockets.destroy(selection);
  }
  return closed;
}

function isRemoved(gone: RemovedByService, service: number, bytes: Buffer, at: number): boolean {
  const backends = gone.get(service)?.backends;
  return backends?.has(bytes.toString("latin1", at, at + NAME_BYTES)) ?? false;
}

function nameAt(bytes: Buffer, address: number, port: number): string {
  return bytes.toString("latin1", address, address + 16) + bytes.toString("latin1", port, port + 2);
}

function hasFlag(value: Buffer, at: number, flag: number): boolean {
  return (value[at]! & flag) !== 0;
}

async function removeWhere(
  map: BpfMap,
  chosen: (entry: MapEntry) => boolean,
  keysOf: (entry: MapEntry) => Buffer[] = ([key]) => [key],
): Promise<void> {
  for (const chunk of map.chunks(4096)) {
    await map.deleteMany(chunk.filter(chosen).flatMap(keysOf));
    await setImmediate();
  }
}
