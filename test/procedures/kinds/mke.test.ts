import { describe, expect } from "vitest";
import { describeKind } from "../../support/kind-scenario.ts";

describe("mke: the container platform, installed with a service proxy", () => {
  const { step, ok, plan, looks } = describeKind({ kind: "mke" });

  step(
    "what the platform should have been installed with is said first; now the proxy's rules are left alone",
    async () => {
      const { plan: made, steps } = await plan("install");
      expect(steps).toEqual([
        "operator-namespace",
        "endpoint-map",
        "definitions",
        "operator",
        "operator-ready",
        "leave-proxy-rules",
        "custom-resources",
        "installed",
        "prove-dataplane",
      ]);
      expect(made.steps[1]?.where).toContain("proxy.local:6444");
      expect(made.notes[0]).toBe(
        "kube-proxy runs. On a new cluster of this kind: install the cluster with --kube-proxy-mode=disabled and --kube-default-drop-masq-bits. On this cluster: its rules are kept, because it cannot be disabled later.",
      );
    },
  );

  step("install: eBPF serves, the proxy runs beside it, and they do not fight", async () => {
    await ok("install", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy on 2 nodes");
    expect(await ok("proxy", "status")).toMatch(/its rules: +kept[\s\S]*verdict: +ok/);
  });

  step("there and back again", async () => {
    await ok("switch", "--to", "standard", "-y");
    expect(await looks()).toBe("Nftables on 2 nodes; service proxy on 2 nodes");
    await ok("switch", "--to", "BPF", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy on 2 nodes");
  });
});

describe("mke: installed with --kube-proxy-mode=disabled, as it should be", () => {
  const { step, ok, plan, looks, run } = describeKind({ kind: "mke", proxy: "none" });

  step("there is nothing to leave alone", async () => {
    const { steps } = await plan("install");
    expect(steps).not.toContain("leave-proxy-rules");
    await ok("install", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy absent");
  });

  step("there is no way back to a proxy, so services would stop: the switch is refused unless forced", async () => {
    const { exit, err } = await run("switch", "--to", "standard", "-y");
    expect(exit).toBe(3);
    expect(err).toContain("[SWITCH_NO_SERVICE_PROXY]");
    await ok("switch", "--to", "standard", "--force", "-y");
    expect(await looks()).toBe("Nftables on 2 nodes; service proxy absent");
  });
});
