import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { CniCommand, CniResult } from "../../../api/protocol/cni.ts";
import type { Pod } from "../../controllers/workload-types.ts";
import { CNI_CONF_DIRS } from "../cni-configuration.ts";
import { errors } from "./errors.ts";
import type { Machine } from "./machine.ts";

/** A container runtime's half of the Container Network Interface: it finds what is configured, calls the plugins, keeps what they said. */
export interface CniAttachment {
  pod: Pod;
  /** Names the sandbox to the plugins. */
  containerId: string;
  /** The pod's network namespace, as the node sees it. */
  netns: string;
}

interface PluginConfig {
  type: string;
  capabilities?: { portMappings?: boolean };
  [field: string]: unknown;
}

interface NetworkList {
  name: string;
  cniVersion: string;
  plugins: PluginConfig[];
}

const BIN_DIRS = ["/opt/cni/bin", "/var/lib/cni/bin"];
const INTERFACE = "eth0";

export async function addToNetwork(machine: Machine, attachment: CniAttachment): Promise<CniResult> {
  const list = networkOf(machine);
  if (!list) throw errors.CNI_NOT_INSTALLED(CNI_CONF_DIRS[0]);
  let result: CniResult | undefined;
  for (const plugin of list.plugins) {
    const output = await call(machine, "ADD", list, plugin, attachment, result);
    result = JSON.parse(output) as CniResult;
  }
  if (!result) throw errors.CNI_NOT_INSTALLED(CNI_CONF_DIRS[0]);
  return result;
}

/** Whether the node's container runtime finds a network: a file that is being written is none yet. */
export function hasNetwork(machine: Machine): boolean {
  try {
    return networkOf(machine) !== undefined;
  } catch {
    return false;
  }
}

/** In the reverse order. A network that is configured no more has nothing to give back to. */
export async function removeFromNetwork(
  machine: Machine,
  attachment: CniAttachment,
  result: CniResult | undefined,
): Promise<void> {
  const list = networkOf(machine);
  for (const plugin of [...(list?.plugins ?? [])].reverse()) {
    await call(machine, "DEL", list as NetworkList, plugin, attachment, result);
  }
}

/** The first file by name, as container runtimes take it. */
function networkOf(machine: Machine): NetworkList | undefined {
  for (const directory of CNI_CONF_DIRS) {
    const path = machine.path(directory);
    if (!existsSync(path)) continue;
    const [file] = readdirSync(path)
      .filter((name) => name.endsWith(".conflist"))
      .sort();
    if (file) return JSON.parse(readFileSync(`${path}/${file}`, "utf8")) as NetworkList;
  }
  return undefined;
}

function pathOf(machine: Machine, type: string): string | undefined {
  const found = BIN_DIRS.find((directory) => existsSync(machine.path(`${directory}/${type}`)));
  return found && `${found}/${type}`;
}

async function call(
  machine: Machine,
  command: CniCommand,
  { name, cniVersion }: NetworkList,
  plugin: PluginConfig,
  attachment: CniAttachment,
  prevResult: CniResult | undefined,
): Promise<string> {
  const path = pathOf(machine, plugin.type);
  if (!path)
    throw errors.CNI_FAILED(plugin.type, command, `failed to find plugin "${plugin.type}" in path ${BIN_DIRS}`);
  const config = {
    ...plugin,
    name,
    cniVersion,
    ...runtimeConfig(plugin, attachment.pod),
    ...(prevResult && { prevResult }),
  };
  const env = environmentOf(command, attachment);
  const { code, out, err } = await machine.run([path], { input: JSON.stringify(config), env });
  if (code === 0) return out;
  throw errors.CNI_FAILED(plugin.type, command, problemOf(out) ?? (err.trim() || `it exited with ${code}`));
}

function environmentOf(command: CniCommand, { pod, containerId, netns }: CniAttachment): Record<string, string> {
  const { name, namespace = "", uid = "" } = pod.metadata;
  const args = {
    IgnoreUnknown: "1",
    K8S_POD_NAMESPACE: namespace,
    K8S_POD_NAME: name,
    K8S_POD_INFRA_CONTAINER_ID: containerId,
    K8S_POD_UID: uid,
  };
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: containerId,
    CNI_NETNS: netns,
    CNI_IFNAME: INTERFACE,
    CNI_PATH: BIN_DIRS.join(":"),
    CNI_ARGS: Object.entries(args)
      .map((pair) => pair.join("="))
      .join(";"),
  };
}

function runtimeConfig({ capabilities }: PluginConfig, pod: Pod): object {
  if (!capabilities?.portMappings) return {};
  const portMappings = pod.spec.containers.flatMap(({ ports = [] }) =>
    ports
      .filter(({ hostPort }) => hostPort !== undefined)
      .map(({ hostPort, containerPort, protocol = "TCP" }) => ({
        hostPort,
        containerPort,
        protocol: protocol.toLowerCase(),
      })),
  );
  return { runtimeConfig: { portMappings } };
}

/** Plugins say what went wrong on standard output. */
function problemOf(output: string): string | undefined {
  try {
    const { msg, details } = JSON.parse(output) as { msg?: string; details?: string };
    return [msg, details].filter(Boolean).join("; ") || undefined;
  } catch {
    return undefined;
  }
}
