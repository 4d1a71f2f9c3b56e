import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { createSecureContext } from "node:tls";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { createApiServer } from "../../src/apiserver/server.ts";
import type { ClusterKeys } from "../../src/local/certificates.ts";
import { Connection, type Endpoint } from "./connection.ts";

const HOST = "127.0.0.1";

interface ServerConfig {
  keys: ClusterKeys;
  dataDir: string | undefined;
}

/** What the child process does: the API server and nothing else. Tells its port in a line, ends when its input does. */
export async function serve(): Promise<void> {
  const [line] = (await once(createInterface({ input: process.stdin }), "line")) as [string];
  const { keys, dataDir } = JSON.parse(line) as ServerConfig;
  const server = await createApiServer({
    kinds: kubernetesKinds(),
    authorization: "rbac",
    ...(dataDir === undefined ? {} : { dataDir }),
  });
  const tls = { server: keys.server, clientAuthority: keys.authority.certificate };
  const { port } = await server.listen({ host: HOST, port: 0, tls });
  process.stdout.write(`${port}\n`);
  await once(process.stdin, "end");
  await server.close();
}

/** An API server in a process of its own, and what the system says about that process. */
export class ServerProcess {
  readonly endpoint: Endpoint;
  /** From spawning it to its first good answer to `/readyz`. */
  readonly readyMs: number;
  readonly #child: ChildProcess;

  /** `program` is a bundle that calls `serve` when its first argument is `serve`. */
  static async start(program: string, config: ServerConfig, flags: readonly string[] = []): Promise<ServerProcess> {
    const started = performance.now();
    const child = spawn(process.execPath, [...flags, program, "serve"], { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin!.write(`${JSON.stringify(config)}\n`);
    const [port] = (await once(createInterface({ input: child.stdout! }), "line")) as [string];
    const { authority, admin } = config.keys;
    const secureContext = createSecureContext({ ca: authority.certificate, cert: admin.certificate, key: admin.key });
    const endpoint: Endpoint = {
      host: HOST,
      port: Number(port),
      serverName: "localhost",
      secureContext,
      authorization: undefined,
      insecure: false,
    };
    const connection = await Connection.open(endpoint);
    await connection.expect("GET", "/readyz");
    connection.close();
    return new ServerProcess(child, endpoint, performance.now() - started);
  }

  private constructor(child: ChildProcess, endpoint: Endpoint, readyMs: number) {
    this.#child = child;
    this.endpoint = endpoint;
    this.readyMs = readyMs;
  }

  /** Resident memory in MB, now and at its highest. */
  memory(): { now: number; peak: number } {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    const megabytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)![1]) / 1024;
    return { now: megabytes("VmRSS"), peak: megabytes("VmHWM") };
  }

  /** CPU time it has used, in milliseconds. */
  cpuMs(): number {
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8");
    // Counted from behind the program's name, which may hold anything: user and system time, in ticks of 10 ms.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.stdin!.end();
    await exited;
  }
}
