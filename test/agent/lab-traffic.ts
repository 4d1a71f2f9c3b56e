import { type ChildProcess, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";
import { realKernel } from "../../src/kernel/kernel.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { type LabPod, request } from "./node-lab.ts";

/** One long connection to a pod, asked now and then whether it still is one. */
export interface Stream {
  alive(): Promise<boolean>;
  close(): void;
}

const kernel = realKernel();

/** To a port of the pod; by way of another address and port that lead there, where given. */
export async function stream(
  from: Pick<LabPod, "netns">,
  to: LabPod,
  port: number,
  way: { address?: string; port: number } = { port },
): Promise<Stream> {
  const fd = kernel.netns.bind(to.netns, { kind: "stream", address: "0.0.0.0", port });
  let other: Socket | undefined;
  const server = createServer((socket) => {
    other = socket;
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      other = undefined;
    });
  });
  await new Promise<void>((resolve) => server.listen({ fd }, resolve));
  // Says back each line it is told.
  const script = `exec 3<>/dev/tcp/${way.address ?? to.addresses[0]}/${way.port}; while read -r line <&3; do echo "$line" >&3; done`;
  const child: ChildProcess = spawn("nsenter", [`--net=/run/netns/${from.netns.name}`, "bash", "--norc", "-c", script]);
  const began = Date.now();
  while (!other && Date.now() - began < patience(5_000)) await new Promise((resolve) => setTimeout(resolve, 10));
  let count = 0;
  return {
    async alive() {
      const socket = other;
      if (!socket) return false;
      const word = `word ${count++}`;
      const heard = new Promise<boolean>((resolve) => {
        const timer = setTimeout(() => resolve(false), 5_000);
        const hear = (text: Buffer) => {
          if (!text.toString().includes(word)) return;
          clearTimeout(timer);
          socket.off("data", hear);
          resolve(true);
        };
        socket.on("data", hear);
      });
      socket.write(`${word}\n`);
      return await heard;
    },
    close() {
      child.kill("SIGKILL");
      other?.destroy();
      server.close();
    },
  };
}

/** Knocks at a door that must stay closed, over and over. */
export interface ConnectLoop {
  /** Resolves after so many further knocks. */
  more(count: number): Promise<void>;
  stop(): Promise<{ tried: number; passed: number }>;
}

export function connectLoop(from: LabPod, address: string, port: number): ConnectLoop {
  let [tried, passed, going] = [0, 0, true];
  const worker = async () => {
    while (going) {
      if ((await request(from, address, port, 1)) !== undefined) passed++;
      tried++;
    }
  };
  const workers = Promise.all(Array.from({ length: 4 }, worker));
  return {
    async more(count) {
      const target = tried + count;
      while (going && tried < target) await new Promise((resolve) => setTimeout(resolve, 20));
    },
    async stop() {
      going = false;
      await workers;
      return { tried, passed };
    },
  };
}

/** Datagrams, one every other millisecond: what is open for a moment only lets one of them through. */
export interface DatagramStream {
  /** Resolves after so many further ones. */
  more(count: number): Promise<void>;
  stop(): Promise<{ sent: number; heard: number }>;
}

/** From a new port every twentieth: each is a connection nobody has decided on yet. */
const DRIZZLE = `
  const { createSocket } = require("node:dgram");
  const [address, port] = process.argv.slice(1);
  let sent = 0;
  const begin = () => {
    const socket = createSocket("udp4");
    let left = 20;
    const next = () => {
      if (left-- === 0) {
        socket.close();
        begin();
      } else socket.send("drop", Number(port), address, () => {
        process.stdout.write(++sent + "\\n");
        setTimeout(next, 2);
      });
    };
    next();
  };
  begin();
`;

export async function datagramStream(from: LabPod, to: LabPod, port: number): Promise<DatagramStream> {
  const ear = createSocket("udp4");
  let [sent, heard] = [0, 0];
  ear.on("message", () => heard++);
  const fd = kernel.netns.bind(to.netns, { kind: "datagram", address: "0.0.0.0", port });
  await new Promise<void>((resolve) => ear.bind({ fd }, resolve));
  const command = [process.execPath, "-e", DRIZZLE, to.addresses[0]!, String(port)];
  const child = spawn("nsenter", [`--net=/run/netns/${from.netns.name}`, ...command], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    sent += text.split("\n").length - 1;
  });
  const gone = new Promise((resolve) => child.once("exit", resolve));
  let stopped = false;
  return {
    async more(count) {
      const target = sent + count;
      while (child.exitCode === null && sent < target) await new Promise((resolve) => setTimeout(resolve, 20));
    },
    async stop() {
      if (!stopped) {
        stopped = true;
        child.kill("SIGKILL");
        await gone;
        ear.close();
      }
      return { sent, heard };
    },
  };
}
