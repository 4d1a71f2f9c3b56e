import { vendorNames } from "../names.ts";
import type { FromSchema } from "../schema/from-schema.ts";
import { choice, integer, intOrString, list, listByKey, mapOf, object, opaque, text } from "./describe.ts";

/** What people add to a workload that the operator makes. Whatever is left out is the operator's. */
const metadata = (what: string) =>
  object(`Labels and annotations of ${what}, in addition to the operator's.`, {
    labels: mapOf("Labels to add.", text("Value of the label.")),
    annotations: mapOf("Annotations to add.", text("Value of the annotation.")),
  });

const containers = (description: string, names: readonly string[]) =>
  listByKey(
    description,
    ["name"],
    object(
      "One container.",
      {
        name: choice("Which container.", names),
        resources: object("Requests and limits, in place of the operator's and of componentResources.", {
          requests: mapOf("What the container asks for.", intOrString("A quantity.")),
          limits: mapOf("What the container may not exceed.", intOrString("A quantity.")),
        }),
      },
      ["name", "resources"],
    ),
  );

const placement = {
  nodeSelector: mapOf(
    "Labels that a node must have, in addition to the operator's selector.",
    text("Value of the label."),
  ),
  tolerations: list(
    "Taints that pods tolerate, in place of the operator's list.",
    opaque("One toleration, as in a pod."),
  ),
  priorityClassName: text("Priority class, in place of the operator's.", { minLength: 1 }),
} as const;

const minReadySeconds = integer("How long a new pod must be ready before it counts as available.", { minimum: 0 });

/** Of the agent. Its roll-out is `nodeUpdateStrategy`. */
export const daemonSetOverrides = object("Changes to the agent's DaemonSet.", {
  metadata: metadata("the DaemonSet"),
  spec: object("Changes to its specification.", {
    minReadySeconds,
    template: object("Changes to its pods.", {
      metadata: metadata("the pods"),
      spec: object("Changes to the specification of the pods.", {
        ...placement,
        affinity: opaque("Affinity, as in a pod. The operator's condition on nodes holds too."),
        containers: containers("Resources of containers.", [vendorNames.workloads.node, "bgp"]),
        initContainers: containers("Resources of containers that are over before the agent starts.", [
          "node-init",
          "cni-install",
        ]),
      }),
    }),
  }),
});

/** The pods of a Deployment, whose only container has its name. */
const deploymentPods = (name: string) =>
  object("Changes to its pods.", {
    metadata: metadata("the pods"),
    spec: object("Changes to the specification of the pods.", {
      ...placement,
      affinity: opaque("Affinity, as in a pod, in place of the operator's, which spreads copies over nodes."),
      topologySpreadConstraints: list(
        "How copies are spread over zones and nodes.",
        opaque("One constraint, as in a pod."),
      ),
      containers: containers("Resources of the container.", [name]),
    }),
  });

/** Of a component with several copies. */
export function deploymentOverrides(name: string) {
  return object(`Changes to the Deployment ${name}.`, {
    metadata: metadata("the Deployment"),
    spec: object("Changes to its specification.", {
      minReadySeconds,
      strategy: object("How its pods are replaced.", {
        rollingUpdate: object("Limits of a roll-out.", {
          maxSurge: intOrString("Pods above the number of copies, as a number or a percentage."),
          maxUnavailable: intOrString("Copies that may be missing, as a number or a percentage."),
        }),
      }),
      template: deploymentPods(name),
    }),
  });
}

/** Of a component with one copy, and never two at once. */
export function oneCopyOverrides(name: string) {
  return object(`Changes to the Deployment ${name}.`, {
    metadata: metadata("the Deployment"),
    spec: object("Changes to its specification.", { minReadySeconds, template: deploymentPods(name) }),
  });
}

export type DaemonSetOverrides = FromSchema<typeof daemonSetOverrides>;
export type DeploymentOverrides = FromSchema<ReturnType<typeof deploymentOverrides>>;

/** Which field of a resource that requests a part has the overrides of its Deployment. */
export const OVERRIDES_FIELD = {
  apiServer: "apiServerDeployment",
  flowLogs: "flowLogsDeployment",
  flowUI: "flowUIDeployment",
} as const;
