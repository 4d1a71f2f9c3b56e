import { parseDocument } from "yaml";
import type { Expectation } from "../../actions/objects/expectation.ts";
import type { Observation } from "../../observation.ts";

/** What a person runs with the infrastructure-as-code tool that made the cluster, and how the cluster shows that it was done. */
export interface ClusterToolCommands {
  enabled(on: boolean): string[];
  mode(mode: string): string[];
  modeIs(mode: string): Expectation;
}

const KEY = "cluster.yaml";
/** The embedded cluster's replacement for the tool's update: a value of this annotation that it did not have before. */
const ROLLOUT = "local.vendor.io/rollout";

export function clusterToolCommands({ proxy, names }: Observation): ClusterToolCommands {
  const { clusterConfiguration } = proxy;
  const text = (clusterConfiguration?.["data"] as Record<string, string> | undefined)?.[KEY];
  const asked = clusterConfiguration?.metadata.annotations?.[ROLLOUT];
  const command = (field: string, value: unknown) =>
    text === undefined ? byTool(field, value) : [byPatch(text, field, value, asked)];
  const { namespaces, serviceProxy } = names;
  return {
    enabled: (on) => command("enabled", on),
    mode: (mode) => command("proxyMode", mode),
    modeIs: (mode) => ({
      target: {
        apiVersion: "v1",
        kind: "ConfigMap",
        namespace: namespaces.orchestratorSystem,
        name: serviceProxy.configMap,
      },
      path: ["data", "config.conf"],
      matches: `^mode: "?${mode}"?$`,
    }),
  };
}

/** With the tool itself, whose configuration is outside the cluster. */
function byTool(field: string, value: unknown): string[] {
  return [
    `kops edit cluster   # set spec.kubeProxy.${field} to ${value}`,
    "kops update cluster --yes",
    "kops rolling-update cluster --yes",
  ];
}

/** On the embedded cluster the configuration is a config map, and a changed annotation rolls it out. */
function byPatch(text: string, field: string, value: unknown, asked: string | undefined): string {
  const document = parseDocument(text);
  document.setIn(["spec", "kubeProxy", field], value);
  const rollout = `${field}-${value}`;
  const patch = JSON.stringify({
    metadata: { annotations: { [ROLLOUT]: rollout === asked ? `${rollout}-again` : rollout } },
    data: { [KEY]: document.toString({ lineWidth: 0 }) },
  });
  return `kubectl -n kube-system patch configmap cluster-configuration --type merge -p '${patch.replaceAll("'", "'\\''")}'`;
}
