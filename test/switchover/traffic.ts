import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { patience } from "../../src/kit/testing/patience.ts";

export interface TrafficRow {
  protocol: "tcp" | "udp";
  flows: number;
  lost: number;
  sent: number;
  unanswered: number;
  longestMs: number;
  moved: number;
  astray: number;
  /** How often sockets were told the error they expect. */
  told: number;
  /** Who answered. */
  servers: string[];
  why: string[];
}

/** One way to talk, so many times. */
export interface TrafficPath {
  name: string;
  protocol: "tcp" | "udp";
  host: string;
  port: number;
  count: number;
  /** Of sockets that send datagrams; they are unless said. */
  connected?: boolean;
  /** Bytes of what is said, and answered. */
  size?: number;
  /** It says that it is there, and then nothing until it is woken. */
  idle?: boolean;
  /** What its sockets are to be told: that is no loss. */
  expects?: "EMSGSIZE" | "ECONNREFUSED";
}

/** A place, with what is said there. */
export interface Speaker {
  netns: Netns;
  group?: string | undefined;
  flows: TrafficPath[];
}

export interface Traffic {
  /** Nobody says anything, or everybody again. */
  hush(quiet: boolean): void;
  /** Those that are to be idle speak, or no more. */
  wake(awake: boolean): void;
  report(): Promise<Record<string, TrafficRow>>;
  stop(): void;
}

/** A process of the lab's traffic. */
export interface TrafficProcess {
  tell(word: string): void;
  /** What it reports. */
  ask<T>(): Promise<T>;
  stop(): void;
}

const TRAFFIC = new URL("traffic.mjs", import.meta.url).pathname;
const READY_MS = 20_000;

/** In a namespace and, where told, in a group; resolves when it is ready. */
export async function startTrafficProcess(
  netns: Netns,
  group: string | undefined,
  args: string[],
  program = TRAFFIC,
): Promise<TrafficProcess> {
  const entering = group ? ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group] : [];
  const command = [`--net=/run/netns/${netns.name}`, ...entering, process.execPath, program, ...args];
  const child = spawn("nsenter", command, { stdio: ["pipe", "pipe", "inherit"] });
  const tell = (word: string) => void child.stdin.write(`${word}\n`);
  const lines = createInterface({ input: child.stdout });
  const ended = new Promise<never>((_, reject) => {
    child.once("exit", () => reject(new Error(`ended: ${args.join(" ")}`)));
  });
  ended.catch(() => undefined);
  const line = () => Promise.race([ended, new Promise<string>((resolve) => lines.once("line", resolve))]);
  // One that is not ready in time says how far it came.
  const late = setTimeout(() => tell("report"), patience(READY_MS));
  const first = await line().finally(() => clearTimeout(late));
  const stop = () => void child.kill("SIGKILL");
  if (first !== "ready") {
    stop();
    throw new Error(`not ready: ${notReady(first)}`);
  }
  return {
    tell,
    stop,
    ask: async <T>() => {
      const answer = line();
      tell("report");
      return JSON.parse(await answer) as T;
    },
  };
}

/** Of a report: the ways that do not work yet, each with the port it is tried from. */
function notReady(report: string): string {
  try {
    const rows = Object.entries(JSON.parse(report) as Record<string, TrafficRow>);
    const late = rows.filter(([, { sent, unanswered, told }]) => unanswered === sent && told === 0);
    return late.map(([name, { sent, why }]) => `${name}: ${why.join() || `sent ${sent}`}`).join("; ");
  } catch {
    return report;
  }
}

/** Resolves when everybody was answered, or told what they expect. */
export async function converse(speakers: readonly Speaker[], intervalMs: number): Promise<Traffic> {
  const started = await Promise.allSettled(
    onePerPlace(speakers)
      .filter(({ flows }) => flows.length > 0)
      .map(({ netns, group, flows }) =>
        startTrafficProcess(netns, group, ["talk", JSON.stringify({ flows, intervalMs })]),
      ),
  );
  const running = started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const stop = () => {
    for (const one of running) one.stop();
  };
  const tell = (word: string) => {
    for (const one of running) one.tell(word);
  };
  const failed = started.find((one) => one.status === "rejected");
  if (failed) {
    stop();
    throw failed.reason;
  }
  return {
    stop,
    hush: (quiet) => tell(quiet ? "quiet" : "speak"),
    wake: (awake) => tell(awake ? "wake" : "doze"),
    report: async () => Object.assign({}, ...(await Promise.all(running.map((one) => one.ask())))),
  };
}

/** A process for each place is enough. */
function onePerPlace(speakers: readonly Speaker[]): Speaker[] {
  const places = new Map<string, Speaker>();
  for (const speaker of speakers) {
    const name = `${speaker.netns.name} ${speaker.group ?? ""}`;
    const flows = [...(places.get(name)?.flows ?? []), ...speaker.flows];
    places.set(name, { ...speaker, flows });
  }
  return [...places.values()];
}
