import type { Names, Noun } from "../../api/names.ts";
import { RESOURCES } from "../../api/resources/all.ts";
import { choice, flag, integer, intOrString, list, mapOf, object, opaque, text } from "../../api/resources/describe.ts";
import type { Schema } from "../../api/schema/schema.ts";
import { OPERATOR_DEFAULTS } from "./operator-objects.ts";

/** A value of the chart: its default, which is in values.yaml, and its schema, which is in values.schema.json. */
interface ChartValue {
  default: unknown;
  schema: Schema;
}

/** Values that are explained together, in the order of values.yaml. */
export interface ValuesSection {
  why: string;
  values: Readonly<Record<string, ChartValue>>;
}

export function chartValues(version: string, names: Names): ValuesSection[] {
  return [
    imageSection(version),
    pullSecretsSection,
    endpointSection,
    ...podSections,
    ...resourceSections(names),
    monitoringSection,
    uninstallSection,
  ];
}

const imageSection = (version: string): ValuesSection => ({
  why: "The image of the operator. The images of what it installs are set in installation.spec.",
  values: {
    image: {
      default: { registry: "registry.vendor.io", path: "vendor", prefix: "", tag: version },
      schema: object("The image of the operator: REGISTRY/PATH/PREFIXvendor:TAG.", {
        registry: text("Host of the registry."),
        path: text("Path in the registry."),
        prefix: text("What the name of the image starts with."),
        tag: text("Tag of the image."),
      }),
    },
  },
});

const pullSecretsSection: ValuesSection = {
  why: "Image pull secrets of the operator, in its namespace: [{name: SECRET}].",
  values: {
    imagePullSecrets: {
      default: [],
      schema: list("Image pull secrets of the operator.", object("One Secret.", { name: text("Its name.") }, ["name"])),
    },
  },
};

const endpointSection: ValuesSection = {
  why: "The API server's stable address, for eBPF: the load balancer's name or a stable IP, and the port in quotes. With a host here, the chart\ncreates the API endpoint ConfigMap; leave it empty if you create it yourself.",
  values: {
    apiEndpoint: {
      default: { host: "", port: "443" },
      schema: object("The API server's stable address.", {
        host: text("Name or IP address, without a port."),
        port: intOrString("Port.", { pattern: "^[0-9]{1,5}$" }),
      }),
    },
  },
};

const podSections: ValuesSection[] = [
  {
    why: "DNS of the operator's pod. In AWS-like clouds set dnsConfig to {nameservers: [169.254.169.253]}.",
    values: {
      dnsPolicy: {
        default: OPERATOR_DEFAULTS.dnsPolicy,
        schema: choice("DNS policy of the pod.", ["Default", "ClusterFirst", "ClusterFirstWithHostNet", "None"]),
      },
      dnsConfig: {
        default: {},
        schema: object("DNS configuration of the pod.", {
          nameservers: list("Addresses of name servers.", text("One address.")),
          searches: list("Search domains.", text("One domain.")),
          options: list("Options of the resolver.", opaque("One option.")),
        }),
      },
    },
  },
  {
    why: "The operator's pod.",
    values: {
      resources: {
        default: OPERATOR_DEFAULTS.resources,
        schema: object("Resources of the container.", {
          requests: mapOf("Requests.", intOrString("A quantity.")),
          limits: mapOf("Limits.", intOrString("A quantity.")),
          claims: list("Claims.", opaque("One claim.")),
        }),
      },
      tolerations: {
        default: OPERATOR_DEFAULTS.tolerations,
        schema: list(
          "Taints that the pod tolerates.",
          object("One toleration.", {
            key: text("Key of the taint."),
            operator: choice("How the value is compared.", ["Exists", "Equal"]),
            value: text("Value of the taint."),
            effect: choice("Effect of the taint.", ["NoSchedule", "PreferNoSchedule", "NoExecute"]),
            tolerationSeconds: integer("How long the taint is tolerated."),
          }),
        ),
      },
      nodeSelector: {
        default: OPERATOR_DEFAULTS.nodeSelector,
        schema: mapOf("Labels of the nodes to run on.", text("The value of the label.")),
      },
      affinity: {
        default: {},
        schema: object("Affinity of the pod.", {
          nodeAffinity: opaque("To nodes."),
          podAffinity: opaque("To pods."),
          podAntiAffinity: opaque("Away from pods."),
        }),
      },
      priorityClassName: {
        default: OPERATOR_DEFAULTS.priorityClassName,
        schema: text("Priority class of the pod.", { minLength: 1 }),
      },
      podAnnotations: { default: {}, schema: mapOf("Annotations of the pod.", text("The value.")) },
      podLabels: {
        default: {},
        schema: {
          ...mapOf("Labels of the pod, in addition to its own.", text("The value.")),
          // The selector of the Deployment is this label.
          not: { required: ["k8s-app"] },
        },
      },
    },
  },
  {
    why: `More environment of the operator's container, such as [{name: METRICS_PORT, value: "9441"}] or HTTPS_PROXY.`,
    values: {
      extraEnv: {
        default: [],
        schema: list(
          "Environment variables.",
          object(
            "One variable.",
            { name: text("Its name."), value: text("Its value."), valueFrom: opaque("Its source.") },
            ["name"],
          ),
        ),
      },
    },
  },
];

function resourceSections({ variant }: Names): ValuesSection[] {
  const resource = (noun: Noun, enabled: boolean, spec: object): ChartValue => ({
    default: { enabled, spec },
    schema: object(`The ${noun} resource.`, { enabled: flag("Whether the chart creates it."), spec: specOf(noun) }),
  });
  return [
    {
      why: "What the operator installs; disable it to create the custom resources yourself. To run eBPF add linuxDataplane: BPF to vendorNetwork.\nDisabled later, the Installation is left in the cluster, and the network with it.",
      values: {
        installation: resource("installation", true, {
          variant,
          vendorNetwork: { serviceProxyManagement: "Enabled" },
        }),
      },
    },
    { why: "The aggregated v3 API.", values: { apiServer: resource("apiServer", true, {}) } },
    {
      why: "Flow logs, and the flow UI, which needs them.",
      values: { flowLogs: resource("flowLogs", false, {}), flowUI: resource("flowUI", false, {}) },
    },
  ];
}

/** As the CRD has it: the API server drops a field that it does not know, and helm does not say so. */
function specOf(noun: Noun): Schema {
  const found = RESOURCES.find((resource) => resource.noun === noun);
  if (!found) throw new TypeError(`no resource ${noun}`);
  return found.spec;
}

const monitoringSection: ValuesSection = {
  why: "PodMonitors and alerts, for a cluster with the Prometheus operator, whose CRDs must be there. Agents and the operator serve metrics only\nwhere that is asked for: nodeMetricsPort in installation.spec, and METRICS_PORT in extraEnv.",
  values: {
    monitoring: {
      default: { enabled: false },
      schema: object("Objects of the Prometheus operator.", { enabled: flag("Whether the chart creates them.") }),
    },
  },
};

const uninstallSection: ValuesSection = {
  why: "helm uninstall first deletes the custom resources, in a Job, and waits for the operator to remove what it installed. The limit must be\nshorter than helm's own, --timeout (default: 5m).",
  values: {
    uninstall: {
      default: { enabled: true, timeoutSeconds: 240 },
      schema: object("What helm uninstall does first.", {
        enabled: flag("Whether the custom resources are deleted first."),
        timeoutSeconds: integer("How long the Job waits.", { minimum: 10, maximum: 3600 }),
      }),
    },
  },
};
