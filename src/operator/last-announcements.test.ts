import { expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { lastAnnouncements } from "./last-announcements.ts";

const agentOf = (nodeName: string, dataplane?: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: `vendor-node-${nodeName}`,
    ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "vendor-node", uid: "1" }],
    ...(dataplane && { annotations: { "vendor.io/dataplane": dataplane } }),
  },
  spec: { nodeName },
});

it("what an agent announced last outlives its pod, but not for long", () => {
  let now = 0;
  const last = lastAnnouncements(() => now);
  last.note(agentOf("a", "BPF"));
  last.note(agentOf("b", "Nftables"));
  now = 100_000;
  last.note(agentOf("a", "DrainingBPF"));
  // The next agent has not reported yet; a word of another release says nothing.
  last.note(agentOf("a"));
  last.note(agentOf("b", "Quantum"));
  expect([...last.recent()]).toEqual([
    ["a", "DrainingBPF"],
    ["b", "Nftables"],
  ]);
  now = 200_000;
  expect([...last.recent()]).toEqual([["a", "DrainingBPF"]]);
  now = 300_000;
  expect([...last.recent()]).toEqual([]);
});

it("pods of others announce nothing", () => {
  const last = lastAnnouncements(() => 0);
  const { metadata, ...pod } = agentOf("a", "DrainingBPF");
  last.note({ ...pod, metadata: { ...metadata, ownerReferences: [] } });
  expect(last.recent().size).toBe(0);
});
