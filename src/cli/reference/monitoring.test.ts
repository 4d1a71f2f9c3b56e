import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { renderGeneratedFiles } from "../../operator/published/published-files.ts";
import { declaredMetrics } from "./declared-metrics.ts";

const KEYWORDS = ["and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "bool"];
/** Of a target, whatever it exports: set by Prometheus and by our PodMonitors. */
const TARGET_LABELS = ["namespace", "pod", "node", "container", "instance", "job", "le"];
/** What Prometheus itself adds to a scrape. */
const OF_PROMETHEUS = ["up"];

const KNOWN = new Map(
  declaredMetrics().flatMap(({ name, type, labels }) => {
    const series = type === "histogram" ? ["_bucket", "_sum", "_count"].map((end) => name + end) : [name];
    return series.map((one) => [one, labels] as const);
  }),
);

/** What an expression names that no program exports: metrics, and labels of metrics in braces. */
function unknownIn(expression: string): string[] {
  const unknown: string[] = [];
  const bare = expression
    .replace(/"[^"]*"/g, '""')
    .replace(/\[[^\]]*\]/g, "")
    // The labels of an aggregation may be between its name and its bracket.
    .replace(/\s*\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, " ");
  for (const [, name = "", call, matchers = ""] of bare.matchAll(/([a-zA-Z_:][\w:]*)\s*(\()?(?:\{([^}]*)\})?/g)) {
    if (call || KEYWORDS.includes(name)) continue;
    const labels = OF_PROMETHEUS.includes(name) ? [] : KNOWN.get(name);
    if (!labels) unknown.push(name);
    for (const [, label = ""] of matchers.matchAll(/([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)/g)) {
      if (![...(labels ?? []), ...TARGET_LABELS].includes(label)) unknown.push(`${name}{${label}}`);
    }
  }
  return unknown;
}

/** What Prometheus itself says of rules; undefined without its tool. */
function promtool(groups: object[]): { status: number | null; text: string } | undefined {
  const folder = mkdtempSync(join(tmpdir(), "rules-"));
  try {
    writeFileSync(join(folder, "rules.yaml"), stringify({ groups }));
    const { error, status, stdout, stderr } = spawnSync("promtool", ["check", "rules", join(folder, "rules.yaml")], {
      encoding: "utf8",
    });
    return error ? undefined : { status, text: stdout + stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const files = renderGeneratedFiles();
const objects = parseAllDocuments(files["manifests/monitoring.yaml"] ?? "").map((document) => document.toJS());
const rules = objects
  .find(({ kind }) => kind === "PrometheusRule")
  .spec.groups.flatMap(
    ({ rules }: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }) => rules,
  ) as { alert: string; expr: string; annotations: { summary: string } }[];
const dashboard = JSON.parse(files["manifests/grafana-dashboard.json"] ?? "") as {
  panels: { title: string; targets: { expr: string }[] }[];
};

describe("published monitoring", () => {
  it.each(rules.map(({ alert, expr }) => [alert, expr]))(
    "alert %s is of metrics that programs export",
    (_name, expr) => {
      expect(unknownIn(expr)).toEqual([]);
    },
  );

  it.each(dashboard.panels.map(({ title, targets }) => [title, targets] as const))(
    "the panel %s shows metrics that programs export",
    (_title, targets) => {
      expect(targets.flatMap(({ expr }) => unknownIn(expr))).toEqual([]);
    },
  );

  it("a metric, a series or a label that no program exports is found", () => {
    expect(unknownIn("increase(vendor_node_nothing_total[5m]) > 0")).toEqual(["vendor_node_nothing_total"]);
    expect(unknownIn("sum by (le) (rate(vendor_node_ready_bucket[5m]))")).toEqual(["vendor_node_ready_bucket"]);
    expect(unknownIn("vendor_node_apply_seconds > 1")).toEqual(["vendor_node_apply_seconds"]);
    expect(unknownIn('vendor_node_ready{mode="ebpf"} == 1')).toEqual(["vendor_node_ready{mode}"]);
    expect(unknownIn("process_resident_memory_bytes and up == 1")).toEqual([]);
  });

  it("Prometheus reads every alert and what every panel asks", (context) => {
    const asked = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    const panels = asked.map((expr, at) => ({
      record: `panel_${at}`,
      expr: expr.replaceAll("$__rate_interval", "5m"),
    }));
    const checked = promtool([
      { name: "alerts", rules },
      { name: "panels", rules: panels },
    ]);
    if (!checked) return context.skip("needs promtool");
    expect(checked).toEqual({
      status: 0,
      text: expect.stringContaining(`${rules.length + panels.length} rules found`),
    });
    const wrong = promtool([{ name: "wrong", rules: [{ record: "panel", expr: "sum by (" }] }]);
    expect(wrong?.status).not.toBe(0);
  });

  it("each alert is named once, and says what to do", () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { annotations } of rules)
      expect(annotations).toMatchObject({ description: expect.stringMatching(/^Next: /) });
  });

  it("PodMonitors select the pods of the agents, the controllers, the flow logs and the operator", () => {
    const monitors = objects.filter(({ kind }) => kind === "PodMonitor");
    expect(monitors.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).toEqual([
      "vendor-operator/vendor-node",
      "vendor-operator/vendor-kube-controllers",
      "vendor-operator/vendor-flow-logs",
      "vendor-operator/vendor-operator",
    ]);
  });
});
