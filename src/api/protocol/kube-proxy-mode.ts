import { parse } from "yaml";
import { type Names, vendorNames } from "../names.ts";
import type { KubeObject } from "../object.ts";
import type { Workload } from "../workload-objects.ts";

export interface ProxySettings {
  mode: "iptables" | "nftables" | "ipvs" | "userspace";
  /** Where the mode was read. */
  evidence: string;
}

/** How a service proxy that is there works, from its flags or its settings; without either it is the proxy's own default. */
export function serviceProxySettings(
  proxy: Workload,
  configMaps: readonly KubeObject[],
  names: Names = vendorNames,
): ProxySettings {
  const words = (proxy.spec?.template?.spec?.containers ?? []).flatMap(({ command = [], args = [] }) => [
    ...command,
    ...args,
  ]);
  const flag = words.map((word) => /^--proxy-mode=(.*)$/.exec(word)?.[1]).find((mode) => mode !== undefined);
  if (flag !== undefined) return { mode: knownMode(flag), evidence: `the flag --proxy-mode=${flag}` };
  for (const [name, key] of [
    [names.serviceProxy.configMap, "config.conf"],
    ["kube-proxy-config", "config"],
  ] as const) {
    const map = configMaps.find(({ metadata }) => metadata.name === name);
    const written = readYaml<{ mode?: unknown }>((map?.["data"] as Record<string, string> | undefined)?.[key])?.mode;
    if (typeof written === "string" && written !== "") {
      return { mode: knownMode(written), evidence: `mode: ${written} in ConfigMap ${name}` };
    }
  }
  return { mode: "iptables", evidence: "kube-proxy's default: no mode is set" };
}

function knownMode(text: string): ProxySettings["mode"] {
  return text === "ipvs" || text === "nftables" || text === "userspace" ? text : "iptables";
}

/** Users may have edited it: text that is no YAML has no mode. */
export function readYaml<T extends object>(text: string | undefined): T | undefined {
  if (!text) return undefined;
  try {
    const value: unknown = parse(text);
    return typeof value === "object" && value !== null ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}
