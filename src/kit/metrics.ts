/** Metrics of a program, in the Prometheus text format. Series exist from their first value on. */
export interface Metrics {
  counter(name: string, help: string): Counter;
  gauge(name: string, help: string): Gauge;
  /** `buckets` are upper bounds, ascending; the last one, infinity, is understood. */
  histogram(name: string, help: string, buckets?: readonly number[]): Histogram;
  /** All of them, sorted by name, so that two readings can be compared. */
  text(): string;
}

export type MetricLabels = Readonly<Record<string, string>>;

export interface Counter {
  add(labels?: MetricLabels, by?: number): void;
  /** Takes over a count that something else keeps, such as the kernel, and may begin anew. */
  copy(count: number, labels?: MetricLabels): void;
}

export interface Gauge {
  set(value: number, labels?: MetricLabels): void;
  /** Forgets a series whose thing is no more. */
  remove(labels?: MetricLabels): void;
}

export interface Histogram {
  observe(value: number, labels?: MetricLabels): void;
}

/** The content type of `text()`. */
export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Seconds: from a cached answer to a call that has given up. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface Family {
  type: "counter" | "gauge" | "histogram";
  help: string;
  lines(): string[];
}

export function createMetrics(): Metrics {
  const families = new Map<string, Family>();
  const declare = (name: string, family: Family) => {
    if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) throw new TypeError(`"${name}" is no name for a metric`);
    if (families.has(name)) throw new TypeError(`metric ${name} is declared twice`);
    families.set(name, family);
  };
  return {
    counter(name, help) {
      const series = new Map<string, number>();
      declare(name, { type: "counter", help, lines: () => plainLines(name, series) });
      return {
        add(labels = {}, by = 1) {
          if (!(by >= 0)) throw new RangeError(`counter ${name} only grows; it was given ${by}`);
          const key = labelText(labels);
          series.set(key, (series.get(key) ?? 0) + by);
        },
        copy: (count, labels = {}) => void series.set(labelText(labels), count),
      };
    },
    gauge(name, help) {
      const series = new Map<string, number>();
      declare(name, { type: "gauge", help, lines: () => plainLines(name, series) });
      return {
        set: (value, labels = {}) => void series.set(labelText(labels), value),
        remove: (labels = {}) => void series.delete(labelText(labels)),
      };
    },
    histogram(name, help, buckets = SECONDS) {
      const series = new Map<string, Distribution>();
      declare(name, { type: "histogram", help, lines: () => histogramLines(name, buckets, series) });
      return { observe: (value, labels = {}) => observe(series, buckets, value, labels) };
    },
    text() {
      const sorted = [...families].sort(([a], [b]) => (a < b ? -1 : 1));
      return sorted
        .map(([name, { type, help, lines }]) =>
          [`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`, ...lines(), ""].join("\n"),
        )
        .join("");
    },
  };
}

interface Distribution {
  labels: MetricLabels;
  /** How many fell into each bucket and no lower one; infinity last. */
  counts: number[];
  sum: number;
}

function observe(series: Map<string, Distribution>, buckets: readonly number[], value: number, labels: MetricLabels) {
  const key = labelText(labels);
  let seen = series.get(key);
  if (!seen) {
    seen = { labels, counts: new Array<number>(buckets.length + 1).fill(0), sum: 0 };
    series.set(key, seen);
  }
  const found = buckets.findIndex((bound) => value <= bound);
  const at = found < 0 ? buckets.length : found;
  seen.counts[at] = (seen.counts[at] ?? 0) + 1;
  seen.sum += value;
}

function plainLines(name: string, series: ReadonlyMap<string, number>): string[] {
  return [...series].sort(byKey).map(([labels, value]) => `${name}${labels} ${numberText(value)}`);
}

function histogramLines(name: string, buckets: readonly number[], series: ReadonlyMap<string, Distribution>): string[] {
  return [...series].sort(byKey).flatMap(([text, { labels, counts, sum }]) => {
    let total = 0;
    const lines = counts.map((count, at) => {
      total += count;
      return `${name}_bucket${labelText({ ...labels, le: numberText(buckets[at] ?? Infinity) })} ${total}`;
    });
    return [...lines, `${name}_sum${text} ${numberText(sum)}`, `${name}_count${text} ${total}`];
  });
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** `{kind="Pod",result="ok"}`: the same labels give the same text in whatever order they were written. `le` stays last. */
function labelText(labels: MetricLabels): string {
  const names = Object.keys(labels).sort((a, b) => (a === "le" ? 1 : b === "le" ? -1 : a < b ? -1 : 1));
  if (names.length === 0) return "";
  return `{${names.map((name) => `${name}="${escapeValue(labels[name] as string)}"`).join(",")}}`;
}

function numberText(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}

function escapeHelp(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n");
}

function escapeValue(text: string): string {
  return escapeHelp(text).replace(/"/g, '\\"');
}
