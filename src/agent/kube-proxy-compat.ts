/**
 * While eBPF serves Services, the agent does on the node what kube-proxy did in addition to its rules: it answers load balancers' health checks. And it
 * removes such rules that another program writes meanwhile, or reports them.
 */

import type { KubeObject } from "../api/object.ts";
import type { AgentReport } from "../api/protocol/agent-report.ts";
import type { DataplaneModel } from "../calc/model.ts";
import type { FollowedProxyRules } from "../dataplane/kube-proxy/proxy-rules.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { AgentMetrics } from "./agent-metrics.ts";
import type { DataplaneSwitch } from "./dataplane-switch.ts";
import { HealthCheckPorts, healthCheckedServices, type ListenOnNode } from "./health-check-ports.ts";
import { isNodeEligible, listenHere, PROXY_HEALTH_PORT, serveProxyHealth } from "./kube-proxy-health.ts";

export interface KubeProxyCompatOptions {
  filter: Pick<DataplaneSwitch, "acting" | "observeProxy" | "removesProxyRules">;
  proxyRules: Pick<FollowedProxyRules, "state" | "follow">;
  model(): Pick<DataplaneModel, "services" | "settings">;
  node(): KubeObject | undefined;
  /** Nothing is known that speaks against sending here. */
  healthy(): boolean;
  /** The reported state has changed. */
  onChange(): void;
  metrics: Pick<AgentMetrics, "proxyConflicts">;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  listen?: ListenOnNode;
}

export interface KubeProxyCompat {
  /** For the agent's own pod: what is done about the proxy's rules here; undefined: there are none. */
  report(): AgentReport["proxyRules"];
  /** The health check port of load balancers is ours: the process that had it has ended. */
  answers(): boolean;
  done: Promise<void>;
}

/** So that balancers that ask every ten seconds notice no gap. */
const POLL_MS = 1_000;

export function kubeProxyCompat(options: KubeProxyCompatOptions): KubeProxyCompat {
  const { filter, proxyRules } = options;
  const held: { answering?: Answering | undefined } = {};
  return {
    answers: () => held.answering?.listens() ?? false,
    report() {
      const { conflict, present } = proxyRules.state();
      if (conflict) return { conflict: conflict.message };
      return present && filter.acting() === "BPF" ? "left alone" : undefined;
    },
    done: Promise.all([followRules(options), answerBalancers(options, held)]).then(() => undefined),
  };
}

function followRules({ filter, proxyRules, metrics, onChange, signal }: KubeProxyCompatOptions): Promise<void> {
  let counted = proxyRules.state().returns;
  return proxyRules.follow({
    removes() {
      filter.observeProxy();
      return filter.removesProxyRules();
    },
    onChange({ returns }) {
      if (returns > counted) metrics.proxyConflicts.add({}, returns - counted);
      counted = returns;
      onChange();
    },
    signal,
  });
}

/** Only while we serve: otherwise the ports are the proxy's. */
async function answerBalancers(
  options: KubeProxyCompatOptions,
  held: { answering?: Answering | undefined },
): Promise<void> {
  const { filter, model, node, healthy, clock, log, signal, listen = listenHere } = options;
  const ports = new HealthCheckPorts({ listen, healthy, log });
  let lastUpdated = clock.now();
  const state = () => {
    if (healthy()) lastUpdated = clock.now();
    return { lastUpdated, healthy: healthy(), nodeEligible: isNodeEligible(node()) };
  };
  while (!signal.aborted) {
    const { services, settings } = model();
    const serves = filter.acting() === "BPF";
    const port = serves ? (settings.configuration.bpfServiceProxyHealthzPort ?? PROXY_HEALTH_PORT) : 0;
    if (held.answering && held.answering.port !== port) {
      await held.answering.stop();
      held.answering = undefined;
    }
    if (port !== 0) held.answering ??= answerAt(port, { state, listen, clock, log });
    await ports.update(serves ? healthCheckedServices(services.values()) : new Map());
    await sleep(clock, POLL_MS, signal);
  }
  await Promise.all([held.answering?.stop(), ports.close()]);
}

interface Answering {
  port: number;
  listens(): boolean;
  stop(): Promise<void>;
}

function answerAt(
  port: number,
  options: Omit<Parameters<typeof serveProxyHealth>[0], "signal" | "port" | "onListening">,
): Answering {
  const stopping = new AbortController();
  let listens = false;
  const onListening = () => {
    listens = true;
  };
  const serving = serveProxyHealth({ ...options, port, onListening, signal: stopping.signal });
  return {
    port,
    listens: () => listens,
    stop: async () => {
      stopping.abort();
      await serving;
    },
  };
}
