import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import type { Program } from "../../cluster/program.ts";
import { sleep, systemClock } from "../../kit/clock.ts";
import { errors } from "../errors.ts";
import { readBgpProgramConfig } from "./config.ts";

const ASK_AGAIN_MS = 500;

/**
 * `vendor bgp`: runs BIRD with the configuration that the agent writes, in a container of its own, so that sessions outlive the agent. It ends as for a
 * restart: its routes stay in the kernel, and peers that support graceful restart keep theirs.
 */
export const bgpProgram: Program = async ({ env, log, signal, clock = systemClock }) => {
  const places = readBgpProgramConfig(env);
  while (!existsSync(places.configuration)) {
    if (signal.aborted) return;
    await sleep(clock, ASK_AGAIN_MS, signal);
  }
  // After one that ended, routes in the kernel and peers wait for this one. After a start of the node nothing does.
  const again = existsSync(places.started);
  writeFileSync(places.started, "");
  const args = ["-f", "-c", places.configuration, "-s", places.control, ...(again ? ["-R"] : [])];
  const child = spawn("bird", args, { stdio: ["ignore", "inherit", "inherit"] });
  const ended = endOf(child);
  log.info({ again }, "started BIRD");
  // Killed, it leaves the kernel's routes alone. Asked for a graceful restart before its sessions are back, it would remove them all.
  const stop = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const why = await ended;
  signal.removeEventListener("abort", stop);
  if (!signal.aborted) throw errors.BGP_DAEMON_ENDED(why);
};

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, name) => resolve(name === null ? `exit status ${code}` : `signal ${name}`));
  });
}
