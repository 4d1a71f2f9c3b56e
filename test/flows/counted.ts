import type { FlowAccounting, FlowSum } from "../../src/dataplane/flow-sums.ts";

/** What a data plane counts, in memory that outlives the agent as a kernel does. */
export class Counted {
  readonly byInterval = new Map<number, FlowSum[]>();
  current: number | undefined;
  /** Bytes of everything that was counted. */
  bytes = 0;

  count(bytes: number): void {
    if (this.current === undefined) return;
    this.bytes += bytes;
    const sums = this.byInterval.get(this.current) ?? [];
    sums.push({ ...SUM, bytes, packets: 1, started: 1, ended: 1 });
    this.byInterval.set(this.current, sums);
  }

  accounting(): FlowAccounting {
    return {
      intervals: async () =>
        [...new Set([...this.byInterval.keys(), ...(this.current === undefined ? [] : [this.current])])].sort(
          (a, b) => a - b,
        ),
      begin: async (interval) => {
        this.current = interval;
      },
      read: async (interval) => [...(this.byInterval.get(interval) ?? [])],
      forget: async (interval) => void this.byInterval.delete(interval),
      shed: () => ({ merged: 0, unattributed: 0 }),
      stop: async () => {
        this.current = undefined;
        this.byInterval.clear();
      },
    };
  }
}

const SUM: FlowSum = {
  ...{ source: "10.1.0.5", destination: "10.1.0.6", destinationPort: 8080, protocol: 6, service: "shop/api:http" },
  ...{ verdict: "Allow", reason: undefined, egress: undefined, ingress: ["np/shop/default.web;ingress;0"] },
  ...{ packets: 0, bytes: 0, replyPackets: 0, replyBytes: 0, started: 0, ended: 0, live: 0, lastSeen: 1 },
};
