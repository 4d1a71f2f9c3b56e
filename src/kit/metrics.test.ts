import { describe, expect, it } from "vitest";
import { createMetrics } from "./metrics.ts";

describe("metrics", () => {
  it("prints families by name, series by label, in the text form", () => {
    const metrics = createMetrics();
    const writes = metrics.counter("writes_total", "Objects written.");
    const queue = metrics.gauge("queue_depth", "Keys that wait.");
    writes.add({ kind: "Pod", result: "ok" });
    writes.add({ result: "ok", kind: "Pod" }, 2);
    writes.add({ kind: "Node", result: "conflict" });
    queue.set(3);
    expect(metrics.text()).toBe(
      [
        "# HELP queue_depth Keys that wait.",
        "# TYPE queue_depth gauge",
        "queue_depth 3",
        "# HELP writes_total Objects written.",
        "# TYPE writes_total counter",
        'writes_total{kind="Node",result="conflict"} 1',
        'writes_total{kind="Pod",result="ok"} 3',
        "",
      ].join("\n"),
    );
  });

  it("takes over a count of the kernel's, also one that began anew", () => {
    const metrics = createMetrics();
    const packets = metrics.counter("packets_total", "Packets.");
    for (const count of [7, 9, 2]) packets.copy(count, { hook: "xdp" });
    expect(metrics.text()).toContain('# TYPE packets_total counter\npackets_total{hook="xdp"} 2\n');
  });

  it("counts an observation in its bucket and in all above", () => {
    const metrics = createMetrics();
    const seconds = metrics.histogram("reconcile_seconds", "How long.", [0.1, 1]);
    for (const value of [0.1, 0.5, 30]) seconds.observe(value, { controller: "network" });
    expect(metrics.text().split("\n").slice(2, -1)).toEqual([
      'reconcile_seconds_bucket{controller="network",le="0.1"} 1',
      'reconcile_seconds_bucket{controller="network",le="1"} 2',
      'reconcile_seconds_bucket{controller="network",le="+Inf"} 3',
      'reconcile_seconds_sum{controller="network"} 30.6',
      'reconcile_seconds_count{controller="network"} 3',
    ]);
  });

  it("keeps whatever a label holds on one line", () => {
    const metrics = createMetrics();
    metrics.gauge("g", "two\nlines").set(1, { path: 'C:\\ "x"\n' });
    expect(metrics.text()).toBe('# HELP g two\\nlines\n# TYPE g gauge\ng{path="C:\\\\ \\"x\\"\\n"} 1\n');
  });

  it("forgets a series whose thing is gone", () => {
    const metrics = createMetrics();
    const nodes = metrics.gauge("g", "h");
    nodes.set(1, { node: "a" });
    nodes.set(1, { node: "b" });
    nodes.remove({ node: "a" });
    expect(metrics.text()).not.toContain('"a"');
    expect(metrics.text()).toContain('g{node="b"} 1');
  });

  it("refuses what would make a family lie", () => {
    const metrics = createMetrics();
    const count = metrics.counter("c", "h");
    expect(() => count.add({}, -1)).toThrow("only grows");
    expect(() => metrics.gauge("c", "h")).toThrow("declared twice");
    expect(() => metrics.gauge("a-b", "h")).toThrow("no name");
  });
});
