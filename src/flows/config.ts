import { runningVersion } from "../api/tables/release.ts";
import { LOOPBACK } from "../cluster/program.ts";
import { errors } from "./errors.ts";
import type { OtlpTarget } from "./export/otlp-sender.ts";

type Env = Readonly<Record<string, string | undefined>>;

interface HealthConfig {
  healthHost: string;
  healthPort: number;
}

export interface FlowLogsConfig extends HealthConfig {
  /** Where agents send. */
  port: number;
  /** Where the API server asks. */
  apiPort: number;
  version: string;
  /** In bytes, of what is kept: flows beyond it are merged, then the oldest are forgotten. */
  memory: number;
  /** Where flows are kept, beside memory. */
  disk: { directory: string; days: number; bytes: number } | undefined;
  /** Where flows are exported to. */
  otlp: OtlpTarget | undefined;
}

export interface FlowUIConfig extends HealthConfig {
  port: number;
  version: string;
  /** New denials are announced. */
  notifications: boolean;
}

export function readFlowLogsConfig(env: Env): FlowLogsConfig {
  return {
    ...healthConfig(env),
    ...{ port: portOf(env, "PORT", 7443), apiPort: portOf(env, "API_PORT", 5443), version: runningVersion(env) },
    memory: mebibytesOf(env, "HISTORY_MIB", 512) * 2 ** 20,
    disk: diskOf(env),
    otlp: otlpTarget(env),
  };
}

export function readFlowUIConfig(env: Env): FlowUIConfig {
  return {
    ...healthConfig(env),
    ...{ port: portOf(env, "PORT", 8081), version: runningVersion(env) },
    notifications: env["NOTIFICATIONS"] !== "Disabled",
  };
}

const ROOT = 0;

/** Whose programs may use a page that has this user's rights: theirs and root's, and behind sudo those of who called it. */
export function readPageUsers(env: Env = process.env, own = process.getuid?.() ?? ROOT): number[] {
  const caller = Number(env["SUDO_UID"] || Number.NaN);
  return [own, ROOT, ...(own === ROOT && Number.isInteger(caller) ? [caller] : [])];
}

function healthConfig(env: Env): HealthConfig {
  return { healthHost: env["HEALTH_HOST"] || LOOPBACK, healthPort: portOf(env, "HEALTH_PORT", 8080) };
}

function mebibytesOf(env: Env, name: string, otherwise: number): number {
  const text = env[name];
  if (!text) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 16 || value > 65_536) throw errors.FLOWS_MEMORY_BAD(name, text);
  return value;
}

function diskOf(env: Env): FlowLogsConfig["disk"] {
  const directory = env["HISTORY_DIRECTORY"];
  if (!directory) return undefined;
  const bytes = countOf(env, "HISTORY_DISK_GIB", { otherwise: 10, most: 65_536 }) * 2 ** 30;
  return { directory, days: countOf(env, "HISTORY_DAYS", { otherwise: 7, most: 3650 }), bytes };
}

function countOf(env: Env, name: string, { otherwise, most }: { otherwise: number; most: number }): number {
  const text = env[name];
  if (!text) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > most) throw errors.FLOWS_COUNT_BAD(name, text, most);
  return value;
}

function portOf(env: Env, name: string, otherwise: number): number {
  const text = env[name];
  if (!text) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 65535) throw errors.FLOWS_PORT_BAD(name, text);
  return value;
}

function otlpTarget(env: Env): OtlpTarget | undefined {
  const headers = headersIn(env["EXPORT_OTLP_HEADERS"] ?? "");
  const ca = env["EXPORT_OTLP_CA"] || undefined;
  const endpoint = env["EXPORT_OTLP_ENDPOINT"];
  if (!endpoint) return undefined;
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol))
    throw errors.FLOWS_EXPORT_ENDPOINT_BAD(endpoint.slice(0, 200));
  return { endpoint, headers, ca };
}

/** As OpenTelemetry writes them in one text: `name=value,name=value`, percent-encoded. */
function headersIn(text: string): Record<string, string> {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair, index) => {
      const [, name, value = ""] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(.*?)\s*$/s.exec(pair) ?? [];
      const plain = decoded(value);
      // The value is a secret.
      if (!name || plain === undefined || !/^[\t -~]*$/.test(plain)) throw errors.FLOWS_EXPORT_HEADERS_BAD(index + 1);
      return [name.toLowerCase(), plain];
    }),
  );
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
