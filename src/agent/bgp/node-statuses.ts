import type { NodeStatus as NodeStatusResource } from "../../api/resources/node-status.ts";
import type { Client, Patch } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import { type BgpPeer, NODE_STATUSES, type NodeStatus } from "../stored-kinds.ts";
import type { ControlLine } from "./bird-control.ts";
import { isEstablished, type SessionState } from "./session-states.ts";

type Status = NonNullable<NodeStatusResource["status"]>;
type Daemon = NonNullable<NonNullable<Status["agent"]>["birdV4"]>;
type Peer = NonNullable<NonNullable<Status["bgp"]>["peersV4"]>[number];
type Spec = NodeStatusResource["spec"];

const USUAL_SECONDS = 10;
const STATES: readonly string[] = ["Idle", "Connect", "Active", "OpenSent", "OpenConfirm", "Established", "Close"];

/** What is known of BIRD at one moment. */
interface BgpFacts {
  /** What `show status` says; undefined: it does not answer. */
  daemon: readonly ControlLine[] | undefined;
  sessions: readonly SessionState[];
  peers: readonly BgpPeer[];
}

/** The answer to one NodeStatus. */
function statusOf({ classes }: Pick<Spec, "classes">, facts: BgpFacts, lastUpdated: string): Status {
  const daemon = daemonOf(facts.daemon);
  return {
    lastUpdated,
    ...(classes.includes("Agent") ? { agent: { birdV4: daemon, birdV6: daemon } } : {}),
    ...(classes.includes("BGP") ? { bgp: sessionsOf(facts) } : {}),
  };
}

function daemonOf(lines: readonly ControlLine[] | undefined): Daemon {
  if (!lines) return { state: "NotReady" };
  const said = lines.map(({ text }) => text).join("\n");
  const read = (pattern: RegExp) => pattern.exec(said)?.[1]?.trim() ?? "";
  return {
    state: "Ready",
    version: read(/^BIRD (.*)$/m),
    routerID: read(/^Router ID is (.*)$/m),
    lastBootTime: read(/^Last reboot on (.*)$/m),
    lastReconfigurationTime: read(/^Last reconfiguration on (.*)$/m),
  };
}

function sessionsOf({ sessions, peers }: BgpFacts): NonNullable<Status["bgp"]> {
  const of = (family: 4 | 6) => sessions.filter(({ address }) => address.includes(":") === (family === 6));
  const up = (family: 4 | 6) => of(family).filter(isEstablished).length;
  const shown = (family: 4 | 6) => of(family).map((one) => peerOf(one, peers));
  return {
    ...{ numberEstablishedV4: up(4), numberNotEstablishedV4: of(4).length - up(4), peersV4: shown(4) },
    ...{ numberEstablishedV6: up(6), numberNotEstablishedV6: of(6).length - up(6), peersV6: shown(6) },
  };
}

function peerOf({ address, from, state, since, reason }: SessionState, peers: readonly BgpPeer[]): Peer {
  const asked = peers.find(({ metadata }) => metadata.name === from)?.spec;
  const isForSome = asked?.node !== undefined || asked?.nodeSelector !== undefined;
  return {
    peerIP: address,
    type: asked ? (isForSome ? "NodePeer" : "GlobalPeer") : "NodeMesh",
    state: (STATES.includes(state) ? state : "Unknown") as NonNullable<Peer["state"]>,
    since,
    info: reason,
  };
}

interface NodeStatusesOptions {
  node: string;
  client: Client;
  objects: () => readonly NodeStatus[];
  clock: Clock;
  log: Log;
}

/** Answers what is asked of this node: at once, then as often as it says. */
export class NodeStatuses {
  readonly #options: NodeStatusesOptions;
  readonly #answered = new Map<string, { generation: number | undefined; at: number }>();

  constructor(options: NodeStatusesOptions) {
    this.#options = options;
  }

  isDue(): boolean {
    return this.#due().length > 0;
  }

  async answer(facts: BgpFacts): Promise<void> {
    const { client, clock, log, objects } = this.#options;
    const there = new Set(objects().map(({ metadata }) => metadata.uid ?? ""));
    for (const uid of this.#answered.keys()) if (!there.has(uid)) this.#answered.delete(uid);
    for (const { metadata, spec } of this.#due()) {
      const value = statusOf(spec, facts, new Date(clock.now()).toISOString());
      // As a whole: merged, what BIRD said before would stay.
      const patch: Patch = { type: "json", operations: [{ op: "add", path: "/status", value }] };
      this.#answered.set(metadata.uid ?? "", { generation: metadata.generation, at: clock.now() });
      try {
        const { name } = metadata;
        await client.patch(NODE_STATUSES, { name }, patch, { subresource: "status" });
      } catch (error) {
        if (!isNotFound(error)) log.warn({ error, name: metadata.name }, "a NodeStatus could not be written");
      }
    }
  }

  #due(): NodeStatus[] {
    const { node, objects, clock } = this.#options;
    return objects().filter(({ metadata, spec }) => {
      if (spec.node !== node) return false;
      const before = this.#answered.get(metadata.uid ?? "");
      if (!before || before.generation !== metadata.generation) return true;
      const seconds = spec.updatePeriodSeconds ?? USUAL_SECONDS;
      return seconds > 0 && clock.now() - before.at >= seconds * 1_000;
    });
  }
}
