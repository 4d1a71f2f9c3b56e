import { spawn } from "node:child_process";
import type { ExecPlugin } from "./connection.ts";
import { errors } from "./errors.ts";

export interface PluginCredential {
  token?: string;
  certificate?: string;
  key?: string;
  /** Milliseconds since the epoch; undefined: until it is refused. */
  expiresAt?: number;
}

/** Runs the plugin once. It may talk to the person at the terminal; what it prints is the credential. */
export async function runExecPlugin(plugin: ExecPlugin): Promise<PluginCredential> {
  const { command, interactiveMode, terminal } = plugin;
  if (interactiveMode === "Always" && !terminal) throw errors.EXEC_PLUGIN_NEEDS_TERMINAL(command);
  const interactive = interactiveMode !== "Never" && terminal;
  const info = {
    apiVersion: plugin.apiVersion,
    kind: "ExecCredential",
    spec: { interactive, ...(plugin.cluster ? { cluster: plugin.cluster } : {}) },
  };
  const env = { ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) };
  return parseCredential(plugin, await output(plugin, env, interactive));
}

function output(plugin: ExecPlugin, env: NodeJS.ProcessEnv, interactive: boolean): Promise<string> {
  const { command, args, installHint } = plugin;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env,
      // A person must see the plugin's questions; otherwise its last line of complaint goes into our error.
      stdio: [interactive ? "inherit" : "ignore", "pipe", interactive ? "inherit" : "pipe"],
    });
    let out = "";
    let complaint = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      out += chunk;
    });
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      complaint += chunk;
    });
    child.on("error", (error: NodeJS.ErrnoException) => {
      // A folder of the path that this user may not read makes the search end with EACCES, though the command is in none.
      const missing = error.code === "ENOENT" || (error.code === "EACCES" && !command.includes("/"));
      const coded = missing
        ? withHint(command, installHint)
        : errors.EXEC_PLUGIN_FAILED(command, error.code ?? error.message);
      reject(coded.from(error));
    });
    child.on("close", (code, signal) => {
      if (code === 0) return resolve(out);
      const lastLine = complaint.trim().split("\n").at(-1);
      reject(errors.EXEC_PLUGIN_FAILED(command, lastLine || `it ended with ${signal ?? `status ${code}`}`));
    });
  });
}

/** The person who wrote the kubeconfig knows best how to install its plugin. */
function withHint(command: string, installHint: string | undefined) {
  return errors.EXEC_PLUGIN_MISSING(command, installHint?.trim().replace(/\s+/g, " "));
}

interface ExecCredential {
  apiVersion?: unknown;
  kind?: unknown;
  status?: { token?: unknown; clientCertificateData?: unknown; clientKeyData?: unknown; expirationTimestamp?: unknown };
}

function parseCredential({ command, apiVersion }: ExecPlugin, text: string): PluginCredential {
  const fail = (why: string) => errors.EXEC_PLUGIN_FAILED(command, why);
  let printed: ExecCredential | null;
  try {
    printed = JSON.parse(text) as ExecCredential | null;
  } catch (cause) {
    throw fail("what it printed is not JSON").from(cause);
  }
  if (printed?.kind !== "ExecCredential") throw fail("what it printed is not an ExecCredential");
  if (printed.apiVersion !== apiVersion) throw fail(`it speaks ${String(printed.apiVersion)}, not ${apiVersion}`);
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = printed.status ?? {};
  const certificate = optionalText(clientCertificateData);
  const key = optionalText(clientKeyData);
  if (optionalText(token) === undefined && certificate === undefined) throw fail("it printed no credential");
  if ((certificate === undefined) !== (key === undefined)) throw fail("it printed a certificate without its key");
  const expiresAt = typeof expirationTimestamp === "string" ? Date.parse(expirationTimestamp) : undefined;
  if (Number.isNaN(expiresAt)) throw fail(`"${String(expirationTimestamp)}" is not a time`);
  return { token: optionalText(token), certificate, key, expiresAt };
}

function optionalText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
