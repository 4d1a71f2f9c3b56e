import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Assembler, R0, R1, R2, R3 } from "../../src/kernel/bpf/asm.ts";
import { raiseMemlockLimit } from "../../src/kernel/bpf/memlock.ts";
import { type Kernel, realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { whyNoKernel } from "./why-not.ts";

const NAME = `vt-${process.pid}-sockets`;

describe("sockets in a namespace", () => {
  let kernel: Kernel;
  let netns: Netns;
  beforeEach((context) => {
    context.skip(whyNoKernel() !== undefined, whyNoKernel());
    kernel = realKernel();
    netns = kernel.netns.create(NAME);
    const netlink = kernel.netlink(netns);
    netlink.changeLink(1, { up: true });
    netlink.close();
  });
  afterEach(() => {
    if (whyNoKernel()) return;
    netns.close();
    kernel.netns.delete(NAME);
  });

  it("are served by this process, and closed under the feet of their holders", async () => {
    const fd = kernel.netns.bind(netns, { kind: "stream", address: "127.0.0.1", port: 8080 });
    const served: Socket[] = [];
    const server = createServer((socket) => {
      served.push(socket.on("error", () => {}));
      socket.write("hello");
    }).listen({ fd });
    const script = `const s = require("net").connect(8080, "127.0.0.1");
      s.on("data", () => console.log("connected")).on("error", (e) => { console.log(e.code); process.exit(0); });`;
    const client = spawn("nsenter", [`--net=/run/netns/${NAME}`, process.execPath, "-e", script]);
    const said: string[] = [];
    client.stdout.on("data", (text) => said.push(String(text).trim()));
    const sockets = kernel.sockets(netns);
    try {
      await expect.poll(() => said).toEqual(["connected"]);
      const there = sockets.connected("tcp", 4).filter(({ destinationPort }) => destinationPort === 8080);
      expect(there).toMatchObject([{ destination: "127.0.0.1", protocol: "tcp" }]);
      expect(sockets.destroy({ protocol: "tcp", destination: "127.0.0.1", destinationPort: 9999 })).toBe(0);
      expect(sockets.destroy({ protocol: "tcp", destination: "127.0.0.1", destinationPort: 8080 })).toBe(1);
      await expect.poll(() => said).toEqual(["connected", "ECONNABORTED"]);
    } finally {
      sockets.close();
      client.kill();
      for (const socket of served) socket.destroy();
      server.close();
      await once(server, "close");
    }
  });

  it("of UDP are found by where they are connected to", async () => {
    const script = `const s = require("dgram").createSocket("udp4");
      s.connect(5353, "127.0.0.1", () => console.log("connected"));`;
    const client = spawn("nsenter", [`--net=/run/netns/${NAME}`, process.execPath, "-e", script]);
    let said = "";
    client.stdout.on("data", (text) => {
      said += text;
    });
    const sockets = kernel.sockets(netns);
    try {
      await expect.poll(() => said).toContain("connected");
      expect(sockets.destroy({ protocol: "udp", destination: "127.0.0.1", destinationPort: 5353 })).toBe(1);
      await expect.poll(() => sockets.connected("udp", 4)).toEqual([]);
    } finally {
      sockets.close();
      client.kill();
    }
  });

  it("are translated by a program at their cgroup when they connect", async (context) => {
    const root = kernel.cgroup.root();
    if (root === undefined) return context.skip("needs cgroup2");
    const group = `${root}/${NAME}`;
    // Whoever connects to 10.96.0.10 arrives at 127.0.0.1.
    const instructions = new Assembler()
      .load("u32", R2, R1, 4)
      .jumpIf("ne", R2, 0x0a00600a, "done", 32)
      .mov(R3, 0x0100007f)
      .store("u32", R1, 4, { register: R3 })
      .label("done")
      .mov(R0, 1)
      .exit()
      .build();
    const program = kernel.bpf.loadProgram({
      name: "connect",
      type: "cgroupSockAddr",
      attachType: "connect4",
      instructions,
    });
    kernel.cgroup.create(group);
    const fd = kernel.netns.bind(netns, { kind: "stream", address: "127.0.0.1", port: 8080 });
    const server = createServer((socket) => socket.end("hello")).listen({ fd });
    const [link] = await kernel.cgroup.attach(group, [["connect4", program]]);
    const script = `process.stdin.once("data", () => require("net").connect(8080, "10.96.0.10")
      .on("data", (d) => { console.log(String(d)); process.exit(0); }).on("error", (e) => { console.log(e.code); process.exit(0); }));`;
    const client = spawn("nsenter", [`--net=/run/netns/${NAME}`, process.execPath, "-e", script]);
    const ended = once(client, "close");
    let said = "";
    client.stdout.on("data", (text) => {
      said += text;
    });
    try {
      kernel.cgroup.move(group, client.pid!);
      client.stdin.write("go\n");
      await expect.poll(() => said).toBe("hello\n");
      expect(link!.info()).toMatchObject({ kind: "cgroup", attachType: "connect4", programId: program.info.id });
    } finally {
      client.kill();
      await ended;
      await link!.close();
      program.close();
      server.close();
      await expect.poll(() => kernel.cgroup.remove(group)).toBe(true);
    }
  });
});

describe("what the kernel allows", () => {
  it("is asked for memory to lock, and a refusal is no failure", (context) => {
    context.skip(whyNoKernel() !== undefined, whyNoKernel());
    expect(["raised", "refused"]).toContain(raiseMemlockLimit());
    expect(raiseMemlockLimit(() => -1)).toBe("refused");
    expect(raiseMemlockLimit(() => 0)).toBe("raised");
  });

  it("is found out by loading", async (context) => {
    context.skip(whyNoKernel() !== undefined, whyNoKernel());
    const features = await realKernel().features();
    expect(features).toMatchObject({ schedCls: true, xdp: true, cgroupSockAddr: true });
    for (const known of Object.values(features)) expect(known).toBeTypeOf("boolean");
  });

  it("may take long without holding up the event loop", async (context) => {
    context.skip(whyNoKernel() !== undefined, whyNoKernel());
    const { bpf } = realKernel();
    const map = bpf.createMap({ name: "large", type: "hash", keySize: 4, valueSize: 4, maxEntries: 200_000 });
    const entries = Array.from({ length: 100_000 }, (_, index) => {
      const key = Buffer.alloc(4);
      key.writeUInt32LE(index);
      return [key, key] as const;
    });
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await map.updateMany(entries);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(3);
    expect([...map.chunks()].flat().length).toBe(100_000);
    map.close();
  });
});
