import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Answer, Order } from "./load.ts";

/** The processor both ends of the load run on: then a rate is the cost of the whole path, whatever the scheduler does elsewhere. */
const PROCESSOR = 1;

/** One end of the load, in a process of its own that goes before everything else on its processor. */
export class LoadProcess {
  readonly #child: ChildProcess;
  readonly #waiting: ((answer: Answer) => void)[] = [];
  readonly #unread: Answer[] = [];
  #ended = false;

  /** `program` is a bundle that calls `load` when its first argument is `load`. */
  constructor(program: string) {
    const command = ["-c", String(PROCESSOR), "chrt", "-f", "10", process.execPath, program, "load"];
    this.#child = spawn("taskset", command, { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.#child.stdout! }).on("line", (line) => this.#take(JSON.parse(line) as Answer));
    this.#child.once("exit", () => {
      this.#ended = true;
      for (const give of this.#waiting.splice(0)) give({ failed: "the process of the load ended" });
    });
  }

  order(order: Order): void {
    this.#child.stdin!.write(`${JSON.stringify(order)}\n`);
  }

  async answer(): Promise<Answer> {
    const answer = this.#unread.shift() ?? (await this.#next());
    if (answer.failed) throw new Error(answer.failed);
    return answer;
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }

  #take(answer: Answer): void {
    const give = this.#waiting.shift();
    if (give) give(answer);
    else this.#unread.push(answer);
  }

  #next(): Promise<Answer> {
    if (this.#ended) return Promise.resolve({ failed: "the process of the load has ended" });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
