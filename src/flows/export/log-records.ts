import type { FlowBatch, FlowEnd, FlowKey, FlowRow, PolicyHit } from "../../api/protocol/flow.ts";
import { encode } from "../../kit/grpc/protobuf.ts";
import { LIST, LOGS_REQUEST, RECORD_BODY, RECORD_HEAD } from "./otlp-messages.ts";

type Value = string | number | readonly string[];

const EVENT = "vendor.flow";
/** Severities of OpenTelemetry. */
const INFO = { severity: 9, severityText: "INFO" };
const WARN = { severity: 13, severityText: "WARN" };

/** One record for each flow of a batch. Rows share ends and ways through policy: what is of them is encoded once. */
export function recordEncoder(
  batch: Omit<FlowBatch, "rows">,
  observed: number,
): (row: FlowRow, index: number) => Buffer {
  const { node, boot, interval, since, until } = batch;
  const sources = once((end: FlowEnd) => attributes(endValues("source", end)));
  const destinations = once((end: FlowEnd) => attributes(endValues("destination", end)));
  const policies = once((hits: FlowKey["policies"]) =>
    attributes(hits.length > 0 ? { "vendor.flow.policies": hits.map(hitText) } : {}),
  );
  const pendings = once((hits: FlowKey["policies"]) =>
    attributes(hits.length > 0 ? { "vendor.flow.pending.policies": hits.map(hitText) } : {}),
  );
  const heads = once((verdict: FlowKey["verdict"]) =>
    encode(RECORD_HEAD, {
      ...{ time: nanoseconds(until), observed: nanoseconds(observed), eventName: EVENT },
      ...(verdict === "Deny" ? WARN : INFO),
    }),
  );
  return (row, index) => {
    const { key } = row;
    const own = attributes({
      "log.record.uid": `${node}/${boot}/${interval}/${index}`,
      "source.address": row.sourceAddresses[0],
      "destination.address": row.destinationAddresses[0],
      "vendor.source.addresses": row.sourceAddresses.length > 1 ? row.sourceAddresses : undefined,
      "vendor.destination.addresses": row.destinationAddresses.length > 1 ? row.destinationAddresses : undefined,
      "network.type": familyOf(row.sourceAddresses[0] ?? row.destinationAddresses[0]),
      "destination.port": key.port || undefined,
      "network.transport": key.protocol.toLowerCase(),
      "destination.k8s.service.name": key.service?.name,
      "destination.k8s.service.namespace": key.service?.namespace,
      "destination.k8s.service.port": key.service?.port,
      "k8s.node.name": key.node,
      "vendor.flow.verdict": key.verdict.toLowerCase(),
      "vendor.flow.drop_reason": key.reason,
      "vendor.flow.pending.verdict": key.pending?.verdict.toLowerCase(),
      "vendor.flow.reporter": key.reporter.toLowerCase(),
      "vendor.flow.dataplane": key.dataplane.toLowerCase(),
      "vendor.flow.since": since,
      "vendor.flow.until": until,
      "vendor.flow.packets": row.packets,
      "vendor.flow.bytes": row.bytes,
      "vendor.flow.reply_packets": row.replyPackets,
      "vendor.flow.reply_bytes": row.replyBytes,
      "vendor.flow.connections.started": row.started,
      "vendor.flow.connections.ended": row.ended,
      "vendor.flow.connections.live": row.live,
    });
    const body = encode(RECORD_BODY, { body: { text: Buffer.from(bodyOf(key)) } });
    const ends = [sources(key.from), destinations(key.to), policies(key.policies)];
    if (key.pending) ends.push(pendings(key.pending.policies));
    return Buffer.concat([heads(key.verdict), body, ...ends, own]);
  };
}

function once<T>(make: (of: T) => Buffer): (of: T) => Buffer {
  const made = new Map<T, Buffer>();
  return (of) => {
    let known = made.get(of);
    if (!known) {
      known = make(of);
      made.set(of, known);
    }
    return known;
  };
}

/** The whole request around records. */
export function logsRequest(records: readonly Buffer[], version: string): Buffer {
  const values = { "service.name": "vendor-flow-logs", "service.version": version };
  const resource = Object.entries(values).map(([key, text]) => ({ key, value: { text: Buffer.from(text) } }));
  return encode(LOGS_REQUEST, {
    logs: [
      {
        resource: { attributes: resource },
        scopes: [{ scope: { name: EVENT, version }, records }],
      },
    ],
  });
}

function endValues(side: "source" | "destination", end: FlowEnd): Record<string, Value | undefined> {
  const labels = Object.entries(end.labels ?? {});
  return {
    [`vendor.${side}.type`]: end.type.toLowerCase(),
    [`vendor.${side}.name`]: end.name,
    [`${side}.k8s.namespace.name`]: end.namespace || undefined,
    ...(end.type === "Workload" && {
      [`${side}.k8s.workload.name`]: end.name,
      [`${side}.k8s.workload.kind`]: end.kind,
    }),
    ...Object.fromEntries(labels.map(([name, value]) => [`${side}.k8s.pod.label.${name}`, value])),
  };
}

/** `ingress deny security pay/lock#2`, and `staged` after it. */
function hitText({ direction, action, tier, namespace, name, kind, rule, staged }: PolicyHit): string {
  const policy = name === "" ? kind : namespace === "" ? name : `${namespace}/${name}`;
  const position = rule === undefined ? "" : `#${rule}`;
  const words = [direction.toLowerCase(), action.toLowerCase(), tier, `${policy}${position}`, staged ? "staged" : ""];
  return words.filter((word) => word !== "").join(" ");
}

function bodyOf({ verdict, from, to, port, protocol }: FlowKey): string {
  const name = (end: FlowEnd) => (end.namespace === "" ? end.name : `${end.namespace}/${end.name}`);
  return `${verdict.toLowerCase()} ${name(from)} > ${name(to)} ${port === 0 ? "" : `${port}/`}${protocol}`;
}

function familyOf(address: string | undefined): string | undefined {
  if (!address) return undefined;
  return address.includes(":") ? "ipv6" : "ipv4";
}

const ATTRIBUTE = 0x32;
const KEY = 0x0a;
const VALUE = 0x12;
const TEXT = 0x0a;
const NUMBER = 0x18;
const ARRAY = 0x2a;
/** Names of attributes as they are sent; labels are of users, so not all are kept. */
const MOST_NAMES = 4_096;
const names = new Map<string, Buffer>();
/** Longest head of an attribute, without its name and value. */
const HEAD_BYTES = 32;
let scratch = Buffer.allocUnsafe(16_384);

/** As the table of attributes would be encoded. By hand, since it is done thirty times for each flow of each interval: tables take ten times as long. */
function attributes(values: Record<string, Value | undefined>): Buffer {
  let at = 0;
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const name = nameField(key);
    const list =
      typeof value === "object"
        ? encode(LIST, { values: value.map((one) => ({ text: Buffer.from(one) })) })
        : undefined;
    const isNumber = typeof value === "number";
    const length = list ? list.length : typeof value === "string" ? Buffer.byteLength(value) : 0;
    const size = 1 + (isNumber ? varintSize(value) : varintSize(length) + length);
    const whole = name.length + 1 + varintSize(size) + size;
    if (scratch.length < at + whole + HEAD_BYTES) {
      const grown = Buffer.allocUnsafe(2 * (at + whole + HEAD_BYTES));
      scratch.copy(grown, 0, 0, at);
      scratch = grown;
    }
    scratch[at++] = ATTRIBUTE;
    at = writeVarint(whole, at);
    at += name.copy(scratch, at);
    scratch[at++] = VALUE;
    at = writeVarint(size, at);
    scratch[at++] = isNumber ? NUMBER : list ? ARRAY : TEXT;
    if (isNumber) at = writeVarint(value, at);
    else {
      at = writeVarint(length, at);
      at += list ? list.copy(scratch, at) : scratch.write(value as string, at);
    }
  }
  return Buffer.from(scratch.subarray(0, at));
}

function nameField(name: string): Buffer {
  let known = names.get(name);
  if (!known) {
    const text = Buffer.from(name);
    const length = Buffer.alloc(varintSize(text.length));
    for (let at = 0, rest = text.length; at < length.length; at++, rest = Math.floor(rest / 128))
      length[at] = (rest % 128) + (at < length.length - 1 ? 128 : 0);
    known = Buffer.concat([Buffer.of(KEY), length, text]);
    if (names.size >= MOST_NAMES) names.clear();
    names.set(name, known);
  }
  return known;
}

function writeVarint(value: number, start: number): number {
  let [rest, at] = [value, start];
  for (; rest > 127; rest = Math.floor(rest / 128)) scratch[at++] = (rest % 128) + 128;
  scratch[at++] = rest;
  return at;
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) size++;
  return size;
}

function nanoseconds(milliseconds: number): bigint {
  return BigInt(milliseconds) * 1_000_000n;
}
