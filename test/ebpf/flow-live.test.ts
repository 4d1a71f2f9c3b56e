import { createSocket } from "node:dgram";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEbpfDataplane, type EbpfDataplane } from "../../src/dataplane/ebpf/ebpf-dataplane.ts";
import type { FlowSum } from "../../src/dataplane/flow-sums.ts";
import { type Kernel, realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { getsockopt } from "../../src/kernel/sys.ts";
import { dial } from "../../src/local/runtime/netns/dial.ts";
import { Random } from "../calc/random.ts";
import { Lab, OVERLAY } from "../kernels/lab.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { allow, deltaOf, POD_A, POD_B, REMOTE } from "./packet-lab.ts";
import { servicePort } from "./service-lab.ts";

const missing = whyNoPrograms();
const [TCP, UDP] = [6, 17];
const PORT = 8080;
const SERVICE = { v4: "10.96.0.10", v6: "fd96::10" };
/** Of an IP packet around a datagram, and around a segment as Linux sends it: with time stamps. A SYN has eight bytes more. */
const DATAGRAM = { v4: 28, v6: 48 };
const SEGMENT = { v4: 52, v6: 72 };
const SYN_MORE = 8;
const DATAGRAMS = 1500;
const CONNECTIONS = 12;

const families = ["v4", "v6"] as const;
type Family = (typeof families)[number];

const RULES = { aEgress: [allow()], bIngress: [allow()] };
const SERVICES = [TCP, UDP].flatMap((protocol) =>
  families.map((family) => {
    const backend = family === "v4" ? `*${POD_B.v4}:${PORT}` : `*[${POD_B.v6}]:${PORT}`;
    return servicePort(
      `shop/web:${protocol === TCP ? "http" : ""}/${protocol === TCP ? "tcp" : "udp"}/${family[1]}`,
      [backend],
      {
        ...{ protocol: protocol as 6 | 17, family: family === "v4" ? 4 : 6, clusterAddress: SERVICE[family], port: 80 },
      },
    );
  }),
);

/** Everything sent is counted by its sender, and compared with what the kernel summed through many lives of the agent. */
describe.skipIf(missing).each(["iterators", "no iterators"])(
  `flow logs of real traffic, with %s${missing ? ` (${missing})` : ""}`,
  (by) => {
    const kernel: Kernel = realKernel();
    const undo: (() => unknown)[] = [];
    let lab: Lab;
    let agent: Agent;
    beforeAll(async () => {
      lab = await Lab.open(kernel, false);
      undo.push(
        () => rmSync(`${lab.directory}.names`, { recursive: true, force: true }),
        () => lab.close(),
      );
      // Acknowledgements without options that say what was lost: then all headers are of one length.
      for (const end of Object.values(lab.ends)) {
        kernel.netns.run(end, () => writeFileSync("/proc/sys/net/ipv4/tcp_sack", "0"));
      }
      agent = new Agent(lab, by === "iterators" ? kernel : withoutIterators(kernel));
      await agent.start();
      undo.push(() => agent.remove());
      for (const end of ["b", "outside"] as const) undo.push(await listen(kernel, lab.ends[end]));
    });
    afterAll(async () => {
      for (const step of undo.toReversed()) await step();
    });

    it.each(families)(
      "datagrams and their bytes equal the sender's, through lives that end at any moment: %s",
      async (family) => {
        const ways = [
          { to: POD_B[family], port: PORT, summed: { destination: POD_B[family], service: undefined } },
          { to: SERVICE[family], port: 80, summed: { destination: POD_B[family], service: "shop/web:80" } },
          { to: REMOTE[family], port: PORT, summed: { destination: REMOTE[family], service: undefined } },
        ];
        const sent = ways.map(({ to, port }) => sendDatagrams(kernel, lab.ends.a, { to, port, family }));
        const all = Promise.all(sent);
        await agent.liveWhile(all);
        const counts = await all;
        const sums = await agent.sums();
        for (const [way, { summed }] of ways.entries()) {
          const own = sums.filter((sum) => matches(sum, { ...summed, protocol: UDP, source: POD_A[family] }));
          expect({ ...summed, ...totals(own) }).toEqual({
            ...summed,
            ...counts[way],
            replies: 0,
            replyBytes: 0,
            started: 1,
          });
        }
      },
    );

    it.each(families)(
      "connections equal the client's, and bytes what its sockets sent, with headers: %s",
      async (family) => {
        const ways = [
          { to: POD_B[family], port: PORT, service: undefined },
          { to: SERVICE[family], port: 80, service: "shop/web:http" },
        ];
        const done = Promise.all(ways.map((way) => converse(kernel, lab.ends.a, way)));
        await agent.liveWhile(done);
        const bytes = await done;
        const sums = await agent.sums();
        for (const [way, { service }] of ways.entries()) {
          const own = sums.filter((sum) => matches(sum, { service, protocol: TCP, source: POD_A[family] }));
          const { packets, replies, started, ended, ...told } = { ...totals(own), ended: total(own, "ended") };
          expect({ service, started, ended }).toEqual({ service, started: CONNECTIONS, ended: CONNECTIONS });
          const headers = (count: number) => SEGMENT[family] * count + SYN_MORE * CONNECTIONS;
          expect(told.bytes - headers(packets)).toBe(bytes[way]!.sent);
          expect(told.replyBytes - headers(replies)).toBe(bytes[way]!.answered);
        }
      },
    );

    it("no packet was counted without a sum", () => {
      expect(agent.shed()).toEqual({ merged: 0, unattributed: 0 });
    });
  },
);

/** Keeps what it read by interval, as whoever stores it does; is ended without a word, and begins again from what is in the kernel. */
class Agent {
  private readonly lab: Lab;
  private readonly kernel: Kernel;
  private readonly stored = new Map<number, FlowSum[]>();
  private readonly random = new Random(7);
  private plane!: EbpfDataplane;

  constructor(lab: Lab, kernel: Kernel) {
    this.lab = lab;
    this.kernel = kernel;
  }

  async start(): Promise<void> {
    const { directory, node } = this.lab;
    this.plane = await createEbpfDataplane({
      ...{ kernel: this.kernel, netns: node, pinDirectory: `${directory}/ours`, overlay: OVERLAY },
      flowNames: `${directory}.names/flow-names`,
      maxEntries: { flows: 65_536 },
    });
    const { objects } = await this.plane.apply({ ...deltaOf(RULES), services: { set: SERVICES, remove: [] } });
    for (const { id, failed } of objects) if (failed) throw new Error(`${id}: ${failed.message}`);
    await this.next();
  }

  /** Intervals and lives, one after the other, each cut short somewhere. */
  async liveWhile(traffic: Promise<unknown>): Promise<void> {
    let isOver = false;
    const over = traffic.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      const steps = [() => this.next(), () => this.store(), () => this.forget()];
      for (const step of steps.slice(0, this.random.below(4))) await step();
      if (this.random.chance(40)) await this.dieAndStart();
    }
    await over;
  }

  async sums(): Promise<FlowSum[]> {
    await this.next();
    await this.store();
    return [...this.stored.values()].flat();
  }

  shed() {
    return this.plane.flows!().shed();
  }

  async remove(): Promise<void> {
    await this.plane.remove();
    await this.plane.close();
  }

  private async dieAndStart(): Promise<void> {
    await this.plane.close();
    await this.start();
  }

  private async next(): Promise<void> {
    const flows = this.plane.flows!();
    await flows.begin(((await flows.intervals()).at(-1) ?? 0) + 1);
  }

  private async store(): Promise<void> {
    const flows = this.plane.flows!();
    for (const interval of (await flows.intervals()).slice(0, -1))
      this.stored.set(interval, await flows.read(interval));
  }

  /** The last step of an interval: only what is stored. */
  private async forget(): Promise<void> {
    const flows = this.plane.flows!();
    for (const interval of (await flows.intervals()).slice(0, -1)) {
      if (this.stored.has(interval)) await flows.forget(interval);
    }
  }
}

function withoutIterators(kernel: Kernel): Kernel {
  return { ...kernel, features: async () => ({ ...(await kernel.features()), mapIterators: false }) };
}

/** By the port of the client: what the server sent it, when it had all of it. */
const answered = new Map<number, number>();

/** Takes every datagram, and answers every connection with as much as it was sent. */
async function listen(kernel: Kernel, netns: Netns): Promise<() => void> {
  const sink = createSocket("udp6");
  await new Promise<void>((resolve) => {
    sink.bind({ fd: kernel.netns.bind(netns, { kind: "datagram", address: "::", port: PORT }) }, resolve);
  });
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    socket.on("end", () => answered.set(socket.remotePort!, bytesSent(socket))).pipe(socket);
  });
  await new Promise<void>((resolve) => {
    server.listen({ fd: kernel.netns.bind(netns, { kind: "stream", address: "::", port: PORT }) }, resolve);
  });
  return () => {
    sink.close();
    server.close();
  };
}

async function sendDatagrams(
  kernel: Kernel,
  netns: Netns,
  { to, port, family }: { to: string; port: number; family: Family },
): Promise<{ packets: number; bytes: number }> {
  const socket = createSocket(family === "v4" ? "udp4" : "udp6");
  const any = family === "v4" ? "0.0.0.0" : "::";
  await new Promise<void>((resolve) => {
    socket.bind({ fd: kernel.netns.bind(netns, { kind: "datagram", address: any, port: 0 }) }, resolve);
  });
  let bytes = 0;
  for (let index = 0; index < DATAGRAMS; index++) {
    const payload = Buffer.alloc(1 + ((index * 37) % 1200));
    await new Promise<void>((resolve, reject) => {
      socket.send(payload, port, to, (error) => (error ? reject(error) : resolve()));
    });
    bytes += payload.length + DATAGRAM[family];
  }
  socket.close();
  return { packets: DATAGRAMS, bytes };
}

/** Connections one after the other, each sending and getting some; what the sockets say they sent, and were sent. */
async function converse(
  kernel: Kernel,
  netns: Netns,
  { to, port }: { to: string; port: number },
): Promise<{ sent: number; answered: number }> {
  const sums = { sent: 0, answered: 0 };
  for (let index = 0; index < CONNECTIONS; index++) {
    const socket = dial(kernel, netns, { host: to, port });
    await once(socket, "connect");
    const length = 1 + index * 20_000;
    let received = 0;
    const all = new Promise<void>((resolve) => {
      socket.on("data", (data) => {
        received += data.length;
        if (received === length) resolve();
      });
    });
    socket.write(Buffer.alloc(length));
    await all;
    sums.sent += bytesSent(socket);
    const { localPort } = socket;
    socket.end();
    await once(socket, "close");
    sums.answered += answered.get(localPort!)!;
  }
  return sums;
}

/** Of TCP_INFO: what left the socket, with what was sent again. */
function bytesSent(socket: Socket): number {
  const [IPPROTO_TCP, TCP_INFO, SENT] = [6, 11, 200];
  const info = Buffer.alloc(256);
  const { fd } = (socket as unknown as { _handle: { fd: number } })._handle;
  getsockopt(fd, IPPROTO_TCP, TCP_INFO, info);
  return Number(info.readBigUInt64LE(SENT));
}

function matches(sum: FlowSum, wanted: Partial<FlowSum>): boolean {
  return Object.entries(wanted).every(([name, value]) => sum[name as keyof FlowSum] === value);
}

function total(
  sums: readonly FlowSum[],
  field: "packets" | "bytes" | "replyPackets" | "replyBytes" | "started" | "ended",
) {
  return sums.reduce((sum, one) => sum + one[field], 0);
}

function totals(sums: readonly FlowSum[]) {
  return {
    ...{ packets: total(sums, "packets"), bytes: total(sums, "bytes"), started: total(sums, "started") },
    ...{ replies: total(sums, "replyPackets"), replyBytes: total(sums, "replyBytes") },
  };
}
