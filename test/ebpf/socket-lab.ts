import { type ChildProcess, spawn } from "node:child_process";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect } from "vitest";
import type { DataplaneState } from "../../src/api/dataplane.ts";
import type { ServicePort } from "../../src/calc/model.ts";
import { FlowNames } from "../../src/dataplane/ebpf/flows/flow-names.ts";
import { objectBytes } from "../../src/dataplane/ebpf/programs/objects.ts";
import { u32 } from "../../src/dataplane/ebpf/programs/programs.ts";
import { EbpfServices } from "../../src/dataplane/ebpf/services/ebpf-services.ts";
import type { SocketTranslation } from "../../src/dataplane/ebpf/services/socket-hooks.ts";
import { STATE_NUMBERS } from "../../src/dataplane/ebpf/state-number.ts";
import { NODE_FIELD, ROUTE_KIND, routeKeyLayout, routeLayout } from "../../src/gen/bpf/layout.gen.ts";
import type { BpfObject } from "../../src/kernel/bpf/object.ts";
import { type Kernel, realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";

export const NODE_ADDRESS = "192.0.2.1";
const BACKENDS = ["10.65.0.1", "10.65.0.2", "10.65.0.3", "fd65::1", "fd65::2"] as const;
const PORT = 8080;

/** What a client saw: who answered, from which address by its own words, and whom it believes to be connected to. */
export interface Answer {
  said?: string;
  from?: string;
  peer?: string;
  error?: string;
}

/**
 * A node's network namespace and group of processes, backends that say their names, and a real process of the node that asks them. The hooks
 * are at its group; nothing else of the data plane is there.
 */
export class SocketLab {
  dataplane!: EbpfServices;
  /** In effect with the next `serve`. */
  translates: SocketTranslation = "Enabled";
  readonly kernel: Kernel = realKernel();
  readonly netns: Netns;
  readonly directory: string;
  readonly group: string;
  private readonly name = `vt-sock-${process.pid}-${Math.random().toString(36).slice(2, 8)}`;
  private readonly servers: (Server | UdpSocket)[] = [];
  private readonly served = new Set<Socket>();
  private readonly clients: Client[] = [];
  private object: BpfObject | undefined;

  private constructor() {
    this.directory = mkdtempSync(join(tmpdir(), "vt-sock-"));
    this.kernel.mounts.ensure("bpf", this.directory);
    this.netns = this.kernel.netns.create(this.name);
    this.group = `${this.kernel.cgroup.root()}/${this.name}`;
    this.kernel.cgroup.create(this.group);
  }

  static async open(): Promise<SocketLab> {
    const lab = new SocketLab();
    try {
      lab.build();
      await lab.start();
    } catch (error) {
      await lab.close();
      throw error;
    }
    return lab;
  }

  /** A life of the agent. `cgroup`: where it looks for the node's group, unless it is there. */
  async start(maps = "maps", before: string[] = [], cgroup = this.group): Promise<void> {
    const load = { pinDirectory: `${this.directory}/${maps}` };
    this.kernel.bpf.makePinDirectory(load.pinDirectory);
    const object = this.kernel.loadObject(objectBytes("socket"), load);
    this.object = object;
    this.dataplane = await EbpfServices.open({
      ...{ names: new FlowNames(), sweepFlows: async () => {} },
      ...{ kernel: this.kernel, netns: this.netns, cgroup, load },
      pinDirectory: this.directory,
      map: (name) => object.map(name),
      before: before.map((name) => `${this.directory}/${name}`),
    });
  }

  async stop(): Promise<void> {
    await this.dataplane.close();
    this.object?.close();
    this.object = undefined;
  }

  async serve(...services: ServicePort[]): Promise<void> {
    const outcomes = [
      ...(await this.dataplane.apply({ set: services, remove: [] })),
      ...(await this.dataplane.attach(this.translates)),
    ];
    const failed = outcomes.flatMap(({ failed }) => failed ?? []);
    if (failed.length > 0) throw failed[0];
    await this.dataplane.settled();
  }

  mode(mode: DataplaneState): void {
    this.map("node").update(u32(NODE_FIELD.NODE_MODE), u32(STATE_NUMBERS[mode]));
  }

  map(name: string) {
    return this.object!.map(name);
  }

  /** A process of the node, or, elsewhere, one of its group in another network namespace. */
  async client(netns: Netns = this.netns): Promise<Client> {
    const client = new Client(netns.name);
    this.clients.push(client);
    await client.ask({ do: "nothing" });
    this.kernel.cgroup.move(this.group, client.pid);
    return client;
  }

  async close(): Promise<void> {
    for (const client of this.clients) await client.close();
    for (const socket of this.served) socket.destroy();
    for (const server of this.servers) {
      server.close();
      await once(server, "close");
    }
    await this.dataplane?.remove().catch(() => undefined);
    this.object?.close();
    await expect.poll(() => this.kernel.cgroup.remove(this.group)).toBe(true);
    this.netns.close();
    this.kernel.netns.delete(this.name);
    this.kernel.mounts.unmount(this.directory);
    rmSync(this.directory, { recursive: true, force: true });
  }

  private build(): void {
    const netlink = this.kernel.netlink(this.netns);
    netlink.changeLink(1, { up: true });
    for (const address of [NODE_ADDRESS, ...BACKENDS]) {
      netlink.addAddress({ device: 1, address: `${address}/${address.includes(":") ? 128 : 32}` });
    }
    netlink.close();
    for (const address of BACKENDS) {
      this.serveStream(address);
      this.serveDatagrams(address);
    }
  }

  private serveStream(address: string): void {
    const fd = this.kernel.netns.bind(this.netns, { kind: "stream", address, port: PORT });
    const server = createServer((socket) => {
      this.served.add(socket.on("error", () => undefined));
      socket.write(address);
      socket.on("data", () => socket.write(address));
    });
    this.servers.push(server.listen({ fd }));
  }

  private serveDatagrams(address: string): void {
    const fd = this.kernel.netns.bind(this.netns, { kind: "datagram", address, port: PORT });
    const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
    socket.on("message", (_message, { port, address: client }) => socket.send(address, port, client));
    socket.bind({ fd });
    this.servers.push(socket);
  }

  /** What the packet path writes for the addresses of the node. */
  ownAddress(address: string): void {
    const bytes = Buffer.from([...Array(10).fill(0), 0xff, 0xff, ...address.split(".").map(Number)]);
    this.map("routes").update(
      routeKeyLayout.write({ prefixLength: 128, address: bytes }),
      routeLayout.write({ kind: ROUTE_KIND.ROUTE_LOCAL_HOST, flags: 0, mac: Buffer.alloc(6) }),
    );
  }
}

export interface Question {
  do: "nothing" | "tcp" | "again" | "udp" | "udp-connected" | "many";
  /** Sockets that are used more than once have names. */
  name?: string;
  host?: string;
  port?: number;
  /** Port of its own. */
  from?: number;
  count?: number;
}

/** One question a line in, one answer a line out; a socket that fails later tells with the next answer of its name. */
const SCRIPT = `
const net = require("net"), dgram = require("dgram"), sockets = new Map(), lost = new Map();
const text = ({ address, port }) => (address.includes(":") ? "[" + address + "]" : address) + ":" + port;
const ways = {
  nothing: (_q, tell) => tell({}),
  tcp({ name, host, port }, tell) {
    const socket = net.connect({ host, port, family: host.includes(":") ? 6 : 4 });
    sockets.set(name, socket);
    socket.setTimeout(3000, () => socket.destroy(new Error("timeout")));
    socket.on("error", (e) => tell({ error: e.code || e.message }));
    socket.once("data", (d) => tell({ said: String(d), peer: text({ address: socket.remoteAddress, port: socket.remotePort }) }));
  },
  again({ name }, tell) {
    const socket = sockets.get(name);
    socket.once("data", (d) => tell({ said: String(d) }));
    socket.write("again");
  },
  udp({ name, host, port, from }, tell) {
    const socket = sockets.get(name) ?? dgram.createSocket(host.includes(":") ? { type: "udp6", ipv6Only: false } : "udp4");
    if (from && !sockets.has(name)) socket.bind(from);
    sockets.set(name, socket);
    const timer = setTimeout(() => tell({ error: "timeout" }), 2000);
    socket.once("message", (d, sender) => { clearTimeout(timer); tell({ said: String(d), from: text(sender) }); });
    socket.send("hello", port, host, (e) => { if (e) { clearTimeout(timer); tell({ error: e.code }); } });
  },
  "udp-connected"({ name, host, port }, tell) {
    if (lost.has(name)) return tell({ error: lost.get(name) });
    const known = sockets.get(name);
    const socket = known ?? dgram.createSocket(host.includes(":") ? "udp6" : "udp4").on("error", (e) => lost.set(name, e.code));
    sockets.set(name, socket);
    const send = () => {
      const timer = setTimeout(() => tell({ error: lost.get(name) ?? "timeout" }), 2000);
      socket.once("message", (d, from) => {
        clearTimeout(timer);
        let peer; try { peer = text(socket.remoteAddress()); } catch (e) { peer = e.code; }
        tell({ said: String(d), from: text(from), peer });
      });
      socket.send("hello");
    };
    if (known) send(); else socket.connect(port, host, (e) => (e ? tell({ error: e.code }) : send()));
  },
  async many({ host, port, count }, tell) {
    for (let i = 0; i < count; i++) await new Promise((done) => {
      const socket = dgram.createSocket("udp4");
      socket.connect(port, host, () => socket.close(done));
    });
    tell({});
  },
};
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const question = JSON.parse(line);
  let told = false;
  ways[question.do](question, (answer) => { if (!told) { told = true; console.log(JSON.stringify(answer)); } });
});
`;

export class Client {
  private readonly process: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  constructor(netns: string) {
    this.process = spawn("nsenter", [`--net=/run/netns/${netns}`, process.execPath, "-e", SCRIPT], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.lines = createInterface({ input: this.process.stdout! })[Symbol.asyncIterator]();
  }

  get pid(): number {
    return this.process.pid!;
  }

  async ask(question: Question): Promise<Answer> {
    this.process.stdin!.write(`${JSON.stringify(question)}\n`);
    const { value } = await this.lines.next();
    return JSON.parse(value as string) as Answer;
  }

  async close(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, "close");
    this.process.kill("SIGKILL");
    await ended;
  }
}
