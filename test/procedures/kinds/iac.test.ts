import { describe, expect } from "vitest";
import { DEPLOYMENTS } from "../../../src/cluster/kinds.ts";
import { describeKind, withClusterTool } from "../../support/kind-scenario.ts";

describe("iac: a cluster of an infrastructure-as-code tool, in an AWS-like cloud", () => {
  const story = describeKind({ kind: "iac" }, withClusterTool);
  const { step, ok, plan, looks } = story;

  step(
    "the address is api.internal.CLUSTERNAME, the operator asks the cloud's name server, and the proxy is the tool's",
    async () => {
      const { plan: made, steps } = await plan("install");
      expect(steps).toEqual([
        "operator-namespace",
        "endpoint-map",
        "definitions",
        "operator",
        "operator-nameserver",
        "operator-ready",
        "custom-resources",
        "installed",
        "prove-dataplane",
        "disable-proxy",
      ]);
      expect(made.steps[1]?.where).toMatch(/: api\.internal\.story:\d+$/);
      expect(made.steps.at(-1)).toMatchObject({ action: "wait-outside", where: "your cluster tool" });
      expect(made.notes.join("\n")).toContain("set kubeProxy.enabled to false in the cluster configuration");
    },
  );

  step("install prints the tool's command, waits, and goes on when the cluster shows that it was run", async () => {
    const said = await ok("install", "-y");
    expect(said).toContain("kubectl -n kube-system patch configmap cluster-configuration --type merge");
    expect(said).toMatch(/: 10 done/);
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy absent");
    const operator = await story.cluster.client.get(DEPLOYMENTS, {
      namespace: "vendor-operator",
      name: "vendor-operator",
    });
    expect(operator["spec"]).toMatchObject({
      template: { spec: { dnsPolicy: "None", dnsConfig: { nameservers: ["169.254.169.253"] } } },
    });
  });

  step("back: the tool brings the proxy back, it serves, and only then eBPF goes", async () => {
    const { steps } = await plan("switch", "--to", "standard");
    expect(steps).toEqual([
      "restore-proxy",
      "proxy-serves",
      "hold-nodes",
      "select-dataplane",
      "dataplane-turned",
      "release-canary",
      "release-wave-1",
      "network-available",
      "prove-dataplane",
    ]);
    await ok("switch", "--to", "standard", "-y");
    expect(await looks()).toBe("Nftables on 2 nodes; service proxy on 2 nodes");
  });

  step("and to eBPF again", async () => {
    await ok("switch", "--to", "BPF", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy absent");
  });

  step("taken back, the tool is told the way back too", async () => {
    expect(await ok("rollback", "-y")).toContain("enabled: true");
    await expect.poll(looks).toBe("Nftables on 2 nodes; service proxy on 2 nodes");
  });
});
