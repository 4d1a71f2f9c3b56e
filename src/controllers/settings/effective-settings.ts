import type { KubeControllersConfiguration } from "../../api/resources/kube-controllers-configuration.ts";
import { kubeControllersConfigurationProblems } from "../../api/validation/kube-controllers-configuration.ts";
import type { ControllerName, Overrides } from "../config.ts";

type Spec = KubeControllersConfiguration["spec"];
type NodeSpec = NonNullable<NonNullable<Spec["controllers"]>["node"]>;
type HostEndpointSpec = NonNullable<NodeSpec["hostEndpoint"]>;
/** The port health is answered on too, unless the environment says otherwise. */
const METRICS_PORT = 9094;

export type HostEndpointTemplate = NonNullable<HostEndpointSpec["templates"]>[number];

/** A specification with every default filled in: what is in force, as `status.runningConfig` shows it. */
export interface Settings extends Spec {
  logSeverityScreen: NonNullable<Spec["logSeverityScreen"]>;
  healthChecks: "Enabled";
  prometheusMetricsPort: number;
  controllers: { node?: NodeSettings; loadBalancer?: LoadBalancerSettings };
}

export interface LoadBalancerSettings {
  assignIPs: "AllServices" | "RequestedServicesOnly";
}

export interface NodeSettings extends NodeSpec {
  reconcilerPeriod: string;
  leakGracePeriod: string;
  hostEndpoint: HostEndpointSettings;
}

export interface HostEndpointSettings {
  autoCreate: "Enabled" | "Disabled";
  createDefaultHostEndpoint: "Enabled" | "Disabled";
  templates: HostEndpointTemplate[];
}

/**
 * What is in force. Only what we act on is in it, so that the status never promises more. A `controllers` that is written names the
 * controllers that run; one that is not written leaves all of them to their defaults.
 */
export function effectiveSettings(spec: Spec | undefined, overrides: Overrides, onEtcd = false): Settings {
  const { controllers } = spec ?? {};
  const { node, loadBalancer } = controllers ?? { node: {}, loadBalancer: {} };
  const runs = (name: ControllerName, written: object | undefined) =>
    overrides.enabled?.has(name) ?? written !== undefined;
  return {
    logSeverityScreen: spec?.logSeverityScreen ?? "Info",
    // Always: the orchestrator restarts a pod that does not answer, so "Disabled" could only mean an endless restart.
    healthChecks: "Enabled",
    prometheusMetricsPort: spec?.prometheusMetricsPort ?? METRICS_PORT,
    ...(onEtcd && { etcdV3CompactionPeriod: spec?.etcdV3CompactionPeriod ?? "10m" }),
    controllers: {
      ...(runs("node", node) && { node: nodeSettings(node ?? {}, overrides) }),
      ...(runs("loadbalancer", loadBalancer) && {
        loadBalancer: { assignIPs: loadBalancer?.assignIPs ?? "AllServices" },
      }),
    },
  };
}

function nodeSettings(node: NodeSpec, { autoHostEndpoints }: Overrides): NodeSettings {
  return {
    reconcilerPeriod: node.reconcilerPeriod ?? "5m",
    leakGracePeriod: node.leakGracePeriod ?? "15m",
    hostEndpoint: {
      autoCreate: autoHostEndpoints ?? node.hostEndpoint?.autoCreate ?? "Disabled",
      createDefaultHostEndpoint: node.hostEndpoint?.createDefaultHostEndpoint ?? "Enabled",
      templates: node.hostEndpoint?.templates ?? [],
    },
  };
}

/** What is wrong with a configuration, one sentence each. One that is wrong is not acted on at all. */
export function settingsProblems(configuration: KubeControllersConfiguration): string[] {
  const { spec = {} } = configuration as { spec?: Spec };
  return kubeControllersConfigurationProblems({ ...configuration, spec }).map(
    ({ path, message }) => `${path}: ${message}`,
  );
}
