import type { DataplaneModel, EndpointPolicy, Rule, WorkloadEndpoint } from "../../src/calc/model.ts";

const ALLOWED = "0x10000/0x10000";
const PROTOCOLS = new Map([
  [6, "tcp"],
  [17, "udp"],
]);

/**
 * The same model in the shape most clusters have had it in for years: connection tracking first, then a list of interfaces, a chain for each
 * endpoint and direction, a chain for each policy, and a mark that says a policy allowed the packet. Text for `iptables-restore`.
 */
export function iptablesRules(model: DataplaneModel, interfacePrefix: string): string {
  const endpoints = [...model.endpoints.values()];
  const names = new Map([...model.policies.keys()].map((id, at) => [id, String(at)]));
  const used = usedPolicies(endpoints);
  const chains = [
    ...["FROM-POD", "TO-POD", "ALLOW"],
    ...endpoints.flatMap(({ interfaceName }) => [`F-${interfaceName}`, `T-${interfaceName}`]),
    ...[...used].map((key) => chainOf(key, names)),
  ];
  const lines = [
    "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    "-A FORWARD -m conntrack --ctstate INVALID -j DROP",
    `-A FORWARD -i ${interfacePrefix}+ -j FROM-POD`,
    `-A FORWARD -o ${interfacePrefix}+ -j TO-POD`,
    `-A ALLOW -j MARK --set-xmark ${ALLOWED}`,
    ...endpoints.map(({ interfaceName: name }) => `-A FROM-POD -i ${name} -g F-${name}`),
    ...endpoints.map(({ interfaceName: name }) => `-A TO-POD -o ${name} -g T-${name}`),
    ...endpoints.flatMap(({ interfaceName, egress }) => endpointChain(`F-${interfaceName}`, egress, "egress", names)),
    ...endpoints.flatMap(({ interfaceName, ingress }) =>
      endpointChain(`T-${interfaceName}`, ingress, "ingress", names),
    ),
    ...[...used].flatMap((key) => policyChain(model, key, names)),
  ];
  const pool = model.settings.pools.filter(({ natOutgoing }) => natOutgoing);
  const nat = pool.map(({ cidr }) => `-A POSTROUTING -s ${cidr} ! -d ${cidr} -j MASQUERADE`);
  return [
    "*filter",
    ...chains.map((name) => `:${name} - [0:0]`),
    ...lines,
    "COMMIT",
    "*nat",
    ...nat,
    "COMMIT",
    "",
  ].join("\n");
}

/** `DIRECTION POLICY` of those in use. */
function usedPolicies(endpoints: readonly WorkloadEndpoint[]): Set<string> {
  const of = (policy: EndpointPolicy, direction: string) =>
    policy.tiers.flatMap(({ policies }) => policies.map((id) => `${direction} ${id}`));
  return new Set(endpoints.flatMap(({ ingress, egress }) => [...of(ingress, "ingress"), ...of(egress, "egress")]));
}

function chainOf(key: string, names: ReadonlyMap<string, string>): string {
  const [direction = "", id = ""] = key.split(" ");
  return `P${direction === "ingress" ? "I" : "E"}-${names.get(id)}`;
}

function endpointChain(
  chain: string,
  { tiers }: EndpointPolicy,
  direction: string,
  names: ReadonlyMap<string, string>,
): string[] {
  // Without a policy the profile of the namespace allows everything.
  if (tiers.length === 0) return [`-A ${chain} -j RETURN`];
  return [
    `-A ${chain} -j MARK --set-xmark 0x0/0x10000`,
    ...tiers.flatMap(({ policies }) =>
      policies.flatMap((id) => [
        `-A ${chain} -j ${chainOf(`${direction} ${id}`, names)}`,
        `-A ${chain} -m mark --mark ${ALLOWED} -j RETURN`,
      ]),
    ),
    `-A ${chain} -j DROP`,
  ];
}

function policyChain(model: DataplaneModel, key: string, names: ReadonlyMap<string, string>): string[] {
  const [direction = "", id = ""] = key.split(" ");
  const rules = model.policies.get(id)![direction as "ingress" | "egress"];
  return rules.flatMap((rule) => matches(model, rule).map((match) => `-A ${chainOf(key, names)}${match} -j ALLOW`));
}

/** One line for each prefix: there are no sets here. */
function matches(model: DataplaneModel, rule: Rule): string[] {
  const members = (sets: string[] | undefined) => sets?.flatMap((id) => model.ipSets.get(id)?.members ?? []);
  const sources = rule.srcNets ?? members(rule.srcSets) ?? [undefined];
  const destinations = rule.dstNets ?? members(rule.dstSets) ?? [undefined];
  const protocol = rule.protocol === undefined ? "" : ` -p ${PROTOCOLS.get(rule.protocol) ?? rule.protocol}`;
  const ports = rule.dstPorts ?? [undefined];
  return sources.flatMap((source) =>
    destinations.flatMap((destination) =>
      ports.map((range) =>
        [
          source === undefined ? "" : ` -s ${source}`,
          destination === undefined ? "" : ` -d ${destination}`,
          protocol,
          range === undefined ? "" : ` --dport ${range[0]}:${range[1]}`,
        ].join(""),
      ),
    ),
  );
}
