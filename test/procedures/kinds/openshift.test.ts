import { describe, expect } from "vitest";
import { describeKind } from "../../support/kind-scenario.ts";

describe("openshift: the enterprise container platform", () => {
  const story = describeKind({ kind: "openshift" });
  const { step, ok, plan, looks, run } = story;

  step("no address is needed, there is no proxy, eBPF is the default: the plan is the shortest there is", async () => {
    const { plan: made, steps } = await plan("install");
    expect(steps).toEqual([
      "definitions",
      "operator",
      "operator-ready",
      "custom-resources",
      "installed",
      "prove-dataplane",
    ]);
    expect(made.notes).toContain(
      "eBPF is the default data plane here (Enterprise container platform (OpenShift-like)): no further step is needed.",
    );
    expect(made.notes).toContain("custom-resources.yaml is created as it is published.");
  });

  step("install", async () => {
    await ok("install", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy absent");
  });

  step("there and back again: no action about a proxy, either way", async () => {
    await ok("switch", "--to", "standard", "-y");
    expect(await looks()).toBe("Nftables on 2 nodes; service proxy absent");
    expect(await ok("proxy", "status")).toContain("This platform needs no kube-proxy.");
    await ok("switch", "--to", "BPF", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy absent");
  });

  step("there is nothing to disable, and nothing to bring back", async () => {
    expect(await ok("proxy", "disable", "-y")).toContain("The cluster has no kube-proxy.");
    const { exit, err } = await run("proxy", "restore", "-y");
    expect(exit).toBe(3);
    expect(err).toContain("[PROXY_ABSENT]");
  });
});
