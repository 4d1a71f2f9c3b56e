import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import type { SchemaElement } from "hyparquet";
import { fileWriter, ParquetWriter } from "hyparquet-writer";
import type { FlowBatch, FlowEnd, FlowRow } from "../../api/protocol/flow.ts";
import { KnownParts, readBatch } from "../../api/protocol/flow-wire.ts";
import { recordsIn } from "./batch-file.ts";
import { syncDirectory } from "./batch-log.ts";

type Kind = "text" | "maybe text" | "texts" | "number" | "count" | "time";
type Value = string | number | bigint | Date | object | undefined;
type Column = readonly [name: string, kind: Kind, value: (row: FlowRow, batch: FlowBatch) => Value];

/** A row is what one node counted of one flow in one interval. Programs of others read these names: they stay. */
const COLUMNS: readonly Column[] = [
  ["start", "time", (_, { since }) => new Date(since)],
  ["end", "time", (_, { until }) => new Date(until)],
  ["node", "text", ({ key }) => key.node],
  ["boot", "text", (_, { boot }) => boot],
  ["interval", "count", (_, { interval }) => BigInt(interval)],
  ["data_plane", "text", ({ key }) => key.dataplane],
  ["reporter", "text", ({ key }) => key.reporter],
  ["verdict", "text", ({ key }) => key.verdict],
  ["reason", "maybe text", ({ key }) => key.reason],
  ["protocol", "text", ({ key }) => key.protocol],
  ["port", "number", ({ key }) => key.port],
  ...columnsOfEnd(
    "source",
    ({ key }) => key.from,
    ({ sourceAddresses }) => sourceAddresses,
  ),
  ...columnsOfEnd(
    "destination",
    ({ key }) => key.to,
    ({ destinationAddresses }) => destinationAddresses,
  ),
  ["service_namespace", "maybe text", ({ key }) => key.service?.namespace],
  ["service_name", "maybe text", ({ key }) => key.service?.name],
  ["service_port", "maybe text", ({ key }) => key.service?.port],
  ["policies", "text", ({ key }) => jsonOf(key.policies)],
  // What it would be with the policies that are staged for one of its ends.
  ["pending_verdict", "maybe text", ({ key }) => key.pending?.verdict],
  ["pending_policies", "maybe text", ({ key }) => key.pending && jsonOf(key.pending.policies)],
  ["packets", "count", ({ packets }) => BigInt(packets)],
  ["bytes", "count", ({ bytes }) => BigInt(bytes)],
  ["reply_packets", "count", ({ replyPackets }) => BigInt(replyPackets)],
  ["reply_bytes", "count", ({ replyBytes }) => BigInt(replyBytes)],
  ["started", "count", ({ started }) => BigInt(started)],
  ["ended", "count", ({ ended }) => BigInt(ended)],
  ["live", "count", ({ live }) => BigInt(live)],
];
/** In memory at a time, and together in the file. */
const GROUP = 50_000;

/** Writes the batches of a log as a Parquet file, under another name until it is whole. Returns how many rows it has. */
export async function writeParquet(log: string, path: string): Promise<number> {
  const unfinished = `${path}.new`;
  const writer = new ParquetWriter({ writer: fileWriter(unfinished), schema: SCHEMA, createdBy: "vendor-flow-logs" });
  let [columns, waiting, rows] = [emptyColumns(), 0, 0];
  const flush = async () => {
    if (waiting === 0) return;
    await writer.write({
      columnData: COLUMNS.map(([name], at) => ({ name, data: columns[at] as Value[] })),
      rowGroupSize: GROUP,
    });
    rows += waiting;
    [columns, waiting] = [emptyColumns(), 0];
  };
  const known = new KnownParts();
  for await (const { text } of recordsIn(log)) {
    const batch = readBatch(text, known);
    for (const row of batch.rows) {
      for (const [at, [, , value]] of COLUMNS.entries()) (columns[at] as Value[]).push(value(row, batch));
      if (++waiting === GROUP) await flush();
    }
  }
  await flush();
  await writer.finish();
  await synced(unfinished);
  await rename(unfinished, path);
  await syncDirectory(dirname(path));
  return rows;
}

function columnsOfEnd(
  side: "source" | "destination",
  end: (row: FlowRow) => FlowEnd,
  addresses: (row: FlowRow) => readonly string[],
): Column[] {
  return [
    [`${side}_type`, "text", (row) => end(row).type],
    [`${side}_namespace`, "text", (row) => end(row).namespace],
    [`${side}_name`, "text", (row) => end(row).name],
    [`${side}_kind`, "maybe text", (row) => end(row).kind],
    [`${side}_labels`, "text", (row) => jsonOf(end(row).labels ?? NONE)],
    [`${side}_addresses`, "texts", (row) => [...addresses(row)]],
  ];
}

const NONE = {};
const texts = new WeakMap<object, string>();

/** Ends and ways through policy come again in row after row, as the same objects. */
function jsonOf(part: object): string {
  const known = texts.get(part);
  if (known !== undefined) return known;
  const text = JSON.stringify(part);
  texts.set(part, text);
  return text;
}

const REQUIRED = { repetition_type: "REQUIRED" } as const;
const TEXT = { type: "BYTE_ARRAY", converted_type: "UTF8" } as const;

const SCHEMA: SchemaElement[] = [
  { name: "root", num_children: COLUMNS.length },
  ...COLUMNS.flatMap(([name, kind]) => elementsOf(name, kind)),
];

function elementsOf(name: string, kind: Kind): SchemaElement[] {
  switch (kind) {
    case "text":
      return [{ name, ...TEXT, ...REQUIRED }];
    case "maybe text":
      return [{ name, ...TEXT, repetition_type: "OPTIONAL" }];
    case "texts":
      return [
        { name, converted_type: "LIST", num_children: 1, ...REQUIRED },
        { name: "list", repetition_type: "REPEATED", num_children: 1 },
        { name: "element", ...TEXT, ...REQUIRED },
      ];
    case "number":
      return [{ name, type: "INT32", ...REQUIRED }];
    case "count":
      return [{ name, type: "INT64", ...REQUIRED }];
    case "time":
      return [{ name, type: "INT64", converted_type: "TIMESTAMP_MILLIS", ...REQUIRED }];
  }
}

function emptyColumns(): Value[][] {
  return COLUMNS.map(() => []);
}

async function synced(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
