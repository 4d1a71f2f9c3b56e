import { describe, expect } from "vitest";
import { describeKind } from "../../support/kind-scenario.ts";
import { untilAvailable } from "../../support/operator-status.ts";
import { type ClusterState, settledState, untilState } from "../../support/procedure-state.ts";

describe("generic: a self-managed cluster, as the bootstrap tool leaves it", () => {
  const story = describeKind({ kind: "generic" });
  const { step, ok, plan, looks, run } = story;
  let before: ClusterState;

  step("eBPF is the default here, so the plan leaves the manual steps out, and says so", async () => {
    before = await settledState(story.cluster.client);
    const { plan: made, steps } = await plan("install");
    expect(steps).toEqual([
      "definitions",
      "operator",
      "operator-ready",
      "custom-resources",
      "installed",
      "prove-dataplane",
      "proxy-settled",
    ]);
    expect(made.notes.join("\n")).toMatch(/On a new cluster of this kind: pass --skip-phases=addon\/kube-proxy/);
    expect(made.notes.join("\n")).toMatch(/eBPF is the default data plane here .*: no further step is needed/);
    expect(await looks()).toBe("nothing on 0 nodes; service proxy on 2 nodes");
  });

  step("install: eBPF serves, and the operator has parked the service proxy", async () => {
    const said = await ok("install", "-y");
    expect(said).toMatch(/done in [\d.]+s: 7 done/);
    expect(said).toContain("next: vendorctl status");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy parked");
    expect(await ok("proxy", "status")).toMatch(/kube-proxy: +disabled by the operator\n[\s\S]*verdict: +ok/);
  });

  step("the same again has nothing left to do", async () => {
    expect(await ok("install", "-y")).toMatch(/^v3\.31\.3 is installed already, with eBPF: nothing to do$/m);
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy parked");
  });

  step("back to the nftables data plane: the proxy serves before eBPF stops", async () => {
    await ok("switch", "--to", "standard", "-y");
    expect(await looks()).toBe("Nftables on 2 nodes; service proxy on 2 nodes");
    expect(await ok("install", "-y")).toMatch(/installed already, with the nftables data plane: nothing to do$/m);
  });

  step("taken back, eBPF is there again, and the field that was never written is absent again", async () => {
    await ok("rollback", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy parked");
    const { client } = story.cluster;
    const kind = await client.resourceFor({ apiVersion: "operator.vendor.io/v1", kind: "Installation" });
    const { spec } = (await client.get(kind, { name: "default" })) as unknown as { spec: { vendorNetwork: object } };
    expect(spec.vendorNetwork).not.toHaveProperty("linuxDataplane");
    await ok("switch", "--to", "standard", "-y");
  });

  step("the proxy is not parked while it is what serves", async () => {
    const { exit, err } = await run("proxy", "disable", "-y");
    expect(exit).toBe(3);
    expect(err).toMatch(/the data plane is not eBPF \[PROXY_STILL_NEEDED\]\n {2}fix: vendorctl switch --to bpf/);
  });

  step("and to eBPF again", async () => {
    await ok("switch", "--to", "BPF", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy parked");
  });

  step("the operator would park a proxy that is restored beside eBPF, so that is refused", async () => {
    const { exit, err } = await run("proxy", "restore", "-y");
    expect(exit).toBe(3);
    expect(err).toContain("[PROXY_KEPT_BY_OPERATOR]");
  });

  step("uninstall: the proxy is back, nothing of ours is left, and the cluster is what it was", async () => {
    const said = await ok("uninstall", "--remove-crds", "-y");
    expect(said).toContain("0 objects of the service are left\n");
    expect(await looks()).toBe("nothing on 0 nodes; service proxy on 2 nodes");
    expect(await untilState(story.cluster.client, before)).toEqual([]);
  });
});

describe("generic: with the proxy in your own hands", () => {
  const story = describeKind({ kind: "generic" });
  const { step, ok, plan, looks, run } = story;
  const byHand = ["--set", "spec.vendorNetwork.serviceProxyManagement=Disabled"];

  step("asked not to, the operator leaves the proxy alone, and vendorctl parks it after the proof", async () => {
    const { steps } = await plan("install", ...byHand);
    expect(steps.slice(-2)).toEqual(["prove-dataplane", "park-proxy"]);
    await ok("install", "-y", ...byHand);
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy parked");
    expect(await ok("proxy", "status")).toMatch(/disabled by a user/);
  });

  step("restoring it beside eBPF would make the two fight", async () => {
    const { exit, err } = await run("proxy", "restore", "-y");
    expect(exit).toBe(3);
    expect(err).toMatch(/\[PROXY_WOULD_FIGHT\]\n {2}fix: .*vendorctl proxy restore --leave-rules/);
  });

  step("with its rules left alone the two live side by side", async () => {
    await ok("proxy", "restore", "--leave-rules", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy on 2 nodes");
    expect(await ok("proxy", "status")).toMatch(/its rules: +kept/);
  });

  step("rollback takes exactly that back", async () => {
    await ok("rollback", "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy parked");
    expect(await ok("proxy", "status")).toMatch(/its rules: +removed with eBPF/);
  });

  step("the way back brings the proxy back first, and waits for it", async () => {
    const { steps } = await plan("switch", "--to", "standard");
    expect(steps).toEqual([
      "restore-proxy",
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

  step("and forth again; the former hostPorts come back with a rollback", async () => {
    const { client } = story.cluster;
    const installations = await client.resourceFor({ apiVersion: "operator.vendor.io/v1", kind: "Installation" });
    const hostPorts = { spec: { vendorNetwork: { hostPorts: { portMapping: "Disabled" } } } };
    await client.patch(installations, { name: "default" }, { type: "merge", patch: hostPorts });
    await untilAvailable(client, "network");
    const network = async () =>
      (await client.get(installations, { name: "default" }))["spec"] as { vendorNetwork: Record<string, unknown> };
    await ok("switch", "--to", "BPF", "-y");
    expect((await network()).vendorNetwork).not.toHaveProperty("hostPorts");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy parked");
    await ok("rollback", "-y");
    expect((await network()).vendorNetwork).toMatchObject({
      linuxDataplane: "Nftables",
      hostPorts: { portMapping: "Disabled" },
    });
    await expect.poll(looks).toBe("Nftables on 2 nodes; service proxy on 2 nodes");
  });
});

describe("generic: made without a service proxy (--skip-phases=addon/kube-proxy), as it should be", () => {
  const { step, ok, plan, looks } = describeKind({ kind: "generic", proxy: "none" });

  step("there is nothing to disable, and the plan says nothing about it", async () => {
    const { plan: made, steps } = await plan("install");
    expect(steps.at(-1)).toBe("prove-dataplane");
    expect(made.notes.join("\n")).not.toContain("kube-proxy runs");
    await ok("install", "-y", "--flow-logs", "--flow-ui");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy absent");
  });

  step("the way back needs a proxy, and tells how the bootstrap tool brings one", async () => {
    const { plan: made, steps } = await plan("switch", "--to", "standard");
    expect(steps.slice(0, 2)).toEqual(["restore-proxy", "proxy-serves"]);
    expect(made.steps[0]?.inputs["tell"]).toEqual(["kubeadm init phase addon kube-proxy --config FILE"]);
  });
});
