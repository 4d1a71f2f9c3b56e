import { vendorNames } from "../names.ts";
import { conditionColumn, conditions, messageColumn, sinceColumn } from "./conditions.ts";
import { integer, list, object, text } from "./describe.ts";
import { defineResource, type ObjectOf } from "./resource.ts";
import { oneCopyOverrides } from "./workload-overrides.ts";

export const flowLogs = defineResource({
  noun: "flowLogs",
  api: "operator",
  namespaced: false,
  description: "Asks for the flow logs API, from v3.30 on; there is one, named default.",
  spec: object("How flow logs are kept. That the resource is there asks for them.", {
    export: object("Where flows are sent to, in addition to the API.", {
      otlp: object(
        "A collector of OpenTelemetry: each flow of each interval is a log record, by OTLP over HTTP, as protobuf with gzip.",
        {
          endpoint: text(
            "URL of the collector, such as https://collector.observability.svc:4318; /v1/logs is appended.",
            {
              minLength: 1,
              maxLength: 2048,
            },
          ),
          headersSecret: object(
            "Headers of each request, such as those that authenticate: NAME=VALUE,NAME=VALUE in a Secret of the namespace of vendor-flow-logs. What changes there is read when its pod starts again.",
            {
              name: text("Name of the Secret."),
              key: text("The key in it. Default: headers."),
            },
            ["name"],
          ),
          certificateAuthority: text(
            "Certificates of the authorities that are trusted for the collector, PEM. Default: those of the image.",
          ),
        },
        ["endpoint"],
      ),
    }),
    disk: object(
      "A volume on which flows are kept, too: batches of the last hour, so that none is lost with the pod, and each hour that is over as a Parquet file.",
      {
        persistentVolumeClaim: text("Name of a PersistentVolumeClaim in the namespace of vendor-flow-logs.", {
          minLength: 1,
          maxLength: 253,
        }),
        days: integer("How many days Parquet files are kept. Default: 7.", { minimum: 1, maximum: 3650 }),
        gibibytes: integer(
          "What all files together may take; the oldest Parquet files are removed first, also where the volume is nearly full. Default: 10.",
          { minimum: 1, maximum: 65_536 },
        ),
      },
      ["persistentVolumeClaim"],
    ),
    flowLogsDeployment: oneCopyOverrides(vendorNames.workloads.flowLogs),
  }),
  status: object("How the flow logs API is doing.", {
    conditions,
    collection: object("What vendor-flow-logs says of itself, twice a minute.", {
      time: text("When it said so.", { format: "date-time" }),
      nodes: integer("Nodes that send flows."),
      silentNodes: list("Nodes that sent flows and are silent now, by name; the first few.", text("A node.")),
      lateNodes: list("Nodes whose flows come late, by name; the first few.", text("A node.")),
      skewedNodes: list("Nodes whose clock differs by more than two seconds, by name; the first few.", text("A node.")),
      rowsPerSecond: integer("Rows that came in a second, over the last half minute."),
      flows: integer("Different flows that are kept."),
      memoryBytes: integer("What they take."),
      since: text("When the oldest of them was counted.", { format: "date-time" }),
      merged: integer("Sums that were merged under coarser keys since the start, because there were too many."),
      unattributed: integer("Packets since the start that are in no flow."),
      shed: list(
        "What some flows have lost because they would take too much memory; sums are exact. Ports go first, then addresses, then names.",
        text("One of ports, addresses and names."),
      ),
    }),
    disk: object("What vendor-flow-logs says of its volume, twice a minute.", {
      bytes: integer("What files take."),
      since: text("Begin of the oldest hour that is there as a Parquet file.", { format: "date-time" }),
      failure: text("Why flows cannot be written; absent: they can. Until then nodes keep them."),
      failingSince: text("When that began.", { format: "date-time" }),
    }),
    export: object("What vendor-flow-logs says of exporting, twice a minute.", {
      sent: integer("Log records since its start that the collector took."),
      dropped: integer("Log records since its start that are lost: too many waited, or the collector refused them."),
      waiting: integer("Log records that wait."),
      failure: text("Why the last attempt failed; absent: it did not."),
      failingSince: text("When attempts began to fail.", { format: "date-time" }),
      refusal: text("Why the collector refused some, the last time."),
    }),
  }),
  columns: [
    conditionColumn("Ready", "Whether flows are collected"),
    conditionColumn("Degraded", "Whether something is wrong"),
    sinceColumn("Ready"),
    messageColumn("Ready"),
  ],
});

export type FlowLogs = ObjectOf<typeof flowLogs>;
export type FlowLogsSpec = NonNullable<FlowLogs["spec"]>;
/** Where flows are kept, beside memory. */
export type FlowDiskSpec = NonNullable<FlowLogsSpec["disk"]>;
/** Where flows are exported to. */
export type FlowExportSpec = NonNullable<NonNullable<FlowLogsSpec["export"]>["otlp"]>;
