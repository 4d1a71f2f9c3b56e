import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { askBird, type BgpPlaces } from "./bird-control.ts";

const run = promisify(execFile);
const CHECK_MS = 20_000;
/** Passwords are in it. */
const OWNER_ONLY = 0o600;

export type ConfigurationState =
  | { is: "active" }
  /** Written and accepted by the check; the daemon does not answer, and reads it when it starts. */
  | { is: "written"; why: string }
  /** Not accepted: what was there before stays. */
  | { is: "refused"; why: string };

/** The daemon's configuration on disk and in the daemon. What the daemon's own check refuses is never seen by it. */
export interface BirdConfiguration {
  settle(text: string): Promise<ConfigurationState>;
}

export function birdConfiguration(places: BgpPlaces): BirdConfiguration {
  const candidate = `${places.configuration}.new`;
  let refused: { text: string; why: string } | undefined;
  // A kill between the file and the daemon must not be forgotten: the daemon is told once in each life of the agent.
  let active: string | undefined;

  const check = async (text: string): Promise<string | undefined> => {
    mkdirSync(places.directory, { recursive: true, mode: 0o700 });
    writeFileSync(candidate, text, { mode: OWNER_ONLY });
    chmodSync(candidate, OWNER_ONLY);
    try {
      await run("bird", ["-p", "-c", candidate], { timeout: CHECK_MS });
      return undefined;
    } catch (error) {
      const { stderr = "", message } = error as { stderr?: string; message: string };
      rmSync(candidate, { force: true });
      return (stderr.trim().split("\n")[0] || message).replace(/^bird: /, "").replace(`${candidate}:`, "line ");
    }
  };

  return {
    async settle(text) {
      if (active === text) return { is: "active" };
      if (refused?.text === text) return { is: "refused", why: refused.why };
      const onDisk = existsSync(places.configuration) ? readFileSync(places.configuration, "utf8") : undefined;
      if (onDisk !== text) {
        const why = await check(text);
        if (why !== undefined) {
          refused = { text, why };
          return { is: "refused", why };
        }
        renameSync(candidate, places.configuration);
      }
      refused = undefined;
      active = undefined;
      try {
        await askBird(places.control, "configure");
      } catch (error) {
        return { is: "written", why: error instanceof Error ? error.message : String(error) };
      }
      active = text;
      return { is: "active" };
    },
  };
}
