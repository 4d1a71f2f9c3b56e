import { vendorNames } from "../api/names.ts";
import { parseVersion } from "../api/tables/version.ts";
import { INSTALLED_RELEASE } from "../api/tables/version-gates.ts";
import { LOOPBACK } from "../cluster/program.ts";
import { errors } from "./errors.ts";

/** The environment of the operator's Deployment. */
export interface OperatorConfig {
  /** Its own namespace: the endpoint map, the certificate authority and pull secrets are there. */
  namespace: string;
  /** Different from every other operator's, and new after a restart. */
  identity: string;
  /** The release this operator installs. */
  version: string;
  healthHost: string;
  healthPort: number;
  /** Undefined: no metrics are served. */
  metricsPort: number | undefined;
  metricsHost: string;
}

type Env = Readonly<Record<string, string | undefined>>;

const HEALTH_PORT = 9440;

export function readOperatorConfig(env: Env): OperatorConfig {
  const namespace = env["NAMESPACE"] || vendorNames.namespaces.operator;
  if (namespace === vendorNames.namespaces.system) throw errors.OPERATOR_IN_SYSTEM_NAMESPACE(namespace);
  const version = env["VENDOR_VERSION"] || INSTALLED_RELEASE;
  if (!parseVersion(version)) throw errors.OPERATOR_CONFIG("VENDOR_VERSION", `is "${version}", which is not a version`);
  return Object.freeze({
    namespace,
    identity: `${env["POD_NAME"] || "vendor-operator"}_${crypto.randomUUID()}`,
    version,
    healthHost: env["HEALTH_HOST"] || LOOPBACK,
    healthPort: port(env, "HEALTH_PORT", HEALTH_PORT),
    metricsPort: env["METRICS_PORT"] ? port(env, "METRICS_PORT", HEALTH_PORT) : undefined,
    metricsHost: env["METRICS_HOST"] || LOOPBACK,
  });
}

/** The environment of the pre-delete Job of the chart. */
interface PreDeleteConfig {
  /** The operator's, and its own. */
  namespace: string;
  timeoutMs: number;
  version: string;
}

const TIMEOUT_SECONDS = 240;

export function readPreDeleteConfig(env: Env): PreDeleteConfig {
  const text = env["TIMEOUT_SECONDS"] || String(TIMEOUT_SECONDS);
  const seconds = Number(text);
  if (!Number.isInteger(seconds) || seconds < 1)
    throw errors.OPERATOR_CONFIG("TIMEOUT_SECONDS", `is "${text}", which is not a number of seconds`);
  return Object.freeze({
    namespace: env["NAMESPACE"] || vendorNames.namespaces.operator,
    timeoutMs: seconds * 1_000,
    version: env["VENDOR_VERSION"] || INSTALLED_RELEASE,
  });
}

function port(env: Env, name: string, usual: number): number {
  const text = env[name];
  if (!text) return usual;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 65535)
    throw errors.OPERATOR_CONFIG(name, `is "${text}", which is not a port`);
  return value;
}
