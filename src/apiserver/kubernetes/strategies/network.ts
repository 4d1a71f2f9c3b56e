import type { KubeObject } from "../../../api/object.ts";
import { stringFitsFormat } from "../../../api/schema/schema-formats.ts";
import type { StatusCause } from "../../../api/status.ts";
import type { Strategy } from "../../resource.ts";
import { ownSpec, specOf } from "../shapes.ts";
import { freshStatus } from "./fresh-status.ts";
import { causes, immutable, invalid, required, routableAddress } from "./rules.ts";

interface PolicyPeer {
  ipBlock?: { cidr?: string; except?: string[] };
  podSelector?: object;
  namespaceSelector?: object;
}

interface PolicyRule {
  ports?: { protocol?: string; port?: number | string; endPort?: number }[];
  from?: PolicyPeer[];
  to?: PolicyPeer[];
}

interface NetworkPolicySpec {
  podSelector?: object;
  policyTypes?: string[];
  ingress?: PolicyRule[];
  egress?: PolicyRule[];
}

export const networkPolicyStrategy: Strategy = {
  setDefaults(policy) {
    const spec = ownSpec<NetworkPolicySpec>(policy);
    spec.podSelector ??= {};
    if (!spec.policyTypes?.length) spec.policyTypes = spec.egress ? ["Ingress", "Egress"] : ["Ingress"];
    for (const rule of [...(spec.ingress ?? []), ...(spec.egress ?? [])]) {
      for (const port of rule.ports ?? []) port.protocol ||= "TCP";
    }
  },
  validate(policy) {
    const spec = specOf<NetworkPolicySpec>(policy);
    const peers = (rules: PolicyRule[] | undefined, side: "from" | "to", path: string) =>
      (rules ?? []).flatMap((rule, i) =>
        (rule[side] ?? []).flatMap((peer, j) => peerProblems(peer, `${path}[${i}].${side}[${j}]`)),
      );
    return causes(peers(spec.ingress, "from", "spec.ingress"), peers(spec.egress, "to", "spec.egress"));
  },
};

function peerProblems(peer: PolicyPeer, path: string): StatusCause[] {
  const selectors = Number(peer.podSelector !== undefined) + Number(peer.namespaceSelector !== undefined);
  const cidr = peer.ipBlock?.cidr;
  return causes(
    selectors === 0 && !peer.ipBlock && required(path, "must specify a peer"),
    selectors > 0 &&
      peer.ipBlock && {
        ...required(path),
        reason: "FieldValueForbidden",
        message: "Forbidden: may not specify both ipBlock and another peer",
      },
    cidr !== undefined &&
      !stringFitsFormat("cidr", cidr) &&
      invalid(`${path}.ipBlock.cidr`, cidr, "must be a valid CIDR value"),
  );
}

interface EndpointPort {
  name?: string;
  protocol?: string;
}

export const endpointSliceStrategy: Strategy = {
  setDefaults(slice) {
    for (const port of (slice["ports"] ?? []) as EndpointPort[]) {
      port.name ??= "";
      port.protocol ||= "TCP";
    }
  },
  validate(slice) {
    if (slice["addressType"] === "FQDN" || isOfApiServer(slice)) return [];
    const endpoints = (slice["endpoints"] ?? []) as { addresses?: string[] }[];
    return endpoints.flatMap(({ addresses = [] }, i) =>
      addresses.flatMap((address, j) => routableAddress(`endpoints[${i}].addresses[${j}]`, address)),
    );
  },
  validateUpdate: (next, old) => immutable("addressType", next["addressType"], old["addressType"]),
};

export const endpointsStrategy: Strategy = {
  setDefaults(endpoints) {
    for (const { ports } of (endpoints["subsets"] ?? []) as { ports?: EndpointPort[] }[]) {
      for (const port of ports ?? []) port.protocol ||= "TCP";
    }
  },
  validate(endpoints) {
    if (isOfApiServer(endpoints)) return [];
    const subsets = (endpoints["subsets"] ?? []) as Record<
      "addresses" | "notReadyAddresses",
      { ip: string }[] | undefined
    >[];
    return subsets.flatMap((subset, i) =>
      (["addresses", "notReadyAddresses"] as const).flatMap((list) =>
        (subset[list] ?? []).flatMap(({ ip }, j) => routableAddress(`subsets[${i}].${list}[${j}].ip`, ip)),
      ),
    );
  },
};

/** An embedded cluster without nodes of its own is on loopback, and so is its API server. */
function isOfApiServer({ metadata: { namespace, name } }: KubeObject): boolean {
  return namespace === "default" && name === "kubernetes";
}

export const ingressStrategy: Strategy = {
  prepareForCreate: freshStatus({ loadBalancer: {} }),
};

interface BudgetSpec {
  minAvailable?: number | string;
  maxUnavailable?: number | string;
}

export const disruptionBudgetStrategy: Strategy = {
  prepareForCreate: freshStatus({ disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }),
  validate(budget: KubeObject) {
    const { minAvailable, maxUnavailable } = specOf<BudgetSpec>(budget);
    if (minAvailable === undefined || maxUnavailable === undefined) return [];
    return [invalid("spec", budget["spec"], "minAvailable and maxUnavailable cannot be both set")];
  },
};

export const autoscalerStrategy: Strategy = {
  setDefaults(autoscaler) {
    ownSpec<{ minReplicas?: number }>(autoscaler).minReplicas ??= 1;
  },
  prepareForCreate: freshStatus(),
};

interface Webhook {
  clientConfig?: { service?: { port?: number } };
  failurePolicy?: string;
  matchPolicy?: string;
  namespaceSelector?: object;
  objectSelector?: object;
  timeoutSeconds?: number;
  reinvocationPolicy?: string;
  rules?: { scope?: string }[];
}

export const webhookStrategy: Strategy = {
  setDefaults(configuration) {
    for (const webhook of (configuration["webhooks"] ?? []) as Webhook[]) {
      webhook.failurePolicy ||= "Fail";
      webhook.matchPolicy ||= "Equivalent";
      webhook.namespaceSelector ??= {};
      webhook.objectSelector ??= {};
      webhook.timeoutSeconds ??= 10;
      if (configuration.kind === "MutatingWebhookConfiguration") webhook.reinvocationPolicy ||= "Never";
      if (webhook.clientConfig?.service) webhook.clientConfig.service.port ??= 443;
      for (const rule of webhook.rules ?? []) rule.scope ||= "*";
    }
  },
};
