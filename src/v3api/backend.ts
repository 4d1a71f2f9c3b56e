import type { V3Kind } from "../aggregated/v3-kinds.ts";
import type { KubeObject, ObjectRef } from "../api/object.ts";
import type { Status } from "../api/status.ts";
import type { ApiRequest, ApiResponse, Transport } from "../api/transport.ts";
import { isNotFound, statusError } from "../cluster/failures.ts";
import { collectionPath, objectPath } from "../cluster/paths.ts";

export interface BackendReply<T> {
  status: number;
  headers: Record<string, string>;
  body: T;
}

export interface StoredList {
  metadata?: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
  items?: KubeObject[] | null;
}

/** The main API server, where v3 resources are kept. Refusals are thrown as it said them. */
export class Backend {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async json<T>(request: ApiRequest): Promise<BackendReply<T>> {
    const response = await this.#send(request);
    const text = await response.text();
    if (response.status >= 400) throw statusError(response.status, text);
    return { status: response.status, headers: response.headers, body: JSON.parse(text) as T };
  }

  /** Lines of a watch, once the server has agreed to it. */
  async lines(request: ApiRequest): Promise<AsyncIterable<string>> {
    const response = await this.#send(request);
    if (response.status >= 400) throw statusError(response.status, await response.text());
    return response.lines();
  }

  async find(kind: V3Kind, ref: ObjectRef, signal?: AbortSignal): Promise<KubeObject | undefined> {
    try {
      return (await this.json<KubeObject>({ method: "GET", path: objectPath(kind.stored, ref), signal })).body;
    } catch (error) {
      if (isNotFound(error) && isAboutObject(error, ref.name)) return undefined;
      throw error;
    }
  }

  async all(kind: V3Kind, signal?: AbortSignal): Promise<KubeObject[]> {
    const { body } = await this.json<StoredList>({ method: "GET", path: collectionPath(kind.stored), signal });
    return body.items ?? [];
  }

  #send(request: ApiRequest): Promise<ApiResponse> {
    const headers = { accept: "application/json", ...request.headers };
    return this.#transport.request({ ...request, headers });
  }
}

/** "No such object", as opposed to "no such resource": the definitions may not be installed yet. */
function isAboutObject(error: unknown, name: string): boolean {
  return (error as { status?: Status }).status?.details?.name === name;
}
