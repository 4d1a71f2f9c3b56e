/**
 * Export of BPF conntrack entries to nf_conntrack. Each is inserted as if the kernel had seen the connection from the beginning, with the
 * drain generation as its ct mark: the programs delete their entry once they see that mark, and not before. A later insertion must not
 * overwrite newer state: an existing entry is only replaced while the programs still handle every connection.
 *
 * What the programs translate on its way into the stack, to a backend that is no pod, the kernel knows already, by what they make of it and
 * maybe with a translation of its own; and what the node itself sent, by what it was before. Both would have the same answers, or the same
 * questions: it cannot have the one before the other has gone.
 */

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Net } from "../../calc/model.ts";
import { NetTable } from "../../calc/nets.ts";
import {
  CONNTRACK_FLAG,
  CONNTRACK_STATE,
  conntrackEntryLayout,
  FORWARD_PATH,
  fiveTupleLayout,
} from "../../gen/bpf/layout.gen.ts";
import type { BpfMap, MapEntry } from "../../kernel/bpf/bpf-port.ts";
import { inverse } from "../../kernel/conntrack/conntrack-message.ts";
import type {
  ConntrackPort,
  ConntrackTuple,
  Endpoint,
  NewConntrackEntry,
} from "../../kernel/conntrack/conntrack-port.ts";
import { errnoOf } from "../../kernel/errors.ts";
import { kernelTime } from "../../kernel/kernel-time.ts";
import { parseAddress } from "../../kit/ip.ts";
import { expireConntrack } from "../ebpf/conntrack/expire-conntrack.ts";
import { addressText, reversedKey } from "../ebpf/net-bytes.ts";
import { CONNECTION_MARK } from "../nft/ruleset.ts";

export interface ExportOptions {
  flows: BpfMap;
  conntrack: ConntrackPort;
  /** Of the drain, 1 to 65535. */
  generation: number;
  /** Prefixes of pods: a client outside of them that comes through the overlay cannot be answered by the kernel. */
  pools: readonly Net[];
  /** Which were given in this drain, by key; added to. */
  known: Set<string>;
  /** The kernel takes no packet of a connection it does not know until this has ended. */
  hold: <T>(act: () => Promise<T>) => Promise<T>;
}

export interface ExportResult {
  exported: number;
  /** The kernel had it already and was left alone, or would not take it. */
  refused: number;
  /** Only the programs can carry these to their end. */
  staying: number;
}

const { CT_REPLY: FLOW_REPLY, CT_NAT: FLOW_NAT, CT_DSR: FLOW_DIRECT, CT_FROM_HOST: FLOW_FROM_HOST } = CONNTRACK_FLAG;
const TCP = 6;
const UDP = 17;
/** Long enough for the next packet, short enough for a flow that is over; the kernel sets its own time at the first packet. */
const SECONDS = { [TCP]: 120, [UDP]: 60 } as const;
/** For connections that were idle during the whole drain: the kernel's own timeout of an idle one. */
const IDLE_SECONDS = { [TCP]: 432_000, [UDP]: 180 } as const;
const UDP_OVER_NS = 30_000_000_000n;
/** Between two turns of the event loop. */
const AT_ONCE = 256;

/**
 * `replace`: what the kernel has under the same addresses and ports, of either direction, is of an earlier life and goes; only while the
 * programs carry everything. A flow given before and no longer in the kernel was cut there, because policy forbids it now: it is not given
 * again.
 */
export async function exportConntrack(options: ExportOptions, replace: boolean): Promise<ExportResult> {
  const { conntrack, generation, known, hold } = options;
  const toExchange: ExportedEntry[] = [];
  const counted = await eachEntry(options, (one) => {
    if (known.has(one.name)) return "exported";
    if (one.inKernel) {
      toExchange.push(one);
      return "refused";
    }
    const flow = newNfEntry(one, generation);
    if (!inserted(conntrack, flow)) {
      if (!replace) return "refused";
      conntrack.delete(flow.original);
      conntrack.delete(inverse(one.translated));
      if (!inserted(conntrack, flow)) return "refused";
    }
    known.add(one.name);
    return "exported";
  });
  // Programs without nf_conntrack lookup would track them as new while they still accept new connections.
  if (replace) return counted;
  return withExchanged(counted, await hold(() => exchange(options, toExchange)));
}

/** Those left after a while are idle: the kernel keeps them from here on, and the programs forget them. What it would not take stays. */
export async function exportIdleConntrack(options: ExportOptions): Promise<ExportResult> {
  const { conntrack, generation, flows, known, hold } = options;
  await expireConntrack(flows, {});
  const toExchange: ExportedEntry[] = [];
  const give = (one: ExportedEntry) => {
    const there = conntrack.find(one.original);
    const ours = there !== undefined && isOfGeneration(there.mark, generation);
    if (!ours && !known.has(one.name)) {
      // It had not been answered yet when the others were given.
      if (one.inKernel) toExchange.push(one);
      else if (inserted(conntrack, newNfEntry(one, generation))) known.add(one.name);
      return "refused";
    }
    // One that has moved on since has its own time.
    if (ours && there.timeout <= SECONDS[one.protocol]) {
      conntrack.update(one.original, { timeout: IDLE_SECONDS[one.protocol] });
    }
    forget(flows, one);
    return "exported";
  };
  const now = kernelTime();
  const counted = await eachEntry(options, give, (one, value) => {
    // Datagrams have no end, and nothing is lost when the next one is a new flow.
    const isOver = one.protocol === UDP && now - value.readBigUInt64LE(conntrackEntryLayout.at.lastSeen) > UDP_OVER_NS;
    if (isOver) forget(flows, one);
    return isOver;
  });
  if (toExchange.length === 0) return counted;
  return withExchanged(counted, await hold(() => exchange(options, toExchange)));
}

/** Each becomes one flow of the kernel's that begins where the programs saw it begin, and ends where the kernel's did; how many. */
async function exchange(
  { flows, conntrack, generation, known: given }: ExportOptions,
  all: readonly ExportedEntry[],
): Promise<number> {
  let exchanged = 0;
  for (const [at, one] of all.entries()) {
    if (at % AT_ONCE === 0) await nextTurn();
    const known = conntrack.find(one.translated);
    // Forgotten there, and with it the address it left with. A next datagram begins a new flow, which the kernel translates whole.
    if (!known && one.protocol === UDP && one.isBehind) {
      forget(flows, one);
      exchanged++;
      continue;
    }
    const { source, sourcePort } = known ? inverse(known.reply) : one.translated;
    const translated = { ...one.translated, source, sourcePort };
    for (const packets of [one.original, one.translated, inverse(translated)]) conntrack.delete(packets);
    // With the kernel's own timeout: the entry is not refreshed here again.
    const timeout = known?.timeout ?? IDLE_SECONDS[one.protocol];
    if (!inserted(conntrack, { ...newNfEntry({ ...one, translated }, generation), timeout })) continue;
    given.add(one.name);
    forget(flows, one);
    exchanged++;
  }
  return exchanged;
}

function withExchanged({ exported: given, refused, staying }: ExportResult, exchanged: number): ExportResult {
  return { exported: given + exchanged, refused: refused - exchanged, staying };
}

function forget(flows: BpfMap, { key, reply }: ExportedEntry): void {
  flows.delete(key);
  flows.delete(reply);
}

/** How many flows the programs still carry. */
export async function countConntrack(flows: BpfMap): Promise<number> {
  let count = 0;
  for (const chunk of flows.chunks()) {
    count += chunk.filter((entry) => exportableEntry(entry)).length;
    await nextTurn();
  }
  return count;
}

/** A flow by its first packet's direction. */
interface ExportedEntry {
  name: string;
  key: Buffer;
  /** The key of the other direction. */
  reply: Buffer;
  protocol: typeof TCP | typeof UDP;
  original: ConntrackTuple;
  /** As the programs send it on. */
  translated: ConntrackTuple;
  /** Policy allowed it once, and denies it now. */
  denied: boolean;
  /** The kernel has it all along, as it looks before or behind the programs. */
  inKernel: boolean;
  /** As it looks behind them, that is. */
  isBehind: boolean;
}

async function eachEntry(
  options: ExportOptions,
  give: (flow: ExportedEntry) => "exported" | "refused",
  isOver: (flow: ExportedEntry, value: Buffer) => boolean = () => false,
): Promise<ExportResult> {
  const counted: ExportResult = { exported: 0, refused: 0, staying: 0 };
  const pods = new NetTable();
  for (const pool of options.pools) pods.add(pool, true);
  let turn = 0;
  for (const chunk of options.flows.chunks()) {
    for (const entry of chunk) {
      const carried = exportableEntry(entry);
      if (!carried) continue;
      const bound = isBound(entry, carried, options.flows, pods);
      if (bound && !isOver(carried, entry[1])) counted.staying++;
      if (!bound) counted[give(carried)]++;
      if (++turn % AT_ONCE === 0) await nextTurn();
    }
  }
  return counted;
}

/** Undefined: the answering direction, one that is over or has not begun, or one the kernel has followed all along. */
function exportableEntry([key, value]: MapEntry): ExportedEntry | undefined {
  const protocol = key.readUInt8(fiveTupleLayout.at.protocol);
  if (protocol !== TCP && protocol !== UDP) return undefined;
  const [state, path, flags] = [
    conntrackEntryLayout.at.state,
    conntrackEntryLayout.at.path,
    conntrackEntryLayout.at.flags,
  ].map((at) => value.readUInt8(at)) as [number, number, number];
  if (flags & FLOW_REPLY || state === CONNTRACK_STATE.CT_CLOSING) return undefined;
  if (protocol === TCP && state === CONNTRACK_STATE.CT_OPENING) return undefined;
  if (path === FORWARD_PATH.PATH_STACK && !(flags & FLOW_NAT)) return undefined;
  const isFromHost = (flags & FLOW_FROM_HOST) !== 0;
  const inKernel = path === FORWARD_PATH.PATH_STACK || isFromHost;
  const { at } = conntrackEntryLayout;
  const denied = value.readUInt8(at.denied) !== 0;
  const to = flags & FLOW_NAT ? value.subarray(at.to, at.to + fiveTupleLayout.size) : key;
  return {
    ...{ name: key.toString("latin1"), key, reply: reversedKey(to), protocol },
    ...{ original: tupleOf(key), translated: tupleOf(to), inKernel, isBehind: inKernel && !isFromHost, denied },
  };
}

/** Whether only programs can end it: a client outside the cluster whose address is kept through the overlay, the kernel would answer by another way. */
function isBound([, value]: MapEntry, flow: ExportedEntry, flows: BpfMap, pods: NetTable): boolean {
  if (value.readUInt8(conntrackEntryLayout.at.flags) & FLOW_DIRECT) return true;
  const source = parseAddress(flow.original.source);
  if (!source || pods.find(source)) return false;
  const isOverlay = (entry: Buffer | undefined) =>
    entry?.readUInt8(conntrackEntryLayout.at.path) === FORWARD_PATH.PATH_OVERLAY;
  return isOverlay(value) || isOverlay(flows.lookup(flow.reply));
}

function newNfEntry({ original, translated, protocol, denied }: ExportedEntry, generation: number): NewConntrackEntry {
  const destination: Endpoint = { address: translated.destination, port: translated.destinationPort };
  const source: Endpoint = { address: translated.source, port: translated.sourcePort };
  return {
    original,
    timeout: SECONDS[protocol],
    // What policy ended stays ended: as a connection of the kernel's it is dropped by this mark until policy allows it.
    mark: generationMark(generation) + (denied ? CONNECTION_MARK.denied : 0),
    ...(differs(destination, original.destination, original.destinationPort) ? { destinationNat: destination } : {}),
    ...(differs(source, original.source, original.sourcePort) ? { sourceNat: source } : {}),
  };
}

/** The upper half: the lower one is the service proxy's. */
function generationMark(generation: number): number {
  return generation * 0x1_0000;
}

function isOfGeneration(mark: number, generation: number): boolean {
  return mark >>> 16 === generation;
}

function differs({ address, port }: Endpoint, otherAddress: string, otherPort: number): boolean {
  return address !== otherAddress || port !== otherPort;
}

function inserted(conntrack: ConntrackPort, flow: NewConntrackEntry): boolean {
  try {
    conntrack.insert(flow);
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

function tupleOf(key: Buffer): ConntrackTuple {
  const { src, dst, sport, dport, protocol } = fiveTupleLayout.read(key);
  return {
    ...{ protocol, sourcePort: sport, destinationPort: dport },
    source: addressText(src),
    destination: addressText(dst),
  };
}
