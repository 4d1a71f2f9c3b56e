import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { silentLog } from "../kit/log.ts";
import { type ArmedWatchdog, isOverdue, readArmed, recordReverted, rollbackWatchdog } from "./rollback-watchdog.ts";

let directories: { run: string; state: string };
beforeEach(() => {
  const root = mkdtempSync(join(tmpdir(), "watchdog-"));
  directories = { run: join(root, "run"), state: join(root, "state") };
});
afterEach(() => rmSync(join(directories.run, ".."), { recursive: true, force: true }));

/** An agent's start: what a restarted one does too. */
const agent = (seconds = 60) =>
  rollbackWatchdog({ directories, seconds, pools: () => [], start: () => {}, log: silentLog });
const armed = () => readArmed(directories)!;
/** As the record of an agent that has ended. */
const ofAnAgentThatIsGone = (): ArmedWatchdog => {
  const { pid } = spawnSync("true");
  return { ...armed(), agent: { pid, started: "1" } };
};

it("holds eBPF back when an agent that is alive did not confirm in time", () => {
  const watchdog = agent();
  watchdog.arm();
  recordReverted(directories, armed());
  expect(watchdog.blocked()).toMatch(/not confirmed in time/);
});

it("tries again when the agent was gone, and holds eBPF back when that happens a second time", () => {
  const watchdog = agent();
  watchdog.arm();
  recordReverted(directories, ofAnAgentThatIsGone());
  expect(agent().blocked()).toBeUndefined();
  watchdog.arm();
  recordReverted(directories, ofAnAgentThatIsGone());
  expect(agent().blocked()).toMatch(/not confirmed in time/);
});

it("forgets the first time once eBPF is confirmed", () => {
  const watchdog = agent();
  watchdog.arm();
  recordReverted(directories, ofAnAgentThatIsGone());
  watchdog.arm();
  watchdog.confirm();
  watchdog.arm();
  expect(armed().attempts).toBe(0);
});

it("gives an agent that restarts in time the whole period once more, and only once", () => {
  agent(10).arm();
  const first = BigInt(armed().deadline);
  agent(100);
  const renewed = BigInt(armed().deadline);
  expect(renewed).toBeGreaterThan(first + 80_000_000_000n);
  agent(1_000);
  expect(BigInt(armed().deadline)).toBe(renewed);
});

it("does not renew what is overdue: the node may be cut off", () => {
  agent(0).arm();
  agent(60);
  expect(isOverdue(armed())).toBe(true);
});

it("reads the record of an agent that did not say who it was, and holds eBPF back as that one did", () => {
  const watchdog = agent();
  watchdog.arm();
  const file = join(directories.run, "dead-man.json");
  const { deadline, boot, pools } = JSON.parse(readFileSync(file, "utf8")) as ArmedWatchdog;
  writeFileSync(file, JSON.stringify({ deadline, boot, pools }));
  recordReverted(directories, armed());
  expect(watchdog.blocked()).toMatch(/not confirmed in time/);
});
