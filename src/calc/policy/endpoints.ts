import type { HostEndpoint as HostEndpointResource } from "../../api/resources/host-endpoint.ts";
import type { Tier } from "../../api/resources/tier.ts";
import type { Direction, HostEndpoint, Policy, Profile, TierPolicies, WorkloadEndpoint } from "../model.ts";
import { orMake } from "../or-make.ts";
import type { TableDiff } from "../table-diff.ts";
import { orderedTiers, tierPlace } from "./endpoint-policy.ts";
import type { IpSets } from "./ip-sets.ts";
import { LabelIndex } from "./label-index.ts";
import type { LabeledEndpoint, Workload } from "./labeled-endpoints.ts";
import type { SetSource } from "./set-source.ts";
import type { TranslatedProfile } from "./translate-profile.ts";
import type { TranslatedPolicy } from "./translated-policy.ts";

/** An endpoint of this node. */
export type LocalEndpoint =
  | { is: "workload"; thing: Workload; interfaceName: string }
  | { is: "host"; thing: LabeledEndpoint; resource: HostEndpointResource };

interface Tables {
  endpoints: TableDiff<WorkloadEndpoint>;
  hostEndpoints: TableDiff<HostEndpoint>;
  policies: TableDiff<Policy>;
  profiles: TableDiff<Profile>;
}

/**
 * Gives every endpoint of this node its policies and profiles in order, and keeps in the model only those some endpoint has, and in the
 * sets only what their rules mean.
 */
export class Endpoints {
  readonly #sets: IpSets;
  readonly #tables: Tables;
  readonly #endpoints = new Map<string, LocalEndpoint>();
  readonly #policies = new Map<string, TranslatedPolicy>();
  readonly #profiles = new Map<string, TranslatedProfile>();
  readonly #tiers = new Map<string, Tier>();
  readonly #policyUse = new Uses();
  readonly #profileUse = new Uses();
  /** By profile, the endpoints that name it, whether it exists or not. */
  readonly #namedBy = new Map<string, Set<string>>();
  /** Sets held for a policy or profile in the model, by its id. */
  readonly #held = new Map<string, ReadonlyMap<string, SetSource>>();
  readonly #dirtyEndpoints = new Set<string>();
  readonly #dirtyPolicies = new Set<string>();
  readonly #dirtyProfiles = new Set<string>();
  readonly #index = new LabelIndex((_policy, endpoint) => this.#dirtyEndpoints.add(endpoint));

  constructor(sets: IpSets, tables: Tables) {
    this.#sets = sets;
    this.#tables = tables;
  }

  setPolicy(id: string, policy: TranslatedPolicy | undefined): void {
    // New rules alone change only the policy: endpoints refer to it by its id.
    if (placeText(this.#policies.get(id)) !== placeText(policy)) {
      for (const endpoint of this.#index.matchesOfSelector(id)) this.#dirtyEndpoints.add(endpoint);
    }
    this.#dirtyPolicies.add(id);
    if (policy) {
      this.#policies.set(id, policy);
      this.#index.setSelector(id, policy.selector);
    } else {
      this.#policies.delete(id);
      this.#index.removeSelector(id);
    }
  }

  setTier(name: string, tier: Tier | undefined): void {
    if (tier) this.#tiers.set(name, tier);
    else this.#tiers.delete(name);
    // Endpoints of one node are few, and tiers change seldom.
    for (const id of this.#endpoints.keys()) this.#dirtyEndpoints.add(id);
  }

  setProfile(id: string, profile: TranslatedProfile | undefined): void {
    if (profile) this.#profiles.set(id, profile);
    else this.#profiles.delete(id);
    this.#dirtyProfiles.add(id);
    for (const endpoint of this.#namedBy.get(id) ?? []) this.#dirtyEndpoints.add(endpoint);
  }

  set(endpoint: LocalEndpoint): void {
    const { id, labels } = endpoint.thing;
    this.#name(id, endpoint);
    this.#endpoints.set(id, endpoint);
    this.#dirtyEndpoints.add(id);
    this.#index.setItem(id, labels);
  }

  /** By the id of its thing. */
  remove(id: string): void {
    if (!this.#endpoints.has(id)) return;
    this.#index.removeItem(id);
    this.#name(id, undefined);
    this.#endpoints.delete(id);
    this.#dirtyEndpoints.add(id);
  }

  settle(): void {
    for (const id of this.#dirtyEndpoints) this.#settleEndpoint(id);
    for (const id of [...this.#dirtyPolicies, ...this.#policyUse.takeChanged()]) {
      const policy = this.#policyUse.has(id) ? this.#policies.get(id) : undefined;
      this.#tables.policies.set(id, policy?.policy);
      this.#hold(`policy ${id}`, policy?.sets);
    }
    for (const id of [...this.#dirtyProfiles, ...this.#profileUse.takeChanged()]) {
      const profile = this.#profileUse.has(id) ? this.#profiles.get(id) : undefined;
      this.#tables.profiles.set(id, profile?.profile);
      this.#hold(`profile ${id}`, profile?.sets);
    }
    for (const dirty of [this.#dirtyEndpoints, this.#dirtyPolicies, this.#dirtyProfiles]) dirty.clear();
  }

  #settleEndpoint(id: string): void {
    const endpoint = this.#endpoints.get(id);
    const workload = endpoint?.is === "workload" ? this.#workload(endpoint.thing, endpoint.interfaceName) : undefined;
    const host = endpoint?.is === "host" ? this.#host(endpoint.thing, endpoint.resource) : undefined;
    const [kind, name] = splitId(id);
    if (kind === "pod") this.#tables.endpoints.set(name, workload);
    else this.#tables.hostEndpoints.set(name, host);
    const tiers = workload
      ? [...workload.ingress.tiers, ...workload.egress.tiers]
      : host
        ? [...host.preDNAT, ...Object.values(host.forward).flat(), ...Object.values(host.normal).flat()]
        : [];
    this.#policyUse.set(id, new Set(tiers.flatMap(({ policies }) => policies)));
    this.#profileUse.set(id, new Set(workload?.ingress.profiles ?? host?.profiles ?? []));
  }

  #workload(thing: Workload, interfaceName: string): WorkloadEndpoint {
    // preDNAT is a matter of nodes alone.
    const policies = this.#selecting(thing.id).filter(({ preDNAT }) => !preDNAT);
    const profiles = this.#existing(thing.profiles);
    return {
      id: thing.endpoint,
      interfaceName,
      mac: thing.mac,
      addresses: thing.nets,
      ingress: { tiers: this.#tiersOf(policies, "ingress"), profiles },
      egress: { tiers: this.#tiersOf(policies, "egress"), profiles },
    };
  }

  #host(thing: LabeledEndpoint, { metadata, spec }: HostEndpointResource): HostEndpoint {
    const all = this.#selecting(thing.id);
    const normal = all.filter(({ preDNAT }) => !preDNAT);
    const forward = normal.filter(({ applyOnForward }) => applyOnForward);
    const preDNAT = all.filter((policy) => policy.preDNAT);
    const both = (policies: TranslatedPolicy[]) => ({
      ingress: this.#tiersOf(policies, "ingress"),
      egress: this.#tiersOf(policies, "egress"),
    });
    return {
      id: metadata.name,
      interfaceName: spec.interfaceName || null,
      expectedIPs: thing.nets,
      // Before translation only what a rule says is decided; everything else is for the tiers after it.
      preDNAT: this.#tiersOf(preDNAT, "ingress").map((tier) => ({ ...tier, endAction: "pass" })),
      forward: both(forward),
      normal: both(normal),
      profiles: this.#existing(spec.profiles ?? []),
    };
  }

  #selecting(id: string): TranslatedPolicy[] {
    return [...this.#index.matchesOfItem(id)].flatMap((policy) => this.#policies.get(policy) ?? []);
  }

  #tiersOf(policies: TranslatedPolicy[], direction: Direction): TierPolicies[] {
    return orderedTiers(policies, direction, (name) => tierPlace(name, this.#tiers.get(name)));
  }

  /** A profile that is not there, or says nothing, decides nothing. */
  #existing(ids: readonly string[]): string[] {
    return ids.filter((id) => {
      const profile = this.#profiles.get(id)?.profile;
      return profile !== undefined && profile.ingress.length + profile.egress.length > 0;
    });
  }

  #name(id: string, endpoint: LocalEndpoint | undefined): void {
    for (const profile of profilesOf(this.#endpoints.get(id))) this.#namedBy.get(profile)?.delete(id);
    for (const profile of profilesOf(endpoint)) orMake(this.#namedBy, profile, () => new Set()).add(id);
  }

  /** New sets before old ones, so that one both have is never let go. */
  #hold(holder: string, sets: ReadonlyMap<string, SetSource> | undefined): void {
    const before = this.#held.get(holder);
    if (before === sets) return;
    if (sets) {
      this.#sets.use(sets);
      this.#held.set(holder, sets);
    } else this.#held.delete(holder);
    if (before) this.#sets.release(before);
  }
}

/** All of a policy that decides where it stands among the policies of an endpoint. */
function placeText(policy: TranslatedPolicy | undefined): string {
  if (!policy) return "";
  const { tieBreak, decides, preDNAT, applyOnForward } = policy;
  return JSON.stringify([policy.policy.tier, policy.policy.order, tieBreak, decides, preDNAT, applyOnForward]);
}

function profilesOf(endpoint: LocalEndpoint | undefined): readonly string[] {
  if (!endpoint) return [];
  return endpoint.is === "workload" ? endpoint.thing.profiles : (endpoint.resource.spec.profiles ?? []);
}

/** `pod NAMESPACE/NAME` and `hep NAME` are the ids of the things that can be endpoints. */
function splitId(id: string): [kind: string, name: string] {
  const space = id.indexOf(" ");
  return [id.slice(0, space), id.slice(space + 1)];
}

/** Counts references, and reports what became used or unused. */
class Uses {
  readonly #uses = new Map<string, ReadonlySet<string>>();
  readonly #counts = new Map<string, number>();
  readonly #changed = new Set<string>();

  has(used: string): boolean {
    return this.#counts.has(used);
  }

  set(user: string, now: ReadonlySet<string>): void {
    const before = this.#uses.get(user) ?? new Set();
    if (now.size > 0) this.#uses.set(user, now);
    else this.#uses.delete(user);
    for (const used of now) if (!before.has(used)) this.#count(used, 1);
    for (const used of before) if (!now.has(used)) this.#count(used, -1);
  }

  takeChanged(): string[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  #count(used: string, by: 1 | -1): void {
    const count = (this.#counts.get(used) ?? 0) + by;
    if (count === 0) this.#counts.delete(used);
    else this.#counts.set(used, count);
    if (count === 0 || (count === 1 && by === 1)) this.#changed.add(used);
  }
}
