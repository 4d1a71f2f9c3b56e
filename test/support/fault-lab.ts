import { expect } from "vitest";
import type { ApiRequest, ApiResponse, Transport } from "../../src/api/transport.ts";
import type { Handler } from "../../src/apiserver/http.ts";
import type { Program, ProgramContext } from "../../src/cluster/program.ts";
import type { Clock } from "../../src/kit/clock.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { PROGRAMS } from "../../src/local/programs/program-table.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "./in-process-vendorctl.ts";
import { type LeapClock, leapClock } from "./leap-clock.ts";
import { applyAll, applyOperator, customResources, documents, endpointMap } from "./operator-manifests.ts";
import { allStatuses, type ReportedStatus } from "./operator-status.ts";

/** A cluster that works, its time, and what can be done to its programs. */
export interface FaultLab {
  readonly cluster: LocalCluster;
  readonly clock: LeapClock;
  readonly tool: InProcessVendorctl;
  /** Asked about each request of the operator: undefined lets it pass. `"hang"`: it is never answered. */
  onOperatorRequest: ((request: ApiRequest) => ApiResponse | "hang" | undefined) | undefined;
  /** How far the clock of an operator that starts now is from the cluster's. */
  operatorSkewMs: number;
  /** It throws this when it starts. */
  operatorCrash: Error | undefined;
  /** What the aggregated API answers everything but its health checks with. */
  v3Answers: number | undefined;
  /** What vendorctl meets on its way to the API server. */
  apiOutage: "none" | "silent" | 503;
  close(): Promise<void>;
}

type ToolAnswer = Awaited<ReturnType<InProcessVendorctl["run"]>>;

/** What a user is shown while a fault lasts. */
export interface Named {
  fault: string;
  /** Of the VendorStatus; vendorctl's own part where the operator cannot report it. */
  component: string;
  reason: string;
  seconds: number;
}

export async function startFaultLab(): Promise<FaultLab> {
  // Behind the machine's time: certificates that the operator issues after leaps must not be of the future to TLS.
  const clock = leapClock(Date.now() - 3 * 3_600_000);
  const lab: FaultLab = {
    clock,
    onOperatorRequest: undefined,
    operatorSkewMs: 0,
    operatorCrash: undefined,
    v3Answers: undefined,
    apiOutage: "none",
    get cluster() {
      return cluster;
    },
    get tool() {
      return tool;
    },
    async close() {
      tool?.close();
      lab.onOperatorRequest = undefined;
      await cluster?.close();
    },
  };
  const wrapped = (name: string, wrap: (world: ProgramContext) => ProgramContext) => async (): Promise<Program> => {
    const program = await PROGRAMS[name]!();
    return async (world) => await program(wrap(world));
  };
  const cluster = await startCluster({
    name: "story",
    kind: "generic",
    nodes: 2,
    clock,
    front: (handler) => inFront(lab, handler),
    programs: {
      operator: wrapped("operator", (world) => {
        if (lab.operatorCrash) throw lab.operatorCrash;
        return {
          ...world,
          clock: skewed(clock, lab.operatorSkewMs),
          transport: (at) => meddled(lab, world.transport(at)),
        };
      }),
      apiserver: wrapped("apiserver", (world) => ({
        ...world,
        listen(server, port, host) {
          const [handle] = server.listeners("request") as ((...args: unknown[]) => void)[];
          server.removeAllListeners("request");
          server.on("request", (request, response) => {
            const isHealth = /^\/(readyz|livez|healthz)/.test(request.url ?? "");
            if (lab.v3Answers === undefined || isHealth) return handle?.call(server, request, response);
            response.writeHead(lab.v3Answers).end();
          });
          return world.listen(server, port, host);
        },
      })),
    },
  });
  const tool = inProcessVendorctl(cluster.kubeconfig, clock);
  await install(cluster);
  await untilWell(lab);
  return lab;
}

function skewed({ now, setTimeout }: Clock, byMs: number): Clock {
  return { now: () => now() + byMs, setTimeout };
}

async function install(cluster: LocalCluster): Promise<void> {
  const { client } = cluster;
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "vendor-operator" } };
  await applyAll(client, [namespace, ...documents(endpointMap("generic", cluster) ?? "")]);
  await applyOperator(client, 1);
  const asked = customResources("linuxDataplane: BPF").replace(/(serviceProxyManagement:) Disabled/, "$1 Enabled");
  await applyAll(client, documents(asked));
}

function meddled(lab: FaultLab, transport: Transport): Transport {
  return {
    async request(request) {
      const answer = lab.onOperatorRequest?.(request);
      if (answer === undefined) return await transport.request(request);
      if (answer !== "hang") return answer;
      while (lab.onOperatorRequest && !request.signal?.aborted) await new Promise((resolve) => setTimeout(resolve, 20));
      return await transport.request(request);
    },
    close: () => transport.close(),
  };
}

/** An answer of the API server that is a failure. */
export function failure(code: number, reason: string, message: string): ApiResponse {
  const text = JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message });
  return {
    status: code,
    headers: {},
    text: async () => text,
    async *lines() {
      yield text;
    },
  };
}

/** The server's Date is the cluster's time. */
function inFront(lab: FaultLab, handler: Handler): Handler {
  return {
    async handle(incoming) {
      const { apiOutage } = lab;
      if (apiOutage === 503) return { status: 503, body: "" };
      if (apiOutage === "silent") {
        await new Promise<void>((resolve) =>
          incoming.signal.addEventListener("abort", () => resolve(), { once: true }),
        );
        return { status: 503, body: "" };
      }
      const reply = await handler.handle(incoming);
      return { ...reply, headers: { ...reply.headers, date: new Date(lab.clock.now()).toUTCString() } };
    },
  };
}

/** As long as nothing has changed in this real time, nothing will until the cluster's time goes on. */
const SETTLED_MS = 150;
const LEAP_MS = 3_000;
/** Real time that a machine that is busy may need, however far the cluster's time has leapt. */
const PATIENCE_MS = 20_000;
const LONG_PATIENCE_MS = 120_000;
/** Shorter than the renewal deadline of a lease, so that leaders stay. */
const LONG_LEAP_MS = 5_000;

/** Polls what is wanted, and moves the cluster's time on while it does not come. */
export async function until<T>(
  { clock }: FaultLab,
  limitMs: number,
  look: () => Promise<T | undefined>,
  describe: () => Promise<unknown>,
  leapMs = LEAP_MS,
  patienceMs = PATIENCE_MS,
): Promise<{ found: T; seconds: number }> {
  const began = clock.now();
  const started = Date.now();
  let still = Date.now();
  for (;;) {
    const found = await look();
    if (found !== undefined) return { found, seconds: Math.round((clock.now() - began) / 1000) };
    if (clock.now() - began > limitMs && Date.now() - started > patienceMs) {
      throw new Error(`not within ${limitMs / 1000} s: ${JSON.stringify(await describe(), undefined, 1)}`);
    }
    if (Date.now() - still > SETTLED_MS) {
      clock.leap(leapMs);
      still = Date.now();
    }
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

const PARTS = ["network", "ippools", "apiserver", "service-proxy"];

/** Everything is Available, and `vendorctl status` exits with 0. */
export async function untilWell(lab: FaultLab): Promise<void> {
  const isWell = async () => {
    const statuses = await allStatuses(lab.cluster.client).catch((): Record<string, ReportedStatus> => ({}));
    const well = PARTS.every((part) => statuses[part]?.available && !statuses[part]?.degraded);
    if (!well) return undefined;
    const { exit, out } = await toolStatus(lab);
    return exit === 0 && out.startsWith("ok") ? true : undefined;
  };
  const everything = async () => [await allStatuses(lab.cluster.client), await toolStatus(lab)];
  await until(lab, 400_000, isWell, everything, LONG_LEAP_MS, LONG_PATIENCE_MS);
}

/** `vendorctl status`. Where it watches the operator's lease for some seconds, they pass at once. */
export async function toolStatus({ tool, clock }: FaultLab): Promise<ToolAnswer> {
  const pump = setInterval(() => clock.leap(500), 60);
  try {
    return await patientStatus(tool);
  } finally {
    clearInterval(pump);
  }
}

const MOST_TRIES = 5;

/** On a machine that is busy the operator may not renew its lease while time leaps: then it is asked again, while time runs as ever. */
export async function statusExiting(lab: FaultLab, exits: readonly number[]): Promise<ToolAnswer> {
  let answer = await toolStatus(lab);
  for (let tries = 1; tries < MOST_TRIES && !exits.includes(answer.exit); tries++)
    answer = await patientStatus(lab.tool);
  return answer;
}

const UNREACHABLE = 69;

/** The cluster is in this process: on a machine that is busy it may not answer in time. */
export async function patientStatus(tool: InProcessVendorctl, tries = 3): Promise<ToolAnswer> {
  const answer = await tool.run("status");
  return answer.exit === UNREACHABLE && tries > 1 ? await patientStatus(tool, tries - 1) : answer;
}

/** What a run has found, as the guide has it. */
export function printFaults(named: readonly Named[]): void {
  const lines = named.map((row) => `| ${row.fault} | ${row.component} | ${row.reason} | ${row.seconds} |`);
  console.log(["| Fault | Component | Reason | Seconds |", "|---|---|---|---|", ...lines].join("\n"));
}

export function flat(text: string): string {
  return text.replace(/[│├└─]/g, " ").replace(/\s+/g, " ");
}

/** `exits`: those that are right for it. */
export function expectNotOk({ out, err, exit }: ToolAnswer, exits: readonly number[]): void {
  expect(out.startsWith("ok"), out).toBe(false);
  expect(exits, `exit ${exit}: ${out}${err}`).toContain(exit);
}
