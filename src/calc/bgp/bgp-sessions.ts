import type { BGPPeer } from "../../api/resources/bgp-peer.ts";
import { parsePeer } from "../../api/validation/bgp.ts";
import { formatAddress, parseAddress } from "../../kit/ip.ts";
import { hostNet } from "../nets.ts";
import { type BgpInputs, byObjectName, type SecretRef, type Speaker, selectorOf } from "./bgp-inputs.ts";
import type { BgpModel, BgpProblem, BgpProblemCode, BgpSession, FilterRule } from "./bgp-model.ts";

const PORT = 179;
const RESTART_SECONDS = 120;
/** What the protocol has room for. */
const MOST_RESTART_SECONDS = 4_095;

type Spec = BGPPeer["spec"];
type Self = Pick<Speaker, "name" | "network" | "configuration" | "asNumber" | "clusterId">;

export interface Sessions {
  sessions: BgpSession[];
  gateways: BgpModel["gateways"];
}

/** With whom the node speaks. A session that cannot be as it is asked for is not there at all: neither without its password nor without its filter. */
export function sessionsOf(
  self: Self,
  speakers: ReadonlyMap<string, Speaker>,
  inputs: BgpInputs,
  problems: BgpProblem[],
): Sessions {
  const found = new Map<string, BgpSession>();
  const gateways = new Map<string, string>();
  const own = new Set([self.network.addressV4, self.network.addressV6]);
  for (const peer of [...inputs.peers].sort(byObjectName)) {
    for (const session of ofPeer(self, peer, speakers, inputs, problems)) {
      const key = `${session.address} ${session.port}`;
      if (own.has(session.address) || found.has(key)) continue;
      found.set(key, session);
      const via = peer.spec.reachableBy === undefined ? undefined : parseAddress(peer.spec.reachableBy);
      if (via && peer.spec.peerIP) gateways.set(hostNet(parseAddress(session.address)!), formatAddress(via));
    }
  }
  for (const session of ofMesh(self, speakers, inputs, problems)) {
    const isThere = [...found.values()].some(({ address }) => address === session.address);
    if (!isThere) found.set(`${session.address} ${session.port}`, session);
  }
  return {
    sessions: [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    gateways: [...gateways].map(([net, via]) => ({ net, via })).sort((a, b) => (a.net < b.net ? -1 : 1)),
  };
}

function ofMesh(
  self: Self,
  speakers: ReadonlyMap<string, Speaker>,
  inputs: BgpInputs,
  problems: BgpProblem[],
): BgpSession[] {
  const { configuration } = self;
  // Reflectors have the sessions that BGPPeers give them.
  if (configuration.nodeToNodeMeshEnabled === false || self.clusterId !== null) return [];
  const password = readPassword(configuration.nodeMeshPassword?.secretKeyRef, inputs);
  if ("problem" in password) {
    const asked = inputs.configurations.some(({ spec }) => spec?.nodeMeshPassword);
    if (asked) problems.push({ object: "BGPConfiguration default", ...password.problem });
    return [];
  }
  const others = [...speakers.values()].filter(({ name, clusterId }) => name !== self.name && clusterId === null);
  return others.flatMap((other) =>
    withNode(self, other, {
      ...{ prefix: "mesh", from: "mesh", password: password.text },
      restart: configuration.nodeMeshMaxRestartTime,
    }),
  );
}

function ofPeer(
  self: Self,
  { metadata, spec }: BGPPeer,
  speakers: ReadonlyMap<string, Speaker>,
  inputs: BgpInputs,
  problems: BgpProblem[],
): BgpSession[] {
  const refuse = (code: BgpProblemCode, message: string): [] => {
    problems.push({ object: `BGPPeer ${metadata.name}`, code, message });
    return [];
  };
  const here = spec.nodeSelector === undefined ? () => true : selectorOf(spec.nodeSelector);
  const there = spec.peerSelector === undefined ? () => false : selectorOf(spec.peerSelector);
  if (!here || !there) return refuse("BGP_SELECTOR_MALFORMED", "a selector cannot be read: no node has its sessions");
  const has = (speaker: Speaker) => (spec.node === undefined ? here(speaker) : speaker.name === spec.node);
  const me = speakers.get(self.name);
  if (!me) return [];
  const peers = [...speakers.values()].filter(
    // A session has two ends: the other node has it too.
    (other) => other.name !== self.name && ((has(me) && there(other)) || (there(me) && has(other))),
  );
  if (peers.length === 0 && !(has(me) && spec.peerIP !== undefined)) return [];
  const rules = rulesOf(spec, inputs);
  if ("missing" in rules) {
    return refuse(
      "BGP_FILTER_MISSING",
      `there is no BGPFilter ${rules.missing}: the sessions are not there without it`,
    );
  }
  const password = readPassword(spec.password?.secretKeyRef, inputs);
  if ("problem" in password) return refuse(password.problem.code, password.problem.message);
  const common = { from: metadata.name, password: password.text, restart: spec.maxRestartTime, spec, rules };
  if (spec.peerIP !== undefined) return withRouter(self, speakers, { ...common, spec });
  return peers.flatMap((other) => withNode(self, other, { ...common, prefix: "node" }));
}

interface Asked {
  from: string;
  password: string | null;
  restart: string | undefined;
  spec?: Spec;
  rules?: FilterRules;
}

function withNode(self: Self, other: Speaker, asked: Asked & { prefix: string }): BgpSession[] {
  const ends = [
    [self.network.addressV4, other.network.addressV4],
    [self.network.addressV6, other.network.addressV6],
  ] as const;
  const asNumber = asked.spec?.localASNumber ?? other.asNumber;
  return ends.flatMap(([local, address]) =>
    local === null || address === null
      ? []
      : session(self, asked, {
          ...{ prefix: asked.prefix, address, port: other.configuration.listenPort ?? PORT },
          ...{ asNumber, node: other.name, clusterId: other.clusterId },
        }),
  );
}

function withRouter(self: Self, speakers: ReadonlyMap<string, Speaker>, asked: Asked & { spec: Spec }): BgpSession[] {
  const peer = parsePeer(asked.spec.peerIP ?? "");
  if (!peer) return [];
  const node = [...speakers.values()].find(({ network }) =>
    [network.addressV4, network.addressV6].includes(peer.address),
  );
  const asNumber = asked.spec.asNumber ?? node?.asNumber;
  if (asNumber === undefined) return [];
  const prefix = "peer";
  return [
    session(self, asked, {
      ...{
        prefix,
        address: peer.address,
        port: peer.port ?? PORT,
        asNumber,
        node: node?.name ?? null,
        clusterId: node?.clusterId ?? null,
      },
    }),
  ];
}

interface End {
  prefix: string;
  address: string;
  port: number;
  asNumber: number;
  node: string | null;
  clusterId: string | null;
}

function session(self: Self, { from, password, restart, spec = {}, rules }: Asked, end: End): BgpSession {
  const family = end.address.includes(":") ? 6 : 4;
  const localAsNumber = spec.localASNumber ?? self.asNumber;
  const ofSameCluster = end.clusterId !== null && end.clusterId === self.clusterId;
  const isClient = self.clusterId !== null && localAsNumber === end.asNumber && !ofSameCluster;
  const local = family === 4 ? self.network.addressV4 : self.network.addressV6;
  return {
    name: `${end.prefix}_${end.address.replaceAll(/[.:]/g, "_")}${end.port === PORT ? "" : `_${end.port}`}`,
    from,
    family,
    address: end.address,
    port: end.port,
    asNumber: end.asNumber,
    localAsNumber,
    localAddress: spec.sourceAddress === "None" ? null : local,
    localPort: self.configuration.listenPort ?? PORT,
    node: end.node,
    password,
    reflectorClusterId: isClient ? self.clusterId : null,
    reflects: self.clusterId !== null,
    nextHop:
      spec.nextHopMode === "Self" ? "self" : spec.nextHopMode === "Keep" || spec.keepOriginalNextHop ? "keep" : "auto",
    restartSeconds: Math.min(seconds(restart) ?? RESTART_SECONDS, MOST_RESTART_SECONDS),
    allowedLocalAs: spec.numAllowedLocalASNumbers ?? 0,
    ttlSecurity: spec.ttlSecurity ?? null,
    imports: (family === 4 ? rules?.importV4 : rules?.importV6) ?? [],
    exports: (family === 4 ? rules?.exportV4 : rules?.exportV6) ?? [],
  };
}

type FilterRules = Record<"importV4" | "importV6" | "exportV4" | "exportV6", FilterRule[]>;

function rulesOf({ filters = [] }: Spec, inputs: BgpInputs): FilterRules | { missing: string } {
  const byName = new Map(inputs.filters.map((one) => [one.metadata.name, one.spec ?? {}]));
  const missing = filters.find((name) => !byName.has(name));
  if (missing !== undefined) return { missing };
  const all = (field: keyof FilterRules) => filters.flatMap((name) => byName.get(name)?.[field] ?? []);
  return {
    importV4: all("importV4"),
    importV6: all("importV6"),
    exportV4: all("exportV4"),
    exportV6: all("exportV6"),
  };
}

type Password = { text: string | null } | { problem: Pick<BgpProblem, "code" | "message"> };

function readPassword(ref: SecretRef | undefined, { password }: BgpInputs): Password {
  if (!ref) return { text: null };
  const text = password(ref);
  const what = `key ${ref.key} of Secret ${ref.name}`;
  if (text === undefined) {
    const message = `${what} cannot be read: the sessions are not there without their password`;
    return { problem: { code: "BGP_PASSWORD_MISSING", message } };
  }
  // What the kernel takes for MD5, and what the daemon's configuration can quote.
  if (/^[\x20\x21\x23-\x7e]{1,80}$/.test(text)) return { text };
  const message = `${what} is not a password of 1 to 80 printable ASCII characters without a double quote`;
  return { problem: { code: "BGP_PASSWORD_FORM", message } };
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };

function seconds(duration: string | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const parts = [...duration.matchAll(/([0-9.]+)(ns|us|µs|ms|s|m|h)/g)];
  return Math.round(
    parts.reduce((sum, [, count = "0", unit = "s"]) => sum + Number(count) * (UNIT_SECONDS[unit] ?? 1), 0),
  );
}
