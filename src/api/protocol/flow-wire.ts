/** How a batch of flows travels: ends and ways through policy once, rows as numbers. Read by the server from nodes it does not trust to be well. */
import {
  FLOW_ADDRESSES,
  FLOW_END_TYPES,
  FLOW_REPORTERS,
  type FlowBatch,
  type FlowEnd,
  type FlowKey,
  type FlowPending,
  type FlowRow,
  type FlowService,
  type PolicyHit,
} from "./flow.ts";

export const FLOW_LOGS_PORT = 7443;
/** Where agents send batches, and where they hear how often. On the port for agents, by mutual TLS. */
export const BATCHES_PATH = "/v1/batches";
export const PACE_PATH = "/v1/pace";
/** A batch larger than this is refused; an agent has no more sums than fit. */
export const BATCH_LIMIT = 32 * 1024 * 1024;
/** The tables of sums in a kernel have fewer entries. */
const ROWS_LIMIT = 200_000;
/** Lists and objects in the text of a batch: in memory the smallest take twenty times as much. */
const SHAPES_LIMIT = 1_000_000;
const LAYOUT = 1;
/** Of any text in a batch: names of Kubernetes are shorter. */
const TEXT_LIMIT = 512;
const LABELS_LIMIT = 128;
const POLICIES_LIMIT = 128;
/** Of one flow in one interval, which may be as long as this server was away: far from where sums of them are rounded. */
const COUNT_LIMIT = 2 ** 50;
const NODE_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

/** A line of the answer at PACE_PATH: one at the beginning, and one at each change. */
export interface Pace {
  /** Another one after each start of the server: it knows nothing of before. */
  instance: string;
  /** The last interval it has of this boot of the node. */
  last: number | undefined;
  /** How often a client that watches would like to hear. */
  intervalMs: number;
}

/** The answer to a batch. */
export interface Receipt {
  interval: number;
}

const ACTIONS = ["Allow", "Deny", "Pass", "Log"] as const;
const DIRECTIONS = ["Egress", "Ingress"] as const;
const VERDICTS = ["Allow", "Deny"] as const;
const DATAPLANES = ["Nftables", "BPF"] as const;

type Numbers = readonly [number, number, number, number, number, number, number];
const ROW_LENGTH = 19;
type WireRow = [
  from: number,
  to: number,
  service: number,
  port: number,
  protocol: string,
  verdict: number,
  reason: string,
  policies: number,
  reporter: number,
  sources: string,
  destinations: string,
  more: 0 | 1,
  ...counts: Numbers,
];

interface WireBatch {
  layout: number;
  node: string;
  boot: string;
  interval: number;
  since: number;
  until: number;
  /** By the node's clock, when it was sent. */
  sent: number;
  merged: number;
  unattributed: number;
  dataplane: number;
  /** Each is a text of JSON: one that was there in a batch before is known by it, and not read again. */
  ends: string[];
  services: string[];
  ways: string[];
  rows: WireRow[];
  /** Absent: nothing is pending of any row. Beside the rows, so that a server of an older release reads them. */
  pendings?: string[];
  pendingOf?: [row: number, pending: number][];
}

/** A number for each thing, by what it is. */
class Numbered<T> {
  readonly all: string[] = [];
  readonly #byText = new Map<string, number>();
  readonly #byThing = new Map<T, number>();

  of(thing: T): number {
    const known = this.#byThing.get(thing);
    if (known !== undefined) return known;
    const text = JSON.stringify(thing);
    let number = this.#byText.get(text);
    if (number === undefined) {
      number = this.all.push(text) - 1;
      this.#byText.set(text, number);
    }
    this.#byThing.set(thing, number);
    return number;
  }
}

export function writeBatch(batch: FlowBatch, sent: number): string {
  const ends = new Numbered<FlowEnd>();
  const services = new Numbered<FlowService>();
  const ways = new Numbered<readonly PolicyHit[]>();
  const pendings = new Numbered<FlowPending>();
  const pendingOf: [row: number, pending: number][] = [];
  const rows = batch.rows.map((row, index): WireRow => {
    const { key } = row;
    if (key.pending) pendingOf.push([index, pendings.of(key.pending)]);
    return [
      ends.of(key.from),
      ends.of(key.to),
      key.service ? services.of(key.service) : -1,
      key.port,
      key.protocol,
      VERDICTS.indexOf(key.verdict),
      key.reason ?? "",
      ways.of(key.policies),
      FLOW_REPORTERS.indexOf(key.reporter),
      row.sourceAddresses.join(),
      row.destinationAddresses.join(),
      row.more ? 1 : 0,
      ...([row.packets, row.bytes, row.replyPackets, row.replyBytes, row.started, row.ended, row.live] as const),
    ];
  });
  const { node, boot, interval, since, until, merged, unattributed } = batch;
  const dataplane = DATAPLANES.indexOf(batch.rows[0]?.key.dataplane ?? "Nftables");
  return JSON.stringify({
    ...{ layout: LAYOUT, node, boot, interval, since, until, sent, merged, unattributed, dataplane },
    ...{ ends: ends.all, services: services.all, ways: ways.all, rows },
    ...(pendingOf.length > 0 ? { pendings: pendings.all, pendingOf } : {}),
  });
}

/** What is wrong with a batch; whoever sent it is told. */
export class WireError extends Error {}

/** In characters, of the texts that are remembered of each kind. */
const REMEMBERED = 4 * 1024 * 1024;
/** In characters, of one of them. */
const PART_LIMIT = 256 * 1024;

/** Things by their text. They come again with each batch, and are read and looked at once. */
class Known<T> {
  readonly #what: string;
  readonly #read: (given: unknown) => T;
  readonly #byText = new Map<string, T>();
  #characters = 0;

  constructor(what: string, read: (given: unknown) => T) {
    this.#what = what;
    this.#read = read;
  }

  of(text: unknown): T {
    const known = this.#byText.get(text as string);
    if (known !== undefined) return known;
    if (typeof text !== "string" || text.length > PART_LIMIT)
      throw new WireError(`${this.#what} holds what is no text, or too long`);
    const thing = this.#read(jsonOf(text, this.#what));
    this.#characters += text.length;
    if (this.#characters > REMEMBERED) {
      this.#byText.clear();
      this.#characters = text.length;
    }
    this.#byText.set(text, thing);
    return thing;
  }
}

/** What one reader of batches remembers from one to the next: equal ends and ways through policy are one object. */
export class KnownParts {
  readonly ends = new Known("ends", endOf);
  readonly services = new Known("services", serviceOf);
  readonly ways = new Known("ways", hitsOf);
  readonly pendings = new Known("pendings", pendingOf);
}

function jsonOf(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new WireError(`${what} is not JSON`);
  }
}

/** Every value is looked at: a batch comes from a node, and a node may be another's. */
export function readBatch(text: string, known: KnownParts = new KnownParts()): FlowBatch & { sent: number } {
  if (hasMore(text, ["[", "{"], SHAPES_LIMIT)) throw new WireError("the batch has too many lists and objects");
  const wire = jsonOf(text, "the batch") as WireBatch;
  if (typeof wire !== "object" || wire === null) throw new WireError("the batch is not an object");
  if (wire.layout !== LAYOUT)
    throw new WireError(`the batch has ${shown(wire.layout)} as its layout, and this server reads ${LAYOUT}`);
  const dataplane = at(DATAPLANES, wire.dataplane, "dataplane");
  const node = nodeOf(wire.node);
  const ends = listOf(wire.ends, "ends").map((end) => known.ends.of(end));
  const services = listOf(wire.services, "services").map((service) => known.services.of(service));
  const ways = listOf(wire.ways, "ways").map((way) => known.ways.of(way));
  const pending = pendingByRow(wire, known);
  const rows = listOf(wire.rows, "rows", ROWS_LIMIT).map((given, index): FlowRow => {
    const row = listOf(given, "row") as unknown as WireRow;
    if (row.length !== ROW_LENGTH) throw new WireError(`a row has ${row.length} values, and not ${ROW_LENGTH}`);
    const key: { -readonly [K in keyof FlowKey]: FlowKey[K] } = {
      from: at(ends, row[0], "from"),
      to: at(ends, row[1], "to"),
      port: numberOf(row[3], "port", 65_535),
      protocol: textOf(row[4], "protocol"),
      verdict: at(VERDICTS, row[5], "verdict"),
      policies: at(ways, row[7], "policies"),
      reporter: at(FLOW_REPORTERS, row[8], "reporter"),
      node,
      dataplane,
    };
    if (row[2] !== -1) key.service = at(services, row[2], "service");
    if (row[6] !== "") key.reason = textOf(row[6], "reason");
    const staged = pending?.get(index);
    if (staged) key.pending = staged;
    return {
      key,
      sourceAddresses: addressesOf(row[9]),
      destinationAddresses: addressesOf(row[10]),
      more: row[11] === 1,
      packets: numberOf(row[12], "packets", COUNT_LIMIT),
      bytes: numberOf(row[13], "bytes", COUNT_LIMIT),
      replyPackets: numberOf(row[14], "replyPackets", COUNT_LIMIT),
      replyBytes: numberOf(row[15], "replyBytes", COUNT_LIMIT),
      started: numberOf(row[16], "started", COUNT_LIMIT),
      ended: numberOf(row[17], "ended", COUNT_LIMIT),
      live: numberOf(row[18], "live", COUNT_LIMIT),
    };
  });
  return {
    ...{ node, rows, boot: textOf(wire.boot, "boot"), interval: numberOf(wire.interval, "interval") },
    ...{
      since: numberOf(wire.since, "since"),
      until: numberOf(wire.until, "until"),
      sent: numberOf(wire.sent, "sent"),
    },
    ...{ merged: numberOf(wire.merged, "merged"), unattributed: numberOf(wire.unattributed, "unattributed") },
  };
}

/** Undefined: there is none. */
function pendingByRow(wire: WireBatch, known: KnownParts): Map<number, FlowPending> | undefined {
  if (wire.pendingOf === undefined) return undefined;
  const pendings = listOf(wire.pendings, "pendings").map((pending) => known.pendings.of(pending));
  const pairs = listOf(wire.pendingOf, "pendingOf", ROWS_LIMIT).map((given) => {
    const [row, pending] = listOf(given, "pendingOf", 2);
    return [numberOf(row, "pendingOf", ROWS_LIMIT), at(pendings, pending, "pendingOf")] as const;
  });
  return new Map(pairs);
}

function pendingOf(given: unknown): FlowPending {
  const { verdict, policies } = recordOf(given, "pendings");
  return { verdict: oneOf(VERDICTS, verdict, "pendings"), policies: hitsOf(policies) };
}

function hitsOf(given: unknown): PolicyHit[] {
  return listOf(given, "ways", POLICIES_LIMIT).map(hitOf);
}

function endOf(given: unknown): FlowEnd {
  const { type, name, namespace, kind, labels } = recordOf(given, "ends");
  return {
    type: oneOf(FLOW_END_TYPES, type, "type"),
    name: textOf(name, "name"),
    namespace: textOf(namespace, "namespace"),
    ...(kind === undefined ? {} : { kind: textOf(kind, "kind") }),
    ...(labels === undefined ? {} : { labels: labelsOf(labels) }),
  };
}

function labelsOf(given: unknown): Record<string, string> {
  const pairs = Object.entries(recordOf(given, "labels")).slice(0, LABELS_LIMIT);
  return Object.fromEntries(pairs.map(([key, value]) => [textOf(key, "labels"), textOf(value, "labels")]));
}

function serviceOf(given: unknown): FlowService {
  const { namespace, name, port } = recordOf(given, "services");
  return { namespace: textOf(namespace, "namespace"), name: textOf(name, "name"), port: textOf(port, "port") };
}

function hitOf(given: unknown): PolicyHit {
  const hit = recordOf(given, "ways");
  return {
    direction: oneOf(DIRECTIONS, hit["direction"], "direction"),
    kind: textOf(hit["kind"], "kind"),
    tier: textOf(hit["tier"], "tier"),
    namespace: textOf(hit["namespace"], "namespace"),
    name: textOf(hit["name"], "name"),
    ...(hit["rule"] === undefined ? {} : { rule: numberOf(hit["rule"], "rule") }),
    action: oneOf(ACTIONS, hit["action"], "action"),
    ...(hit["staged"] === true ? { staged: true } : {}),
  };
}

function addressesOf(given: unknown): string[] {
  if (typeof given !== "string" || given.length > TEXT_LIMIT)
    throw new WireError("addresses are not a list of addresses");
  return given === "" ? [] : given.split(",", FLOW_ADDRESSES);
}

function listOf(given: unknown, what: string, most = Number.POSITIVE_INFINITY): unknown[] {
  if (!Array.isArray(given) || given.length > most) throw new WireError(`${what} is not a list, or too long`);
  return given;
}

function recordOf(given: unknown, what: string): Record<string, unknown> {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new WireError(`${what} holds what is no object`);
  return given as Record<string, unknown>;
}

function textOf(given: unknown, what: string): string {
  if (typeof given !== "string" || given.length > TEXT_LIMIT) throw new WireError(`${what} is not a text, or too long`);
  return given;
}

function numberOf(given: unknown, what: string, most = Number.MAX_SAFE_INTEGER): number {
  if (!Number.isSafeInteger(given) || (given as number) < 0 || (given as number) > most) {
    throw new WireError(`${what} is not a number that can be`);
  }
  return given as number;
}

function at<T>(list: readonly T[], number: unknown, what: string): T {
  const found = typeof number === "number" ? list[number] : undefined;
  if (found === undefined) throw new WireError(`${what} names what is not in the batch`);
  return found;
}

function oneOf<T extends string>(list: readonly T[], given: unknown, what: string): T {
  if (!list.includes(given as T))
    throw new WireError(`${what} is ${shown(given)}, which is none of ${list.join(", ")}`);
  return given as T;
}

/** What was found may be anything, as deep as its sender likes. */
function shown(given: unknown): string {
  return typeof given === "string" ? JSON.stringify(given.slice(0, 40)) : typeof given;
}

/** Whether a node can have this name. It is said to people, and what a kubelet would refuse is no node's. */
export function nodeOf(given: unknown): string {
  if (typeof given !== "string" || !NODE_NAME.test(given)) throw new WireError("node is not the name of a node");
  return given;
}

function hasMore(text: string, signs: readonly string[], most: number): boolean {
  let found = 0;
  for (const sign of signs)
    for (let place = text.indexOf(sign); place >= 0; place = text.indexOf(sign, place + 1))
      if (++found > most) return true;
  return false;
}
