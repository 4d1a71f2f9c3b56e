import { existsSync, readFileSync } from "node:fs";
import { afterEach, expect, it, vi } from "vitest";
import { fiveTupleLayout, nfConntrackEntryLayout } from "../../gen/bpf/layout.gen.ts";
import type { ConntrackEntry, ConntrackPort } from "../../kernel/conntrack/conntrack-port.ts";
import { fakeKernel } from "../../kernel/fake/fake-kernel.ts";
import { namespaceShift } from "../../kernel/kernel-time.ts";
import { importNfConntrack } from "./import-nf-conntrack.ts";

const OFFSETS = "/proc/self/timens_offsets";

afterEach(() => vi.restoreAllMocks());

it("connections are taken over in the first second after boot, also those that nf_conntrack forgets within it", async () => {
  // Node's clock is shifted in a time namespace, kernel time is not.
  const offsets = existsSync(OFFSETS) ? readFileSync(OFFSETS, "utf8") : "";
  vi.spyOn(process.hrtime, "bigint").mockReturnValue(500_000_000n + namespaceShift(offsets));
  const packet = { protocol: 6, source: "10.65.0.1", destination: "10.65.0.2", sourcePort: 1000, destinationPort: 80 };
  const reply = { protocol: 6, source: "10.65.0.2", destination: "10.65.0.1", sourcePort: 80, destinationPort: 1000 };
  const flow = (sourcePort: number, timeout: number): ConntrackEntry => ({
    ...{ original: { ...packet, sourcePort }, reply: { ...reply, destinationPort: sourcePort }, mark: 0, timeout },
    ...{ seenReply: true, assured: true, sourceNat: false, destinationNat: false },
    ...{ tcpState: "established", packets: undefined },
  });
  const conntrack = { list: async () => [flow(1000, 0), flow(1001, 60)] } as Partial<ConntrackPort> as ConntrackPort;
  const sizes = { keySize: fiveTupleLayout.size, valueSize: nfConntrackEntryLayout.size, maxEntries: 64 };
  const oldFlows = fakeKernel().bpf.createMap({ name: "old_flows", type: "hash", ...sizes });
  expect(await importNfConntrack({ imported: oldFlows, conntrack, nodeAddresses: [], which: "all" })).toBe(2);
  const ends = oldFlows.entries().map(([, value]) => nfConntrackEntryLayout.read(value).until);
  expect(ends.sort()).toEqual([0n, 0n, 58_500_000_000n, 58_500_000_000n]);
});
