import { stringify } from "yaml";
import { groupVersion, type KubeObject } from "../api/object.ts";
import type { Status } from "../api/status.ts";
import type { Reply } from "./call.ts";
import { negotiate, type RequestedFormat } from "./negotiate.ts";
import type { ServedKind } from "./resource.ts";
import { includeObjectOf, metadataOnly, tableOf } from "./table.ts";

export interface Shaper {
  one(object: KubeObject, status?: number, headers?: Record<string, string>): Reply;
  list(items: KubeObject[], metadata: Record<string, unknown>): Reply;
  event(type: string, object: KubeObject): string;
}

/** Answers in the shape the client asked for: objects, rows of a table, or metadata alone. */
export function shaperOf(
  kind: ServedKind,
  accept: string | undefined,
  query: URLSearchParams,
  now: () => Date,
): Shaper {
  const wanted = negotiate(accept);
  const include = includeObjectOf(query);
  const apiVersion = `meta.k8s.io/${wanted.version}`;
  const table = (objects: KubeObject[], metadata: Record<string, unknown>, header: boolean) =>
    tableOf(kind, objects, { version: wanted.version, include, now: now(), metadata, header });
  let header = true;
  const single = (object: KubeObject): unknown => {
    if (wanted.shape === "object") return object;
    if (wanted.shape === "metadata") return metadataOnly(object, apiVersion);
    const { resourceVersion } = object.metadata;
    const made = table([object], { resourceVersion }, header);
    header = false;
    return made;
  };
  return {
    one: (object, status = 200, headers = {}) => printed(single(object), wanted, status, headers),
    list(items, metadata) {
      if (wanted.shape === "table") return printed(table(items, metadata, true), wanted);
      if (wanted.shape === "metadata") {
        const rows = items.map((item) => metadataOnly(item, apiVersion));
        return printed({ kind: "PartialObjectMetadataList", apiVersion, metadata, items: rows }, wanted);
      }
      return printed({ kind: `${kind.kind}List`, apiVersion: groupVersion(kind), metadata, items }, wanted);
    },
    event: (type, object) => eventLine(type, type === "BOOKMARK" ? object : single(object)),
  };
}

export function eventLine(type: string, object: unknown): string {
  return `${JSON.stringify({ type, object })}\n`;
}

export function statusReply(status: Status, code = 200): Reply {
  return { status: code, body: JSON.stringify(status) };
}

function printed(value: unknown, wanted: RequestedFormat, status = 200, headers: Record<string, string> = {}): Reply {
  if (!wanted.yaml) return { status, headers, body: JSON.stringify(value) };
  // kubectl reads YAML 1.1, in which a plain `Off` is a boolean.
  const body = stringify(value, { compat: "yaml-1.1" });
  return { status, headers: { ...headers, "content-type": "application/yaml" }, body };
}
