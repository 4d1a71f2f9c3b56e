import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("pod-process.mjs", import.meta.url));
/** On all of them everybody answers. */
const PORTS = [80, 8080, 9000] as const;
/** Long enough for an answer on a busy machine; what is allowed answers at once. */
const PATIENCE = 5_000;
/** How long nobody answers what is denied: we cannot wait for nothing, only for a while. */
const DENIED = 300;

export interface Target {
  protocol: "tcp" | "udp";
  address: string;
  port: number;
}

/** A process in a namespace. */
export class LabPod {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly waiting = new Map<number, (answer: unknown) => void>();
  /** Listens on all its ports. */
  readonly ready: Promise<void>;
  private orders = 0;

  constructor(namespace: string, ports: readonly number[] = PORTS) {
    this.child = spawn("nsenter", [`--net=/run/netns/${namespace}`, process.execPath, SCRIPT, ...ports.map(String)]);
    this.ready = new Promise((resolve, reject) => {
      this.child.once("exit", (code) => reject(new Error(`the process in ${namespace} ended with ${code}`)));
      createInterface({ input: this.child.stdout }).on("line", (line) => {
        const { ready, id, answer } = JSON.parse(line) as { ready?: true; id: number; answer: unknown };
        if (ready) resolve();
        else this.waiting.get(id)?.(answer);
      });
    });
    this.ready.catch(() => {});
  }

  /** Whether somebody answers: waits for an answer that should come, and not long for one that should not. */
  async reaches({ protocol, ...target }: Target, expected: boolean): Promise<boolean> {
    return (await this.order({ do: protocol, ...target, patience: expected ? PATIENCE : DENIED })) as boolean;
  }

  async order(order: { do: string; [field: string]: unknown }): Promise<unknown> {
    await this.ready;
    const id = ++this.orders;
    const answer = new Promise((resolve) => this.waiting.set(id, resolve));
    this.child.stdin.write(`${JSON.stringify({ ...order, id })}\n`);
    return answer;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await ended;
  }
}
