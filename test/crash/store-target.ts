import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { childProgram } from "./child-program.ts";
import { Died, type Listed, type ObservedState, type ProcessRun, type Target } from "./harness.ts";

type Ask =
  | { do: "write"; name: string; value: string | undefined; expect: number | "absent" }
  | { do: "list" }
  | { do: "watch"; from: number };
export type Request = Ask & { id: number };
export type Answer = { id: number } & (
  | { ready: true }
  | { revision: number }
  | Listed
  | { watch: "open" | "gone" }
  | { event: ObservedState }
  | { error: string }
);

/** The bare store as a target; `workDir` holds its program and its data. */
export async function storeTarget(workDir: string): Promise<Target> {
  const program = await childProgram(new URL("./store-child.ts", import.meta.url), workDir);
  return { start: () => new StoreLife(spawn(process.execPath, [program, join(workDir, "data")])) };
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

class StoreLife implements ProcessRun {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #ready: Promise<Answer>;
  readonly #waiting = new Map<number, Waiting>();
  readonly #watches = new Map<number, (event: ObservedState) => void>();
  #nextId = 1;
  #complaints = "";
  #killed = false;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.#exited = once(child, "close").then(() => this.#bury());
    this.#ready = new Promise((resolve, reject) => this.#waiting.set(0, { resolve, reject }));
    this.#ready.catch(() => {});
    child.stdin!.on("error", () => {}); // A dead process reads no more; #bury tells who waits.
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#complaints += text;
    });
    createInterface({ input: child.stdout! }).on("line", (line) => this.#hear(line));
  }

  async ready(): Promise<void> {
    await this.#ready;
  }

  async write(name: string, value: string | undefined, expect: number | "absent"): Promise<number> {
    const answer = await this.#ask({ do: "write", name, value, expect });
    return (answer as { revision: number }).revision;
  }

  async list(): Promise<Listed> {
    return (await this.#ask({ do: "list" })) as Answer & Listed;
  }

  async watch(from: number, deliver: (event: ObservedState) => void): Promise<"open" | "gone"> {
    this.#watches.set(this.#nextId, deliver);
    return ((await this.#ask({ do: "watch", from })) as { watch: "open" | "gone" }).watch;
  }

  async kill(): Promise<void> {
    this.#killed = true;
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  #ask(ask: Ask): Promise<Answer> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#bury();
      this.#child.stdin!.write(`${JSON.stringify({ ...ask, id })}\n`);
    });
  }

  #hear(line: string): void {
    let answer: Answer;
    try {
      answer = JSON.parse(line) as Answer;
    } catch (error) {
      if (this.#killed) return; // The kill cut this line off.
      throw error;
    }
    if ("event" in answer) {
      this.#watches.get(answer.id)?.(answer.event);
      return;
    }
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("error" in answer) waiting?.reject(new Error(answer.error));
    else waiting?.resolve(answer);
  }

  #bury(): void {
    const why = this.#killed ? new Died() : new Error(`the server died by itself: ${this.#complaints}`);
    for (const { reject } of this.#waiting.values()) reject(why);
    this.#waiting.clear();
  }
}
