import { vendorNames } from "../api/names.ts";
import { apiServerNames } from "../cluster/api-server-hosts.ts";
import { LOOPBACK } from "../cluster/program.ts";
import { errors } from "./errors.ts";

/** What the container's environment says, read once. What it says about the work wins over the configuration resource. */
export interface ControllersConfig {
  podName: string;
  namespace: string;
  healthHost: string;
  healthPort: number;
  /** Where the service keeps its objects. We work on those in the orchestrator; of etcd we know nothing. */
  datastore: "orchestrator" | "etcd";
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

const CONTROLLER_NAMES = ["node", "namespace", "serviceaccount"] as const;
export type ControllerName = (typeof CONTROLLER_NAMES)[number];

type Env = Readonly<Record<string, string | undefined>>;

export function readControllersConfig(env: Env): ControllersConfig {
  return {
    podName: env["POD_NAME"] || vendorNames.workloads.kubeControllers,
    namespace: env["NAMESPACE"] || vendorNames.namespaces.system,
    healthHost: env["HEALTH_HOST"] || LOOPBACK,
    healthPort: port(env, "HEALTH_PORT", 9094),
    datastore: env["DATASTORE_TYPE"]?.startsWith("etcd") ? "etcd" : "orchestrator",
    overrides: { enabled: controllerNames(env), autoHostEndpoints: onOff(env, "AUTO_HOST_ENDPOINTS") },
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

function controllerNames(env: Env): ReadonlySet<ControllerName> | undefined {
  const text = env["ENABLED_CONTROLLERS"];
  if (!text) return undefined;
  const names = text.split(",").map((name) => name.trim());
  for (const name of names) {
    if (!isControllerName(name)) {
      throw errors.CONTROLLERS_ENV("ENABLED_CONTROLLERS", name, `one of ${CONTROLLER_NAMES.join(", ")}`);
    }
  }
  return new Set(names.filter(isControllerName));
}

function isControllerName(name: string): name is ControllerName {
  return (CONTROLLER_NAMES as readonly string[]).includes(name);
}
