import type { ApiStatus } from "./flow.ts";

/** Where flows are asked for, and as whom. */
export interface FlowsApi {
  /** Empty: the origin of the page. */
  origin: string;
  /** Empty: flows of the whole cluster. */
  namespace: string;
  /** Empty: the server of the page has its own way to know the user. */
  token: string;
}

/** What the server of the page, or the API behind it, refused; `status` 0: it was not reached. */
export interface ApiRefusal {
  status: number;
  reason: string;
  message: string;
  /** Of an object that was sent: which one, and what of it. */
  details?: NonNullable<ApiStatus["details"]>;
}

type Parameters = Record<string, string | number | boolean | undefined>;

const BASE = "/apis/flows.vendor.io/v1";

function flowsPath(namespace: string, resource: string, parameters: Parameters): string {
  const within = namespace === "" ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && value !== "") search.set(name, String(value));
  return `${BASE}${within}/${resource}${search.size > 0 ? `?${search}` : ""}`;
}

/** Resolves with an answer that is not read yet; rejects with an `ApiRefusal`. */
export async function openFlows(
  { origin, namespace, token }: FlowsApi,
  resource: string,
  parameters: Parameters,
  signal: AbortSignal,
): Promise<Response> {
  return await openPath(origin + flowsPath(namespace, resource, parameters), token, signal);
}

/** Rejects with an `ApiRefusal`. */
export async function askFlows<T>(
  api: FlowsApi,
  resource: string,
  parameters: Parameters = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<T> {
  const response = await openFlows(api, resource, parameters, signal);
  return (await response.json()) as T;
}

/** Sends an object, which nothing is stored of. Rejects with an `ApiRefusal`. */
export async function postFlows<T>(api: FlowsApi, resource: string, object: object, signal: AbortSignal): Promise<T> {
  const { origin, namespace, token } = api;
  const response = await openPath(origin + flowsPath(namespace, resource, {}), token, signal, JSON.stringify(object));
  return (await response.json()) as T;
}

/** With a body it is a POST. */
export async function openPath(url: string, token: string, signal: AbortSignal, body?: string): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (token !== "") headers["authorization"] = `Bearer ${token}`;
  let response: Response;
  try {
    response = await fetch(url, { headers, signal, ...(body !== undefined && { method: "POST", body }) });
  } catch (error) {
    if (signal.aborted) throw error;
    throw refusal(0, "Unreachable", "The server of this page does not answer.");
  }
  if (response.ok) return response;
  throw refusalOf(response.status, await response.text().catch(() => ""));
}

/** The sentence of a Kubernetes Status, or what there is in its place. */
function refusalOf(status: number, body: string): ApiRefusal {
  const given = statusIn(body);
  const { reason = "", message, details } = given ?? {};
  return { ...refusal(status, reason, message || `The API answered ${status}.`), ...(details && { details }) };
}

export function isRefusal(error: unknown): error is ApiRefusal {
  return typeof error === "object" && error !== null && "status" in error && "reason" in error;
}

function refusal(status: number, reason: string, message: string): ApiRefusal {
  return { status, reason, message };
}

function statusIn(body: string): ApiStatus | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? (value as ApiStatus) : undefined;
  } catch {
    return undefined;
  }
}
