import { VERSION } from "../../../api/tables/release.ts";
import type { Client } from "../../../cluster/client.ts";
import { systemClock } from "../../../kit/clock.ts";
import { stateDirectory } from "../../../local/config.ts";
import { readProgramPath } from "../../../procedures/config.ts";
import type { Engine } from "../../../procedures/run/engine.ts";
import { localCopyIn } from "../../../procedures/run/local-copy.ts";
import { toolsOnPath } from "../../../procedures/tools-on-path.ts";
import { openReleaseFiles } from "../../../releases/open-release-files.ts";
import { withCluster } from "../../connect.ts";
import type { Session } from "../../session.ts";

/** Does something with an engine for the cluster the flags name. How long it may take, the engine sees to: it has a journal to save. */
export function withEngine<T>(
  session: Session,
  options: { manifestUrl?: string },
  work: (engine: Engine, server: string) => Promise<T>,
): Promise<T> {
  const { timeout: _, ...flags } = session.flags;
  return withCluster({ ...session, flags }, (client, _signal, server) =>
    work(openEngine(session, client, options), server),
  );
}

function openEngine(session: Session, client: Client, options: { manifestUrl?: string }): Engine {
  const { signal } = session;
  const { manifestUrl } = options;
  return {
    client,
    clock: session.clock ?? systemClock,
    files: openReleaseFiles({ signal, ...(manifestUrl === undefined ? {} : { manifestUrl }) }),
    tools: toolsOnPath(readProgramPath()),
    tool: VERSION,
    local: localCopyIn(stateDirectory(), (error) =>
      session.err(`note: no copy of the journal on this machine: ${(error as Error).message}\n`),
    ),
    signal,
    ...(session.flags.timeout === undefined ? {} : { timeoutMs: session.flags.timeout }),
  };
}
