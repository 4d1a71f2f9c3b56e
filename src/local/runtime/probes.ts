import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { Container } from "../controllers/workload-types.ts";
import type { ContainerEvent } from "./node-runtime.ts";

interface Timing {
  initialDelaySeconds?: number;
  periodSeconds?: number;
  timeoutSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
}

interface Probe extends Timing {
  httpGet?: {
    host?: string;
    path?: string;
    port: number | string;
    scheme?: "HTTP" | "HTTPS";
    httpHeaders?: { name: string; value: string }[];
  };
  tcpSocket?: { host?: string; port: number | string };
  exec?: { command?: string[] };
}

/** Where to ask; `connect` where this process does not reach it by itself. */
interface ListenAddress {
  host: string;
  port: number;
  connect?: () => Socket;
}

/** How a container is reached by its probes. */
export interface ProbeReach {
  /** Where a port is answered, of the container or of the host a probe names; undefined while nothing listens. */
  addressOf(port: number, host: string | undefined): ListenAddress | undefined;
  /** The exit code of a command in the container, and what it said. */
  exec?(command: readonly string[], timeoutSeconds: number): Promise<{ exitCode: number; said: string }>;
}

export interface ProbeOptions extends ProbeReach {
  container: Container;
  report(event: ContainerEvent): void;
  /** Ends a container that is not alive; without it only readiness is asked. */
  end?(): void;
  /** A container that is not ready yet is asked as often as its probe says, and not more often. */
  patient?: boolean;
  clock: Clock;
  signal: AbortSignal;
}

type ProbeName = "Startup" | "Liveness" | "Readiness";

/** A container that is not ready yet is probed this often, so that a simulated rollout does not take as long as a real one. */
const IMPATIENT_MS = 100;

/**
 * Watches a container by its own probes, as a kubelet does: until the startup probe has succeeded no other is asked; a container that is not
 * alive is ended; without a readiness probe it is ready as soon as it has started.
 */
export async function watchProbes(options: ProbeOptions): Promise<void> {
  const { container, report } = options;
  const end =
    options.end &&
    ((probe: "startup" | "liveness") => {
      report({ is: "killing", probe });
      options.end?.();
    });
  const startup = end && (container.startupProbe as Probe | undefined);
  if (startup && !(await hasStarted(startup, options, () => end("startup")))) return;
  report({ is: "started" });
  const liveness = end && (container.livenessProbe as Probe | undefined);
  if (liveness)
    void watch("Liveness", liveness, true, options, (alive) => {
      if (!alive) end("liveness");
      return alive;
    });
  const readiness = container.readinessProbe as Probe | undefined;
  if (!readiness) {
    report({ is: "ready" });
    return;
  }
  await watch("Readiness", readiness, false, options, (ready) => {
    report({ is: ready ? "ready" : "unready" });
    return true;
  });
}

/** False when it was ended for not starting, or ended by itself. */
async function hasStarted(probe: Probe, options: ProbeOptions, end: () => void): Promise<boolean> {
  const { clock } = options;
  let failures = 0;
  let countedAt = Number.NEGATIVE_INFINITY;
  let started = false;
  const most = probe.failureThreshold ?? 3;
  await asked(
    "Startup",
    probe,
    options,
    () => false,
    (why) => {
      started = why === undefined;
      // However often it is asked, it has as long as its probe gives it: on a slow machine it would never start otherwise.
      if (!started && clock.now() - countedAt >= periodOf(probe)) {
        countedAt = clock.now();
        if (++failures === most) end();
      }
      return !started && failures < most;
    },
  );
  return started;
}

/** Calls `turned` when enough answers in a row say other than before, until it returns false. */
async function watch(
  name: ProbeName,
  probe: Probe,
  first: boolean,
  options: ProbeOptions,
  turned: (well: boolean) => boolean,
): Promise<void> {
  let state = first;
  let streak = 0;
  await asked(
    name,
    probe,
    options,
    () => state,
    (why) => {
      const well = why === undefined;
      streak = well === state ? 0 : streak + 1;
      if (streak < ((well ? probe.successThreshold : probe.failureThreshold) ?? (well ? 1 : 3))) return true;
      state = well;
      streak = 0;
      return turned(state);
    },
  );
}

const periodOf = ({ periodSeconds = 10 }: Probe): number => periodSeconds * 1000;

/** Asks again and again, as the probe says, until the answer's taker has enough. */
async function asked(
  name: ProbeName,
  probe: Probe,
  { container, addressOf, exec, report, patient, clock, signal }: ProbeOptions,
  isWell: () => boolean,
  take: (why: string | undefined) => boolean,
): Promise<void> {
  const periodMs = periodOf(probe);
  await sleep(clock, (probe.initialDelaySeconds ?? 0) * 1000, signal);
  while (!signal.aborted) {
    const why = await problemOf(container, probe, { addressOf, ...(exec && { exec }) }, signal);
    if (signal.aborted) return;
    if (why !== undefined && patient) report({ is: "unhealthy", probe: name, why });
    if (!take(why)) return;
    await sleep(clock, patient || isWell() ? periodMs : Math.min(IMPATIENT_MS, periodMs), signal);
  }
}

/** What is wrong, in a kubelet's words; undefined when the container does well. */
async function problemOf(
  container: Container,
  probe: Probe,
  { addressOf, exec }: ProbeReach,
  signal: AbortSignal,
): Promise<string | undefined> {
  const timeoutSeconds = probe.timeoutSeconds ?? 1;
  const limits = AbortSignal.any([signal, AbortSignal.timeout(timeoutSeconds * 1000)]);
  if (probe.exec) {
    if (!exec) return "commands cannot be run in this container";
    const { exitCode, said } = await exec(probe.exec.command ?? [], timeoutSeconds).catch(couldNotRun);
    return exitCode === 0 ? undefined : said.trim() || `command exited with ${exitCode}`;
  }
  const target = probe.httpGet ?? probe.tcpSocket;
  if (!target) return "only httpGet, tcpSocket and exec are asked by these nodes";
  const port = portNumber(container, target.port);
  if (port === undefined) return `couldn't find port: ${target.port}`;
  const address = addressOf(port, target.host);
  if (!address) return `dial tcp :${port}: connect: connection refused`;
  return probe.httpGet ? await httpProblem(probe.httpGet, address, limits) : await tcpProblem(address, limits);
}

function couldNotRun(error: unknown): { exitCode: number; said: string } {
  return { exitCode: -1, said: error instanceof Error ? error.message : String(error) };
}

export function portNumber(container: Container, port: number | string): number | undefined {
  if (typeof port === "number") return port;
  return /^\d+$/.test(port) ? Number(port) : container.ports?.find(({ name }) => name === port)?.containerPort;
}

/** A kubelet trusts any certificate here, and takes any answer from 200 to 399 for a yes. */
function httpProblem(
  { path = "/", scheme = "HTTP", httpHeaders = [] }: NonNullable<Probe["httpGet"]>,
  { host, port, connect }: ListenAddress,
  // The whole answer is timed, not only how long a socket is silent: one that never connects is silent about that, too.
  signal: AbortSignal,
): Promise<string | undefined> {
  const insecure = { rejectUnauthorized: false };
  const start = scheme === "HTTPS" ? httpsRequest : httpRequest;
  return new Promise((resolve) => {
    const asking = start({
      host,
      port,
      path,
      headers: Object.fromEntries(httpHeaders.map(({ name, value }) => [name, value])),
      signal,
      ...(scheme === "HTTPS" && insecure),
      ...(connect
        ? { createConnection: () => (scheme === "HTTPS" ? connectTls({ socket: connect(), ...insecure }) : connect()) }
        : { agent: false }),
    });
    asking.once("response", (answer) => {
      answer.resume();
      const status = answer.statusCode ?? 0;
      resolve(status >= 200 && status < 400 ? undefined : `HTTP probe failed with statuscode: ${status}`);
    });
    asking.once("error", (error) => resolve(`Get "${path}" at port ${port}: ${reasonOf(error, signal)}`));
    asking.once("close", () => resolve("the connection was closed without an answer"));
    asking.end();
  });
}

function tcpProblem({ host, port, connect }: ListenAddress, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect?.();
    if (!socket) return resolve(`port ${port} cannot be reached`);
    const over = (problem: string | undefined) => {
      socket.destroy();
      resolve(problem);
    };
    socket.once("connect", () => over(undefined));
    socket.once("error", (error) => over(`dial tcp ${host}:${port}: ${error.message}`));
    signal.addEventListener("abort", () => over(`dial tcp ${host}:${port}: i/o timeout`), { once: true });
  });
}

function reasonOf(error: Error, signal: AbortSignal): string {
  return signal.aborted ? "context deadline exceeded" : error.message;
}
