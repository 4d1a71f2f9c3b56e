import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { Packet } from "../../src/calc/model.ts";
import type { PacketEnd } from "./random-packet.ts";
import { ReferenceFacts } from "./reference-facts.ts";
import { kubernetesRuleMatches, ruleMatches, type SeenPacket } from "./reference-rules.ts";

/**
 * What should happen to a packet, read straight from the API objects with no calculation in between: every question walks all objects
 * again. It shares nothing with the calculation but the reading of selectors, and is written to be compared with the documentation line by line.
 */
export function referenceVerdict(
  objects: readonly KubeObject[],
  world: { node: string; uplink: { name: string; addresses: string[] } },
  packet: Packet,
  ends: { from: PacketEnd; to: PacketEnd },
): "allow" | "deny" {
  const { from, to } = ends;
  if (from.at === "workload" && to.at === "workload" && from.id === to.id) return "allow";
  const judge = new Reference(objects, world, packet, ends);
  if (from.at === "uplink" && !judge.hostInterface("ingress")) return "deny";
  if (from.at === "workload") {
    if (!judge.wildcardAtWorkload("ingress") || !judge.workload(from.id, "egress")) return "deny";
  }
  if (to.at === "uplink" && !judge.hostInterface("egress")) return "deny";
  if (to.at === "workload" && from.at !== "host") {
    if (!judge.wildcardAtWorkload("egress") || !judge.workload(to.id, "ingress")) return "deny";
  }
  return from.at === "workload" && to.at === "host" && judge.toHostAction === "Drop" ? "deny" : "allow";
}

/** What the sidecar of a pod should say to a request that the pod receives. */
export function referenceRequestVerdict(
  objects: readonly KubeObject[],
  world: { node: string; uplink: { name: string; addresses: string[] } },
  packet: Packet,
  pod: string,
): "allow" | "deny" {
  const ends = { from: { at: "uplink" }, to: { at: "workload", id: pod } } as const;
  return new Reference(objects, world, packet, ends).workload(pod, "ingress") ? "allow" : "deny";
}

type Direction = "ingress" | "egress";
type Decision = "allow" | "deny" | "pass" | undefined;
type Json = Record<string, unknown>;

interface Applicable {
  tier: string;
  order: number;
  name: string;
  decide: (packet: SeenPacket) => Decision;
}

const known = new WeakMap<readonly KubeObject[], ReferenceFacts>();

function factsOf(objects: readonly KubeObject[]): ReferenceFacts {
  const facts = known.get(objects) ?? new ReferenceFacts(objects);
  known.set(objects, facts);
  return facts;
}

class Reference {
  readonly #facts: ReferenceFacts;
  readonly #world: { node: string; uplink: { name: string; addresses: string[] } };
  readonly #packet: SeenPacket;
  readonly #original: SeenPacket;
  readonly #fromHost: boolean;
  readonly #toHost: boolean;

  constructor(
    objects: readonly KubeObject[],
    world: { node: string; uplink: { name: string; addresses: string[] } },
    packet: Packet,
    { from, to }: { from: PacketEnd; to: PacketEnd },
  ) {
    this.#facts = factsOf(objects);
    this.#world = world;
    this.#packet = {
      ...packet,
      sourcePort: packet.sourcePort ?? 0,
      destinationPort: packet.destinationPort ?? 0,
    };
    this.#original = {
      ...this.#packet,
      destination: packet.originalDestination ?? packet.destination,
      destinationPort: packet.originalDestinationPort ?? packet.destinationPort ?? 0,
    };
    this.#fromHost = from.at === "host";
    this.#toHost = to.at === "host";
  }

  get toHostAction(): string {
    return (this.#facts.configuration(this.#world.node)["defaultEndpointToHostAction"] as string) ?? "Accept";
  }

  /** A pod's own policies, then its namespace, which allows all if it exists. */
  workload(id: string, direction: Direction): boolean {
    const pod = this.#facts.pod(id);
    if (!pod) return false;
    const policies = this.#facts.policiesFor(pod).filter(({ spec }) => !spec["preDNAT"]);
    const decision = this.#tiers(policies, direction, this.#packet);
    if (decision !== undefined) return decision === "allow";
    return this.#facts.namespaceExists(pod.namespace!);
  }

  /** The uplink's host endpoint: by name, by address, or the one for all interfaces. */
  hostInterface(direction: Direction): boolean {
    const { name, addresses } = this.#world.uplink;
    const all = this.#facts.hostEndpoints(this.#world.node);
    const own =
      all.find(({ spec }) => spec["interfaceName"] === name) ??
      all.find(
        ({ spec }) =>
          !spec["interfaceName"] && ((spec["expectedIPs"] ?? []) as string[]).some((ip) => addresses.includes(ip)),
      ) ??
      all.find(({ spec }) => spec["interfaceName"] === "*");
    return own ? this.#host(own, direction, true) : true;
  }

  /** At a pod's interface the endpoint for all interfaces speaks for the node; between a node and its pods only if told so. */
  wildcardAtWorkload(direction: Direction): boolean {
    const wildcard = this.#facts.hostEndpoints(this.#world.node).find(({ spec }) => spec["interfaceName"] === "*");
    const normal = direction === "ingress" && this.toHostAction === "Return";
    return wildcard ? this.#host(wildcard, direction, normal) : true;
  }

  #host(endpoint: { name: string; spec: Json }, direction: Direction, normalApplies: boolean): boolean {
    if (this.#isFailsafe(direction)) return true;
    const policies = this.#facts.policiesFor(this.#facts.labeledHostEndpoint(endpoint.name));
    if (direction === "ingress") {
      const before = this.#preDNAT(policies.filter(({ spec }) => spec["preDNAT"]));
      if (before !== undefined) return before === "allow";
    }
    const normal = policies.filter(({ spec }) => !spec["preDNAT"]);
    if (!this.#fromHost && !this.#toHost) {
      const forwarded = normal.filter(({ spec }) => spec["applyOnForward"]);
      return this.#tiers(forwarded, direction, this.#packet) !== "deny";
    }
    if (!normalApplies) return true;
    const decision = this.#tiers(normal, direction, this.#packet);
    if (decision !== undefined) return decision === "allow";
    return this.#profiles((endpoint.spec["profiles"] ?? []) as string[], direction);
  }

  #profiles(names: string[], direction: Direction): boolean {
    for (const name of names) {
      if (name === vendorNames.hostEndpoints.allowAllProfile) return true;
      const rules = (this.#facts.profile(name)?.[direction] ?? []) as Json[];
      const decision = this.#rules(rules, undefined, this.#packet);
      if (decision !== undefined) return decision === "allow";
    }
    return false;
  }

  /** Before translation a tier never ends in deny: what its rules do not decide is decided later. */
  #preDNAT(policies: { namespace?: string; spec: Json; name: string; kind: string }[]): "allow" | "deny" | undefined {
    return this.#tiers(policies, "ingress", this.#original, true);
  }

  #tiers(
    policies: { namespace?: string; name: string; kind: string; spec: Json }[],
    direction: Direction,
    packet: SeenPacket,
    neverEnds = false,
  ): "allow" | "deny" | undefined {
    const applicable = policies.flatMap((policy) => this.#applicable(policy, direction));
    const tiers = [...new Set(applicable.map(({ tier }) => tier))].map((name) => ({ name, ...this.#facts.tier(name) }));
    tiers.sort((a, b) => a.order - b.order || (a.name < b.name ? -1 : 1));
    for (const tier of tiers) {
      const inTier = applicable.filter((policy) => policy.tier === tier.name);
      inTier.sort((a, b) => (a.order === b.order ? (a.name < b.name ? -1 : 1) : a.order - b.order));
      let decision: Decision;
      for (const policy of inTier) {
        decision = policy.decide(packet);
        if (decision !== undefined) break;
      }
      if (decision === "allow" || decision === "deny") return decision;
      if (decision === undefined && !neverEnds && tier.defaultAction === "Deny") return "deny";
    }
    return undefined;
  }

  #applicable(
    policy: { namespace?: string; name: string; kind: string; spec: Json },
    direction: Direction,
  ): Applicable[] {
    const { spec, namespace } = policy;
    const rules = (which: Direction) => (spec[which] ?? []) as Json[];
    if (policy.kind === "kubernetes") {
      const types = (spec["policyTypes"] ?? ["Ingress", ...(rules("egress").length > 0 ? ["Egress"] : [])]) as string[];
      if (!types.map((type) => type.toLowerCase()).includes(direction)) return [];
      const allows = (packet: SeenPacket) =>
        rules(direction).some((rule) => kubernetesRuleMatches(this.#facts, rule, namespace!, direction, packet));
      const decide = (packet: SeenPacket) => (allows(packet) ? ("allow" as const) : undefined);
      return [{ tier: "default", order: 1000, name: `knp.default.${policy.name} ${namespace}`, decide }];
    }
    const byRules =
      rules("egress").length === 0 ? ["Ingress"] : rules("ingress").length === 0 ? ["Egress"] : ["Ingress", "Egress"];
    const types = (spec["types"] ?? byRules) as string[];
    if (!types.map((type) => type.toLowerCase()).includes(direction)) return [];
    return [
      {
        tier: spec["tier"] as string,
        order: (spec["order"] as number | undefined) ?? Number.MAX_VALUE,
        name: `${policy.name} ${namespace ?? ""}`,
        decide: (packet) => this.#rules(rules(direction), namespace, packet),
      },
    ];
  }

  #rules(rules: Json[], namespace: string | undefined, packet: SeenPacket): Decision {
    for (const rule of rules) {
      if (rule["action"] === "Log" || !ruleMatches(this.#facts, rule, namespace, packet)) continue;
      return (rule["action"] as string).toLowerCase() as Decision;
    }
    return undefined;
  }

  #isFailsafe(direction: Direction): boolean {
    if (direction === "ingress" ? !this.#toHost : !this.#fromHost) return false;
    const { protocol, destinationPort, source, destination } = this.#packet;
    const remote = direction === "ingress" ? source : destination;
    return this.#facts
      .failsafe(this.#world.node, direction)
      .some(
        (open) =>
          open.protocol === protocol &&
          open.port === destinationPort &&
          (open.net === undefined || this.#facts.inNet(remote, open.net)),
      );
  }
}
