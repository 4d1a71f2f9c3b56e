import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { createApiServer } from "../../src/apiserver/server.ts";

/** The API server in a process of its own, over HTTP on loopback: `http-child DATA_DIR PORT`. Says a line when it listens. */
const [dataDir, port] = process.argv.slice(2) as [string, string];
const server = await createApiServer({ kinds: kubernetesKinds(), dataDir });
await server.listen({ host: "127.0.0.1", port: Number(port) });
process.stdout.write("ready\n");
// Whoever started it may fail before it can kill it.
process.stdin.on("end", () => process.exit()).resume();
