import { kubernetesKinds } from "../../apiserver/kubernetes/kinds.ts";
import { createApiServer } from "../../apiserver/server.ts";
import { type Client, createClient } from "../../cluster/client.ts";
import { patience } from "../../kit/testing/patience.ts";

/** An API server with no controllers and no nodes around it, for stories about what objects say. */
export interface BareServer {
  client: Client;
  close(): Promise<void>;
}

export async function bareServer(userAgent = "story"): Promise<BareServer> {
  const server = await createApiServer({ kinds: kubernetesKinds() });
  return { client: createClient(server.transport(), { userAgent }), close: () => server.close() };
}

/** Waits until what is read is as the story says; fails with what it was last. */
export async function eventually<T>(read: () => Promise<T>, is: (value: T) => boolean, withinMs = 10_000): Promise<T> {
  const began = Date.now();
  for (;;) {
    const value = await read();
    if (is(value)) return value;
    if (Date.now() - began > patience(withinMs)) throw new Error(`still: ${JSON.stringify(value, undefined, 1)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
