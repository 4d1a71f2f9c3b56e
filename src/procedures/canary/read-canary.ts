import type { KubeObject } from "../../api/object.ts";
import { parseSnapshot, type TrafficRow, type TrafficSnapshot } from "../../api/protocol/traffic-report.ts";
import { NAMESPACES } from "../../cluster/kinds.ts";
import { sleep } from "../../kit/clock.ts";
import type { Work } from "../action.ts";
import { undefinedIfNotFound } from "../actions/objects/target.ts";
import { BASELINE_ANNOTATION, CANARY_NAMESPACE, MANAGED_BY } from "./canary-objects.ts";
import { errors } from "./errors.ts";
import { since, together } from "./figures.ts";

/** A log cannot be watched for a value: it is read again after this long. */
const READ_AGAIN_MS = 500;
/** How long a client may say nothing new. */
const PATIENCE_MS = 45_000;

/** The namespace, where a canary of ours made it. */
export async function canaryNamespace({ client, signal }: Work): Promise<KubeObject | undefined> {
  const found = await client
    .get<KubeObject>(NAMESPACES, { name: CANARY_NAMESPACE }, { signal })
    .catch(undefinedIfNotFound);
  return found?.metadata.labels?.[MANAGED_BY.key] === MANAGED_BY.value ? found : undefined;
}

/** What a client said last; in words why there is nothing. */
async function lastSnapshot(name: string, { client, signal }: Work): Promise<TrafficSnapshot | string> {
  const path = `/api/v1/namespaces/${CANARY_NAMESPACE}/pods/${name}/log`;
  const answer = await client.raw({ method: "GET", path, query: { tailLines: "2" }, signal });
  const text = await answer.text();
  if (answer.status !== 200) return messageIn(text);
  return text.trim().split("\n").map(parseSnapshot).findLast(Boolean) ?? (text.trim().slice(0, 200) || "nothing yet");
}

/** Waits until every client has said something that is good enough, looking at each as often as it speaks. */
export async function awaitSnapshots(
  clients: readonly string[],
  enough: (snapshot: TrafficSnapshot, client: string) => boolean,
  work: Work,
  patienceMs = PATIENCE_MS,
): Promise<TrafficSnapshot[]> {
  const { clock, signal } = work;
  const since = clock.now();
  for (;;) {
    const words = await Promise.all(clients.map((name) => lastSnapshot(name, work)));
    const late = words.findIndex((word, at) => typeof word === "string" || !enough(word, clients[at] as string));
    if (late < 0) return words as TrafficSnapshot[];
    const word = words[late] as TrafficSnapshot | string;
    if (clock.now() - since > patienceMs) {
      const name = clients[late] as string;
      if (typeof word === "string") throw errors.CANARY_SILENT(name, word);
      throw errors.CANARY_SILENT(name, `its last report is of second ${word.seconds}, ${notReached(word)}`);
    }
    await sleep(clock, READ_AGAIN_MS, signal);
  }
}

function notReached({ rows }: TrafficSnapshot): string {
  const never = rows.filter(({ reached }) => !reached).map(({ way, protocol }) => `${way} by ${protocol}`);
  return never.length === 0 ? "and it counts" : `and there is no answer on ${never.join(", ")}`;
}

export interface Figures {
  /** What was counted so far, without what was lost before anything changed. */
  rows: TrafficRow[];
  /** The figures before anything changed. */
  before: readonly TrafficRow[];
}

export async function figuresSoFar(clients: readonly string[], work: Work, patienceMs?: number): Promise<Figures> {
  const snapshots = await awaitSnapshots(clients, () => true, work, patienceMs);
  const written = (await canaryNamespace(work))?.metadata.annotations?.[BASELINE_ANNOTATION];
  const before = written === undefined ? [] : (JSON.parse(written) as TrafficRow[]);
  return { rows: since(before, together(snapshots)), before };
}

function messageIn(text: string): string {
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text;
  } catch {
    return text;
  }
}
