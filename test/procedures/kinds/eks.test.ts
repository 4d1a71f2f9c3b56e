import { describe, expect } from "vitest";
import { CONFIG_MAPS } from "../../../src/cluster/kinds.ts";
import { describeKind } from "../../support/kind-scenario.ts";

describe("eks: the managed AWS-like service, with the Bottlerocket-like image on one node", () => {
  const story = describeKind({ kind: "eks", nodes: 3 });
  const { step, ok, plan, looks } = story;

  step(
    "the provider's load balancer, port 443; the cloud's name server; flexVolumePath for the one image",
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
        "proxy-settled",
      ]);
      expect(made.steps[1]?.where).toContain("story.gr7.eu-west-1.eks.internal:443");
      expect(made.steps[6]?.inputs["text"]).toContain("flexVolumePath: /var/lib/kubelet/plugins");
      expect(made.notes.join("\n")).toContain("flexVolumePath: /var/lib/kubelet/plugins");
    },
  );

  step("install: the proxy is parked, the same way as on generic", async () => {
    await ok("install", "-y");
    expect(await looks()).toBe("eBPF on 3 nodes; service proxy parked");
  });

  step("there and back again", async () => {
    await ok("switch", "--to", "standard", "-y");
    expect(await looks()).toBe("Nftables on 3 nodes; service proxy on 3 nodes");
    await ok("switch", "--to", "BPF", "-y");
    expect(await looks()).toBe("eBPF on 3 nodes; service proxy parked");
  });
});

describe("eks: with the proxy in IPVS mode", () => {
  const story = describeKind({ kind: "eks", proxy: "ipvs" });
  const { step, ok, plan, looks } = story;
  const settings = async () => {
    const map = await story.cluster.client.get(CONFIG_MAPS, { namespace: "kube-system", name: "kube-proxy-config" });
    return (map["data"] as { config: string }).config;
  };

  step("the nftables data plane does not mind", async () => {
    await ok("install", "--dataplane", "standard", "-y");
    expect(await looks()).toBe("Nftables on 2 nodes; service proxy on 2 nodes");
  });

  step("before eBPF the proxy is switched to iptables mode, as a step of its own", async () => {
    const { steps } = await plan("switch", "--to", "BPF");
    expect(steps).toEqual([
      "operator-nameserver",
      "endpoint-map",
      "leave-ipvs",
      "hold-nodes",
      "select-dataplane",
      "dataplane-turned",
      "release-canary",
      "release-wave-1",
      "network-available",
      "prove-dataplane",
      "park-proxy",
    ]);
    const before = await settings();
    expect(before).toContain("mode: ipvs");
    await ok("switch", "--to", "BPF", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy parked");
    expect(await settings()).toBe(before.replace("mode: ipvs", "mode: iptables"));
  });

  step("taken back, the proxy serves in IPVS mode again, before eBPF is gone", async () => {
    await ok("rollback", "-y");
    // The agents roll once more, without the address they were told.
    await expect.poll(looks).toBe("Nftables on 2 nodes; service proxy on 2 nodes");
    expect(await settings()).toContain("mode: ipvs");
  });
});
