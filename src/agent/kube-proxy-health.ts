import type { Server } from "node:http";
import { type Clock, sleep } from "../kit/clock.ts";
import { httpFront } from "../kit/http-front.ts";
import type { Log } from "../kit/log.ts";
import { closed, type ListenOnNode } from "./health-check-ports.ts";

/** Where load balancers ask a node whether its services are served; the orchestrator's proxy has it while it runs. */
export const PROXY_HEALTH_PORT = 10_256;

/** Taints by which a cluster's autoscaler says that a node is about to go: balancers stop sending to it before it does. */
const LEAVING_TAINT = "ToBeDeletedByClusterAutoscaler";

export interface ProxyHealthState {
  /** When the rules of services were last known to be as they should. */
  lastUpdated: number;
  /** Services are served here, as far as we know. */
  healthy: boolean;
  /** The node takes new connections from outside. */
  nodeEligible: boolean;
}

/** Whether a load balancer may send new connections to the node. */
export function isNodeEligible(
  node: { metadata: { deletionTimestamp?: string }; spec?: { taints?: { key: string }[] } } | undefined,
): boolean {
  if (!node) return true;
  const leaves = (node.spec?.taints ?? []).some(({ key }) => key === LEAVING_TAINT);
  return node.metadata.deletionTimestamp === undefined && !leaves;
}

/** `/healthz` for load balancers, which also asks about the node, and `/livez`, which is about the proxy alone. */
function proxyHealthServer(state: () => ProxyHealthState, clock: Clock, log: Log): Server {
  return httpFront({
    log,
    answer: ({ path }) => {
      if (path !== "/healthz" && path !== "/livez") return { status: 404, body: "there is /healthz and /livez\n" };
      const { lastUpdated, healthy, nodeEligible } = state();
      const isWell = path === "/healthz" ? healthy && nodeEligible : healthy;
      const times = { lastUpdated: new Date(lastUpdated), currentTime: new Date(clock.now()) };
      const body = JSON.stringify({ ...times, ...(path === "/healthz" && { nodeEligible }) });
      return { status: isWell ? 200 : 503, body, type: "application/json" };
    },
  });
}

export interface ProxyHealthOptions {
  state(): ProxyHealthState;
  listen: ListenOnNode;
  /** 0: nobody is to answer here. */
  port?: number;
  clock: Clock;
  log: Log;
  /** The port is ours now. */
  onListening?: () => void;
  /** When it stops. */
  signal: AbortSignal;
}

/** The port is the proxy's until it leaves; balancers ask every ten seconds or so, and should not miss two answers. */
const RETRY_MS = 2_000;

/** Takes the port as soon as nobody else has it, and answers there until stopped. */
export async function serveProxyHealth(options: ProxyHealthOptions): Promise<void> {
  const { state, listen, port = PROXY_HEALTH_PORT, clock, log, signal } = options;
  if (port === 0) return;
  let told = false;
  while (!signal.aborted) {
    const server = proxyHealthServer(state, clock, log);
    try {
      await listen(server, port);
      log.info({ port }, "serving the health checks of Services on this node");
      options.onListening?.();
      await stopped(signal);
      await closed(server);
      return;
    } catch (error) {
      if (!told)
        log.info({ port, error }, "another program serves the health checks of Services on this node; retrying");
      told = true;
    }
    await sleep(clock, RETRY_MS, signal);
  }
}

/** For an agent, which is in the node's own network namespace. */
export const listenHere: ListenOnNode = (server, port) =>
  new Promise((resolve, reject) => {
    server.once("error", reject).listen({ port, host: "::", ipv6Only: false }, () => {
      server.off("error", reject);
      resolve();
    });
  });

function stopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
