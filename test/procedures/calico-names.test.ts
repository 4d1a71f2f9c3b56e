import { afterAll, beforeAll, describe, expect } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import type { Workload } from "../../src/api/workload-objects.ts";
import { CONFIG_MAPS, DAEMON_SETS } from "../../src/cluster/kinds.ts";
import { seedCalico, startCalicoOperator } from "../support/calico-cluster.ts";
import { describeKind } from "../support/kind-scenario.ts";

describe("a cluster of the public system, with --names calico", () => {
  const story = describeKind({ kind: "generic", cni: "preinstalled" });
  const { step, ok, plan, run } = story;
  let operator: { stop(): Promise<void> } | undefined;

  beforeAll(async () => {
    await seedCalico(story.cluster.client);
    operator = startCalicoOperator(story.cluster.client);
  });
  afterAll(() => operator?.stop());

  const network = async () => {
    const { client } = story.cluster;
    const kind = await client.resourceFor({ apiVersion: "operator.tigera.io/v1", kind: "Installation" });
    const { spec } = (await client.get<KubeObject>(kind, { name: "default" })) as unknown as {
      spec: { calicoNetwork: object };
    };
    return spec.calicoNetwork;
  };
  const selector = async () => {
    const ref = { namespace: "kube-system", name: "kube-proxy" };
    const proxy = await story.cluster.client.get<Workload & KubeObject>(DAEMON_SETS, ref);
    return proxy.spec?.template?.spec?.nodeSelector;
  };

  step("in our own words there is nothing to switch", async () => {
    const { exit, err } = await run("switch", "--to", "BPF", "-y");
    expect(exit).toBe(3);
    expect(err).toContain("DaemonSet calico-system/calico-node: Calico is this cluster's CNI plugin");
  });

  step("in its words there is: the same steps, under its names", async () => {
    const { plan: made, steps } = await plan("--names", "calico", "switch", "--to", "BPF");
    expect(steps).toEqual([
      "endpoint-map",
      "hold-nodes",
      "select-dataplane",
      "dataplane-turned",
      "release-canary",
      "release-wave-1",
      "network-available",
      "prove-dataplane",
      "park-proxy",
    ]);
    expect(made.names).toBe("calico");
    expect(made.steps[0]?.where).toMatch(/^ConfigMap tigera-operator\/kubernetes-services-endpoint: /);
    expect(made.notes.join("\n")).toContain('hostPorts is "Enabled" and becomes null');
  });

  step("switch to eBPF: its operator turns it on, and then the proxy is parked", async () => {
    await ok("--names", "calico", "switch", "--to", "BPF", "-y");
    expect(await network()).toEqual({ linuxDataplane: "BPF" });
    expect(await selector()).toMatchObject({ "non-calico": "true" });
    const map = await story.cluster.client.get(CONFIG_MAPS, {
      namespace: "tigera-operator",
      name: "kubernetes-services-endpoint",
    });
    expect(map["data"]).toMatchObject({ KUBERNETES_SERVICE_HOST: "api.story.internal" });
    expect(await ok("--names", "calico", "proxy", "status")).toMatch(/verdict: +ok/);
  });

  step("and back, the proxy first", async () => {
    await ok("--names", "calico", "switch", "--to", "standard", "-y");
    expect(await network()).toEqual({ linuxDataplane: "Iptables" });
    expect(await selector()).not.toHaveProperty("non-calico");
  });

  step("both runs taken back, everything is as it was", async () => {
    await ok("rollback", "-y");
    expect(await selector()).toMatchObject({ "non-calico": "true" });
    await ok("rollback", "-y");
    expect(await network()).toEqual({ linuxDataplane: "Iptables", hostPorts: "Enabled" });
    expect(await selector()).not.toHaveProperty("non-calico");
  });
});
