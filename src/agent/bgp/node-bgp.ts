import type { KubeObject } from "../../api/object.ts";
import type { SecretRef } from "../../calc/bgp/bgp-inputs.ts";
import type { BgpProblem } from "../../calc/bgp/bgp-model.ts";
import { birdConfig } from "../../calc/bgp/bird-config.ts";
import { type CalculatedBgp, calculateBgp } from "../../calc/bgp/calculate-bgp.ts";
import type { Client } from "../../cluster/client.ts";
import type { Pool } from "../../ipam/ipam-kinds.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { AgentMetrics } from "../agent-metrics.ts";
import { errors } from "../errors.ts";
import type { ModelLoop } from "../model-loop.ts";
import type { BgpObjects } from "../watch-objects.ts";
import { bgpPasswords } from "./bgp-passwords.ts";
import { birdConfiguration, type ConfigurationState } from "./bird-configuration.ts";
import { askBird, bgpPlaces } from "./bird-control.ts";
import { NodeStatuses } from "./node-statuses.ts";
import { isEstablished, type SessionState, sessionStates } from "./session-states.ts";

export interface NodeBgpOptions {
  node: string;
  runDirectory: string;
  namespace: string;
  client: Client;
  objects: BgpObjects;
  nodes: () => readonly KubeObject[];
  pools: () => readonly Pool[];
  loop: Pick<ModelLoop, "model" | "ready" | "onTurn">;
  /** The node is changing its data plane. */
  switching: () => boolean;
  metrics: AgentMetrics;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

/** What the node says by BGP: calculated with each change of the model, written, and looked at. */
export interface NodeBgp {
  sessions(): readonly SessionState[];
  problems(): { object: string; code: string; message: string }[];
  done: Promise<void>;
}

const LOOK_MS = 2_000;
/** Secrets are not followed: with the rights to read one, a program cannot list them. */
const PASSWORDS_MS = 10_000;
/** A burst of changes is one configuration. */
const SETTLE_MS = 50;

export function nodeBgp(options: NodeBgpOptions): NodeBgp {
  const speaker = new NodeSpeaker(options);
  return { sessions: () => speaker.states, problems: () => speaker.problems(), done: speaker.run() };
}

class NodeSpeaker {
  states: readonly SessionState[] = [];
  readonly #options: NodeBgpOptions;
  readonly #places;
  readonly #configuration;
  readonly #passwords;
  readonly #statuses;
  #calculated: CalculatedBgp = { model: undefined, problems: [] };
  #state: ConfigurationState | undefined;
  #daemon: string | undefined = "it was not asked yet";
  #passwordsAt = Number.NEGATIVE_INFINITY;
  #switching = false;
  /** What is asked for must wait. */
  #held = true;
  #asked = true;
  #wake: () => void = () => {};

  constructor(options: NodeBgpOptions) {
    this.#options = options;
    this.#places = bgpPlaces(options.runDirectory);
    this.#configuration = birdConfiguration(this.#places);
    this.#passwords = bgpPasswords(options.client, options.namespace);
    const { node, client, clock, log, objects } = options;
    this.#statuses = new NodeStatuses({ node, client, clock, log, objects: () => objects.statuses.list() });
  }

  async run(): Promise<void> {
    const { loop, signal, log } = this.#options;
    const end = loop.onTurn(() => {
      this.#asked = true;
      this.#wake();
    });
    while (!signal.aborted) {
      try {
        await this.#turn();
      } catch (error) {
        log.warn({ error }, "BGP could not be settled, will be retried");
      }
      await this.#pause();
    }
    end();
  }

  problems(): { object: string; code: string; message: string }[] {
    const own = [
      this.#state?.is === "refused" ? errors.BGP_CONFIGURATION_REFUSED(this.#state.why) : undefined,
      this.#daemon === undefined ? undefined : errors.BGP_DAEMON_DOWN(this.#daemon),
    ];
    return [
      ...own.flatMap((error) => (error ? [{ object: "bgp", code: error.code, message: error.message }] : [])),
      ...this.#calculated.problems.map((problem) => ({ ...problem, message: told(problem) })),
      ...(this.#daemon === undefined ? this.states.filter((one) => !isEstablished(one)) : []).map((one) => {
        const { code, message } = errors.BGP_SESSION_DOWN(one.peer, one.state, one.reason);
        return { object: `session ${one.name}`, code, message };
      }),
    ];
  }

  async #turn(): Promise<void> {
    const { loop, switching } = this.#options;
    const passwords = await this.#readPasswords();
    const isNew = this.#asked || passwords === "changed" || switching() !== this.#switching;
    // Without an answer to what a password is, a session would lose the one it has.
    this.#held = !loop.ready || passwords === "unknown";
    if (!this.#held && (isNew || this.#state?.is !== "active")) {
      this.#asked = false;
      await this.#settle();
    }
    await this.#look();
    if (this.#statuses.isDue()) await this.#answer();
  }

  async #answer(): Promise<void> {
    const daemon = await askBird(this.#places.control, "show status").catch(() => undefined);
    await this.#statuses.answer({ daemon, sessions: this.states, peers: this.#options.objects.peers.list() });
  }

  async #readPasswords(): Promise<"same" | "changed" | "unknown"> {
    const now = this.#options.clock.now();
    const refs = this.#refs();
    const isDue = now - this.#passwordsAt >= PASSWORDS_MS || refs.some(({ name }) => !this.#passwords.knows(name));
    if (refs.length === 0 || !isDue) return "same";
    const texts = () => refs.map((ref) => this.#passwords.of(ref)).join("\0");
    const before = texts();
    if (!(await this.#passwords.read(refs))) return "unknown";
    this.#passwordsAt = now;
    return texts() === before ? "same" : "changed";
  }

  #refs(): SecretRef[] {
    const { configurations, peers } = this.#options.objects;
    return [
      ...configurations.list().map(({ spec }) => spec?.nodeMeshPassword?.secretKeyRef),
      ...peers.list().map(({ spec }) => spec.password?.secretKeyRef),
    ].flatMap((ref) => ref ?? []);
  }

  async #settle(): Promise<void> {
    const { node, objects, nodes, pools, loop, switching, log } = this.#options;
    this.#switching = switching();
    this.#calculated = calculateBgp({
      ...{ node, model: loop.model, nodes: nodes(), pools: pools(), switching: this.#switching },
      configurations: objects.configurations.list(),
      peers: objects.peers.list(),
      filters: objects.filters.list(),
      password: (ref) => this.#passwords.of(ref),
    });
    const { model } = this.#calculated;
    if (!model) return;
    const state = await this.#configuration.settle(birdConfig(model));
    if (state.is === "refused" && this.#state?.is !== "refused")
      log.error({ why: state.why }, "BIRD refused its configuration");
    this.#state = state;
  }

  async #look(): Promise<void> {
    const { metrics } = this.#options;
    const sessions = this.#calculated.model?.sessions ?? [];
    try {
      this.states = sessionStates(sessions, await askBird(this.#places.control, "show protocols all"));
      this.#daemon = undefined;
    } catch (error) {
      this.states = sessionStates(sessions, []);
      this.#daemon = error instanceof Error ? error.message : String(error);
    }
    const up = this.states.filter(isEstablished);
    metrics.bgpSessions.set(up.length, { state: "established" });
    metrics.bgpSessions.set(this.states.length - up.length, { state: "down" });
    metrics.bgpRoutes.set(sum(up.map(({ imported }) => imported)), { direction: "accepted" });
    metrics.bgpRoutes.set(sum(up.map(({ exported }) => exported)), { direction: "announced" });
  }

  /** Until there is something new, or it is time to look; a burst of changes is waited for. */
  async #pause(): Promise<void> {
    const { clock, signal } = this.#options;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    signal.addEventListener("abort", this.#wake, { once: true });
    if (!this.#asked || this.#held) await sleep(clock, LOOK_MS, woken.signal);
    signal.removeEventListener("abort", this.#wake);
    if (this.#asked) await sleep(clock, SETTLE_MS, signal);
  }
}

function told({ code, message }: BgpProblem): string {
  return errors[code](message).message;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
