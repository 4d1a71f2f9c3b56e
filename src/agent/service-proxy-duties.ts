import type { KubeObject } from "../api/object.ts";
import type { FollowedProxyRules } from "../dataplane/service-proxy/proxy-rules.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { Metrics } from "../kit/metrics.ts";
import type { ServicePort } from "../policy/model.ts";
import { HealthCheckPorts, healthCheckedServices, type ListenOnNode } from "./health-check-ports.ts";
import { isNodeEligible, listenHere, serveProxyHealth } from "./proxy-health.ts";

export interface ServiceProxyDutiesOptions {
  rules: FollowedProxyRules;
  /** Whether services are served here by us, and are to be. */
  serves(): boolean;
  /** Whether rules of the proxy that are there now are to be removed. */
  removes(): boolean;
  /** Whether services are known to be reached. */
  healthy(): boolean;
  /** Where load balancers ask for that; 0 is nowhere. */
  healthPort(): number;
  services(): Iterable<ServicePort>;
  node(): KubeObject | undefined;
  /** What is told of it has changed. */
  onChange(): void;
  metrics: Metrics;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  listen?: ListenOnNode;
}

export interface ServiceProxyDuties {
  /** For the agent's own pod: what is to be said of the proxy's rules here; undefined: nothing. */
  word(): string | undefined;
  done: Promise<void>;
}

/** So that balancers that ask every ten seconds notice no gap. */
const LOOK_MS = 1_000;

/**
 * What a service proxy does on a node beside translating, done in its stead while we serve services: it answers load balancers, and sees
 * to it that nobody else writes such rules here.
 */
export function startServiceProxyDuties(options: ServiceProxyDutiesOptions): ServiceProxyDuties {
  const { rules, removes, onChange, metrics, signal } = options;
  const conflicts = metrics.counter(
    "vendor_node_service_proxy_conflicts_total",
    "Times the service proxy wrote its rules again after they were removed.",
  );
  const present = metrics.gauge(
    "vendor_node_service_proxy_rules_present",
    "1 while rules of the service proxy are on the node and are left alone.",
  );
  let counted = rules.state().returns;
  const following = rules.follow({
    removes,
    signal,
    onChange(state) {
      if (state.returns > counted) conflicts.add({}, state.returns - counted);
      counted = state.returns;
      present.set(state.present ? 1 : 0);
      onChange();
    },
  });
  return {
    word() {
      const { conflict, present: isPresent } = rules.state();
      if (conflict) return `conflict: ${conflict.message}`;
      return isPresent && options.serves() ? "left alone" : undefined;
    },
    done: Promise.all([following, answerBalancers(options)]).then(() => undefined),
  };
}

/** Only while we serve: otherwise the ports are the proxy's. */
async function answerBalancers(options: ServiceProxyDutiesOptions): Promise<void> {
  const { serves, healthy, healthPort, services, node, clock, log, signal, listen = listenHere } = options;
  const ports = new HealthCheckPorts({ listen, healthy, log });
  let answering: { port: number; stop(): Promise<void> } | undefined;
  let lastUpdated = clock.now();
  const state = () => {
    if (healthy()) lastUpdated = clock.now();
    return { lastUpdated, healthy: healthy(), nodeEligible: isNodeEligible(node()) };
  };
  while (!signal.aborted) {
    const port = serves() ? healthPort() : 0;
    if (answering && answering.port !== port) {
      await answering.stop();
      answering = undefined;
    }
    if (port !== 0) answering ??= answerAt(port, { state, listen, clock, log });
    await ports.update(serves() ? healthCheckedServices(services()) : new Map());
    await sleep(clock, LOOK_MS, signal);
  }
  await Promise.all([answering?.stop(), ports.close()]);
}

function answerAt(
  port: number,
  options: Omit<Parameters<typeof serveProxyHealth>[0], "signal" | "port">,
): { port: number; stop(): Promise<void> } {
  const stopping = new AbortController();
  const serving = serveProxyHealth({ ...options, port, signal: stopping.signal });
  return {
    port,
    stop: async () => {
      stopping.abort();
      await serving;
    },
  };
}
