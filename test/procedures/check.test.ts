import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { readCliConfig } from "../../src/cli/config.ts";
import { vendorctl } from "../../src/cli/testing/fake-context.ts";
import { runVendorctl } from "../../src/cli/vendorctl.ts";
import { type ClusterOptions, type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { CHECKS } from "../../src/procedures/checks/all.ts";

/** A cluster and a command line for it. The name of its API server is nobody's here, so it is not probed. */
function onCluster(options: Partial<ClusterOptions>) {
  const folder = mkdtempSync(join(tmpdir(), "check-"));
  const kubeconfig = join(folder, "kubeconfig");
  let cluster: LocalCluster;
  beforeAll(async () => {
    cluster = await startCluster({ name: "seen", kind: "generic", nodes: 2, ...options });
    writeFileSync(kubeconfig, cluster.kubeconfig);
  });
  afterAll(async () => {
    await cluster?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    kubeconfig,
    get cluster() {
      return cluster;
    },
    run: (line: string) => vendorctl([...line.split(" "), "--kubeconfig", kubeconfig]),
  };
}

describe("a cluster that is ready for eBPF", () => {
  const world = onCluster({});

  it("is told in a line per group, and what to run next", async () => {
    const { exit, out, err } = await world.run("check --pre --no-probe");
    expect({ exit, err }).toEqual({ exit: 0, err: "" });
    const lines = out.trimEnd().split("\n");
    expect(lines.slice(0, -2).every((line) => /^(ok|skip) {2,4}\S.* \(\d+ (ok|skip).*\)$/.test(line))).toBe(true);
    expect(lines.at(-2)).toMatch(/^ok: before install, generic cluster of 2 nodes: /);
    expect(lines.at(-1)).toBe("next: vendorctl install");
  });

  it("takes a private name that this machine cannot resolve for no finding, and lists it with -v 1", async () => {
    const { exit, out } = await world.run("check --pre --strict");
    expect(exit).toBe(0);
    expect(out).not.toContain("[API_ADDRESS_UNRESOLVED]");
    const listed = await world.run("check --pre -v 1");
    expect(listed.out).toContain("[API_ADDRESS_UNRESOLVED]: api.seen.internal is a private name");
    expect(listed.out).toMatch(/ {2}ok {4}Kernel version of nodes \[EBPF_KERNEL_TOO_OLD\]: 2 nodes\n/);
  });

  it("tells programs everything, also what is fine", async () => {
    const { out } = await world.run("check --pre --no-probe -o json");
    const report = JSON.parse(out);
    expect(report).toMatchObject({ kind: "CheckReport", verdict: "ok", cluster: { kind: "generic", nodes: 2 } });
    expect(report.results.find(({ code }: { code: string }) => code === "EBPF_KERNEL_TOO_OLD")).toMatchObject({
      status: "ok",
      evidence: ["2 nodes"],
    });
    expect((await world.run("check --pre --no-probe -o yaml")).out).toContain("kind: CheckReport\n");
  });

  it("has nothing installed, and status says where to begin", async () => {
    const { exit, out } = await world.run("status");
    expect(exit).toBe(0);
    expect(out).toContain("-- not installed\n├─ -- operator: not installed\n");
    expect(out).toMatch(/\nnext: {2}vendorctl check --pre && vendorctl install\n$/);
    expect((await world.run("version")).out).toMatch(/service +not installed\n/);
  });
});

describe("a cluster that is not ready", () => {
  const world = onCluster({ kind: "eks", nodes: 4, proxy: "ipvs", oldNodes: 1, windowsNodes: 1 });

  it("is told with evidence, reason, fix and rule, and exits with 3", async () => {
    const { exit, out, err } = await world.run("check --pre --no-probe");
    expect(exit).toBe(3);
    expect(out).toContain(
      [
        "  fail  Some nodes cannot run eBPF [EBPF_MIXED_CLUSTER]",
        "        Node ip-10-20-0-5.eu-west-1.compute.internal: runs Windows Server 2022 Datacenter",
        "        why: Nodes forward traffic to each other in a form that only eBPF nodes understand.",
        "        fix: Make every node run Linux with eBPF, or stay on the nftables data plane.",
        "        rule: eBPF does not support clusters that mix eBPF nodes with standard or Windows nodes. See docs/guide/cluster-kinds.md#nodes-below-the-limits.",
        "",
      ].join("\n"),
    );
    expect(out).toMatch(/\nfail: before install, eks cluster of 4 nodes: .*3 fail/);
    expect(err).toContain("error: 3 checks failed [CHECKS_FAILED]");
  });

  it("in short: a line per finding, to be pasted", async () => {
    const { out } = await world.run("check --pre --no-probe -o short");
    expect(out.split("\n").map((line) => line.split(/ {2,}/)[1])).toEqual(
      expect.arrayContaining(["EBPF_KERNEL_TOO_OLD", "EBPF_MIXED_CLUSTER", "SERVICE_PROXY_IPVS"]),
    );
    expect(out.trimEnd().split("\n")).toHaveLength(4);
  });

  it("as test results for a CI system", async () => {
    const { exit, out } = await world.run("check --pre --no-probe -o junit");
    expect(exit).toBe(3);
    expect(out).toMatch(/^<\?xml version="1.0" encoding="UTF-8"\?>\n<testsuites name="vendorctl check install"/);
    expect(out).toContain('<failure type="SERVICE_PROXY_IPVS" message="mode: ipvs in ConfigMap kube-proxy-config">');
    expect(out.match(/<testcase /g)).toHaveLength(Number(/tests="(\d+)"/.exec(out)?.[1]));
    expect(out.match(/<failure /g)).toHaveLength(3);
  });

  it("is good enough for the nftables data plane, or where every finding is accepted", async () => {
    expect((await world.run("check --pre --no-probe --dataplane standard")).exit).toBe(0);
    const accepted = "EBPF_KERNEL_TOO_OLD,EBPF_MIXED_CLUSTER,SERVICE_PROXY_IPVS";
    const { exit, out } = await world.run(`check --pre --no-probe --suppress ${accepted}`);
    expect(exit).toBe(0);
    expect(out).toContain("3 suppressed");
  });
});

describe("a cluster with an older version", () => {
  const world = onCluster({ installed: { version: "v3.27", method: "operator", cameFromBeforeV314: true } });

  it("is told what an upgrade must not lose", async () => {
    const { exit, out } = await world.run("check --for upgrade -o short");
    expect(exit).toBe(0);
    const codes = ["OWNER_REFERENCES_AT_RISK", "HOST_ENDPOINTS_BY_HAND", "TEMPORARY_UPGRADE_POLICY"];
    for (const code of codes) expect(out).toContain(`warn  ${code}  `);
    expect(out).toMatch(/\nnext: vendorctl upgrade\n$/);
  });

  it("has a version this tool must not write to, and version names the upgrade", async () => {
    const { exit, out, err } = await world.run("version");
    expect({ exit, out }).toEqual({ exit: 0, out: expect.stringMatching(/service +v3\.27\.5\n/) });
    expect(err).toBe("next: vendorctl check --for upgrade && vendorctl upgrade\n");
    expect((await world.run("version --client")).exit).toBe(0);
  });

  it("shows its parts as a tree, again whenever one changes, until it is stopped", async () => {
    const stop = new AbortController();
    let out = "";
    const said = (text: RegExp) => vi.waitFor(() => expect(out).toMatch(text), { timeout: 120_000 });
    const exit = runVendorctl(["status", "--watch", "--kubeconfig", world.kubeconfig], {
      config: readCliConfig({}, {}),
      out: (text) => {
        out += text;
      },
      err: () => {},
      signal: stop.signal,
      loadClusterCommands: () => Promise.reject(new Error("not asked for")),
    });
    await said(/├─ ok node agents {2}2 of 2 nodes\n/);
    const kind = await world.cluster.client.resourceFor({ apiVersion: "operator.vendor.io/v1", kind: "VendorStatus" });
    const conditions = [{ type: "Degraded", status: "True", reason: "Story", message: "The disk is full." }];
    const ref = { name: vendorNames.statuses.network };
    await world.cluster.client.patch(
      kind,
      ref,
      { type: "merge", patch: { status: { conditions } } },
      { subresource: "status" },
    );
    await said(/!! network: degraded {2}The disk is full\.[\s\S]*\ncause: network: The disk is full\.\n/);
    stop.abort();
    expect([0, 130]).toContain(await exit);
  });
});

describe("a cluster that was just installed with eBPF", () => {
  const world = onCluster({});
  const home = process.env["VENDORCTL_HOME"];
  beforeAll(async () => {
    process.env["VENDORCTL_HOME"] = dirname(world.kubeconfig);
    const { exit, err } = await world.run("install -y");
    if (exit !== 0) throw new Error(err);
  });
  afterAll(() => {
    if (home === undefined) delete process.env["VENDORCTL_HOME"];
    else process.env["VENDORCTL_HOME"] = home;
  });

  it("has nothing for check to find, down to its definitions and what its agents proved", async () => {
    const { exit, out } = await world.run("check --no-probe -o json");
    const report = JSON.parse(out) as { verdict: string; results: { code: string; status: string }[] };
    expect({ exit, verdict: report.verdict }).toEqual({ exit: 0, verdict: "ok" });
    const ok = report.results.filter(({ status }) => status === "ok").map(({ code }) => code);
    expect(ok).toEqual(
      expect.arrayContaining([
        "DEFINITIONS_SKEW",
        "SERVICE_ROUTING_UNPROVEN",
        "SERVICE_PROXY_CONFLICT",
        "AGENTS_NOT_READY",
      ]),
    );
  });

  it("shows every part well; what nobody asked for is not installed", async () => {
    const { out } = await world.run("status");
    expect(out).toContain("ok v3.31.3, installed by operator, data plane eBPF\n");
    expect(out).toContain("├─ ok kube-proxy  disabled by the operator; eBPF serves Services\n");
    expect(out).toContain("├─ -- flow logs: not installed\n");
    expect((await world.run("version")).exit).toBe(0);
  });
});

it("explains every check offline", async () => {
  for (const { code, title } of CHECKS) {
    const { exit, out } = await vendorctl(["explain", code]);
    expect({ code, exit }).toEqual({ code, exit: 0 });
    for (const part of [title, "why:", "fix:", "rule:"]) expect(out).toContain(part);
  }
});
