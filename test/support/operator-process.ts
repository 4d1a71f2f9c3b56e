import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, openSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { stringify } from "yaml";

/** Bundles the one executable into a folder, as `bin/vendor` runs it, and says where it is. */
export async function bundleVendor(folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  await build({
    entryPoints: [resolve("src/main.ts")],
    outdir: folder,
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "error",
    // CommonJS packages ask for Node's own modules by require(), which an ES module does not have.
    banner: {
      js: 'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
    },
  });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
  const executable = join(folder, "vendor");
  writeFileSync(executable, 'import "./main.js";\n');
  return executable;
}

export interface OperatorProcess {
  readonly pid: number;
  readonly exited: Promise<void>;
  /** As `kill -9`. */
  kill(): void;
  /** Asks it to end, and waits. */
  stop(): Promise<void>;
}

export interface OperatorProcessOptions {
  executable: string;
  /** Of a server that needs no credentials. */
  server: string;
  folder: string;
  env?: Record<string, string>;
}

/** `vendor operator` in a process of its own. What it logs is in `operator.log` of the folder, one life after the other. */
export async function startOperatorProcess(options: OperatorProcessOptions): Promise<OperatorProcess> {
  const { executable, server, folder, env = {} } = options;
  const kubeconfig = join(folder, "operator.kubeconfig");
  writeFileSync(kubeconfig, kubeconfigOf(server));
  const log = openSync(join(folder, "operator.log"), "a");
  const child: ChildProcess = spawn(process.execPath, [executable, "operator"], {
    stdio: ["ignore", log, log],
    env: {
      PATH: process.env["PATH"],
      KUBECONFIG: kubeconfig,
      NAMESPACE: "vendor-operator",
      POD_NAME: "vendor-operator-process",
      HEALTH_PORT: String(await freePort()),
      ...env,
    },
  });
  const exited = once(child, "exit").then(() => undefined);
  return {
    pid: child.pid ?? 0,
    exited,
    kill: () => void child.kill("SIGKILL"),
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

function kubeconfigOf(server: string): string {
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "story", cluster: { server } }],
    contexts: [{ name: "story", context: { cluster: "story", user: "story" } }],
    users: [{ name: "story", user: {} }],
    "current-context": "story",
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
