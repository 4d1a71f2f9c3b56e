import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";

const SCRIPT = fileURLToPath(new URL("actor-process.mjs", import.meta.url));

interface Answer {
  ready?: true;
  id: number;
  answer?: unknown;
  failed?: string;
}

/** A process in a namespace that sends and listens as ordered. */
export class Actor {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly waiting = new Map<number, (answer: Answer) => void>();
  private readonly ready: Promise<void>;
  private orders = 0;

  constructor(netns: Netns) {
    this.child = spawn("nsenter", [`--net=/run/netns/${netns.name}`, process.execPath, SCRIPT]);
    this.ready = new Promise((resolve, reject) => {
      this.child.once("exit", (code) => reject(new Error(`the process in ${netns.name} ended with ${code}`)));
      createInterface({ input: this.child.stdout }).on("line", (line) => {
        const message = JSON.parse(line) as Answer;
        if (message.ready) resolve();
        else this.waiting.get(message.id)?.(message);
      });
    });
    this.ready.catch(() => undefined);
  }

  /** Opens a UDP socket; the answer is its port. */
  udp(name: string, family: 4 | 6, port = 0): Promise<number> {
    return this.order<number>({ do: "udp", name, family, port });
  }

  send(name: string, address: string, port: number, payload: string | Buffer): Promise<string> {
    return this.order<string>({
      ...{ do: "send", name, address, port },
      payload: Buffer.from(payload as string).toString("base64"),
    });
  }

  /** Texts of the datagrams so far. */
  heard(name: string): Promise<string[]> {
    return this.order<string[]>({ do: "heard", name });
  }

  serve(name: string, port: number): Promise<boolean> {
    return this.order<boolean>({ do: "serve", name, port });
  }

  /** A server that says everything again. */
  echo(port: number): Promise<boolean> {
    return this.order<boolean>({ do: "echo", port });
  }

  /** One datagram for each of so many connections, from so many ports; how many were sent. */
  flood(family: 4 | 6, address: string, count: number, from: number): Promise<number> {
    return this.order<number>({ do: "flood", family, address, count, from });
  }

  connect(name: string, address: string, port: number, patience = 5_000): Promise<boolean> {
    return this.order<boolean>({ do: "connect", name, address, port, patience });
  }

  /** Writes to a connection, of a client's or of a server's name. False: there is none. */
  write(name: string, text: string): Promise<boolean> {
    return this.order<boolean>({ do: "write", name, text });
  }

  received(name: string): Promise<string> {
    return this.order<string>({ do: "received", name });
  }

  close(name: string): Promise<boolean> {
    return this.order<boolean>({ do: "close", name });
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await ended;
  }

  private async order<T>(order: { do: string; [field: string]: unknown }): Promise<T> {
    await this.ready;
    const id = ++this.orders;
    const answer = new Promise<Answer>((resolve) => this.waiting.set(id, resolve));
    this.child.stdin.write(`${JSON.stringify({ ...order, id })}\n`);
    const { answer: value, failed } = await answer;
    if (failed !== undefined) throw new Error(failed);
    return value as T;
  }
}
