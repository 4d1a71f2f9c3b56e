import { expect, it } from "vitest";
import { createClient } from "../cluster/client.ts";
import { CONFIG_MAPS, NAMESPACES } from "../cluster/kinds.ts";
import { kubernetesKinds } from "./kubernetes/kinds.ts";
import { createApiServer } from "./server.ts";

it("callers in the server's own process, who need no socket, do not keep those outside waiting", async () => {
  const server = await createApiServer({ kinds: kubernetesKinds() });
  const { url } = await server.listen({ host: "127.0.0.1", port: 0 });
  const busy = createClient(server.transport(), { userAgent: "busy" });
  let heard = false;
  const end = Date.now() + 5_000;
  const asking = (async () => {
    // Without a breath this would go on until its time is over, and nobody else would get a word in.
    while (!heard && Date.now() < end) await busy.list(CONFIG_MAPS);
  })();
  await fetch(`${url}/readyz`).then((answer) => answer.text());
  heard = true;
  await asking;
  expect(Date.now()).toBeLessThan(end);
  await server.close();
});

it("patches of one object at the same time, that name no resourceVersion, all succeed", async () => {
  const server = await createApiServer({ kinds: kubernetesKinds() });
  const client = createClient(server.transport(), { userAgent: "many" });
  const at = { name: "counts" };
  await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: at });
  const keys = Array.from({ length: 20 }, (_, index) => `key${index}`);
  const annotate = (key: string) =>
    client.patch(NAMESPACES, at, { type: "merge", patch: { metadata: { annotations: { [key]: "yes" } } } });
  await Promise.all(keys.map(annotate));
  const { metadata } = await client.get(NAMESPACES, at);
  expect(Object.keys(metadata.annotations ?? {}).sort()).toEqual(keys.sort());
  await server.close();
});
