import type { KubeObject } from "../../api/object.ts";
import { readNodeBgp } from "../../api/protocol/node-bgp.ts";
import type { BGPConfiguration } from "../../api/resources/bgp-configuration.ts";
import type { BGPFilter } from "../../api/resources/bgp-filter.ts";
import type { BGPPeer } from "../../api/resources/bgp-peer.ts";
import type { IPPool } from "../../api/resources/ip-pool.ts";
import { matchesExpression, parseSelectorExpression } from "../../api/schema/selector-expression.ts";
import { parseAddress, V4 } from "../../kit/ip.ts";
import type { ClusterNode, DataplaneModel } from "../model.ts";
import type { BgpProblem } from "./bgp-model.ts";

/** What a Secret is named by. */
export interface SecretRef {
  name: string;
  key: string;
}

export interface BgpInputs {
  /** Of which node. */
  node: string;
  /** What the calculation says of the node: routes, nodes, Services. */
  model: Pick<DataplaneModel, "routes" | "nodes" | "services">;
  nodes: readonly KubeObject[];
  configurations: readonly BGPConfiguration[];
  peers: readonly BGPPeer[];
  filters: readonly BGPFilter[];
  pools: readonly IPPool[];
  /** Undefined: it cannot be read. */
  password(ref: SecretRef): string | undefined;
  /** The node is changing its data plane. */
  switching: boolean;
}

/** A node as a speaker of BGP: itself, its settings, its addresses. */
export interface Speaker {
  name: string;
  object: KubeObject;
  network: ClusterNode;
  configuration: BGPConfiguration["spec"];
  asNumber: number;
  clusterId: string | null;
}

const DEFAULT_AS = 64_512;

/** Every node that is known with an address, by name. */
export function speakersOf(inputs: BgpInputs, problems: BgpProblem[]): Map<string, Speaker> {
  const byName = new Map(inputs.configurations.map((one) => [one.metadata.name, one.spec ?? {}]));
  const speakers = new Map<string, Speaker>();
  for (const object of [...inputs.nodes].sort(byObjectName)) {
    const { name } = object.metadata;
    const network = inputs.model.nodes.get(name);
    if (!network || (network.addressV4 === null && network.addressV6 === null)) continue;
    const configuration = { ...byName.get("default"), ...byName.get(`node.${name}`) };
    const said = readNodeBgp(object);
    const own = readAs(said.asNumber);
    const clusterId = readClusterId(said.routeReflectorClusterId);
    if (name === inputs.node) {
      if (own === "malformed")
        problems.push(setting(name, "AS number", said.asNumber, "a number from 1 to 4294967295"));
      if (clusterId === "malformed") {
        problems.push(setting(name, "route reflector cluster id", said.routeReflectorClusterId, "an IPv4 address"));
      }
    }
    speakers.set(name, {
      ...{ name, object, network, configuration },
      asNumber: typeof own === "number" ? own : (configuration.asNumber ?? DEFAULT_AS),
      clusterId: clusterId === "malformed" ? null : clusterId,
    });
  }
  return speakers;
}

/** Undefined: it cannot be read, and selects nothing. */
export function selectorOf(text: string): ((speaker: Speaker) => boolean) | undefined {
  const parsed = parseSelectorExpression(text);
  if ("problem" in parsed) return undefined;
  return ({ object }) => matchesExpression(parsed.expression, object.metadata.labels ?? {});
}

export function byObjectName(a: { metadata: { name: string } }, b: { metadata: { name: string } }): number {
  return a.metadata.name < b.metadata.name ? -1 : 1;
}

function readAs(text: string | undefined): number | "malformed" | undefined {
  if (text === undefined || text === "") return undefined;
  const value = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0;
  return value >= 1 && value <= 4_294_967_295 ? value : "malformed";
}

function readClusterId(text: string | undefined): string | "malformed" | null {
  if (text === undefined || text === "") return null;
  return parseAddress(text)?.family === V4 && text !== "0.0.0.0" ? text : "malformed";
}

function setting(node: string, what: string, value: string | undefined, form: string): BgpProblem {
  const message = `the ${what} of the node, "${value}", is not ${form}: it is not used`;
  return { object: `Node ${node}`, code: "BGP_NODE_SETTING", message };
}
