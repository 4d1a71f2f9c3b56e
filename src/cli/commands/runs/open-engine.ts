import { VERSION } from "../../../api/tables/release.ts";
import type { Client } from "../../../cluster/client.ts";
import { systemClock } from "../../../kit/clock.ts";
import { stateDirectory } from "../../../local/config.ts";
import { readProgramPath } from "../../../procedures/config.ts";
import type { Engine } from "../../../procedures/run/engine.ts";
import { localCopyIn } from "../../../procedures/run/local-copy.ts";
import { toolsOnPath } from "../../../procedures/tools-on-path.ts";
import { openReleaseFiles } from "../../../releases/open-release-files.ts";
import { trustedFiles } from "../../../releases/trusted-files.ts";
import { withCluster } from "../../connect.ts";
import type { Session } from "../../session.ts";
import type { ManifestFlags } from "./procedure.flags.ts";

/** Does something with an engine for the cluster the flags name. How long it may take, the engine sees to: it has a journal to save. */
export function withEngine<T>(
  session: Session,
  options: ManifestFlags,
  work: (engine: Engine, server: string) => Promise<T>,
): Promise<T> {
  const { timeout: _, ...flags } = session.flags;
  return withCluster({ ...session, flags }, (client, _signal, server) =>
    work(openEngine(session, client, options), server),
  );
}

function openFiles({ manifestUrl, manifestSha256 = [], insecure }: ManifestFlags, signal: AbortSignal) {
  if (manifestUrl === undefined) return openReleaseFiles({ signal });
  const files = openReleaseFiles({ signal, manifestUrl });
  return trustedFiles(files, manifestUrl, { sha256: manifestSha256, insecure: insecure === true });
}

function openEngine(session: Session, client: Client, options: ManifestFlags): Engine {
  const { signal } = session;
  return {
    client,
    clock: session.clock ?? systemClock,
    files: openFiles(options, signal),
    tools: toolsOnPath(readProgramPath()),
    tool: VERSION,
    local: localCopyIn(stateDirectory(), (error) =>
      session.err(`note: no copy of the journal on this machine: ${(error as Error).message}\n`),
    ),
    signal,
    ...(session.flags.timeout === undefined ? {} : { timeoutMs: session.flags.timeout }),
  };
}
