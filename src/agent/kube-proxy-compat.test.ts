import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import type { DataplaneModel, ServicePort } from "../calc/model.ts";
import { plainServicePort } from "../calc/testing/service-port.ts";
import type { FollowOptions, ProxyRulesState } from "../dataplane/kube-proxy/proxy-rules.ts";
import { systemClock } from "../kit/clock.ts";
import { CodedError } from "../kit/errors.ts";
import { silentLog } from "../kit/log.ts";
import { createMetrics, type Metrics } from "../kit/metrics.ts";
import { agentMetrics } from "./agent-metrics.ts";
import { type KubeProxyCompat, kubeProxyCompat } from "./kube-proxy-compat.ts";

/** Ports of the story are names; which of this machine's they are, the kernel chooses. */
const HEALTH = 10_256;
const CHECK = 32_000;
const OTHER_PORT = 10_300;

function row(change: Partial<ServicePort>): ServicePort {
  return plainServicePort({
    ...{ loadBalancerAddresses: ["192.0.2.9"], externalLocal: true, anyBackends: true },
    ...{ healthCheckNodePort: CHECK, healthCheckBackends: 2 },
    ...change,
  });
}

describe("while services are ours to serve", () => {
  let open: Map<number, Server>;
  let taken: boolean;
  let serves: boolean;
  let healthy: boolean;
  let rows: ServicePort[];
  let configuration: DataplaneModel["settings"]["configuration"];
  let node: object;
  let state: ProxyRulesState;
  let tell: FollowOptions["onChange"];
  let metrics: Metrics;
  let stopping: AbortController;
  let standIn: KubeProxyCompat;

  const ask = async (port: number, path = "/") => {
    const server = open.get(port);
    if (!server?.listening) return undefined;
    const { port: real } = server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${real}${path}`, { headers: { connection: "close" } });
    const weight = answer.headers.get("x-load-balancing-endpoint-weight");
    return { status: answer.status, weight, body: await answer.text() };
  };

  beforeEach(() => {
    [open, taken, serves, healthy, rows] = [new Map(), false, true, true, [row({})]];
    configuration = {};
    node = { metadata: { name: "n" } };
    state = { present: false, returns: 0, conflict: undefined };
    metrics = createMetrics();
    stopping = new AbortController();
    standIn = kubeProxyCompat({
      proxyRules: {
        state: () => state,
        follow: async ({ onChange }) => {
          tell = (next) => {
            state = next;
            onChange(next);
          };
        },
      },
      filter: { acting: () => (serves ? "BPF" : "Nftables"), observeProxy() {}, removesProxyRules: () => true },
      model: () => ({
        services: new Map(rows.map((one) => [one.id, one])),
        settings: { configuration } as DataplaneModel["settings"],
      }),
      ...{ healthy: () => healthy, node: () => node as KubeObject, onChange: () => {} },
      ...{ metrics: agentMetrics(metrics), clock: systemClock, log: silentLog, signal: stopping.signal },
      listen: async (server, port) => {
        if (port === HEALTH && taken) throw new Error("EADDRINUSE");
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
        open.set(port, server);
      },
    });
  });
  afterEach(async () => {
    stopping.abort();
    await standIn.done;
    expect([...open.values()].filter(({ listening }) => listening)).toEqual([]);
  });

  it("load balancers are told how many backends are here, and none is unavailable", async () => {
    await expect
      .poll(() => ask(CHECK))
      .toEqual({
        status: 200,
        weight: "2",
        body: '{"service":{"namespace":"shop","name":"web"},"localEndpoints":2,"serviceProxyHealthy":true}',
      });
    rows = [row({ healthCheckBackends: 0 })];
    await expect.poll(() => ask(CHECK)).toMatchObject({ status: 503, weight: "0" });
    rows = [];
    await expect.poll(() => open.get(CHECK)?.listening).toBe(false);
  });

  it("the health check moves to the port that is configured, and 0 ends it", async () => {
    await expect.poll(() => ask(HEALTH, "/healthz")).toMatchObject({ status: 200 });
    configuration = { bpfServiceProxyHealthzPort: OTHER_PORT };
    await expect.poll(() => ask(OTHER_PORT, "/healthz")).toMatchObject({ status: 200 });
    expect(open.get(HEALTH)?.listening).toBe(false);
    configuration = { bpfServiceProxyHealthzPort: 0 };
    await expect.poll(() => open.get(OTHER_PORT)?.listening).toBe(false);
  });

  it("/healthz is about services and the node, /livez about services alone", async () => {
    await expect.poll(() => ask(HEALTH, "/healthz")).toMatchObject({ status: 200 });
    expect((await ask(HEALTH, "/healthz"))?.body).toMatch(/"lastUpdated":".*","currentTime":".*","nodeEligible":true/);
    node = { metadata: { name: "n" }, spec: { taints: [{ key: "ToBeDeletedByClusterAutoscaler" }] } };
    expect(await ask(HEALTH, "/healthz")).toMatchObject({ status: 503 });
    expect(await ask(HEALTH, "/livez")).toMatchObject({ status: 200 });
    healthy = false;
    expect(await ask(HEALTH, "/livez")).toMatchObject({ status: 503 });
    expect(await ask(HEALTH, "/other")).toMatchObject({ status: 404 });
  });

  it("the health port is taken when the proxy has left it, and given back when services are no longer ours", async () => {
    await expect.poll(() => ask(HEALTH, "/healthz")).toMatchObject({ status: 200 });
    serves = false;
    taken = true;
    await expect.poll(() => open.get(HEALTH)?.listening).toBe(false);
    await expect.poll(() => open.get(CHECK)?.listening).toBe(false);
    open.delete(HEALTH);
    serves = true;
    await expect.poll(() => ask(CHECK)).toMatchObject({ status: 200 });
    expect(await ask(HEALTH)).toBeUndefined();
    taken = false;
    await expect.poll(() => ask(HEALTH, "/healthz")).toMatchObject({ status: 200 });
  });

  it("a proxy that writes again is counted and told", () => {
    expect(standIn.report()).toBeUndefined();
    tell({ present: true, returns: 0, conflict: undefined });
    expect(standIn.report()).toBe("left alone");
    tell({ present: false, returns: 2, conflict: new CodedError("SERVICE_PROXY_WRITES_AGAIN", "it wrote again") });
    expect(standIn.report()).toEqual({ conflict: "it wrote again" });
    expect(metrics.text()).toContain("vendor_node_service_proxy_conflicts_total 2");
  });
});
