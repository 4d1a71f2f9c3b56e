import { stringify } from "yaml";
import { groupVersion } from "../api/object.ts";
import { matchesFields, parseFieldSelector } from "../api/schema/field-selector.ts";
import { matchesLabels, parseLabelSelector } from "../api/schema/selector.ts";
import type { Call, Reply } from "./call.ts";
import { bodyOf, type Core, findStored, objectOf } from "./core.ts";
import { negotiate, type RequestedFormat } from "./negotiate.ts";
import { storageKey } from "./registry.ts";
import type { ServedKind } from "./resource.ts";
import { badRequest, expired, futureRevision } from "./status-errors.ts";
import { Gone } from "./storage/errors.ts";
import type { Stored } from "./storage/store.ts";
import { includeObjectOf, metadataOnly, tableOf } from "./table.ts";

/** Says whether a stored object is among those the request selects, without parsing it. */
export type Match = (stored: Stored) => boolean;

export function matcherOf(call: Call): Match {
  const labels = parseLabelSelector(call.query.get("labelSelector") ?? "");
  const fields = parseFieldSelector(call.query.get("fieldSelector") ?? "");
  for (const { path } of fields) {
    if (path === "metadata.name" || path === "metadata.namespace" || path in call.kind.selectable) continue;
    throw badRequest(`field label not supported: ${path}`);
  }
  const single = call.name;
  if (labels.length === 0 && fields.length === 0 && single === "") return () => true;
  return (stored) =>
    (single === "" || stored.name === single) &&
    matchesLabels(labels, stored.labels) &&
    matchesFields(fields, (path) => fieldOf(stored, path));
}

function fieldOf(stored: Stored, path: string): string {
  if (path === "metadata.name") return stored.name;
  if (path === "metadata.namespace") return stored.namespace;
  return stored.fields[path] ?? "";
}

/** What the request's namespace and selectors find now. */
export function selectStored(core: Core, call: Call): Stored[] {
  const match = matcherOf(call);
  return core.store.list(storageKey(call.kind), namespaceOf(call)).filter(match);
}

/** Undefined for all namespaces, and for kinds that live in none. */
export function namespaceOf(call: Call): string | undefined {
  return call.kind.namespaced && call.namespace !== "" ? call.namespace : undefined;
}

/** GET of one object. No client is shown what a power loss could still revert. */
export async function get(core: Core, call: Call): Promise<Reply> {
  const wanted = negotiate(call.headers["accept"]);
  const stored = findStored(core, call.kind, call.namespace, call.name);
  await core.store.durable(stored.revision);
  if (wanted.shape === "object" && !wanted.yaml) return { status: 200, body: [bodyOf(call.kind, stored)] };
  const object = objectOf(call.kind, stored);
  if (wanted.shape === "object") return shaped(object, wanted);
  if (wanted.shape === "metadata") return shaped(metadataOnly(object, `meta.k8s.io/${wanted.version}`), wanted);
  const metadata = { resourceVersion: object.metadata.resourceVersion };
  return shaped(tableFor(core, call, wanted, [stored], metadata), wanted);
}

function shaped(value: unknown, wanted: RequestedFormat): Reply {
  if (!wanted.yaml) return { status: 200, body: JSON.stringify(value) };
  // kubectl reads YAML 1.1, in which a plain `Off` is a boolean.
  const body = stringify(value, { compat: "yaml-1.1" });
  return { status: 200, headers: { "content-type": "application/yaml" }, body };
}

function tableFor(
  core: Core,
  call: Call,
  wanted: RequestedFormat,
  page: readonly Stored[],
  metadata: Record<string, unknown>,
) {
  const objects = page.map((stored) => objectOf(call.kind, stored));
  const include = includeObjectOf(call.query);
  return tableOf(call.kind, objects, { version: wanted.version, include, now: core.now(), metadata, header: true });
}

/** GET of many: a page of them when the client asked for pages. */
export async function list(core: Core, call: Call): Promise<Reply> {
  const wanted = negotiate(call.headers["accept"]);
  const { items, metadata } = await selectPage(core, call);
  await core.store.durable(Number(metadata["resourceVersion"]));
  if (wanted.shape === "object" && !wanted.yaml) return { status: 200, body: listBody(call.kind, items, metadata) };
  if (wanted.shape === "table") return shaped(tableFor(core, call, wanted, items, metadata), wanted);
  const objects = items.map((stored) => objectOf(call.kind, stored));
  if (wanted.shape === "object") {
    return shaped(
      { kind: `${call.kind.kind}List`, apiVersion: groupVersion(call.kind), metadata, items: objects },
      wanted,
    );
  }
  const apiVersion = `meta.k8s.io/${wanted.version}`;
  const rows = objects.map((object) => metadataOnly(object, apiVersion));
  return shaped({ kind: "PartialObjectMetadataList", apiVersion, metadata, items: rows }, wanted);
}

const COMMA = Buffer.from(",");
const END = Buffer.from("]}");

/** Stored bytes side by side: a list costs no parsing and no serialising, whatever its length. */
export function listBody(kind: ServedKind, items: readonly Stored[], metadata: Record<string, unknown>): Buffer[] {
  const head = JSON.stringify({ kind: `${kind.kind}List`, apiVersion: groupVersion(kind), metadata });
  const parts: Buffer[] = [Buffer.from(`${head.slice(0, -1)},"items":[`)];
  items.forEach((stored, index) => {
    if (index > 0) parts.push(COMMA);
    parts.push(bodyOf(kind, stored));
  });
  parts.push(END);
  return parts;
}

interface Page {
  items: Stored[];
  metadata: Record<string, unknown>;
}

/** Where a list goes on: after this object, as things were at this revision. */
interface Continue {
  revision: number;
  namespace: string;
  name: string;
}

async function selectPage(core: Core, call: Call): Promise<Page> {
  const limit = Number(call.query.get("limit") ?? 0) || 0;
  const token = call.query.get("continue");
  const from = token ? parseContinue(token) : undefined;
  const revision = from?.revision ?? (await revisionFor(core, call)) ?? core.store.revision;
  const all = listAt(core, call, revision).filter(matcherOf(call));
  const start = from ? all.findIndex((stored) => isAfter(stored, from)) : 0;
  const rest = start < 0 ? [] : all.slice(start);
  const metadata: Record<string, unknown> = { resourceVersion: String(revision) };
  if (limit <= 0 || rest.length <= limit) return { items: rest, metadata };
  const items = rest.slice(0, limit);
  const last = items.at(-1)!;
  const mark: Continue = { revision, namespace: last.namespace, name: last.name };
  metadata["continue"] = Buffer.from(JSON.stringify(mark)).toString("base64url");
  metadata["remainingItemCount"] = rest.length - limit;
  return { items, metadata };
}

function isAfter(stored: Stored, mark: Continue): boolean {
  if (stored.namespace !== mark.namespace) return stored.namespace > mark.namespace;
  return stored.name > mark.name;
}

function parseContinue(token: string): Continue {
  try {
    const mark = JSON.parse(Buffer.from(token, "base64url").toString("utf8")) as Continue;
    if (typeof mark.revision === "number" && typeof mark.name === "string") return mark;
  } catch {
    // Falls through to the refusal: a token is ours or it is nothing.
  }
  throw badRequest("continue key is not valid: it was not made by this server");
}

function listAt(core: Core, call: Call, revision: number): Stored[] {
  const resource = storageKey(call.kind);
  if (revision === core.store.revision) return core.store.list(resource, namespaceOf(call));
  try {
    return core.store.listAt(resource, revision, namespaceOf(call));
  } catch (error) {
    if (!(error instanceof Gone)) throw error;
    throw expired(
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
    );
  }
}

/** Which revision a list without a continue token must show: undefined for the newest. */
async function revisionFor(core: Core, call: Call): Promise<number | undefined> {
  const asked = call.query.get("resourceVersion");
  const match = call.query.get("resourceVersionMatch");
  if (match !== null && (asked === null || asked === "")) {
    throw badRequest("resourceVersionMatch is forbidden unless resourceVersion is provided");
  }
  if (asked === null || asked === "" || asked === "0") return undefined;
  const wanted = revisionIn(asked);
  await reached(core, wanted);
  return match === "Exact" ? wanted : undefined;
}

export function revisionIn(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw badRequest(`invalid resource version "${text}"`);
  return value;
}

const FUTURE_PATIENCE_MS = 3000;

/** Waits a little for a revision this server has not made yet, as a client of a replicated API may ask. */
async function reached(core: Core, wanted: number): Promise<void> {
  const until = Date.now() + FUTURE_PATIENCE_MS;
  while (core.store.revision < wanted) {
    if (Date.now() >= until) throw futureRevision(wanted, core.store.revision);
    await new Promise((wake) => setTimeout(wake, 20));
  }
}
