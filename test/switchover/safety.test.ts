import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Dataplane } from "../../src/api/dataplane.ts";
import type { StepName } from "../../src/dataplane/switchover/next-step.ts";
import { pinnedMode } from "../../src/dataplane/switchover/node-mode.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { inside, type LabNode, until, whyNoNodes } from "../agent/node-lab.ts";
import { type SwitchLab, stateOf, switchLab } from "./switch-lab.ts";
import type { Traffic } from "./traffic.ts";

const why = whyNoNodes();
const FULL = process.env["HANDOVER"] === "full";
const kernel = realKernel();
const KILLED_AT: Record<Dataplane, readonly StepName[]> = {
  BPF: FULL
    ? ["programEbpf", "keep", "importConntrack", "armWatchdog", "flip", "closeGate", "confirm", "dropFilter"]
    : ["flip"],
  Nftables: FULL ? ["openGate", "programNft", "drain", "turnOff", "removeEbpf", "removeNatKeepalive"] : ["drain"],
};

/** Traffic costs more of the processor than all else here: often enough to meet every step. */
const INTERVAL_MS = FULL ? 40 : 100;
const SHORT_SECONDS = 5;
const LONG_SECONDS = 120;

/** What happens on one node when a change of its data plane goes wrong: nothing, for whoever is connected. */
describe.skipIf(why !== undefined)(`a change that goes wrong${why ? ` (${why})` : ""}`, () => {
  let lab: SwitchLab;
  let node: LabNode;
  let traffic: Traffic;
  /** How long the next agent's rollback watchdog waits: short where it is to act, long where it must not, however slow the machine is. */
  let watchdogSeconds = SHORT_SECONDS;
  const mode = () => pinnedMode(kernel.bpf, join(node.directory, "bpf", "vendor"));
  const tables = async () => (await inside(node.netns.name, "nft", "list", "tables")).output;
  const dataplane = async () => (await lab.reports(node)).dataplane;
  beforeAll(async () => {
    lab = await switchLab({ proxy: "nftables", env: () => ({ DEAD_MAN_SECONDS: String(watchdogSeconds) }) });
    node = lab.nodes[0]!;
    // Only one node changes: the other one stays as it is.
    await lab.nodes[1]!.kill();
    await lab.startProxies();
    traffic = await lab.talk(INTERVAL_MS, { tcp: 3, udp: 1 });
  });
  afterAll(async () => {
    traffic?.stop();
    await lab?.close();
  });
  beforeEach(async () => {
    await lab.answerAsApi(true);
    await backToStandard();
    if (watchdogSeconds === SHORT_SECONDS) return;
    watchdogSeconds = SHORT_SECONDS;
    await node.stop();
    await node.start();
  });

  async function nothingLost(): Promise<void> {
    const rows = await traffic.report();
    for (const [name, { lost, moved, why: reasons }] of Object.entries(rows)) {
      expect({ name, lost, moved, reasons }).toEqual({ name, lost: 0, moved: 0, reasons: [] });
    }
  }

  async function backToStandard(): Promise<void> {
    await lab.want("Nftables");
    // What leaves eBPF waits for a kube-proxy that starts; a node that is back already needs none.
    if (mode() !== undefined) {
      await lab.stopProxies();
      await lab.startProxies();
    }
    await until(
      async () => (await dataplane()) === "Nftables" && mode() === undefined,
      () => node.log().slice(-3_000),
      60_000,
    );
    // The watchdog of the test before may have held eBPF back.
    await node.vendor("node", "rescue", "--over");
  }

  it("eBPF that is not found to work is left in time, and not tried again at once", async () => {
    await lab.answerAsApi(false);
    await lab.want("BPF");
    await until(
      async () => (await stateOf(node))["held back"] !== "-" && mode() === undefined,
      () => node.log().slice(-3_000),
    );
    // The table that kept translations is removed after the programs.
    await until(
      async () => (await dataplane()) === "Nftables" && !(await tables()).includes("vendor-keep"),
      () => node.log().slice(-3_000),
    );
    expect((await stateOf(node))["held back"]).toMatch(/not confirmed in time/);
    expect(await tables()).toMatch(/inet vendor\n/);
    await nothingLost();
  });

  it("also when the agent is killed before it can confirm: the next one tries once more, and then holds back", async () => {
    await killedUnconfirmed();
    await nothingLost();
    await node.start();
    await until(
      async () => /not confirmed in time/.test((await stateOf(node))["held back"] ?? "") && mode() === undefined,
      () => node.log().slice(-3_000),
      60_000,
    );
    await nothingLost();
  });

  it("an agent that comes back after the watchdog has reverted the node finishes what was begun", async () => {
    await killedUnconfirmed();
    await lab.answerAsApi(true);
    watchdogSeconds = LONG_SECONDS;
    await node.start();
    await until(
      async () => (await stateOf(node))["next"] === "nothing" && mode() === "Active",
      () => node.log().slice(-3_000),
      60_000,
    );
    expect((await stateOf(node))["held back"]).toBe("-");
    await nothingLost();
  });

  /** The agent dies between the switch to eBPF and its confirmation, and stays away until the watchdog has reverted the node. */
  async function killedUnconfirmed(): Promise<void> {
    await lab.answerAsApi(false);
    await lab.want("BPF");
    await until(
      () => mode() === "Active",
      () => node.log().slice(-3_000),
    );
    await node.kill();
    await until(
      () => mode() === "Off",
      () => `the programs still act: ${mode()}`,
    );
    expect(await tables()).toMatch(/inet vendor\n/);
  }

  it(
    "an agent killed in the middle goes on where it was",
    async () => {
      for (const plane of ["BPF", "Nftables"] as const) {
        for (const step of KILLED_AT[plane]) {
          const from = node.log().length;
          if (plane === "Nftables") {
            await lab.want("BPF");
            await until(
              async () => (await stateOf(node))["next"] === "nothing" && mode() === "Active",
              () => node.log().slice(-3_000),
              60_000,
            );
          }
          await lab.want(plane);
          if (plane === "Nftables") await lab.stopProxies();
          if (plane === "Nftables") await lab.startProxies();
          await until(
            () => node.log().slice(from).includes(`"step":"${step}","wanted":"${plane}"`),
            () => node.log().slice(from),
            60_000,
          );
          await node.kill();
          watchdogSeconds = LONG_SECONDS;
          await node.start();
          await until(
            async () =>
              (await stateOf(node))["next"] === "nothing" && mode() === (plane === "BPF" ? "Active" : undefined),
            () => `killed at ${step}: ${node.log().slice(-3_000)}`,
            60_000,
          );
          await nothingLost();
          if (plane === "BPF") await backToStandard();
        }
      }
    },
    FULL ? 20 * 60_000 : undefined,
  );

  it("a node that is cut off is taken back to plain networking without agent and API server, as often as it is asked", async () => {
    watchdogSeconds = LONG_SECONDS;
    await node.stop();
    await node.start();
    await lab.want("BPF");
    // Over: until then an agent that is killed leaves the way back to the watchdog.
    await until(
      async () => (await lab.reports(node)).proven && (await stateOf(node))["next"] === "nothing",
      () => node.log().slice(-3_000),
    );
    const born = await lab.talk(INTERVAL_MS, { tcp: 2, udp: 1 }, "pod to");
    await node.kill();
    await lab.stopProxies();
    await lab.startProxies();
    const said = await node.vendor("node", "rescue");
    expect(said).toMatch(/programs disabled; \d+ conntrack entries exported to the kernel/);
    expect(said).toContain("programs and maps removed");
    expect(await tables()).not.toContain("vendor");
    expect(existsSync(join(node.directory, "bpf", "vendor"))).toBe(false);
    expect(await node.vendor("node", "rescue")).not.toContain("removed");
    await nothingLost();
    const rows = Object.values(await born.report());
    expect(rows.map(({ lost }) => lost)).toEqual(rows.map(() => 0));
    await node.start();
    await until(
      async () => (await dataplane()) === "Nftables",
      () => node.log().slice(-3_000),
    );
    expect((await stateOf(node))["held back"]).toMatch(/rescued/);
    expect(await node.vendor("node", "rescue", "--over")).toContain("may be used again");
  });
});
