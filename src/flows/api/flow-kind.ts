import { FLOW_LOGS_API } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { FLOW_END_TYPES, FLOW_REPORTERS, type FlowCounts, type FlowKey } from "../../api/protocol/flow.ts";
import { FLOW_EXPLANATION_KIND } from "../../api/protocol/flow-explanation.ts";
import { choice, flag, integer, list, mapOf, object, text } from "../../api/resources/describe.ts";
import { servedKinds } from "../../apiserver/custom-resources.ts";
import type { ServedSubresource } from "../../apiserver/discovery.ts";
import type { Column, ServedKind } from "../../apiserver/resource.ts";

/** A flow as people get it: its key, what was counted of it in the time asked for, and what is listed of it. */
export interface FlowObject extends KubeObject, FlowKey, FlowCounts {
  sourceAddresses: readonly string[];
  destinationAddresses: readonly string[];
  /** There were more addresses than are listed. */
  moreAddresses?: boolean;
  /** When it was counted last. */
  lastSeen: string;
}

export const FLOW_KIND = "Flow";

const count = (description: string) => integer(description, { minimum: 0 });

const end = (description: string) =>
  object(description, {
    type: choice("What it is. Outside: none of the cluster's, and in no network set.", FLOW_END_TYPES),
    name: text("Of a workload the owner's, as of a Deployment; of an outside address public or private."),
    namespace: text("Empty: it is in none."),
    kind: text("Of a workload: Deployment, StatefulSet, DaemonSet, Job, CronJob, Pod, or what else owns its pods."),
    labels: mapOf("Labels that all pods of the workload have.", text("A value.")),
  });

const steps = (description: string) =>
  list(
    description,
    object("One rule, or the end of a tier or of the profiles.", {
      direction: choice("Egress: asked where the packet left. Ingress: where it arrived.", ["Egress", "Ingress"]),
      kind: text("Kind of the policy; EndOfTier, Profile or NoProfile where no policy decided."),
      tier: text("Its tier."),
      namespace: text("Its namespace; empty: it is in none."),
      name: text("Its name."),
      rule: count("Position of the rule in its list, from 0."),
      action: choice("What the rule did.", ["Allow", "Deny", "Pass", "Log"]),
      staged: flag("Of a staged policy: it is not enforced."),
    }),
  );

const schema = object("What two ends said to each other, as the data planes counted it.", {
  from: end("Where the connection began."),
  to: end("Where it went, after a Service was translated."),
  service: object("The Service that was asked for.", {
    namespace: text("Its namespace."),
    name: text("Its name."),
    port: text("Its port by name, or by number where it has none."),
  }),
  port: count("Port of the destination; 0 where the protocol has none or ports were merged."),
  protocol: text("TCP, UDP, ICMP, ICMPv6, SCTP or the number of another one."),
  verdict: choice("What policy and data plane decided.", ["Allow", "Deny"]),
  reason: text("Of a denied flow: why the data plane dropped it."),
  policies: steps("What policy was asked, in order."),
  pending: object("What would happen if staged policies were enforced; absent where none is for its ends.", {
    verdict: choice("What policy would decide.", ["Allow", "Deny"]),
    policies: steps("What policy would be asked, in order."),
  }),
  reporter: choice("At which end it was counted. Both: the ends are on one node.", FLOW_REPORTERS),
  node: text("The node that counted it."),
  dataplane: choice("The data plane that counted it.", ["Nftables", "BPF"]),
  sourceAddresses: list("Addresses it came from; the first few.", text("An address.")),
  destinationAddresses: list("Addresses it went to; the first few.", text("An address.")),
  moreAddresses: flag("There were more addresses than are listed."),
  packets: count("Packets of the side that began."),
  bytes: count("Bytes of IP packets of the side that began."),
  replyPackets: count("Packets of the other side."),
  replyBytes: count("Bytes of IP packets of the other side."),
  started: count("Connections that began."),
  ended: count("Connections that ended."),
  live: count("Connections that were open at the last look."),
  lastSeen: text("When it was counted last.", { format: "date-time" }),
});

/** For discovery. */
export const FLOW_SUBRESOURCES: Readonly<Record<string, readonly ServedSubresource[]>> = {
  [`${FLOW_LOGS_API.group}/flows`]: [
    { path: "flows/explain", kind: { ...FLOW_LOGS_API, kind: FLOW_EXPLANATION_KIND }, verbs: ["get"] },
  ],
};

/** The columns are the table's own: they are made of several fields each. */
export function flowKind(columns: readonly Column[]): ServedKind {
  const { group, version } = FLOW_LOGS_API;
  const [made] = servedKinds({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `flows.${group}` },
    spec: {
      ...{ group, scope: "Namespaced" },
      names: { kind: FLOW_KIND, plural: "flows", singular: "flow", shortNames: [], categories: [] },
      versions: [
        {
          ...{ name: version, served: true, storage: true },
          schema: {
            openAPIV3Schema: {
              ...schema,
              properties: {
                apiVersion: { type: "string" },
                kind: { type: "string" },
                metadata: { type: "object" },
                ...schema.properties,
              },
            },
          },
        },
      ],
    },
  });
  return { ...(made as ServedKind), verbs: ["get", "list", "watch"], columns };
}
