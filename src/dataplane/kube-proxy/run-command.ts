import { spawn } from "node:child_process";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Netns } from "../../kernel/netns/netns-port.ts";

export interface Ended {
  /** -1: there is no such program, or it did not end by itself. */
  code: number;
  out: string;
  err: string;
}

export type RunCommand = (command: readonly string[], input?: string) => Promise<Ended>;

const PATIENCE_MS = 60_000;

/** Runs a program to its end, in a network namespace if given. Never rejects: a failure is in the result. */
export function commandsIn(kernel: Pick<Kernel, "netns">, netns?: Netns): RunCommand {
  return ([program = "", ...args], input = "") =>
    new Promise((resolve) => {
      // A child begins in the namespace of the thread that starts it.
      const start = () => spawn(program, args, { stdio: "pipe", timeout: PATIENCE_MS, killSignal: "SIGKILL" });
      const child = netns ? kernel.netns.run(netns, start) : start();
      let [out, err] = ["", ""];
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        out += text;
      });
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        err += text;
      });
      child.on("error", (error) => resolve({ code: -1, out, err: err || error.message }));
      child.on("close", (code) => resolve({ code: code ?? -1, out, err }));
      // It may end without having read what it was given.
      child.stdin.on("error", () => undefined).end(input);
    });
}
