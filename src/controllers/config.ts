import { vendorNames } from "../api/names.ts";
import { apiServerNames } from "../cluster/api-server-hosts.ts";
import { LOOPBACK } from "../cluster/program.ts";
import { readEtcdOptions } from "../datastore/config.ts";
import type { EtcdOptions } from "../datastore/etcd/etcd-connection.ts";
import { errors } from "./errors.ts";

/** What the container's environment says, read once. What it says about the work wins over the configuration resource. */
export interface ControllersConfig {
  podName: string;
  namespace: string;
  healthHost: string;
  healthPort: number;
  /** How etcd is reached, where the service keeps its objects there and not in the Kubernetes API. */
  etcd: EtcdOptions | undefined;
  overrides: Overrides;
  /** Another CNI plugin gives pods their addresses. */
  foreignAddresses: boolean;
  /** Names or addresses of the API server. */
  apiServers: readonly string[];
}

/** Undefined where the environment is silent and the resource decides. */
export interface Overrides {
  /** Which of the controllers run. */
  enabled: ReadonlySet<ControllerName> | undefined;
  autoHostEndpoints: "Enabled" | "Disabled" | undefined;
}

const CONTROLLER_NAMES = ["node", "namespace", "serviceaccount", "loadbalancer"] as const;
/** There is something to copy only with the etcd datastore. */
const COPYING = ["policy", "workloadendpoint"] as const;
export type ControllerName = (typeof CONTROLLER_NAMES)[number] | (typeof COPYING)[number];

type Env = Readonly<Record<string, string | undefined>>;

export function readControllersConfig(env: Env): ControllersConfig {
  const etcd = readEtcdOptions(env);
  return {
    podName: env["POD_NAME"] || vendorNames.workloads.kubeControllers,
    namespace: env["NAMESPACE"] || vendorNames.namespaces.system,
    healthHost: env["HEALTH_HOST"] || LOOPBACK,
    healthPort: port(env, "HEALTH_PORT", 9094),
    etcd,
    overrides: {
      enabled: controllerNames(env, etcd ? [...CONTROLLER_NAMES, ...COPYING] : CONTROLLER_NAMES),
      autoHostEndpoints: onOff(env, "AUTO_HOST_ENDPOINTS"),
    },
    foreignAddresses: (env["CNI_TYPE"] || "Vendor") !== "Vendor",
    apiServers: apiServerNames(env),
  };
}

function port(env: Env, name: string, otherwise: number): number {
  const text = env[name];
  if (!text) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 65535) throw errors.CONTROLLERS_ENV(name, text, "a port");
  return value;
}

function onOff(env: Env, name: string): "Enabled" | "Disabled" | undefined {
  const text = env[name];
  if (!text) return undefined;
  if (/^enabled$/i.test(text)) return "Enabled";
  if (/^disabled$/i.test(text)) return "Disabled";
  throw errors.CONTROLLERS_ENV(name, text, "enabled or disabled");
}

function controllerNames(env: Env, known: readonly ControllerName[]): ReadonlySet<ControllerName> | undefined {
  const text = env["ENABLED_CONTROLLERS"];
  if (!text) return undefined;
  return new Set(
    text.split(",").map((word) => {
      const name = known.find((one) => one === word.trim());
      if (!name) throw errors.CONTROLLERS_ENV("ENABLED_CONTROLLERS", word.trim(), `one of ${known.join(", ")}`);
      return name;
    }),
  );
}
