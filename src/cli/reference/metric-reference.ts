import { declaredMetrics, METRIC_SOURCES, type Source } from "./declared-metrics.ts";
import { code, GENERATED, sentence, table } from "./markdown.ts";

export function metricReference(): string {
  return [
    GENERATED("the metrics that src/agent, src/operator, src/controllers, src/v3api and src/flows declare"),
    "# Metrics reference\n",
    "All programs serve metrics in the text format of Prometheus. A series exists from its first value on. " +
      "PodMonitors, alerts and a dashboard are in `manifests/`: [monitoring](../guide/monitoring.md).\n",
    ...Object.values(METRIC_SOURCES).map(sourceSection),
  ].join("\n");
}

function sourceSection(source: Source): string {
  const { title, where } = source;
  const rows = declaredMetrics([source]).map(({ name, type, labels, help }) => [
    code(name),
    type,
    labels.map(code).join(", "),
    sentence(help),
  ]);
  return [`## ${title}\n`, `${where}\n`, table(["Metric", "Type", "Labels", "Meaning"], rows)].join("\n");
}
