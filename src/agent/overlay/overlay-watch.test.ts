import { describe, expect, it } from "vitest";
import type { FrameSocket, FramesPort } from "../../kernel/frames/frames-port.ts";
import type { Link } from "../../kernel/netlink/netlink-port.ts";
import { type FakeClock, fakeClock } from "../../kit/fake-clock.ts";
import { silentLog } from "../../kit/log.ts";
import { createMetrics } from "../../kit/metrics.ts";
import { agentMetrics } from "../agent-metrics.ts";
import { answerTo, newNonce, readFrame, writeRequest } from "./overlay-frame.ts";
import { lossError, lossText } from "./overlay-loss.ts";
import type { OverlayPeer } from "./overlay-peers.ts";
import { type OverlayWatch, watchOverlay } from "./overlay-watch.ts";

const PERIOD = 10_000;
const MTU = 1450;

/** Nodes on one wire that loses what a test says. */
class Wire {
  readonly clock: FakeClock = fakeClock(1_000_000);
  readonly stop = new AbortController();
  readonly sockets = new Map<string, (frame: Buffer) => void>();
  /** Frames sent, by sender. */
  readonly sent = new Map<string, number>();
  loses: (from: string, to: string, bytes: number) => boolean = () => false;

  frames(mac: string): FramesPort {
    return {
      open: (_selection, onFrame): FrameSocket => {
        this.sockets.set(mac, onFrame);
        return {
          send: (bytes) => {
            const frame = Buffer.from(bytes);
            const { destination } = readFrame(frame)!;
            this.sent.set(mac, (this.sent.get(mac) ?? 0) + 1);
            if (!this.loses(mac, destination, frame.length - 14)) this.sockets.get(destination)?.(frame);
            return true;
          },
          close: () => void this.sockets.delete(mac),
        };
      },
    };
  }
}

const mac = (at: number) => `02:00:00:00:${String(at).padStart(4, "0").replace(/(..)$/, ":$1")}`;
const peer = (at: number, differently: Partial<OverlayPeer> = {}): OverlayPeer => ({
  ...{ node: `node-${at}`, mac: mac(at), address: `10.0.0.${at}`, used: true, answers: true },
  ...differently,
});
const link = (at: number): Link => ({
  ...{ index: 9, name: "vxlan.vendor", kind: "vxlan", mac: mac(at), mtu: MTU, up: true },
  ...{ peer: undefined, master: undefined },
  vxlan: { vni: 4096, port: 4789, local: `10.0.0.${at}`, device: undefined, learning: false },
});

interface Node extends OverlayWatch {
  changes: number;
  events: string[];
  metrics(): string;
}

function node(
  wire: Wire,
  at: number,
  peers: () => OverlayPeer[],
  device: () => Link | undefined = () => link(at),
): Node {
  const metrics = createMetrics();
  const counts = { changes: 0, events: [] as string[] };
  const watch = watchOverlay({
    ...{ node: `node-${at}`, frames: wire.frames(mac(at)), link: device, peers, podMtu: () => 1430, periodMs: PERIOD },
    ...{ metrics: agentMetrics(metrics), clock: wire.clock, log: silentLog, signal: wire.stop.signal },
    onChange: () => counts.changes++,
    onLoss: (object, code) => counts.events.push(`${object} ${code}`),
  });
  return Object.assign(watch, {
    get changes() {
      return counts.changes;
    },
    events: counts.events,
    metrics: () => metrics.text(),
  });
}

function pair(): { wire: Wire; one: Node; two: Node; turns(count: number): Promise<void> } {
  const wire = new Wire();
  const one = node(wire, 1, () => [peer(2)]);
  const two = node(wire, 2, () => [peer(1)]);
  return { wire, one, two, turns: (count) => wire.clock.advance(count * PERIOD * 1.1 + 1) };
}

const texts = ({ losses }: Node) => losses().map(lossText);

describe("probes through the overlay", () => {
  it("verify a pair once both sizes came back, and report it once", async () => {
    const { wire, one, turns } = pair();
    await turns(2);
    expect(one.report()).toEqual({ verifiedSince: expect.stringMatching(/^1970-01-01T00:1[67]:/), losses: [] });
    expect(one.pairs()).toMatchObject([{ node: "node-2", state: "reached" }]);
    const before = [one.changes, one.report()?.verifiedSince];
    await turns(20);
    expect([one.changes, one.report()?.verifiedSince]).toEqual(before);
    wire.stop.abort();
  });

  it("name both directions where nothing passes, only after several tries, and forget it when packets pass again", async () => {
    const { wire, one, two, turns } = pair();
    await turns(2);
    wire.loses = () => true;
    await wire.clock.advance(2 * PERIOD);
    expect(texts(one)).toEqual([]);
    await turns(3);
    expect(texts(one)).toEqual(["node-2 to node-1 (UDP 4789 from 10.0.0.2 to 10.0.0.1)"]);
    expect(texts(two)).toEqual(["node-1 to node-2 (UDP 4789 from 10.0.0.1 to 10.0.0.2)"]);
    expect(one.report()).toMatchObject({ verifiedSince: undefined, losses: texts(one) });
    expect(lossError(one.losses()[0]!)).toMatchObject({
      code: "OVERLAY_UNREACHABLE",
      message:
        "the overlay loses packets from node node-2 to node node-1 (UDP 4789 from 10.0.0.2 to 10.0.0.1): 3 of 3 probes of node node-1 have no answer, no probe of node node-2 arrives",
    });
    expect(one.events).toEqual(["node node-2 OVERLAY_UNREACHABLE"]);
    wire.loses = () => false;
    await turns(3);
    expect([texts(one), one.report()?.losses]).toEqual([[], []]);
    expect(one.report()?.verifiedSince).toBeDefined();
    wire.stop.abort();
  });

  it("name the one direction that loses packets, on both nodes alike", async () => {
    const { wire, one, two, turns } = pair();
    await turns(2);
    wire.loses = (from) => from === mac(1);
    await turns(6);
    const expected = ["node-1 to node-2 (UDP 4789 from 10.0.0.1 to 10.0.0.2)"];
    expect([texts(one), texts(two)]).toEqual([expected, expected]);
    expect(lossError(one.losses()[0]!).message).toContain("probes of node node-2 arrive");
    wire.stop.abort();
  });

  it("name the size where only small packets pass, and the direction", async () => {
    const { wire, one, two, turns } = pair();
    wire.loses = (from, _to, bytes) => from === mac(2) && bytes > 1000;
    await turns(6);
    const expected = ["node-2 to node-1 (packets of 1430 bytes in UDP 4789 from 10.0.0.2 to 10.0.0.1)"];
    expect([texts(one), texts(two)]).toEqual([expected, expected]);
    expect(lossError(one.losses()[0]!)).toMatchObject({
      code: "OVERLAY_MTU",
      message: expect.stringContaining("the network carries less than 1480 bytes"),
    });
    wire.stop.abort();
  });

  it("mean nothing while the other agent is not ready, and begin again when it is", async () => {
    const wire = new Wire();
    let answers = true;
    const one = node(wire, 1, () => [peer(2, { answers })]);
    node(wire, 2, () => [peer(1)]);
    const turns = (count: number) => wire.clock.advance(count * PERIOD * 1.1 + 1);
    await turns(2);
    const before = one.report();
    wire.loses = () => true;
    answers = false;
    await turns(10);
    expect(one.report()).toEqual(before);
    answers = true;
    await wire.clock.advance(2 * PERIOD);
    expect(one.report()).toEqual(before);
    await turns(5);
    expect(texts(one)).toHaveLength(1);
    answers = false;
    await turns(2);
    expect(texts(one)).toEqual([]);
    wire.stop.abort();
  });

  it("are answered also by a node that sends nothing through the overlay itself", async () => {
    const wire = new Wire();
    const one = node(wire, 1, () => [peer(2)]);
    const two = node(wire, 2, () => [peer(1, { used: false })]);
    await wire.clock.advance(3 * PERIOD);
    expect(one.pairs()).toMatchObject([{ state: "reached" }]);
    expect([two.pairs(), two.report()]).toEqual([[], { verifiedSince: undefined, losses: [] }]);
    wire.stop.abort();
  });

  it("of a node that is not known have no answer, and an answer that was not asked for counts for nothing", async () => {
    const wire = new Wire();
    const one = node(wire, 1, () => [peer(2)]);
    await wire.clock.advance(PERIOD / 2);
    const request = (source: string, size: "small" | "full" = "small") =>
      writeRequest({ source, destination: mac(1), size, nonce: newNonce() }, MTU);
    const forged = answerTo(writeRequest({ source: mac(1), destination: mac(2), size: "small", nonce: newNonce() }, 0));
    const sent = wire.sent.get(mac(1));
    for (const frame of [request(mac(3)), forged, Buffer.alloc(60), request(mac(2)).subarray(0, 40), Buffer.alloc(0)]) {
      wire.sockets.get(mac(1))!(frame);
    }
    expect(wire.sent.get(mac(1))).toBe(sent);
    expect(one.pairs()).toMatchObject([{ state: "unverified", answeredAt: undefined }]);
    const answers: Buffer[] = [];
    wire.sockets.set(mac(2), (frame) => answers.push(frame));
    const asked = request(mac(2), "full");
    wire.sockets.get(mac(1))!(asked);
    expect(answers.map(({ length }) => length)).toEqual([asked.length]);
    expect(readFrame(answers[0]!)).toMatchObject({ kind: "answer", nonce: readFrame(asked)!.nonce });
    wire.stop.abort();
  });

  it("reach all of a thousand nodes within two minutes, a part of them at a time", async () => {
    const wire = new Wire();
    const others = Array.from({ length: 1000 }, (_, at) => peer(at + 2));
    const one = node(wire, 1, () => others);
    for (const { mac: address } of others) {
      wire.sockets.set(address, (frame) => wire.sockets.get(mac(1))?.(answerTo(frame)));
    }
    let most = 0;
    for (let turn = 0; turn < 14; turn++) {
      const before = wire.sent.get(mac(1)) ?? 0;
      await wire.clock.advance(PERIOD);
      most = Math.max(most, (wire.sent.get(mac(1)) ?? 0) - before);
    }
    expect(one.pairs().filter(({ state }) => state !== "reached")).toEqual([]);
    expect(most).toBeLessThanOrEqual(2 * 2 * (84 + 50));
    expect(one.metrics()).toContain('vendor_node_overlay_nodes{state="reached"} 1000');
    wire.stop.abort();
  });

  it("wait for the device, and follow it when it is made again", async () => {
    const wire = new Wire();
    let device: Link | undefined;
    const one = node(
      wire,
      1,
      () => [peer(2)],
      () => device,
    );
    node(wire, 2, () => [peer(1)]);
    await wire.clock.advance(PERIOD);
    expect(one.report()).toBeUndefined();
    device = link(1);
    await wire.clock.advance(3 * PERIOD);
    expect(one.report()?.verifiedSince).toBeDefined();
    device = { ...link(1), index: 10 };
    await wire.clock.advance(8 * PERIOD);
    expect(texts(one)).toEqual([]);
    device = undefined;
    await wire.clock.advance(2 * PERIOD);
    expect(one.report()).toBeUndefined();
    wire.stop.abort();
    await one.done;
    expect([...wire.sockets.keys()]).not.toContain(mac(1));
  });
});
