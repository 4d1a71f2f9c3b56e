import { describe, expect, it } from "vitest";
import { type AgentView, type DataplaneView, planDataplane } from "./plan-dataplane.ts";

const loads: AgentView = { node: "a", programs: "loads", dataplane: "Nftables", serviceRouting: false, held: false };
const silent: AgentView = { ...loads, node: "b", programs: "unknown", dataplane: "unknown" };
const refusing: AgentView = {
  ...loads,
  node: "c",
  programs: { refused: { code: "EbpfProgramsRefused", why: "no BTF" } },
};
const acting: AgentView = { node: "a", programs: "loads", dataplane: "BPF", serviceRouting: true, held: false };
const unproven: AgentView = { ...acting, node: "b", serviceRouting: false };

const standard: DataplaneView = {
  wanted: "Nftables",
  bpfEnabled: false,
  rolling: undefined,
  agents: [loads],
  proxy: { is: "running", ready: true, owner: undefined },
  needsProxy: true,
};
const running = standard.proxy;
const parked = { is: "parked", owner: undefined } as const;
const notReady = { is: "running", ready: false, owner: undefined } as const;

describe("where a switch is", () => {
  it.each<[string, Partial<DataplaneView>, object]>([
    ["nothing to do", {}, { at: "standard" }],
    ["pods are rolled first", { wanted: "BPF", rolling: "DaemonSet x" }, { at: "rolling", waitingFor: "DaemonSet x" }],
    ["an agent has not spoken", { wanted: "BPF", agents: [loads, silent] }, { at: "proving", nodes: ["b"] }],
    [
      "an agent refuses, even while pods roll",
      { wanted: "BPF", rolling: "x", agents: [silent, refusing] },
      { at: "refused", nodes: [{ node: "c", code: "EbpfProgramsRefused", why: "no BTF" }], acting: 0 },
    ],
    [
      "a node refuses after others were switched",
      { wanted: "BPF", bpfEnabled: true, agents: [acting, refusing] },
      { at: "refused", acting: 1 },
    ],
    [
      "a node is held back while another has not proven itself",
      { wanted: "BPF", bpfEnabled: true, agents: [acting, unproven, { ...loads, node: "c", held: true }] },
      { at: "confirming", nodes: ["b"], held: ["c"] },
    ],
    [
      "back, a node held on eBPF",
      { agents: [loads, { ...acting, node: "c", held: true }] },
      { at: "leaving", nodes: [], held: ["c"] },
    ],
    [
      "back, a node still carries connections by eBPF",
      { agents: [loads, { ...loads, node: "c", draining: true }] },
      { at: "draining", nodes: ["c"] },
    ],
    ["all load", { wanted: "BPF" }, { at: "enable" }],
    [
      "one acts, one has not proven services",
      { wanted: "BPF", bpfEnabled: true, agents: [acting, unproven] },
      { at: "confirming", nodes: ["b"] },
    ],
    [
      "a new node comes while eBPF acts",
      { wanted: "BPF", bpfEnabled: true, agents: [acting, silent] },
      { at: "confirming", nodes: ["b"] },
    ],
    [
      "all act; a roll-out for another reason does not matter",
      { wanted: "BPF", bpfEnabled: true, rolling: "x", agents: [acting] },
      { at: "ebpf" },
    ],
    ["no nodes yet", { wanted: "BPF", agents: [] }, { at: "enable" }],
    ["back with the proxy running", { bpfEnabled: true, agents: [acting], proxy: running }, { at: "disable" }],
    ["back with the proxy parked", { bpfEnabled: true, agents: [acting], proxy: parked }, { at: "restoringProxy" }],
    ["back with the proxy starting", { bpfEnabled: true, agents: [acting], proxy: notReady }, { at: "restoringProxy" }],
    ["back with no proxy", { bpfEnabled: true, agents: [acting], proxy: { is: "absent" } }, { at: "proxyMissing" }],
    [
      "back where there never is one",
      { bpfEnabled: true, agents: [acting], proxy: { is: "absent" }, needsProxy: false },
      { at: "disable" },
    ],
    ["back, agents still leaving", { agents: [acting, loads] }, { at: "leaving", nodes: ["a"] }],
  ])("%s", (_what, change, phase) => {
    expect(planDataplane({ ...standard, ...change })).toMatchObject(phase);
  });
});
