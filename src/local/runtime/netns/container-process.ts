import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { ContainerStartError, type ExecCommand, type ExecSession } from "../node-runtime.ts";
import { inGroup, killGroup, makeGroup, removeGroup, signal } from "./cgroups.ts";
import { type ContainerFrame, containerScript, STARTED_FD } from "./container-script.ts";
import { errors } from "./errors.ts";
import type { Machine } from "./machine.ts";
import { quoted } from "./shell-words.ts";

export interface ContainerProcessOptions {
  machine: Machine;
  frame: ContainerFrame;
  env: Record<string, string>;
  /** The pod's network namespace for us; the node's own where left out. */
  netns?: string;
  cgroup: string;
  write(line: string): void;
}

/** One container: its main process, and whatever that starts. */
export class ContainerProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #options: ContainerProcessOptions;
  /** Its exit code, as a shell counts it. */
  readonly exited: Promise<number>;

  private constructor(name: string, child: ChildProcess, options: ContainerProcessOptions) {
    this.name = name;
    this.#child = child;
    this.#options = options;
    this.exited = new Promise((resolve) => {
      child.once("close", (code, ended) => resolve(code ?? 128 + (ended === "SIGKILL" ? 9 : 15)));
    });
  }

  /** Comes back when the program runs; throws when its frame could not be made. */
  static async start(name: string, options: ContainerProcessOptions): Promise<ContainerProcess> {
    const { machine, frame, env, netns, cgroup, write } = options;
    const [command = "", ...args] = [
      ...inGroup(makeGroup(cgroup)),
      ...machine.on(netns),
      ...["unshare", "--mount", "--uts", "--propagation", "unchanged", "sh", "-ec", containerScript(frame)],
    ];
    const child = spawn(command, args, { detached: true, env, stdio: ["ignore", "pipe", "pipe", "pipe"] });
    const container = new ContainerProcess(name, child, options);
    const said: string[] = [];
    const hear = (line: string) => {
      said.push(line);
      write(line);
    };
    eachLine(child.stdout as Readable, write);
    eachLine(child.stderr as Readable, hear);
    if (!(await isStarted(child))) {
      await removeGroup(cgroup);
      throw new ContainerStartError(
        "volume",
        `failed to create the container: ${said.join("; ") || "it ended at once"}`,
      );
    }
    return container;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Asks it to end, and after the grace period does not ask. */
  async stop(graceSeconds: number): Promise<void> {
    const { cgroup } = this.#options;
    if (graceSeconds > 0 && this.isRunning) {
      signal(this.#child.pid as number, "SIGTERM");
      let over: NodeJS.Timeout | undefined;
      const patience = new Promise((resolve) => {
        over = setTimeout(resolve, graceSeconds * 1000);
      });
      await Promise.race([this.exited, patience]);
      clearTimeout(over);
    }
    killGroup(cgroup);
    await this.exited;
    await removeGroup(cgroup);
  }

  kill(): void {
    killGroup(this.#options.cgroup);
  }

  /** Runs a command to its end, which is after the timeout at the latest. */
  async execToEnd(command: readonly string[], timeoutSeconds: number): Promise<{ exitCode: number; said: string }> {
    const session = this.exec({ command });
    let said = "";
    for (const stream of [session.stdout, session.stderr]) {
      stream.on("data", (text: Buffer) => {
        if (said.length < MOST_SAID) said += text;
      });
    }
    session.stdin.end();
    const over = setTimeout(() => session.kill(), timeoutSeconds * 1000);
    const exitCode = await session.exited;
    clearTimeout(over);
    return { exitCode, said };
  }

  exec({ command, tty = false }: ExecCommand): ExecSession {
    if (!this.isRunning) throw errors.CONTAINER_NOT_RUNNING(this.name);
    const pid = this.#child.pid as number;
    const { cgroup, env } = this.#options;
    const [program = "", ...args] = [
      ...inGroup(cgroup),
      ...["nsenter", `--mount=/proc/${pid}/ns/mnt`, `--uts=/proc/${pid}/ns/uts`, `--net=/proc/${pid}/ns/net`, "--"],
      ...(tty ? withTerminal(command) : command),
    ];
    const child = spawn(program, args, { detached: true, env, stdio: "pipe" });
    return execSession(child, "SIGKILL");
  }
}

/** A terminal is the one thing a pipe cannot pretend to be. */
export function withTerminal(command: readonly string[]): string[] {
  return ["script", "-qefc", command.map(quoted).join(" "), "/dev/null"];
}

/** What a probe reads of a command, at most. */
const MOST_SAID = 10_240;

function isStarted(child: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    child.once("error", () => resolve(false));
    child.once("close", () => resolve(false));
    child.stdio[STARTED_FD]?.once("data", () => resolve(true));
  });
}

/** A line that never ends is given in pieces, as a container runtime splits it. */
const LONGEST_LINE = 16 * 1024;

function eachLine(input: Readable, line: (text: string) => void): void {
  let rest = "";
  input.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const one of lines) line(one);
    if (rest.length <= LONGEST_LINE) return;
    line(rest);
    rest = "";
  });
  input.on("end", () => {
    if (rest !== "") line(rest);
  });
}

/** A command that runs in a container, by the process that runs it there. */
export function execSession(child: ChildProcessWithoutNullStreams, kill: "SIGKILL" | "SIGTERM"): ExecSession {
  child.stdin.on("error", () => undefined);
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    exited: new Promise((resolve) => {
      child.once("error", () => resolve(126));
      child.once("close", (code) => resolve(code ?? 137));
    }),
    kill: () => void child.kill(kill),
  };
}
