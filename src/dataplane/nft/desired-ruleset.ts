import type { DataplaneModel, HostEndpoint, TierPolicies } from "../../calc/model.ts";
import { hostEndpointOf } from "../../calc/policy/hook-policy.ts";
import { baseChains, type HostDispatch, type HostDispatches, tunnelEnds } from "./base-chains.ts";
import { addressSet, dispatchMap, FAMILIES, podSets, setsOfModel } from "./model-sets.ts";
import { PolicyChains } from "./policy-chains.ts";
import type { NftSet, Ruleset } from "./ruleset.ts";

/** An interface of the node that is no pod's, with its addresses. */
export interface HostInterface {
  name: string;
  addresses: readonly string[];
}

export interface DesiredOptions {
  hostInterfaces: readonly HostInterface[];
  /** Names of chains that nft refused. */
  closed?: ReadonlySet<string>;
}

/** The whole of our table for this model. What did not change is the same value as before, so that comparing is quick. */
export function desiredRuleset(model: DataplaneModel, options: DesiredOptions): Ruleset {
  const policies = new PolicyChains(model, options.closed ?? new Set());
  const { dispatches, maps } = hostPolicy(model, options.hostInterfaces, policies);
  const pods = [...model.endpoints.values()];
  const sets: NftSet[] = [
    ...setsOfModel(model),
    ...podSets(model),
    ...nodeSets(model),
    ...maps,
    dispatchMap(
      "from-pod",
      pods.map(({ interfaceName, egress }) => [
        interfaceName,
        policies.deciding("egress", egress.tiers, egress.profiles),
      ]),
    ),
    dispatchMap(
      "to-pod",
      pods.map(({ interfaceName, ingress }) => [
        interfaceName,
        policies.deciding("ingress", ingress.tiers, ingress.profiles),
      ]),
    ),
  ];
  const chains = [...policies.chains.values(), ...baseChains(model, dispatches)];
  return {
    chains: new Map(chains.map((chain) => [chain.name, chain])),
    sets: new Map(sets.map((set) => [set.name, set])),
  };
}

export function nodeSets({ settings, nodes }: DataplaneModel): NftSet[] {
  const pools = settings.pools.map(({ cidr }) => cidr);
  const natPools = settings.pools.filter(({ natOutgoing }) => natOutgoing).map(({ cidr }) => cidr);
  const others = [...nodes.values()].filter(({ local }) => !local);
  return FAMILIES.flatMap((family) => {
    const addresses = others.flatMap(({ addressV4, addressV6 }) => (family === 4 ? addressV4 : addressV6) ?? []);
    const nets = addresses.map((address) => `${address}/${family === 4 ? 32 : 128}`);
    return [
      addressSet(`pools-${family}`, family, pools, true),
      addressSet(`nat-pools-${family}`, family, natPools, true),
      addressSet(`nodes-${family}`, family, nets, false),
      ...(settings.serviceLoop.ranges.length > 0
        ? [addressSet(`service-ranges-${family}`, family, settings.serviceLoop.ranges, true)]
        : []),
      ...(settings.externalNodes.length > 0
        ? [addressSet(tunnelEnds(settings, family), family, [...nets, ...settings.externalNodes], true)]
        : []),
    ];
  });
}

type ChainOf = (endpoint: HostEndpoint) => string;

/** Only the base chains with rules: a chain that only accepts would cost every packet. */
function hostPolicy(
  model: DataplaneModel,
  interfaces: readonly HostInterface[],
  policies: PolicyChains,
): { dispatches: HostDispatches; maps: NftSet[] } {
  const endpoints = [...model.hostEndpoints.values()];
  const owners = ownersOf(model, interfaces);
  const others = hostEndpointOf(model, { name: "", addresses: [] });
  const maps: NftSet[] = [];
  const ask = (question: string, needed: boolean, chainOf: ChainOf): HostDispatch | undefined => {
    if (!needed) return undefined;
    const map = `host-${question}`;
    maps.push(
      dispatchMap(
        map,
        owners.map(([name, endpoint]) => [name, chainOf(endpoint)]),
      ),
    );
    return { map, others: others && chainOf(others) };
  };
  const some = (tiersOf: (endpoint: HostEndpoint) => TierPolicies[]) =>
    endpoints.some((one) => tiersOf(one).length > 0);
  const any = endpoints.length > 0;
  const questions = {
    preDNAT: ask(
      "before-translation",
      some(({ preDNAT }) => preDNAT),
      ({ preDNAT }) => policies.passing("preDNAT", "ingress", preDNAT),
    ),
    input: ask("input", any, ({ normal, profiles }) => policies.deciding("ingress", normal.ingress, profiles)),
    output: ask("output", any, ({ normal, profiles }) => policies.deciding("egress", normal.egress, profiles)),
    forwardIn: ask(
      "forward-in",
      some(({ forward }) => forward.ingress),
      ({ forward }) => policies.passing("decide", "ingress", forward.ingress),
    ),
    forwardOut: ask(
      "forward-out",
      some(({ forward }) => forward.egress),
      ({ forward }) => policies.passing("decide", "egress", forward.egress),
    ),
  };
  const dispatches = Object.fromEntries(Object.entries(questions).filter(([, dispatch]) => dispatch));
  return { dispatches, maps };
}

/** Interfaces with an endpoint of their own; those an endpoint names need not be there yet. */
function ownersOf(model: DataplaneModel, interfaces: readonly HostInterface[]): [string, HostEndpoint][] {
  const known = new Set(interfaces.map(({ name }) => name));
  const named = [...model.hostEndpoints.values()].flatMap(({ interfaceName: name }) =>
    name === null || name === "*" || known.has(name) ? [] : [{ name, addresses: [] }],
  );
  return [...interfaces, ...named].flatMap((link): [string, HostEndpoint][] => {
    const endpoint = hostEndpointOf(model, link);
    return endpoint && endpoint.interfaceName !== "*" ? [[link.name, endpoint]] : [];
  });
}
