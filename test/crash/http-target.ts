import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import type { KubeObject } from "../../src/api/object.ts";
import type { ApiRequest, Transport } from "../../src/api/transport.ts";
import type { Connection } from "../../src/cluster/connection.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import { childProgram } from "./child-program.ts";
import { Died, type Listed, type ObservedState, type ProcessRun, type Target } from "./harness.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
/** Written to see when a watch has caught up. Nobody else's concern. */
const MARKER = "marker";

interface HttpTarget extends Target {
  /** The same through all lives. */
  connection: Connection;
}

/** The whole API server as a target; `workDir` holds its program and its data. */
export async function httpTarget(workDir: string): Promise<HttpTarget> {
  const program = await childProgram(new URL("./http-child.ts", import.meta.url), workDir);
  const port = await freePort();
  const connection: Connection = {
    server: `http://127.0.0.1:${port}`,
    tls: { insecure: false },
    auth: { kind: "none" },
    namespace: "default",
  };
  const start = () =>
    new HttpLife(spawn(process.execPath, [program, join(workDir, "data"), String(port)]), httpsTransport(connection));
  return { connection, start };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

type ConfigMap = KubeObject & { data: { value: string } };

class HttpLife implements ProcessRun {
  readonly #child: ChildProcess;
  readonly #transport: Transport;
  readonly #exited: Promise<unknown>;
  readonly #listening: Promise<unknown>;
  #complaints = "";
  #killed = false;
  #writes = 0;

  constructor(child: ChildProcess, transport: Transport) {
    this.#child = child;
    this.#transport = transport;
    this.#exited = once(child, "close");
    this.#listening = once(child.stdout!, "data");
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#complaints += text;
    });
  }

  async ready(): Promise<void> {
    await Promise.race([this.#listening, this.#exited.then(() => this.#died())]);
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } };
    await this.#ask({ method: "POST", path: "/api/v1/namespaces", body: JSON.stringify(namespace) }, [201, 409]);
  }

  async write(name: string, value: string | undefined, expect: number | "absent"): Promise<number | undefined> {
    if (value === undefined) {
      const body = JSON.stringify({ preconditions: { resourceVersion: String(expect) } });
      await this.#ask({ method: "DELETE", path: `${MAPS}/${name}`, body }, [200]);
      return undefined;
    }
    const answer = await this.#ask(writeRequest(name, value, expect, this.#writes++), [200, 201]);
    return Number((answer as ConfigMap).metadata.resourceVersion);
  }

  async list(): Promise<Listed> {
    const answer = await this.#ask({ method: "GET", path: MAPS }, [200]);
    const { metadata, items } = answer as { metadata: { resourceVersion: string }; items: ConfigMap[] };
    const others = items.filter((item) => item.metadata.name !== MARKER);
    return { revision: Number(metadata.resourceVersion), items: others.map((item) => seen("ADDED", item)) };
  }

  async watch(from: number, deliver: (event: ObservedState) => void): Promise<"open" | "gone"> {
    const query = { watch: "true", resourceVersion: String(from) };
    const response = await this.#transport.request({ method: "GET", path: MAPS, query }).catch(() => this.#died());
    const marked = this.#ask(markRequest(), [200, 201]) as Promise<ConfigMap>;
    return await new Promise((resolve, reject) => {
      const read = async () => {
        for await (const line of response.lines()) {
          const { type, object } = JSON.parse(line) as { type: string; object: ConfigMap };
          if (type === "ERROR") return resolve("gone");
          if (object.metadata.name !== MARKER) deliver(seen(type, object));
          else if (object.metadata.resourceVersion === (await marked).metadata.resourceVersion) resolve("open");
        }
        this.#died();
      };
      // After "open" an end is the end of this life, and whoever kills it knows.
      read().catch(reject);
    });
  }

  async kill(): Promise<void> {
    this.#killed = true;
    this.#child.kill("SIGKILL");
    await this.#exited;
    this.#transport.close();
  }

  async #ask(request: ApiRequest, good: readonly number[]): Promise<unknown> {
    const headers = { "content-type": "application/json", "user-agent": "crash/1", ...request.headers };
    let status: number;
    let text: string;
    try {
      const response = await this.#transport.request({ ...request, headers });
      status = response.status;
      text = await response.text();
    } catch {
      return this.#died();
    }
    if (!good.includes(status)) throw new Error(`${request.method} ${request.path}: ${status} ${text}`);
    return JSON.parse(text);
  }

  #died(): never {
    throw this.#killed ? new Died() : new Error(`the server died by itself: ${this.#complaints}`);
  }
}

/** Every way of writing in turn: each must be as durable as the next. All but the creation say which version they change. */
function writeRequest(name: string, value: string, expect: number | "absent", turn: number): ApiRequest {
  const path = `${MAPS}/${name}`;
  const data = { value };
  const whole = (metadata: object) =>
    JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, data });
  if (expect === "absent") return { method: "POST", path: MAPS, body: whole({}) };
  const resourceVersion = String(expect);
  const patch = (type: string, body: unknown, query = {}): ApiRequest => {
    const headers = { "content-type": `application/${type}` };
    return { method: "PATCH", path, query, headers, body: typeof body === "string" ? body : JSON.stringify(body) };
  };
  switch (turn % 5) {
    case 0:
      return { method: "PUT", path, body: whole({ resourceVersion }) };
    case 1:
      return patch("merge-patch+json", { metadata: { resourceVersion }, data });
    case 2:
      return patch("strategic-merge-patch+json", { metadata: { resourceVersion }, data });
    case 3:
      return patch("json-patch+json", [
        { op: "test", path: "/metadata/resourceVersion", value: resourceVersion },
        { op: "replace", path: "/data/value", value },
      ]);
    default:
      return patch("apply-patch+yaml", whole({ resourceVersion }), { fieldManager: "crash", force: "true" });
  }
}

let marks = 0;

function markRequest(): ApiRequest {
  const mark = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: MARKER }, data: { value: String(marks++) } };
  return {
    method: "PATCH",
    path: `${MAPS}/${MARKER}`,
    query: { fieldManager: "marker" },
    headers: { "content-type": "application/apply-patch+yaml" },
    body: JSON.stringify(mark),
  };
}

function seen(type: string, object: ConfigMap): ObservedState {
  const { name, resourceVersion } = object.metadata;
  return { name, value: type === "DELETED" ? undefined : object.data.value, revision: Number(resourceVersion) };
}
