import type { Transport } from "../../api/transport.ts";
import { type Listening, listen } from "../../apiserver/http.ts";
import { LOOPBACK } from "../../cluster/program.ts";
import type { Log } from "../../kit/log.ts";
import { readPageUsers } from "../config.ts";
import { isPeerOf } from "./loopback-peer.ts";
import type { PageFiles } from "./page-files.ts";
import { NO_USER, PageFront, type PageFrontParts } from "./page-front.ts";
import { ownRights } from "./page-rights.ts";

export interface OwnPage {
  files: PageFiles;
  transport: Transport;
  about: PageFrontParts["about"];
  runs?: PageFrontParts["runs"];
  log: Pick<Log, "warn">;
  /** 0 for any free one. */
  port: number;
}

/** The page on this machine, for this user alone, with the rights of `transport`. */
export async function serveOwnPage({ port, ...parts }: OwnPage): Promise<Listening> {
  const front = new PageFront({ ...parts, rights: ownRights() });
  const users = readPageUsers();
  return await listen(front, () => NO_USER, { host: LOOPBACK, port, accepts: (peer) => isPeerOf(users, peer) });
}
