import { vendorNames } from "../names.ts";
import type { HostEndpoint } from "../resources/host-endpoint.ts";
import { type Problem, reporters } from "./problem.ts";
import { addressProblems, nameProblems } from "./values.ts";

export const HOST_ENDPOINT_PROBLEMS = {
  HOST_ENDPOINT_NO_INTERFACE: {
    title: "A host endpoint without interface and addresses",
    why: "It is unclear which interface of the node is meant.",
    fix: 'Set interfaceName, "*" for all interfaces, or expectedIPs.',
    rule: "A host endpoint has an interfaceName or expectedIPs.",
  },
  INTERFACE_NAME_MALFORMED: {
    title: "Not the name of an interface",
    why: "Linux interfaces have at most 15 letters, digits, dots, hyphens and underscores.",
    fix: 'Write the name as ip link shows it, or "*".',
    rule: "interfaceName is an interface's name or *.",
  },
  HOST_ENDPOINT_RESERVED_NAME: {
    title: "A host endpoint of ours named like an automatic one",
    why: "Names ending in -auto-hep belong to the controllers; migration would take this one for theirs and keep it.",
    fix: "Choose a name that does not end in -auto-hep.",
    rule: "Automatic host endpoints: their names end with -auto-hep and they carry the created-by label.",
  },
} as const;

const at = reporters(HOST_ENDPOINT_PROBLEMS);

export function hostEndpointProblems(endpoint: HostEndpoint): Problem[] {
  const { spec } = endpoint;
  const ips = spec.expectedIPs ?? [];
  return [
    ...nameProblems(endpoint.metadata.name, "metadata.name", { dots: true }),
    ...reservedNameProblems(endpoint),
    ...(!spec.interfaceName && ips.length === 0
      ? [at.HOST_ENDPOINT_NO_INTERFACE("spec", "A host endpoint needs interfaceName or expectedIPs.")]
      : []),
    ...interfaceProblems(spec.interfaceName),
    ...ips.flatMap((ip, index) => addressProblems(ip, `spec.expectedIPs[${index}]`)),
    ...(spec.profiles ?? []).flatMap((name, index) => nameProblems(name, `spec.profiles[${index}]`, { dots: true })),
  ];
}

function interfaceProblems(name: string | undefined): Problem[] {
  if (!name || name === "*" || /^[a-zA-Z0-9_.-]{1,15}$/.test(name)) return [];
  return [at.INTERFACE_NAME_MALFORMED("spec.interfaceName", `"${name}" is not the name of an interface.`)];
}

function reservedNameProblems(endpoint: HostEndpoint): Problem[] {
  const { createdBy } = vendorNames.labels;
  const { name, labels } = endpoint.metadata;
  if (!name.endsWith(vendorNames.hostEndpoints.suffix) || labels?.[createdBy.key] === createdBy.value) return [];
  return [at.HOST_ENDPOINT_RESERVED_NAME("metadata.name", `"${name}" is named like an automatic host endpoint.`)];
}
