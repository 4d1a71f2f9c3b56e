/** While eBPF serves services, the agent does on the node what the service proxy did beside its rules: it answers load balancers. */
import type { KubeObject } from "../api/object.ts";
import type { ServiceProxyRules } from "../dataplane/service-proxy/proxy-rules.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { DataplaneModel } from "../policy/model.ts";
import type { AgentMetrics } from "./agent-metrics.ts";
import { HealthCheckPorts, healthCheckedServices } from "./health-check-ports.ts";
import type { PlaneSwitch } from "./plane-switch.ts";
import { isNodeEligible, listenHere, PROXY_HEALTH_PORT, serveProxyHealth } from "./proxy-health.ts";

export interface StandInOptions {
  filter: PlaneSwitch;
  proxyRules: ServiceProxyRules;
  model(): DataplaneModel;
  node(): KubeObject | undefined;
  metrics: AgentMetrics;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

const LOOK_MS = 1_000;

export async function standInForProxy(options: StandInOptions): Promise<void> {
  await Promise.all([followRules(options), answerBalancers(options)]);
}

function followRules({ filter, proxyRules, metrics, signal }: StandInOptions): Promise<void> {
  let counted = 0;
  return proxyRules.follow({
    removes: () => filter.removesProxyRules(),
    onChange: ({ returns }) => {
      if (returns > counted) metrics.proxyConflicts.add({}, returns - counted);
      counted = returns;
    },
    signal,
  });
}

async function answerBalancers({ filter, model, node, clock, log, signal }: StandInOptions): Promise<void> {
  const healthy = () => filter.acting() === "ebpf";
  const ports = new HealthCheckPorts({ listen: listenHere, healthy, log });
  let serving: { stop: AbortController; done: Promise<void> } | undefined;
  while (!signal.aborted) {
    await ports.update(healthy() ? healthCheckedServices(model().services.values()) : new Map());
    if (healthy() && !serving) {
      const stop = new AbortController();
      const state = () => ({ lastUpdated: clock.now(), healthy: healthy(), nodeEligible: isNodeEligible(node()) });
      const port = model().settings.configuration.bpfServiceProxyHealthzPort ?? PROXY_HEALTH_PORT;
      serving = { stop, done: serveProxyHealth({ state, listen: listenHere, port, clock, log, signal: stop.signal }) };
    }
    // The port is the proxy's again as soon as it may come back.
    if (!healthy() && serving) {
      serving.stop.abort();
      await serving.done;
      serving = undefined;
    }
    await sleep(clock, LOOK_MS, signal);
  }
  serving?.stop.abort();
  await serving?.done;
  await ports.close();
}
