import { afterEach, describe, expect, it } from "vitest";
import type { Dataplane, DataplaneState } from "../api/dataplane.ts";
import type { ModelDelta, Settings } from "../calc/model.ts";
import { ModelCopy } from "../calc/model-copy.ts";
import type { ApplyReport, DataplaneDriver } from "../dataplane/contract.ts";
import { emptyDelta } from "../dataplane/model-delta.ts";
import type { NatKeepaliveState } from "../dataplane/switchover/nat-keepalive.ts";
import { type FakeClock, fakeClock } from "../kit/fake-clock.ts";
import { silentLog } from "../kit/log.ts";
import { type DataplaneSwitch, dataplaneSwitch } from "./dataplane-switch.ts";
import { errors } from "./errors.ts";

/** A node in memory: what its kernel has, and what each data plane was told. Outlives the agents that come and go on it. */
class Node {
  readonly deltas: Record<Dataplane, ModelDelta[]> = { Nftables: [], BPF: [] };
  readonly did: string[] = [];
  filter = false;
  mode: DataplaneState | undefined;
  keep: NatKeepaliveState = "absent";
  armed = false;
  heldBack: string | undefined;
  carried = 0;
  proxyRules = false;
  proxyRuns = false;
  proxyScheduled = false;
  proxyAway = false;
  apiAnswers = true;
  failing: Dataplane | undefined;
  /** Takes a delta, and then cannot say how it went. */
  throwing: Dataplane | undefined;
  /** The fewest planes that filtered at once since the first did. */
  fewest = Number.POSITIVE_INFINITY;
  generation = 0;

  filtering(): Dataplane[] {
    return [...(this.filter ? (["Nftables"] as const) : []), ...(this.mode === "Active" ? (["BPF"] as const) : [])];
  }

  private look(): void {
    if (this.deltas.Nftables.length + this.deltas.BPF.length === 0) return;
    this.fewest = Math.min(this.fewest, this.filtering().length);
  }

  open(kind: Dataplane): DataplaneDriver {
    return {
      kind,
      apply: async (delta): Promise<ApplyReport> => {
        this.deltas[kind].push(delta);
        if (this.throwing === kind) throw errors.AGENT_NOT_READY("no answer");
        if (this.failing === kind) {
          return { objects: [{ kind: "endpoint", id: "shop/web", failed: errors.AGENT_NOT_READY("no") }] };
        }
        if (kind === "Nftables") this.filter = true;
        else this.mode ??= "Off";
        return { objects: [] };
      },
      resync: async () => {},
      sweep: async () => ({ removed: [] }),
      checkShares: async () => [],
      show: async () => ({ columns: [kind], rows: [] }),
      close: async () => {},
      remove: async () => {
        if (kind === "Nftables") this.filter = false;
        else this.mode = undefined;
        this.look();
      },
    };
  }

  start(clock: FakeClock, refusal?: string): DataplaneSwitch {
    const note = (what: string) => void this.did.push(what);
    const set = (what: { [key in "keep" | "mode" | "armed" | "heldBack" | "proxyAway"]?: Node[key] }) =>
      void Object.assign(this, what);
    return dataplaneSwitch({
      open: { Nftables: async () => this.open("Nftables"), BPF: async () => this.open("BPF") },
      kernel: {
        keep: {
          state: async () => this.keep,
          put: async (gate) => set({ keep: gate ? "gated" : "open" }),
          covers: () => true,
          noteProxy: async () => {},
          proxyWasHere: async () => false,
          remove: async () => set({ keep: "absent" }),
          close: () => {},
        },
        mode: () => this.mode,
        flip: () => set({ mode: "Active" }),
        drain: (generation) => {
          [this.mode, this.generation] = ["Draining", generation];
          this.look();
        },
        turnOff: () => {
          this.mode = "Off";
          this.look();
        },
        generation: () => this.generation,
        filter: async () => this.filter,
        importNfConntrack: async () => 0,
        exportConntrack: async (how) => {
          note(`give ${how}`);
          return { exported: 0, refused: 0, staying: this.carried };
        },
        conntrackCount: async () => this.carried,
        affinities: async () => [],
        noteAffinities: async () => {},
        close: () => {},
      },
      proxy: {
        present: async () => this.proxyRules,
        serves: async () => this.proxyRules,
        remove: async () => {
          this.proxyRules = false;
          note("remove proxy rules");
        },
        affinities: async () => [],
        noteAffinities: async () => {},
      },
      watchdog: {
        armed: () => this.armed,
        arm: () => set({ armed: true }),
        confirm: () => set({ armed: false }),
        blocked: () => this.heldBack,
        unblock: () => set({ heldBack: undefined }),
      },
      ...{
        refusal: refusal === undefined ? undefined : { code: "EbpfProgramsRefused" as const, why: refusal },
        clock,
        log: silentLog,
        proxyLeft: () => !this.proxyRuns,
        proxyScheduled: () => this.proxyScheduled,
        proxyAway: { get: () => this.proxyAway, set: (proxyAway) => set({ proxyAway }) },
        apiAnswers: async () => this.apiAnswers,
      },
    });
  }
}

describe("two data planes", () => {
  const started: DataplaneSwitch[] = [];
  afterEach(async () => {
    for (const one of started.splice(0)) await one.close();
  });

  function start({ node = new Node(), refusal }: { node?: Node; refusal?: string } = {}) {
    const clock = fakeClock();
    const both = node.start(clock, refusal);
    started.push(both);
    const want = (dataplane: Settings["dataplane"], inSync = true) =>
      both.apply({ ...emptyDelta(inSync), settings: { ...new ModelCopy().settings, dataplane } });
    const worksIn = async (ms: number) => {
      both.confirm(true);
      await clock.advance(ms);
    };
    return { node, both, want, clock, worksIn };
  }

  it("touch nothing before everything is known, so that what an earlier life left goes on", async () => {
    const { node, both, want } = start();
    await want("BPF", false);
    expect(node.filtering()).toEqual([]);
    expect(both.acting()).toBeUndefined();
    await want("BPF");
    expect(both.acting()).toBe("BPF");
  });

  it("the new one acts before the old one stops, and the old one stays until the new one is found to work", async () => {
    const { node, both, want, clock, worksIn } = start();
    await want("Nftables");
    await want("BPF");
    expect(node.filtering()).toEqual(["Nftables", "BPF"]);
    expect(node.armed).toBe(true);
    expect(both.state()).toMatchObject({ mode: "Active", next: "confirmation" });
    await worksIn(1_000);
    expect(node.filtering()).toEqual(["BPF"]);
    expect(node.armed).toBe(false);
    await want("Nftables");
    expect(both.announcement()).toBe("LeavingBPF");
    both.announced("LeavingBPF");
    await clock.advance(2_000);
    expect(both.announcement()).toBe("Nftables");
    expect(node.filtering()).toEqual(["Nftables"]);
    expect(node.keep).toBe("absent");
    expect(node.fewest).toBe(1);
    // It was told everything, not only what changed.
    expect(node.deltas.Nftables.at(-1)?.settings?.dataplane).toBe("Nftables");
  });

  it("while both are programmed, each takes a change though the other fails: it comes once", async () => {
    const { node, both, want } = start();
    await want("Nftables");
    await want("BPF");
    for (const [throwing, other] of [
      ["Nftables", "BPF"],
      ["BPF", "Nftables"],
    ] as const) {
      node.throwing = throwing;
      const before = node.deltas[other].length;
      await expect(both.apply(emptyDelta(true))).rejects.toThrow("no answer");
      expect(node.deltas[other]).toHaveLength(before + 1);
    }
    node.throwing = undefined;
  });

  it("what was found of programs before they acted does not confirm them", async () => {
    const { node, both, want, clock } = start();
    await want("Nftables");
    both.confirm(true);
    await want("BPF");
    await clock.advance(5_000);
    expect(node.filtering()).toEqual(["Nftables", "BPF"]);
  });

  it("the proxy's rules go once the new plane is found to work, and not at once", async () => {
    const { node, want, worksIn } = start();
    node.proxyRules = true;
    await want("Nftables");
    await want("BPF");
    await worksIn(100);
    expect(node.did).not.toContain("remove proxy rules");
    await worksIn(1_000);
    expect(node.did).toContain("remove proxy rules");
  });

  it("those of a proxy that still runs go soon after it has left", async () => {
    const { node, want, clock, worksIn } = start();
    [node.proxyRules, node.proxyRuns] = [true, true];
    await want("BPF");
    await worksIn(10_000);
    expect(node.did).not.toContain("remove proxy rules");
    node.proxyRuns = false;
    await clock.advance(3_000);
    expect(node.did).toContain("remove proxy rules");
  });

  it("a node that joined or rebooted while eBPF served waits for kube-proxy if the cluster has it there", async () => {
    const { node, both, want, clock, worksIn } = start();
    await want("BPF");
    await worksIn(1_000);
    node.proxyScheduled = true;
    await want("Nftables");
    both.announced("LeavingBPF");
    await clock.advance(20_000);
    expect(both.state()).toMatchObject({ mode: "Active", next: "proxy" });
    expect(node.filtering()).toEqual(["BPF"]);
    node.proxyRules = true;
    await clock.advance(2_000);
    expect(node.filtering()).toEqual(["Nftables"]);
  });

  it("a kube-proxy that is restored keeps what it writes, since the node will need it; one that never left does not", async () => {
    const { node, both, want, clock, worksIn } = start();
    node.proxyScheduled = true;
    await want("BPF");
    await worksIn(61_000);
    const removes = () => {
      both.observeProxy();
      return both.removesProxyRules();
    };
    expect(removes()).toBe(true);
    node.proxyScheduled = false;
    expect(removes()).toBe(true);
    node.proxyScheduled = true;
    expect(removes()).toBe(false);
    node.proxyScheduled = false;
    expect(removes()).toBe(true);
    node.proxyScheduled = true;
    node.proxyRules = true;
    await want("Nftables");
    both.announced("LeavingBPF");
    await clock.advance(2_000);
    expect(both.announcement()).toBe("Nftables");
    expect(node.did).not.toContain("remove proxy rules");
  });

  it.each(["the agent restarts", "the node reboots"])(
    "a kube-proxy that is being restored keeps what it writes though %s meanwhile",
    async (what) => {
      const { node, both, want, worksIn } = start();
      await want("BPF");
      await worksIn(1_000);
      both.observeProxy();
      node.proxyScheduled = true;
      await both.close();
      if (what === "the node reboots") [node.mode, node.keep] = [undefined, "absent"];
      const next = start({ node });
      next.both.observeProxy();
      await next.want("BPF");
      node.proxyRules = true;
      await next.worksIn(61_000);
      next.both.observeProxy();
      expect(next.both.removesProxyRules()).toBe(false);
      await next.want("Nftables");
      next.both.announced("LeavingBPF");
      await next.clock.advance(2_000);
      expect(next.both.announcement()).toBe("Nftables");
      expect(node.did).not.toContain("remove proxy rules");
      // The next switch begins anew: a kube-proxy that has not left then does not keep its rules.
      await next.want("BPF");
      await next.worksIn(61_000);
      expect(node.did).toContain("remove proxy rules");
    },
  );

  it("programs stay until the last connection that only they can carry has ended", async () => {
    const { node, both, want, clock, worksIn } = start();
    await want("BPF");
    await worksIn(1_000);
    node.carried = 1;
    await want("Nftables");
    both.announced("LeavingBPF");
    await clock.advance(60_000);
    expect(both.state()).toMatchObject({ mode: "Draining", next: "flows" });
    expect(node.filtering()).toEqual(["Nftables"]);
    node.carried = 0;
    await clock.advance(1_000);
    expect(both.state()).toMatchObject({ mode: undefined, next: "nothing" });
    expect(node.did.slice(0, 2)).toEqual(["give replace", "give insert"]);
  });

  it("where the new one cannot be programmed the old one goes on, and it is tried again", async () => {
    const { node, both, want, clock } = start();
    await want("Nftables");
    node.failing = "BPF";
    await want("BPF");
    expect(both.acting()).toBe("Nftables");
    expect(node.filtering()).toEqual(["Nftables"]);
    node.failing = undefined;
    await clock.advance(15_000);
    expect(both.acting()).toBe("BPF");
  });

  it("a node whose kernel refuses the programs stays with the standard one, and says why", async () => {
    const { node, both, want } = start({ refusal: "the verifier said no" });
    await want("BPF");
    expect(both.acting()).toBe("Nftables");
    expect(node.deltas.BPF).toEqual([]);
    expect(both.state().heldBack).toBe("the verifier said no");
  });

  it("after the old plane was put back eBPF is not tried until something else was asked for", async () => {
    const { node, both, want, clock } = start();
    await want("Nftables");
    await want("BPF");
    Object.assign(node, { mode: "Off", armed: false, heldBack: "not found to work" });
    await clock.advance(1_000);
    expect(both.state()).toMatchObject({ wanted: "Nftables", mode: undefined, heldBack: "not found to work" });
    expect(node.filtering()).toEqual(["Nftables"]);
    await want("Nftables");
    await want("BPF");
    expect(both.acting()).toBe("BPF");
  });

  it("eBPF does not begin to act while the API server does not answer, since it could not be confirmed", async () => {
    const { node, both, want, clock } = start();
    await want("Nftables");
    node.apiAnswers = false;
    await want("BPF");
    await clock.advance(60_000);
    expect(both.state()).toMatchObject({ wanted: "BPF", mode: "Off", next: "api" });
    expect([node.filtering(), node.armed]).toEqual([["Nftables"], false]);
    node.apiAnswers = true;
    await clock.advance(2_000);
    expect(both.acting()).toBe("BPF");
  });

  it("eBPF that was reverted while the API server was away is tried again when it answers, once", async () => {
    const { node, both, want, clock, worksIn } = start();
    const revert = async (apiAnswers: boolean) => {
      Object.assign(node, { mode: "Off", armed: false, heldBack: "not confirmed in time", apiAnswers });
      await clock.advance(10_000);
    };
    await want("Nftables");
    await want("BPF");
    await revert(false);
    expect(both.state()).toMatchObject({ wanted: "BPF", next: "api", heldBack: undefined });
    node.apiAnswers = true;
    await clock.advance(2_000);
    expect(both.acting()).toBe("BPF");
    await revert(false);
    expect(both.state().heldBack).toBe("not confirmed in time");
    // Confirmed, it has every right to another try.
    node.heldBack = undefined;
    node.apiAnswers = true;
    await want("BPF");
    await worksIn(2_000);
    expect(both.acting()).toBe("BPF");
    await want("Nftables");
    both.announced("LeavingBPF");
    await clock.advance(5_000);
    await want("BPF");
    await revert(false);
    expect(both.state().heldBack).toBeUndefined();
  });

  it("an agent that starts in the middle goes on from what the kernel has", async () => {
    const { node, want } = start();
    await want("Nftables");
    await want("BPF");
    const next = start({ node });
    await next.want("BPF");
    await next.worksIn(1_000);
    expect(node.filtering()).toEqual(["BPF"]);
    expect(node.armed).toBe(false);
  });
});
