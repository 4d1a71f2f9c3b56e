import { parseFieldSelector } from "../api/schema/field-selector.ts";
import type { Verb } from "./resource.ts";
import { badRequest } from "./status-errors.ts";

/** What a URL asks for, before it is known whether it exists. */
export type RequestInfo =
  | {
      resource: true;
      verb: RequestVerb;
      group: string;
      version: string;
      plural: string;
      namespace: string;
      name: string;
      subresource: string;
    }
  | { resource: false; verb: string; path: string };

export type RequestVerb = Verb | "proxy";

export type ResourceRequest = Extract<RequestInfo, { resource: true }>;

const VERB_OF: Record<string, Verb> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete", GET: "get" };

/**
 * `/api/v1/namespaces/NS/pods/NAME/SUB`, `/apis/GROUP/VERSION/...`. Deeper paths (service proxies) belong to the subresource.
 * A namespace itself is a resource: `/api/v1/namespaces/NS` and its subresources `status` and `finalize`.
 */
export function requestInfo(method: string, path: string, query: URLSearchParams): RequestInfo {
  const parts = partsOf(path);
  const core = parts[0] === "api";
  if ((!core && parts[0] !== "apis") || parts.length < (core ? 3 : 4)) {
    return { resource: false, verb: method === "HEAD" ? "get" : method.toLowerCase(), path };
  }
  const [group, version, ...rest] = core ? ["", ...parts.slice(1)] : parts.slice(1);
  let namespace = "";
  let below = rest;
  if (rest[0] === "namespaces" && rest.length > 2 && !NAMESPACE_SUBRESOURCES.has(rest[2]!)) {
    namespace = rest[1]!;
    below = rest.slice(2);
  }
  const [plural, name = "", ...sub] = below;
  if (core && plural === "namespaces") namespace = name;
  const target = { group: group!, version: version!, plural: plural!, namespace, name, subresource: sub.join("/") };
  return { resource: true, verb: verbFor(method, name, query), ...target };
}

/** What rules are compared with. A list of one name is a request for that object, as in Kubernetes: `resourceNames` can allow it. */
export function asksFor(info: RequestInfo, query: URLSearchParams): RequestInfo {
  const selector = query.get("fieldSelector");
  if (!info.resource || info.name !== "" || info.verb === "create" || !selector) return info;
  const named = parseFieldSelector(selector).find(({ path, op }) => path === "metadata.name" && op === "=");
  return named ? { ...info, name: named.value } : info;
}

function partsOf(path: string): string[] {
  const parts = path.split("/").filter((part) => part !== "");
  if (!path.includes("%")) return parts;
  try {
    return parts.map(decodeURIComponent);
  } catch {
    throw badRequest(`the path ${path} is not well escaped`);
  }
}

const NAMESPACE_SUBRESOURCES = new Set(["status", "finalize"]);

function verbFor(method: string, name: string, query: URLSearchParams): Verb {
  if (method === "DELETE" && name === "") return "deletecollection";
  const verb = VERB_OF[method] ?? "get";
  if (verb !== "get" || (name !== "" && !isTrue(query.get("watch")))) return verb;
  return isTrue(query.get("watch")) ? "watch" : "list";
}

export function isTrue(value: string | null | undefined): boolean {
  return value === "true" || value === "1" || value === "";
}
