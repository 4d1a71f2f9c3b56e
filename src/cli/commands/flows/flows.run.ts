import { FLOW_LOGS_API } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import type { Status } from "../../../api/status.ts";
import type { ApiResponse } from "../../../api/transport.ts";
import type { Client } from "../../../cluster/client.ts";
import { statusError } from "../../../cluster/failures.ts";
import { loadConnection } from "../../../cluster/kubeconfig.ts";
import { tableFlow } from "../../../flows/api/flow-object.ts";
import { parseQuery } from "../../../flows/query/parse-query.ts";
import { FLOW_COLUMNS } from "../../../flows/table.ts";
import { withCluster } from "../../connect.ts";
import { errors as usage } from "../../errors.ts";
import { print, type Table } from "../../printer.ts";
import type { Session } from "../../session.ts";
import { errors } from "./errors.ts";
import { rowPrinter } from "./flows.print.ts";

export interface FlowFlags {
  allNamespaces?: true;
  limit?: number;
}

interface ListFlags extends FlowFlags {
  follow?: true;
  sort?: string;
}

interface TopFlags extends FlowFlags {
  by: string;
  measure?: string;
}

export type Words = string | string[] | undefined;

/** One page of the server's answers. */
const PAGE = 500;
const MOST_SHOWN = 100;

export async function listFlows(session: Session, flags: ListFlags, words: Words): Promise<void> {
  refuseIntent(session);
  const query = queryOf(words);
  await withFlows(session, flags, async (flows, signal) => {
    if (flags.follow) return await followFlows(session, flows, query, signal);
    const list = await listPages(flows, query, flags, signal);
    await print(session, list, () => tableOf(session, list.items));
    const more = list.metadata.remainingItemCount ?? 0;
    if (more > 0 && !session.flags.quiet) session.err(`${more} more: use --limit, or a narrower query\n`);
    sayWhatIsMissing(session, list.metadata);
  });
}

export async function topFlows(session: Session, flags: TopFlags, words: Words): Promise<void> {
  refuseIntent(session);
  const query = queryOf(words);
  await withFlows(session, flags, async (flows, signal) => {
    const measure = flags.measure ?? "bytes";
    const asked = { query, by: flags.by, measure, limit: String(flags.limit ?? MOST_SHOWN) };
    const top = (await flows.get("top", asked, signal)) as { values: Ranked[] };
    await print(session, top, () => ({
      columns: [flags.by.toUpperCase(), "BYTES", "PACKETS", "CONNECTIONS", "FLOWS"],
      rows: top.values.map((one) => [
        one.value,
        ...[one.bytes, one.packets, one.connections, one.flows].map((count) => String(count)),
      ]),
      empty: "no flows",
    }));
  });
}

interface Ranked {
  value: string;
  bytes: number;
  packets: number;
  connections: number;
  flows: number;
}

interface FlowList {
  items: KubeObject[];
  metadata: ListMetadata;
}

interface ListMetadata {
  resourceVersion?: string;
  continue?: string;
  remainingItemCount?: number;
  shed?: { ports?: boolean; addresses?: boolean; names?: boolean; merged?: number; unattributed?: number };
  nodes?: { silent?: string[]; late?: string[]; skewed?: string[]; unnamed?: number };
}

async function listPages(
  flows: Flows,
  query: string,
  { limit = MOST_SHOWN, sort }: ListFlags,
  signal: AbortSignal,
): Promise<FlowList & { apiVersion: string; kind: string }> {
  const items: KubeObject[] = [];
  let next: string | undefined;
  for (;;) {
    const page = String(Math.min(PAGE, limit - items.length));
    const list = (await flows.get("flows", { query, sort, limit: page, continue: next }, signal)) as FlowList;
    items.push(...list.items);
    next = list.metadata.continue;
    if (next && items.length < limit) continue;
    const { continue: _, ...metadata } = list.metadata;
    return { apiVersion: `${FLOW_LOGS_API.group}/${FLOW_LOGS_API.version}`, kind: "FlowList", metadata, items };
  }
}

/** Rows as they come. Where the server has forgotten what we had, it is said and we go on from now. */
async function followFlows(session: Session, flows: Flows, query: string, signal: AbortSignal): Promise<void> {
  const printer = rowPrinter(session);
  let { resourceVersion = "" } = (await listPages(flows, query, { limit: 1 }, signal)).metadata;
  while (!signal.aborted) {
    for await (const event of flows.watch({ query, resourceVersion, allowWatchBookmarks: "true" }, signal)) {
      if (event.type === "ERROR") {
        if ((event.object as unknown as Status).code !== 410) throw refusalOf(event.object as unknown as Status);
        if (!session.flags.quiet) session.err("some flows were missed: the server does not have them any more\n");
        resourceVersion = "";
        break;
      }
      resourceVersion = event.object.metadata.resourceVersion ?? resourceVersion;
      if (event.type !== "BOOKMARK") await printer(event.object);
    }
    if (resourceVersion === "") {
      ({ resourceVersion = "" } = (await listPages(flows, query, { limit: 1 }, signal)).metadata);
    }
  }
}

function tableOf(session: Session, items: readonly KubeObject[]): Table {
  const wide = session.flags.output === "wide" || session.flags.output === "csv";
  const columns = FLOW_COLUMNS.filter(({ priority }) => wide || priority === 0);
  return {
    columns: columns.map(({ name }) => name),
    rows: items.map(tableFlow).map((flow) => columns.map(({ text }) => text(flow))),
    empty: "no flows",
  };
}

/** An answer that does not rest on everything says so. */
function sayWhatIsMissing(session: Session, { shed = {}, nodes = {} }: ListMetadata): void {
  if (session.flags.quiet) return;
  const merged = (["ports", "addresses", "names"] as const).filter((what) => shed[what]);
  const notes = [
    ...(merged.length > 0 ? [`for want of memory some ${merged.join(", ")} were merged; sums are exact`] : []),
    ...(shed.merged ? [`nodes merged ${shed.merged} sums because there were too many`] : []),
    ...(shed.unattributed ? [`${shed.unattributed} packets are in no flow`] : []),
    ...(nodes.silent?.length ? [`nothing comes from ${nodes.silent.slice(0, 5).join(", ")}`] : []),
    ...(nodes.late?.length ? [`flows come late from ${nodes.late.slice(0, 5).join(", ")}`] : []),
    ...(nodes.skewed?.length ? [`the clock differs on ${nodes.skewed.slice(0, 5).join(", ")}`] : []),
    ...(nodes.unnamed ? [`${nodes.unnamed} nodes that you may not see are silent, late, or have another clock`] : []),
  ];
  for (const note of notes) session.err(`note: ${note}\n`);
}

/** What the API gives in one place: a namespace, or the whole cluster. */
export interface Flows {
  get(resource: string, query: Record<string, string | undefined>, signal: AbortSignal): Promise<unknown>;
  post(resource: string, body: object, signal: AbortSignal): Promise<unknown>;
  /** Undefined: there is no such object, where the API is served. */
  find(path: string, signal: AbortSignal): Promise<unknown>;
  watch(
    query: Record<string, string | undefined>,
    signal: AbortSignal,
  ): AsyncIterable<{ type: string; object: KubeObject }>;
}

export async function withFlows(
  session: Session,
  { allNamespaces }: FlowFlags,
  work: (flows: Flows, signal: AbortSignal, namespace: string) => Promise<void>,
): Promise<void> {
  const { kubeconfig, context, namespace, as, asGroup } = session.flags;
  if (allNamespaces && namespace !== undefined) throw usage.USAGE("-A and -n exclude each other", "omit one of them");
  await withCluster(session, async (client, signal) => {
    const whole = namespace === undefined && (allNamespaces === true || (await mayListAll(client, signal)));
    const own = loadConnection({ kubeconfig, context, namespace, as, asGroups: asGroup }).namespace || "default";
    if (!whole && namespace === undefined && !session.flags.quiet) session.err(`flows of namespace ${own}\n`);
    await work(flowsIn(client, whole ? undefined : (namespace ?? own)), signal, namespace ?? own);
  });
}

/** Asked, and not tried: a list that is refused may also be refused for what is in the query. */
async function mayListAll(client: Client, signal: AbortSignal): Promise<boolean> {
  const spec = { resourceAttributes: { verb: "list", resource: "flows", group: FLOW_LOGS_API.group } };
  const response = await client.raw({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec }),
    signal,
  });
  const text = await response.text();
  return response.status < 300 && (JSON.parse(text) as { status?: { allowed?: boolean } }).status?.allowed === true;
}

function flowsIn(client: Client, namespace: string | undefined): Flows {
  const base = `/apis/${FLOW_LOGS_API.group}/${FLOW_LOGS_API.version}`;
  const root = namespace === undefined ? base : `${base}/namespaces/${encodeURIComponent(namespace)}`;
  return {
    async get(resource, query, signal) {
      const response = await client.raw({ method: "GET", path: `${root}/${resource}`, query, signal });
      return JSON.parse(await bodyOf(response));
    },
    async post(resource, body, signal) {
      const headers = { "content-type": "application/json" };
      const sent = {
        method: "POST",
        path: `${root}/${resource}`,
        headers,
        body: JSON.stringify(body),
        signal,
      } as const;
      const response = await client.raw(sent);
      // Of an object that is not there, and not of an API.
      if (response.status !== 404) return JSON.parse(await bodyOf(response));
      const text = await response.text();
      const { message, code } = statusError(404, text);
      throw nameIn(text) === undefined ? refusalOf({ code, message }) : errors.FLOWS_REFUSED(message);
    },
    async find(path, signal) {
      const response = await client.raw({ method: "GET", path: `${root}/${path}`, signal });
      if (response.status !== 404) return JSON.parse(await bodyOf(response));
      const text = await response.text();
      // Of an object that is not there the answer has the name; of an API that is not there it has none.
      if (nameIn(text) !== undefined) return undefined;
      throw refusalOf({ code: 404, message: text.trim().slice(0, 300) });
    },
    async *watch(query, signal) {
      const asked = { ...query, watch: "true" };
      const response = await client.raw({ method: "GET", path: `${root}/flows`, query: asked, signal });
      if (response.status >= 300) await bodyOf(response);
      for await (const line of response.lines()) if (line.trim() !== "") yield JSON.parse(line);
    },
  };
}

function nameIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as Partial<Status>).details?.name;
  } catch {
    return undefined;
  }
}

async function bodyOf(response: ApiResponse): Promise<string> {
  const text = await response.text();
  if (response.status < 300) return text;
  let status: Partial<Status> = {};
  try {
    status = JSON.parse(text) as Partial<Status>;
  } catch {
    // What an aggregator that cannot reach a server says is plain text.
  }
  throw refusalOf({ code: response.status, message: text.trim().slice(0, 300), ...status });
}

function refusalOf({ code = 0, message = "" }: Partial<Status>): Error {
  if (code === 403) return errors.FLOWS_FORBIDDEN(message);
  if (code === 404 || code >= 500) return errors.FLOWS_NOT_SERVED(message);
  return errors.FLOWS_REFUSED(message);
}

/** Read here first: a mistake is found without a cluster. */
export function queryOf(words: Words): string {
  const query = [words ?? []].flat().join(" ");
  if (query.trim() !== "") parseQuery(query);
  return query;
}

export function refuseIntent({ intent }: Session): void {
  if (intent !== undefined)
    throw usage.USAGE(
      `there is nothing to ${intent === "plan" ? "plan" : "ask"} of flows`,
      "use flows enable or flows disable",
    );
}
