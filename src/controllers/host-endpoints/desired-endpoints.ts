import { vendorNames } from "../../api/names.ts";
import type { HostEndpoint } from "../../api/resources/host-endpoint.ts";
import { contains, parseAddress } from "../../kit/ip.ts";
import { HOST_ENDPOINTS, typeOf } from "../stored-kinds.ts";
import { endpointName } from "./endpoint-name.ts";
import type { HostEndpointRules, TemplateRule } from "./host-endpoint-rules.ts";
import { addressesOnce, type NodeFacts } from "./node-facts.ts";

/** The host endpoints a node should have, whole: everything in them is ours. */
export function desiredEndpoints(node: NodeFacts, rules: HostEndpointRules): HostEndpoint[] {
  if (!rules.enabled) return [];
  const all = { interfaceName: "*", expectedIPs: node.addresses };
  return [
    ...(rules.allInterfaces ? [endpoint(node, [], all, {})] : []),
    ...rules.templates.filter((rule) => rule.selects(node.labels)).flatMap((rule) => fromTemplate(node, rule)),
  ];
}

/** One for the addresses in the template's prefixes, or one for each interface its pattern names; none where nothing fits. */
function fromTemplate(node: NodeFacts, rule: TemplateRule): HostEndpoint[] {
  const inPrefixes = node.addresses.filter((text) => {
    const address = parseAddress(text);
    return address && rule.prefixes.some((prefix) => contains(prefix, address));
  });
  const { interfaces } = rule;
  if (!interfaces) {
    return inPrefixes.length === 0 ? [] : [endpoint(node, [rule.name], { expectedIPs: inPrefixes }, rule.labels)];
  }
  return node.interfaces
    .filter(({ name }) => interfaces.test(name))
    .map(({ name, addresses }) =>
      endpoint(
        node,
        [rule.name, name],
        { interfaceName: name, expectedIPs: addressesOnce([...inPrefixes, ...addresses]) },
        rule.labels,
      ),
    );
}

type Which = Pick<HostEndpoint["spec"], "interfaceName" | "expectedIPs">;

function endpoint(node: NodeFacts, parts: string[], which: Which, labels: TemplateRule["labels"]): HostEndpoint {
  const { createdBy } = vendorNames.labels;
  return {
    ...typeOf(HOST_ENDPOINTS),
    metadata: {
      name: endpointName(node.name, ...parts),
      // Ours last: a node's label of that name must not change the owner of the endpoint.
      labels: { ...node.labels, ...labels, [createdBy.key]: createdBy.value },
    },
    spec: { node: node.name, ...which, profiles: [vendorNames.hostEndpoints.allowAllProfile] },
  };
}
