import { describe, expect, it } from "vitest";
import type { Dataplane } from "../../api/dataplane.ts";
import { type Next, nextStep, type StepName, type SwitchoverState } from "./next-step.ts";

const NODE: SwitchoverState = {
  mode: undefined,
  programmed: { Nftables: false, BPF: false },
  filter: false,
  keep: "absent",
  watchdogArmed: false,
  apiAnswers: true,
  importedConntrack: false,
  confirmed: true,
  peersKnow: true,
  proxy: { rules: true, serves: true, expected: true, ours: true, quiet: true, givenUp: false },
  drain: { given: false, left: false },
};

/** A node that runs the nftables data plane, with kube-proxy. */
const STANDARD: SwitchoverState = { ...NODE, filter: true, programmed: { Nftables: true, BPF: false } };

/** What a step makes of a node. */
const EFFECTS: Record<StepName, (seen: SwitchoverState) => Partial<SwitchoverState>> = {
  programEbpf: ({ mode, programmed }) => ({ mode: mode ?? "Off", programmed: { ...programmed, BPF: true } }),
  programNft: ({ programmed }) => ({ filter: true, programmed: { ...programmed, Nftables: true } }),
  keep: () => ({ keep: "open" }),
  openGate: () => ({ keep: "open" }),
  closeGate: () => ({ keep: "gated" }),
  importConntrack: () => ({ importedConntrack: true }),
  armWatchdog: () => ({ watchdogArmed: true }),
  flip: () => ({ mode: "Active", importedConntrack: false }),
  confirm: () => ({ watchdogArmed: false }),
  dropFilter: ({ programmed }) => ({ filter: false, programmed: { ...programmed, Nftables: false } }),
  removeProxyRules: ({ proxy }) => ({ proxy: { ...proxy, rules: false, serves: false } }),
  drain: () => ({ mode: "Draining", drain: { given: true, left: true } }),
  exportAgain: ({ drain }) => ({ drain: { ...drain, given: true } }),
  turnOff: () => ({ mode: "Off" }),
  removeEbpf: ({ programmed }) => ({ mode: undefined, programmed: { ...programmed, BPF: false } }),
  removeNatKeepalive: () => ({ keep: "absent" }),
};

/** What comes true by itself when it is waited for. */
const WAITS: Record<string, (seen: SwitchoverState) => Partial<SwitchoverState>> = {
  api: () => ({ apiAnswers: true }),
  confirmation: () => ({ confirmed: true }),
  quiet: ({ proxy }) => ({ proxy: { ...proxy, quiet: true } }),
  peers: () => ({ peersKnow: true }),
  proxy: ({ proxy }) => ({ proxy: { ...proxy, rules: true, serves: true } }),
  flows: ({ drain }) => ({ drain: { ...drain, left: false } }),
};

/** As the next life finds it: what only this one knew is gone. */
function killed(seen: SwitchoverState): SwitchoverState {
  const drain = { ...seen.drain, given: false };
  return { ...seen, programmed: { Nftables: false, BPF: false }, importedConntrack: false, drain };
}

function told(next: Next): string {
  return next === "settled" ? next : "wait" in next ? `wait for ${next.wait}` : next.do;
}

function walk(wanted: Dataplane, from: SwitchoverState, killAt = -1) {
  const [steps, states]: [string[], SwitchoverState[]] = [[], [from]];
  let seen = from;
  for (let at = 0; at < 60; at++) {
    if (at === killAt) seen = killed(seen);
    const next = nextStep(wanted, seen);
    steps.push(told(next));
    if (next === "settled") return { steps, states, end: seen };
    seen = { ...seen, ...("wait" in next ? WAITS[next.wait]! : EFFECTS[next.do])(seen) };
    states.push(seen);
  }
  throw new Error(`never settled: ${steps.join(", ")}`);
}

const ON_EBPF = walk("BPF", { ...STANDARD, confirmed: false }).end;

describe("the order of a switchover", () => {
  it("to eBPF: programs stand ready and the kernel's NAT is kept before they act; the old plane goes when the new one is confirmed", () => {
    expect(walk("BPF", { ...STANDARD, confirmed: false }).steps).toEqual([
      "programEbpf",
      "keep",
      "importConntrack",
      "armWatchdog",
      "flip",
      "closeGate",
      "wait for confirmation",
      "confirm",
      "dropFilter",
      "removeProxyRules",
      "settled",
    ]);
  });

  it("to eBPF: nothing begins while the API server does not answer; where there is no old plane to revert to it is not asked", () => {
    expect(walk("BPF", { ...STANDARD, apiAnswers: false }).steps.slice(0, 3)).toEqual([
      "programEbpf",
      "wait for api",
      "keep",
    ]);
    expect(walk("BPF", { ...NODE, apiAnswers: false }).steps).not.toContain("wait for api");
    expect(walk("BPF", { ...ON_EBPF, apiAnswers: false }).steps).toEqual(["settled"]);
  });

  it("back: peers and the proxy first, then the kernel is given everything, and programs stay until their last flow has ended", () => {
    expect(walk("Nftables", { ...ON_EBPF, peersKnow: false }).steps).toEqual([
      "wait for peers",
      "wait for proxy",
      "openGate",
      "programNft",
      "drain",
      "wait for flows",
      "turnOff",
      "removeEbpf",
      "removeNatKeepalive",
      "settled",
    ]);
  });

  it("back: rules of a proxy that has written only some of them are not enough", () => {
    const proxy = { ...ON_EBPF.proxy, rules: true, serves: false, expected: true };
    expect(walk("Nftables", { ...ON_EBPF, proxy }).steps.slice(0, 2)).toEqual(["wait for proxy", "openGate"]);
  });

  it("a node that never had another plane has nothing to be put back to, and waits for nobody", () => {
    const first = walk("BPF", {
      ...NODE,
      proxy: { rules: false, serves: false, expected: false, ours: true, quiet: true, givenUp: false },
    });
    expect(first.steps).toEqual(["programEbpf", "keep", "importConntrack", "flip", "closeGate", "settled"]);
    expect(walk("Nftables", NODE).steps).toEqual(["programNft", "settled"]);
  });

  it("where the proxy's rules are not ours to remove they stay", () => {
    const proxy = { ...NODE.proxy, ours: false };
    expect(walk("BPF", { ...STANDARD, proxy }).end.proxy.rules).toBe(true);
  });

  it("a proxy that never comes back is not waited for for ever", () => {
    const gone = { ...ON_EBPF, proxy: { ...ON_EBPF.proxy, givenUp: true } };
    expect(walk("Nftables", gone).steps).not.toContain("wait for proxy");
  });

  it("after the rollback watchdog reverted the node, everything of eBPF is removed", () => {
    const putBack = { ...ON_EBPF, mode: "Off" as const, filter: true, programmed: { Nftables: true, BPF: true } };
    expect(walk("Nftables", putBack).steps).toEqual(["removeEbpf", "removeNatKeepalive", "settled"]);
  });

  it("turned round in the middle of leaving, it goes back to eBPF by the same steps", () => {
    const draining = { ...ON_EBPF, mode: "Draining" as const, keep: "open" as const, filter: true };
    expect(walk("BPF", killed(draining)).end).toMatchObject({ mode: "Active", filter: false, keep: "gated" });
  });

  const WAYS = [
    ["to eBPF", "BPF", { ...STANDARD, confirmed: false }],
    ["back", "Nftables", { ...ON_EBPF, peersKnow: false }],
  ] as const;
  describe.each(WAYS)("%s", (_name, wanted, from) => {
    const whole = walk(wanted, from);
    it("killed at any step, the next life ends at the same", () => {
      for (let at = 0; at < whole.steps.length; at++) {
        const { end } = walk(wanted, from, at);
        const kernel = ({ mode, filter, keep, watchdogArmed: deadMan, proxy }: SwitchoverState) => ({
          mode,
          filter,
          keep,
          deadMan,
          proxy,
        });
        expect(kernel(end), `killed at ${whole.steps[at]}`).toEqual(kernel(whole.end));
      }
    });

    it("at every moment a data plane filters, NAT is registered while programs are active, and the rollback watchdog has a filter to revert to", () => {
      for (let at = -1; at < whole.steps.length; at++) {
        for (const seen of walk(wanted, from, at).states) {
          expect(seen.filter || seen.mode === "Active", "policy").toBe(true);
          if (seen.mode === "Active" || seen.mode === "Draining") expect(seen.keep).not.toBe("absent");
          if (seen.mode === "Draining") expect(seen.filter).toBe(true);
          if (seen.watchdogArmed) expect(seen).toMatchObject({ filter: true, proxy: { rules: true } });
          if (seen.keep === "gated") expect(seen.mode).toBe("Active");
        }
      }
    });
  });
});
