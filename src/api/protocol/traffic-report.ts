/** What a measuring probe counted of one way through the network, from its start on. */
export interface TrafficRow {
  /** The path: `service-remote`, as the caller named it. */
  way: string;
  protocol: "tcp" | "udp";
  /** Whether it was ever answered; before that nothing is counted. */
  reached: boolean;
  /** Connections, the kept one and those that come and go. Zero for UDP. */
  opened: number;
  lost: number;
  /** Of the connections: those whose server saw another address than the client's own. Zero for UDP, whose sockets do not know theirs. */
  replaced: number;
  /** The longest time the kept connection or socket heard nothing though it asked all along; our own pauses are not in it. */
  silenceMs: number;
  /** Datagrams. Zero for TCP. */
  sent: number;
  unanswered: number;
}

/** One line of such a probe, said every second. */
export interface TrafficSnapshot {
  /** Since it began. */
  seconds: number;
  rows: readonly TrafficRow[];
}

export function formatSnapshot(snapshot: TrafficSnapshot): string {
  return `${JSON.stringify(snapshot)}\n`;
}

export function parseSnapshot(line: string): TrafficSnapshot | undefined {
  try {
    const read = JSON.parse(line) as Partial<TrafficSnapshot>;
    if (typeof read.seconds !== "number" || !Array.isArray(read.rows)) return undefined;
    // An older probe does not compare addresses.
    const rows = read.rows as (Omit<TrafficRow, "replaced"> & Partial<TrafficRow>)[];
    return { seconds: read.seconds, rows: rows.map((row) => ({ ...row, replaced: row.replaced ?? 0 })) };
  } catch {
    return undefined;
  }
}
