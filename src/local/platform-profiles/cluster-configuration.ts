import { parse, stringify } from "yaml";
import type { ProxyChoice, ProxyMode } from "../platform-profile.ts";
import { errors } from "./errors.ts";

/** What the infrastructure-as-code tool keeps of a cluster, as far as a rollout acts on it. */
export interface ClusterConfiguration {
  /** The API server's address for pods: its load balancer's name and port. */
  server: string;
  podCidr: string;
  proxy: ProxyChoice;
}

const MODES: readonly ProxyMode[] = ["iptables", "nftables", "ipvs"];

export function printClusterConfiguration(name: string, version: string, configuration: ClusterConfiguration): string {
  const { server, podCidr, proxy } = configuration;
  return stringify({
    apiVersion: "cluster-tool.local/v1",
    kind: "Cluster",
    metadata: { name },
    spec: {
      kubernetesVersion: version,
      apiServer: server,
      podCIDR: podCidr,
      kubeProxy: { enabled: proxy !== "none", proxyMode: proxy === "none" ? MODES[0] : proxy },
    },
  });
}

/** Reads what a person may have edited; says what is wrong with it instead of guessing. */
export function readClusterConfiguration(text: string): ClusterConfiguration {
  const spec = specOf(text);
  const server = spec["apiServer"];
  const podCidr = spec["podCIDR"];
  if (typeof server !== "string" || typeof podCidr !== "string")
    throw unreadable("spec.apiServer and spec.podCIDR must be text");
  return { server, podCidr, proxy: proxyIn(spec["kubeProxy"] ?? {}) };
}

function proxyIn(kubeProxy: unknown): ProxyChoice {
  if (typeof kubeProxy !== "object" || kubeProxy === null) throw unreadable("spec.kubeProxy must be an object");
  const { enabled = true, proxyMode = MODES[0] } = kubeProxy as { enabled?: unknown; proxyMode?: unknown };
  if (typeof enabled !== "boolean") throw unreadable("spec.kubeProxy.enabled must be true or false");
  const mode = MODES.find((known) => known === proxyMode);
  if (!mode) throw unreadable(`spec.kubeProxy.proxyMode must be one of ${MODES.join(", ")}`);
  return enabled ? mode : "none";
}

function specOf(text: string): Record<string, unknown> {
  let document: unknown;
  try {
    document = parse(text);
  } catch (error) {
    throw unreadable(`cluster.yaml is not YAML (${(error as Error).message.split("\n", 1)[0]})`).from(error);
  }
  const spec = (document as { spec?: unknown } | null)?.spec;
  if (typeof spec !== "object" || spec === null) throw unreadable("cluster.yaml has no spec");
  return spec as Record<string, unknown>;
}

const unreadable = errors.CLUSTER_CONFIGURATION_UNREADABLE;
