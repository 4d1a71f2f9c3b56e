import { setImmediate as nextTurn } from "node:timers/promises";
import type { FlowPending, PolicyHit } from "../../api/protocol/flow.ts";
import type { DataplaneModel, Direction, HostEndpoint, Packet, TierPolicies } from "../../calc/model.ts";
import { type Place, trace } from "../../calc/policy/evaluate.ts";
import type { StagedModel } from "../../calc/staged-calculator.ts";
import type { FlowSum } from "../../dataplane/flow-sums.ts";
import { type NodeLinks, Places } from "../../dataplane/nft/places.ts";
import { wayThroughPolicy } from "./flow-rows.ts";

type PendingOf = (sum: FlowSum) => FlowPending | undefined;

export interface PendingSources {
  enforced: DataplaneModel;
  /** Undefined: nothing is staged. */
  staged: StagedModel | undefined;
  netlink: NodeLinks;
}

export interface PendingPolicy {
  /** What would have happened to each sum if staged policies were enforced, as they are now. */
  of(sums: readonly FlowSum[], sources: PendingSources): Promise<PendingOf>;
}

/** The event loop runs between so many milliseconds. */
const TURN_MS = 5;
/** Answers that are kept for the next intervals, until something that decides them changes. */
const MOST_KNOWN = 200_000;
/** By ICMP and ICMPv6: sums have no types, and most of what is asked is an echo request. */
const ECHO_REQUEST: Readonly<Record<number, number>> = { 1: 8, 58: 128 };
/** Why the data plane dropped what policy denied. */
const BY_POLICY = /^policy_(?:workload|host)/;

const NOTHING: PendingOf = () => undefined;

export function pendingPolicy(): PendingPolicy {
  let asked: PendingQuestions | undefined;
  return {
    async of(sums, { enforced, staged, netlink }) {
      if (!staged) {
        asked = undefined;
        return NOTHING;
      }
      if (asked?.version !== staged.version) asked = new PendingQuestions(enforced, staged);
      asked.look(netlink);
      const answers = new Map<FlowSum, FlowPending>();
      let began = performance.now();
      for (const sum of sums) {
        const answer = asked.of(sum);
        if (answer) answers.set(sum, answer);
        if (performance.now() - began < TURN_MS) continue;
        await nextTurn();
        began = performance.now();
      }
      return (sum) => answers.get(sum);
    },
  };
}

/** Of one version of what is staged. */
class PendingQuestions {
  readonly version: object;
  readonly #enforced: DataplaneModel;
  readonly #staged: StagedModel;
  readonly #known = new Map<string, FlowPending | undefined>();
  readonly #pods = new Map<string, boolean>();
  readonly #ways = new Map<string, FlowPending>();
  readonly #onHosts: boolean;
  #places: Places | undefined;

  constructor(enforced: DataplaneModel, staged: StagedModel) {
    this.version = staged.version;
    this.#enforced = enforced;
    this.#staged = staged;
    this.#onHosts = [enforced, staged.model].some(({ hostEndpoints }) =>
      [...hostEndpoints.values()].some((endpoint) => this.#isStaged(tiersOfHost(endpoint))),
    );
  }

  /** Addresses and routes of the node change by themselves. */
  look(netlink: NodeLinks): void {
    this.#places = new Places(this.#staged.model, netlink);
  }

  of(sum: FlowSum): FlowPending | undefined {
    const { source, destination, protocol, destinationPort, verdict, reason = "" } = sum;
    // What was merged has no ends to ask; what no policy denied is dropped whatever is staged.
    if (source === "" || destination === "" || (verdict === "Deny" && !BY_POLICY.test(reason))) return undefined;
    const key = `${source} ${destination} ${protocol} ${destinationPort}`;
    if (this.#known.has(key)) return this.#known.get(key);
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    const answer = this.#ask(sum);
    this.#known.set(key, answer);
    return answer;
  }

  #ask(sum: FlowSum): FlowPending | undefined {
    const from = this.#places!.of(sum.source);
    const to = this.#places!.of(sum.destination);
    const concerned = this.#onHosts || this.#concerns(from, "egress") || this.#concerns(to, "ingress");
    if (!concerned) return undefined;
    const { model, staged } = this.#staged;
    const { verdict, egress, ingress } = trace(model, packetOf(sum), { from, to });
    // A pod that is gone is asked nothing any more.
    if (egress === undefined && ingress === undefined) return undefined;
    const action = verdict.action === "allow" ? "Allow" : "Deny";
    const { policies, profiles } = model;
    return this.#shared(action, wayThroughPolicy({ egress, ingress, verdict: action }, { policies, profiles, staged }));
  }

  /** Flows that take the same way have one object of it, as those that share ends. */
  #shared(verdict: FlowPending["verdict"], policies: readonly PolicyHit[]): FlowPending {
    const made = { verdict, policies };
    const text = JSON.stringify(made);
    const known = this.#ways.get(text);
    if (known) return known;
    this.#ways.set(text, made);
    return made;
  }

  #concerns(place: Place, direction: Direction): boolean {
    if (place.at !== "workload") return false;
    const key = `${direction} ${place.id}`;
    const known = this.#pods.get(key);
    if (known !== undefined) return known;
    const tiers = [this.#enforced, this.#staged.model].flatMap(
      ({ endpoints }) => endpoints.get(place.id)?.[direction].tiers ?? [],
    );
    const answer = this.#isStaged(tiers);
    this.#pods.set(key, answer);
    return answer;
  }

  #isStaged(tiers: readonly TierPolicies[]): boolean {
    return tiers.some(({ policies }) => policies.some((id) => this.#staged.staged.has(id)));
  }
}

function tiersOfHost({ preDNAT, forward, normal }: HostEndpoint): TierPolicies[] {
  return [...preDNAT, ...Object.values(forward).flat(), ...Object.values(normal).flat()];
}

function packetOf({ source, destination, protocol, destinationPort }: FlowSum): Packet {
  const icmpType = ECHO_REQUEST[protocol];
  return {
    ...{ ipVersion: source.includes(":") ? 6 : 4, protocol, source, destination },
    ...(destinationPort === 0 ? {} : { destinationPort }),
    ...(icmpType === undefined ? {} : { icmpType }),
  };
}
