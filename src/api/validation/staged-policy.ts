import { parseCidr } from "../../kit/ip.ts";
import type {
  StagedGlobalNetworkPolicy,
  StagedKubernetesNetworkPolicy,
  StagedNetworkPolicy,
} from "../resources/staged-policy.ts";
import { type Problem, reporters } from "./problem.ts";
import { brief, labelKeyProblems, labelValueProblems, nameProblems, netProblems } from "./values.ts";

export const STAGED_PROBLEMS = {
  STAGED_DELETE_FIELDS: {
    title: "A staged deletion with fields of a policy",
    why: "With stagedAction Delete only the name counts: rules would be accepted and ignored.",
    fix: "Remove the other fields, or set stagedAction to Set.",
    rule: "stagedAction Delete: no other field but tier.",
  },
  STAGED_PEER: {
    title: "Not a peer of a Kubernetes policy",
    why: "Kubernetes would refuse the policy when it is enforced.",
    fix: "Write an ipBlock, or a podSelector, a namespaceSelector or both.",
    rule: "A peer is either an ipBlock or selected by labels; except is within cidr.",
  },
  STAGED_PORT: {
    title: "Not a port of a Kubernetes policy",
    why: "Kubernetes would refuse the policy when it is enforced.",
    fix: "Write a port from 1 to 65535 or its name; endPort needs a number as port, and is not below it.",
    rule: "Ports are numbers or names; a range begins with a number.",
  },
  STAGED_REQUIREMENT: {
    title: "Not a requirement of a label selector",
    why: "Kubernetes would refuse the policy when it is enforced.",
    fix: "Give In and NotIn values, and Exists and DoesNotExist none.",
    rule: "In and NotIn have values, Exists and DoesNotExist have none.",
  },
} as const;

const at = reporters(STAGED_PROBLEMS);

/** As of the policy that it would be; of a deletion the name alone. */
export function stagedPolicyProblems<Policy extends StagedNetworkPolicy | StagedGlobalNetworkPolicy>(
  policy: Policy,
  enforced: (policy: Policy) => Problem[],
): Problem[] {
  return [...deletionProblems(policy.spec, ["tier"]), ...enforced(policy)];
}

function deletionProblems(spec: Readonly<Record<string, unknown>>, allowed: readonly string[]): Problem[] {
  if (spec["stagedAction"] !== "Delete") return [];
  return Object.entries(spec)
    .filter(([field, value]) => field !== "stagedAction" && !allowed.includes(field) && !isEmpty(value))
    .map(([field]) => at.STAGED_DELETE_FIELDS(`spec.${field}`, `With stagedAction Delete, ${field} has no effect.`));
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === false || (Array.isArray(value) && value.length === 0);
}

type Spec = StagedKubernetesNetworkPolicy["spec"];
type Selector = NonNullable<Spec["podSelector"]>;
type Peer = NonNullable<NonNullable<Spec["ingress"]>[number]["from"]>[number];
type Port = NonNullable<NonNullable<Spec["ingress"]>[number]["ports"]>[number];

export function stagedKubernetesPolicyProblems({ metadata, spec }: StagedKubernetesNetworkPolicy): Problem[] {
  return [
    ...nameProblems(metadata.name, "metadata.name", { dots: true }),
    ...deletionProblems(spec, []),
    ...selectorProblems(spec.podSelector, "spec.podSelector"),
    ...(spec.ingress ?? []).flatMap(({ from, ports }, index) => {
      const path = `spec.ingress[${index}]`;
      return [...peersProblems(from, `${path}.from`), ...portsProblems(ports, `${path}.ports`)];
    }),
    ...(spec.egress ?? []).flatMap(({ to, ports }, index) => {
      const path = `spec.egress[${index}]`;
      return [...peersProblems(to, `${path}.to`), ...portsProblems(ports, `${path}.ports`)];
    }),
  ];
}

function peersProblems(peers: readonly Peer[] | undefined, path: string): Problem[] {
  return (peers ?? []).flatMap((peer, index) => peerProblems(peer, `${path}[${index}]`));
}

function peerProblems({ podSelector, namespaceSelector, ipBlock }: Peer, path: string): Problem[] {
  const isSelected = podSelector !== undefined || namespaceSelector !== undefined;
  if (isSelected === (ipBlock !== undefined)) {
    const message = ipBlock ? "A peer has an ipBlock or selectors, not both." : "A peer has an ipBlock or a selector.";
    return [at.STAGED_PEER(path, message)];
  }
  if (!ipBlock) {
    return [
      ...selectorProblems(podSelector, `${path}.podSelector`),
      ...selectorProblems(namespaceSelector, `${path}.namespaceSelector`),
    ];
  }
  const { cidr, except = [] } = ipBlock;
  const malformed = [
    ...netProblems([cidr], `${path}.ipBlock.cidr`, false).map((problem) => ({
      ...problem,
      path: `${path}.ipBlock.cidr`,
    })),
    ...netProblems(except, `${path}.ipBlock.except`, false),
  ];
  if (malformed.length > 0) return malformed;
  return except.flatMap((net, index) =>
    isWithin(net, cidr)
      ? []
      : [at.STAGED_PEER(`${path}.ipBlock.except[${index}]`, `${brief(net)} is not within ${brief(cidr)}.`)],
  );
}

function isWithin(inner: string, outer: string): boolean {
  const [small, large] = [parseCidr(inner), parseCidr(outer)];
  if (!small || !large || small.family !== large.family || small.length <= large.length) return false;
  const rest = BigInt(small.family.bits - large.length);
  return small.base >> rest === large.base >> rest;
}

function portsProblems(ports: readonly Port[] | undefined, path: string): Problem[] {
  return (ports ?? []).flatMap(({ port, endPort }, index) => {
    const place = `${path}[${index}]`;
    if (port !== undefined && !isPort(port)) {
      return [at.STAGED_PORT(`${place}.port`, `"${brief(String(port))}" is not a port.`)];
    }
    if (endPort !== undefined && (typeof port !== "number" || endPort < port)) {
      return [at.STAGED_PORT(`${place}.endPort`, "endPort needs a number as port, and is not below it.")];
    }
    return [];
  });
}

const PORT_NAME = /^(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*$/;

function isPort(port: string | number): boolean {
  return typeof port === "number" ? Number.isInteger(port) && port >= 1 && port <= 65_535 : PORT_NAME.test(port);
}

function selectorProblems(selector: Selector | undefined, path: string): Problem[] {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return [
    ...Object.entries(matchLabels).flatMap(([key, value]) => [
      ...labelKeyProblems(key, `${path}.matchLabels`),
      ...labelValueProblems(value, `${path}.matchLabels`),
    ]),
    ...matchExpressions.flatMap(({ key, operator, values = [] }, index) => {
      const place = `${path}.matchExpressions[${index}]`;
      const needsValues = operator === "In" || operator === "NotIn";
      const misplaced =
        needsValues === values.length > 0
          ? []
          : [
              at.STAGED_REQUIREMENT(
                `${place}.values`,
                needsValues ? `${operator} needs values.` : `${operator} has no values.`,
              ),
            ];
      return [
        ...labelKeyProblems(key, `${place}.key`),
        ...values.flatMap((value) => labelValueProblems(value, `${place}.values`)),
        ...misplaced,
      ];
    }),
  ];
}
