import type { Client } from "../../cluster/client.ts";
import { statusError } from "../../cluster/failures.ts";

/** A write to a subresource the client has no word for; a refusal is thrown like any other. */
export async function rawWrite(client: Client, method: "POST" | "PUT", path: string, body: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const response = await client.raw({ method, path, headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (response.status >= 400) throw statusError(response.status, text);
}
