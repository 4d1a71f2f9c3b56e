import type { TrafficRow, TrafficSnapshot } from "../../api/protocol/traffic-report.ts";

/** What all clients counted, by way and protocol: losses add up, the longest silence is one client's. */
export function together(snapshots: readonly TrafficSnapshot[]): TrafficRow[] {
  const rows = new Map<string, TrafficRow>();
  for (const row of snapshots.flatMap((snapshot) => snapshot.rows)) {
    const key = `${row.way} ${row.protocol}`;
    const sum = rows.get(key);
    rows.set(key, sum ? added(sum, row) : row);
  }
  return [...rows.values()];
}

function added(a: TrafficRow, b: TrafficRow): TrafficRow {
  return {
    ...a,
    reached: a.reached && b.reached,
    opened: a.opened + b.opened,
    lost: a.lost + b.lost,
    replaced: a.replaced + b.replaced,
    silenceMs: Math.max(a.silenceMs, b.silenceMs),
    sent: a.sent + b.sent,
    unanswered: a.unanswered + b.unanswered,
  };
}

/** What came on top of what there was before. A silence that is no longer than the one before is not new. */
export function since(before: readonly TrafficRow[], now: readonly TrafficRow[]): TrafficRow[] {
  return now.map((row) => {
    const was = before.find(({ way, protocol }) => way === row.way && protocol === row.protocol);
    if (!was) return row;
    return {
      ...row,
      opened: row.opened - was.opened,
      lost: row.lost - was.lost,
      replaced: row.replaced - was.replaced,
      silenceMs: row.silenceMs > was.silenceMs ? row.silenceMs : 0,
      sent: row.sent - was.sent,
      unanswered: row.unanswered - was.unanswered,
    };
  });
}
