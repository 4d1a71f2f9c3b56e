import { expect, it } from "vitest";
import { createClient } from "../cluster/client.ts";
import { CONFIG_MAPS } from "../cluster/kinds.ts";
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
