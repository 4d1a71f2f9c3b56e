import { choice, integer, intOrString, list, mapOf, object, text } from "./describe.ts";
import { globalPolicyFields, policyColumns, policyFields } from "./network-policy.ts";
import { AGE, defineResource, type ObjectOf, type PrinterColumn } from "./resource.ts";

/** What a staged policy would do to the enforced one of its name. */
export const STAGED_ACTIONS = ["Set", "Delete", "Learn", "Ignore"] as const;

const staged = {
  stagedAction: choice(
    "Set and Learn: the policy would be in effect, in place of the enforced one of its name. Delete: that one would be gone. Ignore: nothing.",
    STAGED_ACTIONS,
  ),
};

const ACTION: PrinterColumn = {
  name: "Action",
  type: "string",
  jsonPath: ".spec.stagedAction",
  description: "What it would do to the enforced policy of its name",
};

export const stagedNetworkPolicy = defineResource({
  noun: "stagedNetworkPolicy",
  api: "v3",
  namespaced: true,
  description: "A NetworkPolicy that is not enforced: flows say what it would do.",
  spec: object("The policy.", { ...staged, ...policyFields }),
  columns: [ACTION, ...policyColumns],
});

export const stagedGlobalNetworkPolicy = defineResource({
  noun: "stagedGlobalNetworkPolicy",
  api: "v3",
  namespaced: false,
  description: "A GlobalNetworkPolicy that is not enforced: flows say what it would do.",
  spec: object("The policy.", { ...staged, ...globalPolicyFields }),
  columns: [ACTION, ...policyColumns],
});

const labelSelector = (description: string) =>
  object(description, {
    matchLabels: mapOf("Labels that must have these values.", text("The value.")),
    matchExpressions: list(
      "Requirements that must all be met.",
      object(
        "One requirement.",
        {
          key: text("The label."),
          operator: choice("How the label is compared.", ["In", "NotIn", "Exists", "DoesNotExist"]),
          values: list("What it is compared with; of In and NotIn.", text("One value.")),
        },
        ["key", "operator"],
      ),
    ),
  });

const peers = (description: string) =>
  list(
    description,
    object("One peer: an ipBlock, or pods by labels.", {
      podSelector: labelSelector("Labels of the pods; without namespaceSelector those of the policy's own namespace."),
      namespaceSelector: labelSelector("Labels of the namespaces whose pods are meant."),
      ipBlock: object(
        "Addresses.",
        {
          cidr: text("The prefix."),
          except: list("Prefixes within it that are not meant.", text("One prefix.")),
        },
        ["cidr"],
      ),
    }),
  );

const ports = list(
  "Ports of the traffic; all where it is left out.",
  object("One port.", {
    protocol: choice("The protocol (default: TCP).", ["TCP", "UDP", "SCTP"]),
    port: intOrString("A port or its name; all of the protocol where it is left out."),
    endPort: integer("The last port of a range that begins with port.", { minimum: 1, maximum: 65535 }),
  }),
);

export const stagedKubernetesNetworkPolicy = defineResource({
  noun: "stagedKubernetesNetworkPolicy",
  api: "v3",
  namespaced: true,
  description: "A NetworkPolicy of Kubernetes that is not enforced: flows say what it would do.",
  spec: object("The policy, with the fields of NetworkPolicy in networking.k8s.io/v1.", {
    ...staged,
    podSelector: labelSelector("Labels of the pods the policy is for; all of its namespace where it is left out."),
    policyTypes: list(
      "Directions the policy decides; found from its rules where left out.",
      choice("One direction.", ["Ingress", "Egress"]),
    ),
    ingress: list("What the pods may receive.", object("One rule.", { from: peers("Who may send."), ports })),
    egress: list("What the pods may send.", object("One rule.", { to: peers("Who may receive."), ports })),
  }),
  columns: [
    ACTION,
    AGE,
    {
      ...{ name: "Types", type: "string", jsonPath: ".spec.policyTypes", priority: 1 },
      description: "Directions it decides",
    },
  ],
});

export type StagedNetworkPolicy = ObjectOf<typeof stagedNetworkPolicy>;
export type StagedGlobalNetworkPolicy = ObjectOf<typeof stagedGlobalNetworkPolicy>;
export type StagedKubernetesNetworkPolicy = ObjectOf<typeof stagedKubernetesNetworkPolicy>;
