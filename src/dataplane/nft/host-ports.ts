import type { DataplaneModel, ServicePort } from "../../calc/model.ts";
import { type Condition, MARK, type NftChain, type NftRule } from "./ruleset.ts";

/** Before kube-proxy, which is at -100: a port of the node that a pod has is no other's. */
const PRIORITY = -110;
const LOOPBACK = "127.0.0.0/8";

/**
 * Ports of the node that lead to its pods: for packets that arrive, and for those of the node's own processes. A pod that reaches itself, and a
 * process that asks at 127.0.0.1, must be answered by way of the node, so their packets leave with the node's address.
 */
export function hostPortChains({ services }: Pick<DataplaneModel, "services">): NftChain[] {
  const ports = [...services.values()]
    .filter(({ hostPort }) => hostPort === true)
    .sort((a, b) => (isNamed(a) === isNamed(b) ? (a.id < b.id ? -1 : 1) : isNamed(a) ? -1 : 1));
  if (ports.length === 0) return [];
  return [
    chain("host-ports", "prerouting", ports.filter(isReachedFromOutside).flatMap(arriving)),
    chain("host-ports-own", "output", ports.flatMap(ofNode)),
  ];
}

/** For the chain that translates sources, where there are host ports. */
export function hostPortSource({ services }: Pick<DataplaneModel, "services">): NftRule[] {
  const some = [...services.values()].some(({ hostPort }) => hostPort === true);
  return some ? [{ when: [{ on: "mark", bits: MARK.masquerade }], verdict: { is: "masquerade" } }] : [];
}

function chain(name: string, hook: "prerouting" | "output", rules: NftRule[]): NftChain {
  return { name, base: { type: "nat", hook, priority: PRIORITY }, rules };
}

/** One for a single address of the node goes before one for all of them. */
function isNamed({ externalAddresses }: ServicePort): boolean {
  return externalAddresses.length > 0;
}

function isReachedFromOutside({ externalAddresses }: ServicePort): boolean {
  return !externalAddresses.some((address) => address.startsWith("127.") || address === "::1");
}

function arriving(port: ServicePort): NftRule[] {
  return port.localBackends.flatMap(({ address }) => [
    masqueraded(port, { on: "address", side: "source", family: port.family, among: [single(address)] }),
    translated(port),
  ]);
}

function ofNode(port: ServicePort): NftRule[] {
  const own = { on: "address", side: "source", family: 4, among: [LOOPBACK] } as const;
  return [...(port.family === 4 ? [masqueraded(port, own)] : []), translated(port)];
}

function masqueraded(port: ServicePort, source: Condition): NftRule {
  return { when: [...asked(port), source], mark: { set: MARK.masquerade } };
}

function translated(port: ServicePort): NftRule {
  const [backend] = port.localBackends;
  return {
    when: asked(port),
    ...(backend ? { verdict: { is: "dnat", to: backend.address, port: backend.port } } : {}),
    comment: port.id,
  };
}

function asked({ protocol, port, family, externalAddresses }: ServicePort): Condition[] {
  const at: Condition[] =
    externalAddresses.length > 0
      ? [{ on: "address", side: "destination", family, among: externalAddresses.map(single) }]
      : [{ on: "family", is: family }];
  return [
    ...at,
    { on: "protocol", among: [protocol] },
    { on: "port", side: "destination", among: [[port, port]] },
    { on: "local" },
  ];
}

function single(address: string): string {
  return `${address}/${address.includes(":") ? 128 : 32}`;
}
