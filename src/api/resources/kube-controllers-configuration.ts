import { choice, duration, list, mapOf, object, port, setOf, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

const template = object(
  "One kind of host endpoint to make.",
  {
    generateName: text("Middle of the endpoints' names.", { maxLength: 253 }),
    nodeSelector: text("Which nodes get one."),
    interfaceCIDRs: setOf("Only addresses in these prefixes.", text("One prefix.")),
    interfacePattern: text("Regular expression: one endpoint per matching interface."),
    labels: mapOf("Labels for the endpoints, over those of the node.", text("Value of the label.")),
  },
  ["generateName"],
);

const nodeController = object("The controller of nodes.", {
  reconcilerPeriod: duration("How often everything is looked at again."),
  syncLabels: choice("Only Enabled is possible: labels of nodes are those that Kubernetes has.", [
    "Enabled",
    "Disabled",
  ]),
  leakGracePeriod: duration("How long an address without a pod is kept."),
  hostEndpoint: object("Automatic host endpoints.", {
    autoCreate: choice("Whether every node gets a host endpoint of its own.", ["Enabled", "Disabled"]),
    createDefaultHostEndpoint: choice("Whether that includes one for all interfaces.", ["Enabled", "Disabled"]),
    templates: list("Further endpoints to make for nodes.", template),
  }),
});

const spec = object("How the controllers work.", {
  logSeverityScreen: choice("Least serious message the controllers print.", [
    "None",
    "Debug",
    "Info",
    "Warning",
    "Error",
    "Fatal",
  ]),
  healthChecks: choice("Only Enabled is possible: the controllers always answer health questions.", [
    "Enabled",
    "Disabled",
  ]),
  prometheusMetricsPort: port("Port for metrics; 0 is off.", 0),
  debugProfilePort: port("Only 0 is possible: the controllers serve no profiles.", 0),
  etcdV3CompactionPeriod: duration("How often an etcd datastore is compacted; 0s is never."),
  controllers: object("The controllers; one that is left out does not run.", {
    node: nodeController,
    loadBalancer: object("The controller that gives Services of type LoadBalancer addresses of IP pools.", {
      assignIPs: choice(
        "Which Services get an address: all without a loadBalancerClass or with the class vendor, or those that ask by that class or by annotation.",
        ["AllServices", "RequestedServicesOnly"],
      ),
    }),
  }),
});

export const kubeControllersConfiguration = defineResource({
  noun: "kubeControllersConfiguration",
  api: "v3",
  namespaced: false,
  description: "How the controllers work; there is one, named default.",
  spec,
  status: object("What the controllers use.", { runningConfig: spec }),
  columns: [
    {
      name: "AutoHEP",
      type: "string",
      jsonPath: ".spec.controllers.node.hostEndpoint.autoCreate",
      description: "Whether host endpoints are made automatically",
    },
    AGE,
    {
      name: "Log",
      type: "string",
      jsonPath: ".spec.logSeverityScreen",
      description: "Least serious message",
      priority: 1,
    },
  ],
});

export type KubeControllersConfiguration = ObjectOf<typeof kubeControllersConfiguration>;
