import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { groupVersion, type KubeObject } from "../../src/api/object.ts";
import type { FlowBatch } from "../../src/api/protocol/flow.ts";
import { flowLogs } from "../../src/api/resources/flow-logs.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import { servedKinds } from "../../src/apiserver/custom-resources.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { type ApiServer, createApiServer } from "../../src/apiserver/server.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../src/cluster/kinds.ts";
import { exportProgress } from "../../src/flows/export/export-progress.ts";
import { type ExportLimits, FlowExport } from "../../src/flows/export/flow-export.ts";
import { otlpSender } from "../../src/flows/export/otlp-sender.ts";
import { flowBatch, flowKey, flowRow, policyHit, randomFrom, workload } from "../../src/flows/flow.fixture.ts";
import { FlowStore } from "../../src/flows/store/flow-store.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { silentLog } from "../../src/kit/log.ts";
import { createMetrics, type Metrics } from "../../src/kit/metrics.ts";
import { createAuthority, issue } from "../../src/kit/x509.ts";
import { Collector } from "./collector.ts";

const FAST = { lingerMs: 5 };

describe("flows on their way to a collector", () => {
  let server: ApiServer;
  let client: Client;
  let collector: Collector;
  let port: number;
  let ends: (() => Promise<unknown> | unknown)[];

  beforeEach(async () => {
    const definitions = customResourceDefinitions(vendorNames) as KubeObject[];
    server = await createApiServer({
      kinds: [...kubernetesKinds(), ...definitions.flatMap((each) => servedKinds(each as never))],
    });
    client = createClient(server.transport(), { userAgent: "test" });
    const metadata = { name: vendorNames.namespaces.system };
    await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata });
    const { stored } = placesOf(flowLogs, vendorNames);
    const resource = { apiVersion: groupVersion(stored), kind: "FlowLogs", metadata: { name: "default" } };
    await client.create(stored, resource);
    collector = new Collector();
    port = await collector.listen();
    ends = [() => collector.close(), () => server.close()];
  });
  afterEach(async () => {
    for (const end of ends.reverse()) await end();
  });

  /** A process that exports, with the store next to it. */
  function start(
    limits: Partial<ExportLimits> = {},
    target: { endpoint?: string; ca?: string; headers?: Record<string, string> } = {},
  ) {
    const { endpoint = `http://127.0.0.1:${port}`, ca, headers = {} } = target;
    const metrics: Metrics = createMetrics();
    const store = new FlowStore({});
    const exported = new FlowExport({
      ...{ sender: otlpSender({ endpoint, headers, ca }), progress: exportProgress(client), version: "v3.31.3" },
      ...{ clock: systemClock, log: silentLog, metrics, limits: { ...FAST, ...limits } },
    });
    const stopping = new AbortController();
    const done = exported.run(stopping.signal);
    const stop = async () => {
      stopping.abort();
      await done;
    };
    ends.push(stop);
    const take = (batch: FlowBatch) => {
      if (store.add(batch) === "added") exported.offer(batch);
    };
    return { exported, store, take, stop, metrics };
  }

  const batchOf = (interval: number, rows: FlowBatch["rows"], node = "node-1") =>
    flowBatch(rows, { node, interval, since: Date.now() - 15_000, until: Date.now() });

  it("are one record each, with attributes as OpenTelemetry names them", async () => {
    const { take } = start({}, { headers: { "api-key": "secret" } });
    const { service: _, ...plain } = flowKey({ verdict: "Allow", reason: undefined } as never);
    const batch = batchOf(7, [
      flowRow(
        { policies: [policyHit({ direction: "Egress", action: "Allow", rule: 0, name: "out" }), policyHit()] },
        { live: 2 },
      ),
      {
        ...flowRow(),
        key: { ...plain, port: 0, protocol: "ICMP" },
        sourceAddresses: ["fd00::1", "fd00::2"],
        destinationAddresses: [],
      },
    ]);
    take(batch);
    await expect.poll(() => collector.records.length).toBe(2);
    const [denied, allowed] = collector.records;
    expect(denied).toMatchObject({
      ...{ time: BigInt(batch.until) * 1_000_000n, severity: 13, severityText: "WARN", eventName: "vendor.flow" },
      body: "deny shop/web > pay/db 5432/TCP",
    });
    expect(denied?.attributes).toEqual({
      "log.record.uid": "node-1/boot-1/7/0",
      ...{ "source.address": "10.244.1.7", "destination.address": "10.244.2.9", "destination.port": 5432 },
      ...{ "network.transport": "tcp", "network.type": "ipv4", "k8s.node.name": "node-1" },
      ...{
        "source.k8s.namespace.name": "shop",
        "source.k8s.workload.name": "web",
        "source.k8s.workload.kind": "Deployment",
      },
      ...{ "destination.k8s.namespace.name": "pay", "destination.k8s.workload.name": "db" },
      ...{ "destination.k8s.workload.kind": "Deployment", "source.k8s.pod.label.app": "web" },
      ...{ "destination.k8s.pod.label.app": "db", "destination.k8s.service.name": "database" },
      ...{ "destination.k8s.service.namespace": "pay", "destination.k8s.service.port": "sql" },
      ...{ "vendor.source.type": "workload", "vendor.source.name": "web" },
      ...{ "vendor.destination.type": "workload", "vendor.destination.name": "db" },
      ...{ "vendor.flow.verdict": "deny", "vendor.flow.drop_reason": "policy_ingress" },
      ...{ "vendor.flow.reporter": "destination", "vendor.flow.dataplane": "bpf" },
      "vendor.flow.policies": ["egress allow default pay/out#0", "ingress deny default pay/lock#2"],
      ...{ "vendor.flow.since": batch.since, "vendor.flow.until": batch.until },
      ...{ "vendor.flow.packets": 3, "vendor.flow.bytes": 180, "vendor.flow.reply_packets": 0 },
      ...{ "vendor.flow.reply_bytes": 0, "vendor.flow.connections.started": 3 },
      ...{ "vendor.flow.connections.ended": 0, "vendor.flow.connections.live": 2 },
    });
    expect(allowed).toMatchObject({ severity: 9, body: "allow shop/web > pay/db ICMP" });
    expect(allowed?.attributes).toMatchObject({
      ...{ "source.address": "fd00::1", "network.type": "ipv6", "network.transport": "icmp" },
      "vendor.source.addresses": ["fd00::1", "fd00::2"],
    });
    expect(Object.keys(allowed?.attributes ?? {})).not.toContain("destination.port");
    expect(collector.resources[0]).toEqual({ "service.name": "vendor-flow-logs", "service.version": "v3.31.3" });
    expect(collector.requests[0]).toMatchObject({
      path: "/v1/logs",
      headers: { "content-type": "application/x-protobuf", "content-encoding": "gzip", "api-key": "secret" },
    });
  });

  it("come to what the API says, once each, while the collector fails in every way that passes", async () => {
    const { take, store, exported } = start({ requestBytes: 20_000 });
    const random = randomFrom(3);
    const failures = [{ status: 503, headers: { "retry-after": "0" } }, { status: 429 }, { status: 401, body: "who?" }];
    // The first attempts fail, then all are taken: each failure costs a second at least.
    collector.answer = () => failures.pop();
    for (let interval = 1; interval <= 30; interval++) {
      const rows = Array.from({ length: Math.floor(random() * 100) }, (_, index) =>
        flowRow(
          { from: workload("shop", `web-${index % 7}`), port: index },
          { packets: Math.floor(random() * 1_000), bytes: Math.floor(random() * 1e9) },
        ),
      );
      take(batchOf(interval, rows, `node-${interval % 3}`));
    }
    const { totals } = store.list({});
    await expect.poll(() => exported.state().waiting).toBe(0);
    expect(collector.sum("vendor.flow.packets")).toBe(totals.packets);
    expect(collector.sum("vendor.flow.bytes")).toBe(totals.bytes);
    expect(collector.sum("vendor.flow.connections.started")).toBe(totals.started);
    expect(new Set(collector.records.map(({ attributes }) => attributes["log.record.uid"])).size).toBe(
      collector.records.length,
    );
    expect(exported.state()).toEqual({ sent: collector.records.length, dropped: 0, waiting: 0 });
  });

  it("say why they are not taken, and go on when they are", async () => {
    collector.answer = () => ({ status: 403, headers: { "content-type": "text/plain" }, body: "no tenant\u001b[31m" });
    const { take, exported, metrics } = start();
    take(batchOf(1, [flowRow()]));
    await expect.poll(() => exported.state().failure?.why).toBe("the collector answered 403: no tenant\\u001b[31m");
    expect(exported.state()).toMatchObject({ waiting: 1, dropped: 0 });
    collector.answer = () => undefined;
    await expect.poll(() => collector.records.length).toBe(1);
    await expect.poll(() => exported.state()).toEqual({ sent: 1, dropped: 0, waiting: 0 });
    expect(metrics.text()).toContain("vendor_flow_logs_exported_records_total 1");
  });

  it("are counted where the collector will never take them, whole requests and single records", async () => {
    collector.answer = () => ({ status: 400 });
    const { take, exported, metrics } = start();
    take(batchOf(1, [flowRow(), flowRow({ port: 1 })]));
    await expect
      .poll(() => exported.state())
      .toEqual({ sent: 0, dropped: 2, waiting: 0, refusal: "the collector answered 400" });
    // Field 1: { rejected 1 = 1, message 2 = "full" }.
    collector.answer = () => ({ body: Buffer.from("0a08" + "0801" + "1204" + "66756c6c", "hex") });
    take(batchOf(2, [flowRow(), flowRow({ port: 1 })]));
    await expect
      .poll(() => exported.state())
      .toEqual({ sent: 1, dropped: 3, waiting: 0, refusal: "the collector says: full" });
    expect(metrics.text()).toContain('vendor_flow_logs_export_dropped_records_total{reason="refused"} 3');
  });

  it("wait in bounded memory, and what is dropped then is counted", async () => {
    collector.answer = () => "hang";
    const limits = { requestBytes: 10_000, waitingBytes: 20_000, rows: 500 };
    const { take, exported } = start(limits);
    for (let interval = 1; interval <= 200; interval++) {
      take(
        batchOf(
          interval,
          Array.from({ length: 50 }, (_, port) => flowRow({ port })),
        ),
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
    await expect.poll(() => exported.state().dropped).toBeGreaterThan(0);
    const { sent, dropped, waiting } = exported.state();
    expect(sent).toBe(0);
    expect(dropped + waiting).toBe(10_000);
    expect(waiting).toBeLessThan(5_000);
  });

  it("go on after a restart where they were, also when agents send everything again", async () => {
    const batches = Array.from({ length: 20 }, (_, index) => batchOf(index + 1, [flowRow(), flowRow({ port: 1 })]));
    const first = start();
    for (const batch of batches.slice(0, 12)) first.take(batch);
    await expect.poll(() => collector.records.length).toBe(24);
    await expect.poll(() => first.exported.state().waiting).toBe(0);
    await first.stop();
    const second = start();
    for (const batch of batches) second.take(batch);
    await expect.poll(() => collector.records.length).toBe(40);
    await expect.poll(() => second.exported.state().waiting).toBe(0);
    expect(collector.sum("vendor.flow.packets")).toBe(second.store.list({}).totals.packets);
    await second.stop();
    const place = { name: "vendor-flow-logs-export", namespace: vendorNames.namespaces.system };
    const { metadata } = await client.get<KubeObject>(CONFIG_MAPS, place);
    expect(metadata.ownerReferences).toMatchObject([{ kind: "FlowLogs", name: "default" }]);
    // What cannot be read is as if nothing was exported.
    await client.patch(CONFIG_MAPS, place, { type: "merge", patch: { binaryData: { progress: "AAAA" } } });
    const third = start();
    third.take(batches[0] as FlowBatch);
    await expect.poll(() => collector.records.length).toBe(42);
  });

  it("go to a collector that shows a certificate of the authority that is given, and to no other", async () => {
    const authority = createAuthority({ commonName: "theirs" }, new Date(Date.now() - 60_000), 1);
    const pair = issue(authority, {
      ...{ subject: { commonName: "collector" }, usage: "server", names: ["localhost"] },
      ...{ notBefore: new Date(Date.now() - 60_000), days: 1 },
    });
    const secure = new Collector(pair);
    const endpoint = `https://localhost:${await secure.listen()}/`;
    ends.push(() => secure.close());
    const refusing = start({}, { endpoint });
    refusing.take(batchOf(1, [flowRow()]));
    await expect.poll(() => refusing.exported.state().failure?.why).toMatch(/certificate/);
    expect(secure.requests).toEqual([]);
    await refusing.stop();
    const { take } = start({}, { endpoint, ca: authority.certificate });
    take(batchOf(1, [flowRow()]));
    await expect.poll(() => secure.records.length).toBe(1);
    expect(secure.requests[0]?.path).toBe("/v1/logs");
  });
});
