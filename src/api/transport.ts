/**
 * How requests reach an API server: over HTTPS to any cluster, or straight into a server in this process.
 * Everything above (client, list-watch, leader) sees only this.
 */
export interface ApiRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Absolute path, already escaped, without the query. */
  path: string;
  query?: Record<string, string | undefined>;
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
}

export interface ApiResponse {
  status: number;
  /** Names in lower case. */
  headers: Record<string, string>;
  text(): Promise<string>;
  /** The body as it comes, cut at newlines: what a watch sends. Ends when the server ends it, throws when the connection breaks. */
  lines(): AsyncIterable<string>;
}

export interface Transport {
  request(request: ApiRequest): Promise<ApiResponse>;
  close(): void;
}
