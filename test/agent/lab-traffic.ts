import { type ChildProcess, spawn } from "node:child_process";
import { createServer, type Socket } from "node:net";
import { realKernel } from "../../src/kernel/kernel.ts";
import { ask, type LabPod } from "./node-lab.ts";

/** One long connection from a pod to another, asked now and then whether it still is one. */
export interface Flow {
  alive(): Promise<boolean>;
  close(): void;
}

const kernel = realKernel();

export async function flow(from: LabPod, to: LabPod, port: number): Promise<Flow> {
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
  const script = `exec 3<>/dev/tcp/${to.addresses[0]}/${port}; while read -r line <&3; do echo "$line" >&3; done`;
  const child: ChildProcess = spawn("nsenter", [`--net=/run/netns/${from.netns.name}`, "bash", "-c", script]);
  const deadline = Date.now() + 5_000;
  while (!other && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
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
export interface Knocking {
  /** Resolves after so many further knocks. */
  more(count: number): Promise<void>;
  stop(): Promise<{ tried: number; passed: number }>;
}

export function knock(from: LabPod, address: string, port: number): Knocking {
  let [tried, passed, going] = [0, 0, true];
  const worker = async () => {
    while (going) {
      if ((await ask(from, address, port, 1)) !== undefined) passed++;
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
