import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { KubeObject } from "../../api/object.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { CONFIG_MAPS, DAEMON_SETS } from "../../cluster/kinds.ts";
import { systemClock } from "../../kit/clock.ts";
import { silentLog } from "../../kit/log.ts";
import { platformProfile } from "../platform-profile.ts";
import { type BareServer, bareServer, eventually } from "../testing/bare-server.ts";

const CONFIGURATION = { name: "cluster-configuration", namespace: "kube-system" };
const PROXY = { name: "kube-proxy", namespace: "kube-system" };

describe("the cluster configuration of an infrastructure-as-code tool", () => {
  let server: BareServer;
  let running: { stop(): Promise<void> }[];

  beforeEach(async () => {
    server = await bareServer("cluster-tool");
    const iac = platformProfile("iac");
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
    for (const object of iac.objects(options))
      await server.client.create(await server.client.resourceFor(object), object);
    const context = { client: server.client, clock: systemClock, log: silentLog };
    running = iac.behaviours.map((behaviour) => behaviour.start(context));
  });
  afterEach(async () => {
    await Promise.all(running.map((behaviour) => behaviour.stop()));
    await server.close();
  });

  const configuration = () => server.client.get<KubeObject>(CONFIG_MAPS, CONFIGURATION);
  const text = async () => ((await configuration())["data"] as Record<string, string>)["cluster.yaml"] as string;
  const edit = async (from: string | RegExp, to: string) => {
    const data = { "cluster.yaml": (await text()).replace(from, to) };
    await server.client.patch(CONFIG_MAPS, CONFIGURATION, { type: "merge", patch: { data } });
  };
  /** What `kubectl annotate configmap/cluster-configuration -n kube-system local.vendor.io/rollout=ID --overwrite` does. */
  const rollOut = async (id: string) => {
    const patch = { metadata: { annotations: { "local.vendor.io/rollout": id } } };
    await server.client.patch(CONFIG_MAPS, CONFIGURATION, { type: "merge", patch });
    const done = await eventually(
      configuration,
      ({ metadata }) => metadata.annotations?.["local.vendor.io/rolled-out"] === id,
    );
    return parse((done["data"] as Record<string, string>)["status.yaml"] as string) as Record<string, string>;
  };
  const exists = async (kind: typeof DAEMON_SETS) =>
    server.client.get(kind, PROXY).then(
      () => true,
      (error: unknown) => {
        if (!isNotFound(error)) throw error;
        return false;
      },
    );

  it("changes nothing when it is edited, and takes the proxy away when it is rolled out", async () => {
    await rollOut("nothing-new");
    await edit("enabled: true", "enabled: false");
    expect(await exists(DAEMON_SETS)).toBe(true);
    expect(await rollOut("2")).toEqual({ rollout: "2", phase: "Completed", kubeProxy: "disabled" });
    expect(await exists(DAEMON_SETS)).toBe(false);
    expect(await exists(CONFIG_MAPS)).toBe(false);
  });

  it("brings the proxy back, in another mode if it says so", async () => {
    await edit("enabled: true", "enabled: false");
    await rollOut("off");
    await edit("enabled: false", "enabled: true");
    await edit("proxyMode: iptables", "proxyMode: nftables");
    expect(await rollOut("on")).toMatchObject({ phase: "Completed", kubeProxy: "nftables" });
    const settings = await server.client.get<KubeObject>(CONFIG_MAPS, PROXY);
    expect(parse((settings["data"] as Record<string, string>)["config.conf"] as string)).toMatchObject({
      mode: "nftables",
    });
    expect(await exists(DAEMON_SETS)).toBe(true);
  });

  it("undoes, when rolled out, what was patched past it", async () => {
    const park = { spec: { template: { spec: { nodeSelector: { "non-vendor": "true" } } } } };
    await server.client.patch(DAEMON_SETS, PROXY, { type: "merge", patch: park });
    await rollOut("again");
    const proxy = await server.client.get<KubeObject>(DAEMON_SETS, PROXY);
    expect(JSON.stringify(proxy["spec"])).not.toContain("non-vendor");
  });

  it.each([
    ["enabled: true", "enabled: maybe", "spec.kubeProxy.enabled must be true or false"],
    ["proxyMode: iptables", "proxyMode: magic", "spec.kubeProxy.proxyMode must be one of iptables, nftables, ipvs"],
    [/^/, "\tx: [", "cluster.yaml is not YAML"],
    [/^.*$/s, "", "cluster.yaml has no spec"],
  ])("says what is wrong with an edit it cannot roll out, and touches nothing: %s -> %s", async (from, to, why) => {
    await edit(from, to);
    const status = await rollOut("bad");
    expect(status["phase"]).toBe("Failed");
    expect(status["message"]).toContain(why);
    expect(await exists(DAEMON_SETS)).toBe(true);
  });
});
