import type { FlowBatch, FlowEnd, FlowKey, FlowRow, PolicyHit } from "../../api/protocol/flow.ts";
import { encode, type Sent } from "../../kit/grpc/protobuf.ts";
import { LIST, LOGS_REQUEST, RECORD_ATTRIBUTES, RECORD_HEAD } from "./otlp-messages.ts";

type Value = string | number | readonly string[];
type Attributes = NonNullable<Sent<typeof RECORD_ATTRIBUTES>["attributes"]>;

const EVENT = "vendor.flow";
/** Severities of OpenTelemetry. */
const INFO = { severity: 9, severityText: "INFO" };
const WARN = { severity: 13, severityText: "WARN" };

/** One record for each flow of a batch. Those of one key in one batch have the attributes of the key encoded once. */
export function recordEncoder(
  batch: Omit<FlowBatch, "rows">,
  observed: number,
): (row: FlowRow, index: number) => Buffer {
  const keys = new Map<FlowKey, Buffer>();
  const { node, boot, interval, since, until } = batch;
  return (row, index) => {
    let ofKey = keys.get(row.key);
    if (!ofKey) {
      ofKey = attributes(keyValues(row.key));
      keys.set(row.key, ofKey);
    }
    const head = encode(RECORD_HEAD, {
      time: nanoseconds(until),
      ...(row.key.verdict === "Deny" ? WARN : INFO),
      body: { text: Buffer.from(bodyOf(row.key)) },
      observed: nanoseconds(observed),
      eventName: EVENT,
    });
    const values: Record<string, Value | undefined> = {
      "log.record.uid": `${node}/${boot}/${interval}/${index}`,
      "source.address": row.sourceAddresses[0],
      "destination.address": row.destinationAddresses[0],
      ...(row.sourceAddresses.length > 1 && { "vendor.source.addresses": row.sourceAddresses }),
      ...(row.destinationAddresses.length > 1 && { "vendor.destination.addresses": row.destinationAddresses }),
      "network.type": familyOf(row.sourceAddresses[0] ?? row.destinationAddresses[0]),
      "vendor.flow.since": since,
      "vendor.flow.until": until,
      "vendor.flow.packets": row.packets,
      "vendor.flow.bytes": row.bytes,
      "vendor.flow.reply_packets": row.replyPackets,
      "vendor.flow.reply_bytes": row.replyBytes,
      "vendor.flow.connections.started": row.started,
      "vendor.flow.connections.ended": row.ended,
      "vendor.flow.connections.live": row.live,
    };
    return Buffer.concat([head, ofKey, attributes(values)]);
  };
}

/** The whole request around records. */
export function logsRequest(records: readonly Buffer[], version: string): Buffer {
  const resource = { "service.name": "vendor-flow-logs", "service.version": version };
  return encode(LOGS_REQUEST, {
    logs: [
      {
        resource: { attributes: sentAttributes(resource) },
        scopes: [{ scope: { name: EVENT, version }, records }],
      },
    ],
  });
}

function keyValues(key: FlowKey): Record<string, Value | undefined> {
  return {
    ...endValues("source", key.from),
    ...endValues("destination", key.to),
    "destination.port": key.port || undefined,
    "network.transport": key.protocol.toLowerCase(),
    ...(key.service && {
      "destination.k8s.service.name": key.service.name,
      "destination.k8s.service.namespace": key.service.namespace,
      "destination.k8s.service.port": key.service.port,
    }),
    "k8s.node.name": key.node,
    "vendor.flow.verdict": key.verdict.toLowerCase(),
    "vendor.flow.drop_reason": key.reason,
    "vendor.flow.reporter": key.reporter.toLowerCase(),
    "vendor.flow.dataplane": key.dataplane.toLowerCase(),
    ...(key.policies.length > 0 && { "vendor.flow.policies": key.policies.map(hitText) }),
  };
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

function attributes(values: Record<string, Value | undefined>): Buffer {
  return encode(RECORD_ATTRIBUTES, { attributes: sentAttributes(values) });
}

function sentAttributes(values: Record<string, Value | undefined>): Attributes {
  return Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: sentValue(value) }],
  );
}

function sentValue(value: Value) {
  if (typeof value === "number") return { number: value };
  if (typeof value === "string") return { text: Buffer.from(value) };
  return { list: encode(LIST, { values: value.map((one) => ({ text: Buffer.from(one) })) }) };
}

function nanoseconds(milliseconds: number): bigint {
  return BigInt(milliseconds) * 1_000_000n;
}
