import { createHash } from "node:crypto";
import { isCommunity, isInterfacePattern } from "../../api/validation/bgp.ts";
import type { Net } from "../model.ts";
import { toNet, toNets } from "../nets.ts";
import { routesOfNode } from "./announced-routes.ts";
import { type BgpInputs, type Speaker, speakersOf } from "./bgp-inputs.ts";
import type { BgpModel, BgpProblem } from "./bgp-model.ts";
import { sessionsOf } from "./bgp-sessions.ts";

export interface CalculatedBgp {
  /** Undefined: the node has no address yet. */
  model: BgpModel | undefined;
  problems: BgpProblem[];
}

/** What the objects of the cluster mean for one node's BGP. */
export function calculateBgp(inputs: BgpInputs): CalculatedBgp {
  const problems: BgpProblem[] = [];
  const speakers = speakersOf(inputs, problems);
  const self = speakers.get(inputs.node);
  if (!self) return { model: undefined, problems };
  const { configuration } = self;
  const { sessions, gateways } = sessionsOf(self, speakers, inputs, problems);
  const model: BgpModel = {
    node: self.name,
    asNumber: self.asNumber,
    routerId: self.network.addressV4 ?? derivedId(self.name),
    log: configuration.logSeverityScreen ?? "Info",
    strictBind: configuration.bindMode === "NodeIP",
    sessions,
    ...routesOfNode(inputs, configuration),
    ownSubnets: subnetsOf(self),
    communities: communitiesOf(self, problems),
    ignoredInterfaces: [...(configuration.ignoredInterfaces ?? [])].filter(isInterfacePattern).sort(),
    gateways,
  };
  return { model, problems: inOrder(problems) };
}

/** What is announced inside of several prefixes carries the communities of all of them. */
function communitiesOf({ configuration }: Speaker, problems: BgpProblem[]): BgpModel["communities"] {
  const names = new Map((configuration.communities ?? []).map(({ name, value }) => [name, value]));
  return (configuration.prefixAdvertisements ?? []).flatMap(({ cidr, communities }) => {
    const net = toNet(cidr);
    const values = communities.flatMap((text) => {
      const value = names.get(text) ?? text;
      if (isCommunity(value)) return [value];
      const message = `"${text}" in prefixAdvertisements is neither a community nor the name of one: routes do not carry it`;
      problems.push({ object: "BGPConfiguration default", code: "BGP_COMMUNITY_MISSING", message });
      return [];
    });
    return net === undefined || values.length === 0 ? [] : [{ net, values }];
  });
}

function subnetsOf({ network }: Speaker): Net[] {
  const alone = [network.addressV4, network.addressV6].flatMap((address) => address ?? []);
  return toNets([network.subnetV4, network.subnetV6, ...alone].flatMap((text) => text ?? []));
}

/** Not zero, and the same after each start. */
function derivedId(node: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = createHash("sha256").update(`bgp ${node}`).digest();
  return [(a % 223) + 1, b, c, d].join(".");
}

function inOrder(problems: readonly BgpProblem[]): BgpProblem[] {
  const byText = new Map(problems.map((one) => [`${one.object} ${one.code} ${one.message}`, one]));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, problem]) => problem);
}
