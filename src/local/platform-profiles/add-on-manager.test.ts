import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { DAEMON_SETS, EVENTS } from "../../cluster/kinds.ts";
import { systemClock } from "../../kit/clock.ts";
import { silentLog } from "../../kit/log.ts";
import type { DaemonSet } from "../controllers/workload-types.ts";
import { platformProfile } from "../platform-profile.ts";
import { type BareServer, bareServer, eventually } from "../testing/bare-server.ts";

const PROXY = { name: "kube-proxy", namespace: "kube-system" };
const ABOUT_TWO_SECONDS = 2500;

describe("the add-on manager of an AKS-like service", () => {
  let server: BareServer;
  let running: { stop(): Promise<void> }[];

  beforeEach(async () => {
    server = await bareServer("addon-manager");
    const aks = platformProfile("aks");
    const apiAddress = { host: "127.0.0.1", port: 6443 };
    const options = {
      name: "demo",
      nodes: 3,
      oldNodes: 0,
      windowsNodes: 0,
      dualStack: false,
      proxy: undefined,
      apiAddress,
    };
    for (const object of aks.objects(options))
      await server.client.create(await server.client.resourceFor(object), object);
    const context = { client: server.client, clock: systemClock, log: silentLog };
    running = aks.behaviours.map((behaviour) => behaviour.start(context));
  });
  afterEach(async () => {
    await Promise.all(running.map((behaviour) => behaviour.stop()));
    await server.close();
  });

  const proxy = () => server.client.get<DaemonSet>(DAEMON_SETS, PROXY);
  const proxyOrNothing = () =>
    proxy().catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
      return undefined;
    });
  const selectorOf = (daemonSet: DaemonSet | undefined) => daemonSet?.spec.template.spec.nodeSelector;
  const events = async () =>
    (await server.client.list<KubeObject>(EVENTS, { namespace: "kube-system" })).items.map(
      ({ reason, count, message }) => ({ reason, count, message }),
    );

  it("undoes a node selector that parks the proxy, every time, and counts it", async () => {
    const park = { spec: { template: { spec: { nodeSelector: { "non-vendor": "true" } } } } };
    for (const times of [1, 2]) {
      const parked = await server.client.patch<DaemonSet>(DAEMON_SETS, PROXY, { type: "merge", patch: park });
      expect(selectorOf(parked)).toHaveProperty("non-vendor", "true");
      const back = await eventually(proxy, (now) => !("non-vendor" in (selectorOf(now) ?? {})), ABOUT_TWO_SECONDS);
      expect(selectorOf(back)).toEqual({ "kubernetes.io/os": "linux" });
      const told = await eventually(events, (all) => all[0]?.count === times);
      expect(told).toEqual([
        {
          reason: "AddOnReconciled",
          count: times,
          message: "The add-on manager undid a change: its manifest decides.",
        },
      ]);
    }
  });

  it("undoes another image, and a removed label", async () => {
    const patch = [
      { op: "replace" as const, path: "/spec/template/spec/containers/0/image", value: "registry.local/mine:1" },
      { op: "remove" as const, path: "/metadata/labels/addonmanager.kubernetes.io~1mode" },
    ];
    await server.client.patch(DAEMON_SETS, PROXY, { type: "json", operations: patch });
    const back = await eventually(
      proxy,
      ({ spec }) => spec.template.spec.containers[0]?.image !== "registry.local/mine:1",
      ABOUT_TWO_SECONDS,
    );
    expect(back.metadata.labels).toHaveProperty(["addonmanager.kubernetes.io/mode"], "Reconcile");
  });

  it("makes the proxy again when it was deleted", async () => {
    const { metadata } = await proxy();
    await server.client.delete(DAEMON_SETS, PROXY);
    const back = await eventually(proxyOrNothing, (now) => now !== undefined, ABOUT_TWO_SECONDS);
    expect(back?.metadata.uid).not.toBe(metadata.uid);
  });

  it("leaves alone what is as it should be, and annotations that are none of its business", async () => {
    await server.client.patch(DAEMON_SETS, PROXY, {
      type: "merge",
      patch: { metadata: { annotations: { "example.com/seen": "yes" } } },
    });
    await server.client.delete(DAEMON_SETS, PROXY, { dryRun: true });
    const park = { spec: { template: { spec: { nodeSelector: { "non-vendor": "true" } } } } };
    await server.client.patch(DAEMON_SETS, PROXY, { type: "merge", patch: park });
    const back = await eventually(proxy, (now) => !("non-vendor" in (selectorOf(now) ?? {})), ABOUT_TWO_SECONDS);
    expect(back.metadata.annotations).toHaveProperty(["example.com/seen"], "yes");
    expect(back.metadata.generation).toBe(3);
  });
});
