import type { Client } from "../../cluster/client.ts";

/**
 * A client whose writes wait for `fence` first: whoever lost touch with the API server writes nothing more before it has seen that the
 * lease is still its own. Reads pass, since they change nothing.
 */
export function fencedClient(client: Client, fence: () => Promise<void>): Client {
  const fenced =
    <A extends unknown[], T>(write: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      await fence();
      return await write(...args);
    };
  return {
    ...client,
    create: fenced(client.create) as Client["create"],
    replace: fenced(client.replace) as Client["replace"],
    patch: fenced(client.patch) as Client["patch"],
    apply: fenced(client.apply) as Client["apply"],
    delete: fenced(client.delete),
    deleteCollection: fenced(client.deleteCollection),
  };
}
