import { describe, expect } from "vitest";
import { storedKind } from "../../../src/operator/managed-kinds.ts";
import { describeKind } from "../../support/kind-scenario.ts";
import { allStatuses } from "../../support/operator-status.ts";

describe("aks: the managed service with an add-on manager", () => {
  const story = describeKind({ kind: "aks", nodes: 3 });
  const { step, ok, plan, looks, run } = story;

  step(
    "the address is the one cluster-info prints, port 443; the proxy stays and its rules are left alone",
    async () => {
      const { plan: made, steps } = await plan("install");
      expect(steps).toEqual([
        "operator-namespace",
        "endpoint-map",
        "definitions",
        "operator",
        "operator-ready",
        "custom-resources",
        "installed",
        "prove-dataplane",
        "proxy-settled",
      ]);
      expect(made.steps[1]?.where).toContain("story-dns-7c1d2f3a.hcp.westeurope.azmk8s.internal:443");
      expect(made.steps[5]?.inputs["text"]).toMatch(/linuxDataplane: BPF/);
    },
  );

  step("an address with another port is refused, with the one this service has", async () => {
    const { exit, err } = await run(
      "install",
      "-y",
      "--api-server",
      "story-dns-7c1d2f3a.hcp.westeurope.azmk8s.internal:6443",
    );
    expect(exit).toBe(3);
    expect(err).toContain("[ENDPOINT_PORT_NOT_FOR_KIND]");
  });

  step("install, on nodes of which one has the 18.04 image, which is recent enough here", async () => {
    await ok("install", "-y");
    expect(await looks()).toBe("eBPF on 3 nodes; service proxy on 3 nodes");
    expect(await ok("proxy", "status")).toMatch(
      /managed by: +the platform's add-on manager[\s\S]*its rules: +kept[\s\S]*verdict: +ok/,
    );
  });

  step("there and back again, the proxy untouched", async () => {
    await ok("switch", "--to", "standard", "-y");
    expect(await looks()).toBe("Nftables on 3 nodes; service proxy on 3 nodes");
    await ok("switch", "--to", "BPF", "-y");
    expect(await looks()).toBe("eBPF on 3 nodes; service proxy on 3 nodes");
  });

  step(
    "told to remove its rules, status names the contradiction, and the next switch leaves them alone first",
    async () => {
      await ok("switch", "--to", "standard", "-y");
      const { client } = story.cluster;
      const patch = { spec: { bpfServiceProxyIptablesCleanupEnabled: true } };
      await client.patch(storedKind("dataplaneConfiguration"), { name: "default" }, { type: "merge", patch });
      expect((await plan("switch", "--to", "BPF")).steps).toContain("leave-proxy-rules");
      await ok("switch", "--to", "BPF", "-y");
      expect(await looks()).toBe("eBPF on 3 nodes; service proxy on 3 nodes");
      await client.patch(storedKind("dataplaneConfiguration"), { name: "default" }, { type: "merge", patch });
      await expect
        .poll(async () => (await allStatuses(client))["service-proxy"], { timeout: 30_000 })
        .toMatchObject({ degraded: true, reason: "ServiceProxyConflict" });
      expect(await run("proxy", "status")).toMatchObject({ exit: 3 });
      await ok("proxy", "disable", "-y");
      await expect
        .poll(async () => (await allStatuses(client))["service-proxy"], { timeout: 30_000 })
        .toMatchObject({ degraded: false, available: true });
    },
  );

  step("disable parks nothing here: the manager would put it back", async () => {
    expect(await ok("proxy", "disable", "-y")).toContain("nothing to do");
    expect(await looks()).toBe("eBPF on 3 nodes; service proxy on 3 nodes");
  });
});

describe("aks: an IPVS proxy is the platform's to change", () => {
  const { step, run } = describeKind({ kind: "aks", proxy: "ipvs" });

  step("so the installation is refused before anything is made", async () => {
    const { exit, err } = await run("install", "-y");
    expect(exit).toBe(3);
    expect(err).toMatch(
      /\[SERVICE_PROXY_IPVS\]\n {2}fix: switch kube-proxy to iptables mode in the platform's configuration/,
    );
  });
});
