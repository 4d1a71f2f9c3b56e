/**
 * Whether packets go through the overlay to the other nodes and back, found out by sending some: frames of a protocol of our own at the
 * overlay's device. They take the path of pods' packets between nodes, and no IP packet of a pod or of a machine outside can imitate one.
 */
import type { OverlayReport } from "../../api/protocol/agent-report.ts";
import type { FrameSocket, FramesPort } from "../../kernel/frames/frames-port.ts";
import type { Link } from "../../kernel/netlink/netlink-port.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { AgentMetrics } from "../agent-metrics.ts";
import { answerTo, newNonce, OVERLAY_PROTOCOL, readFrame, writeRequest } from "./overlay-frame.ts";
import { lossError, lossText, type OverlayLoss } from "./overlay-loss.ts";
import { OverlayPair } from "./overlay-pair.ts";
import type { OverlayPeer } from "./overlay-peers.ts";

export interface OverlayWatch {
  /** Undefined while there is no overlay. */
  report(): OverlayReport | undefined;
  losses(): readonly OverlayLoss[];
  /** Every other node that packets go to through the overlay. */
  pairs(): readonly PairState[];
  done: Promise<void>;
}

export interface PairState extends OverlayPeer {
  state: "reached" | "unverified" | "lost";
  answeredAt: number | undefined;
}

export interface OverlayWatchOptions {
  node: string;
  frames: FramesPort;
  /** The device of the overlay, when there is one. */
  link(): Link | undefined;
  /** `underlay`: the own address the overlay sends from. */
  peers(underlay: string): readonly OverlayPeer[];
  /** The longest packet of a pod. */
  podMtu(): number;
  periodMs: number;
  metrics: Pick<AgentMetrics, "overlayNodes">;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  /** There is another report. */
  onChange(): void;
  /** Packets to or from another node are lost since this turn. */
  onLoss(object: string, code: string, message: string): void;
}

/** Probed at each turn, and as many suspects more. In larger clusters it is a part of the nodes, so that all have their turn in two minutes. */
const NODES_AT_ONCE = 50;
const TURNS_FOR_ALL = 12;
/** How soon a device is found that was not there. */
const DEVICE_MS = 1_000;
/** All agents do it. */
const JITTER = 0.2;
/** Far more than all nodes of a large cluster send. */
const ANSWERS_PER_SECOND = 1_000;

export function watchOverlay(options: OverlayWatchOptions): OverlayWatch {
  const watch = new Watch(options);
  return {
    report: () => watch.report,
    losses: () => watch.losses,
    pairs: () => watch.pairs(),
    done: watch.run(),
  };
}

interface OpenDevice {
  link: Link;
  underlay: string;
  socket: FrameSocket;
}

class Watch {
  readonly #options: OverlayWatchOptions;
  readonly #pairs = new Map<string, OverlayPair>();
  #device: OpenDevice | undefined;
  #peers: readonly OverlayPeer[] = [];
  #nextPeer = 0;
  #verifiedSince: string | undefined;
  #answers = { second: 0, count: 0 };
  losses: readonly OverlayLoss[] = [];
  report: OverlayReport | undefined;

  constructor(options: OverlayWatchOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { clock, log, signal, periodMs } = this.#options;
    let failed = false;
    while (!signal.aborted) {
      try {
        this.#turn();
        failed = false;
      } catch (error) {
        if (!failed) log.warn({ error }, "cannot send through the overlay, will be retried");
        failed = true;
      }
      const pause = this.#device ? periodMs * (1 - JITTER / 2 + JITTER * Math.random()) : DEVICE_MS;
      await sleep(clock, pause, signal);
      // What arrived meanwhile is read first: a turn of the event loop is between two timers.
      await sleep(clock, 0, signal);
    }
    this.#device?.socket.close();
  }

  pairs(): PairState[] {
    return this.#used().map((peer) => {
      const pair = this.#pairs.get(peer.node);
      const isLost = this.losses.some(({ peer: { node } }) => node === peer.node);
      return {
        ...peer,
        state: isLost ? "lost" : pair?.reached ? "reached" : "unverified",
        answeredAt: pair?.answeredAt,
      };
    });
  }

  #used(): OverlayPeer[] {
    return this.#peers.filter(({ used }) => used);
  }

  #turn(): void {
    this.#settleDevice();
    this.#peers = this.#device ? this.#options.peers(this.#device.underlay) : [];
    const known = new Set(this.#peers.map(({ node }) => node));
    for (const node of this.#pairs.keys()) if (!known.has(node)) this.#pairs.delete(node);
    for (const { node, used, answers } of this.#peers) this.#pair(node).evaluate(used && answers);
    this.#noteLosses();
    this.#noteReport();
    if (this.#device) for (const peer of this.#chosen()) this.#probe(peer, this.#device);
  }

  /** A device that was made again is another one. */
  #settleDevice(): void {
    const { link: find, frames } = this.#options;
    const link = find();
    const underlay = link?.vxlan?.local;
    if (this.#device && this.#device.link.index !== link?.index) {
      this.#device.socket.close();
      this.#device = undefined;
    }
    if (!link || underlay === undefined) return;
    const socket =
      this.#device?.socket ??
      frames.open({ device: link.index, protocol: OVERLAY_PROTOCOL }, (frame) => this.#receive(frame));
    this.#device = { link, underlay, socket };
  }

  #pair(node: string): OverlayPair {
    const pair = this.#pairs.get(node) ?? new OverlayPair();
    this.#pairs.set(node, pair);
    return pair;
  }

  #noteLosses(): void {
    const { clock, log, node, periodMs, onLoss } = this.#options;
    const before = this.losses;
    const since = clock.now() - 2 * periodMs;
    this.losses = this.#peers.flatMap((peer) => {
      const loss = this.#pair(peer.node).loss(since);
      return loss && this.#device ? [{ ...loss, ...this.#path(this.#device), node, peer }] : [];
    });
    for (const loss of this.losses) {
      if (before.some((one) => lossText(one) === lossText(loss))) continue;
      const { code, message } = lossError(loss);
      log.warn({ node: loss.peer.node, code }, message);
      onLoss(`node ${loss.peer.node}`, code, message);
    }
    for (const { peer } of before) {
      if (this.losses.some((one) => one.peer.node === peer.node)) continue;
      log.info({ node: peer.node }, "packets are no longer known to be lost in the overlay");
    }
  }

  #path({ link, underlay }: OpenDevice): Pick<OverlayLoss, "address" | "port" | "bytes"> {
    return { address: underlay, port: link.vxlan?.port ?? 0, bytes: this.#bytes(link) };
  }

  #bytes({ mtu }: Link): number {
    return Math.min(mtu, this.#options.podMtu());
  }

  #noteReport(): void {
    const { clock, metrics, onChange } = this.#options;
    const states = this.pairs().map(({ state }) => state);
    for (const state of ["reached", "lost", "unverified"] as const) {
      metrics.overlayNodes.set(states.filter((one) => one === state).length, { state });
    }
    const answering = this.#used().filter(({ answers }) => answers);
    if (this.losses.length > 0 || states.length === 0) this.#verifiedSince = undefined;
    // A node that is new is verified within a turn: it takes nothing from what is known of the others.
    else if (answering.length > 0 && answering.every(({ node }) => this.#pair(node).reached)) {
      this.#verifiedSince ??= new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
    }
    const report = this.#device && { verifiedSince: this.#verifiedSince, losses: this.losses.map(lossText) };
    const isNews = JSON.stringify(report) !== JSON.stringify(this.report);
    this.report = report;
    if (isNews) onChange();
  }

  #chosen(): OverlayPeer[] {
    const answering = this.#used().filter(({ answers }) => answers);
    const suspects = answering.filter(({ node }) => this.#pair(node).isSuspect).slice(0, NODES_AT_ONCE);
    const count = Math.min(answering.length, Math.max(NODES_AT_ONCE, Math.ceil(answering.length / TURNS_FOR_ALL)));
    const inTurn = Array.from({ length: count }, (_, at) => answering[(this.#nextPeer + at) % answering.length]!);
    this.#nextPeer = (this.#nextPeer + count) % Math.max(answering.length, 1);
    return [...new Set([...suspects, ...inTurn])];
  }

  #probe({ node, mac: destination }: OverlayPeer, { link, socket }: OpenDevice): void {
    const source = link.mac;
    if (!source) return;
    const nonces = { small: newNonce(), full: newNonce() };
    this.#pair(node).sent(nonces);
    for (const size of ["small", "full"] as const) {
      socket.send(writeRequest({ source, destination, size, nonce: nonces[size] }, this.#bytes(link)));
    }
  }

  /** Only of nodes of the cluster; answers go to them alone, and are no longer than the request. */
  #receive(bytes: Buffer): void {
    const frame = readFrame(bytes);
    const peer = frame && this.#peers.find(({ mac }) => mac === frame.source);
    if (!frame || !peer || frame.destination !== this.#device?.link.mac) return;
    const now = this.#options.clock.now();
    const pair = this.#pair(peer.node);
    if (frame.kind === "answer") pair.answered(frame.size, frame.nonce, now);
    else {
      pair.received(frame.size, now);
      if (this.#mayAnswer(now)) this.#device.socket.send(answerTo(bytes));
    }
  }

  #mayAnswer(now: number): boolean {
    const second = Math.floor(now / 1_000);
    if (this.#answers.second !== second) this.#answers = { second, count: 0 };
    return this.#answers.count++ < ANSWERS_PER_SECOND;
  }
}
