import { describe, expect, it } from "vitest";
import { type AgentReport, agentReportAnnotations, readAgentReport } from "./agent-report.ts";

const NOTHING: AgentReport = {
  programs: "unknown",
  dataplane: undefined,
  servicesProven: false,
  proxyRules: undefined,
  fullMaps: [],
  limitedWorkloads: [],
  problems: [],
  overlay: undefined,
};

describe("what an older agent wrote is read as it was meant", () => {
  it.each<[string, Record<string, string>, Partial<AgentReport>]>([
    ["nothing yet", {}, {}],
    ["programs that load", { "vendor.io/programs": "loads" }, { programs: "loads" }],
    [
      "programs the kernel refused",
      { "vendor.io/programs": "refused: the kernel lacks BTF" },
      { programs: { refused: { code: "EbpfProgramsRefused", why: "the kernel lacks BTF" } } },
    ],
    [
      "control groups that cannot be mounted, which only the sentence tells",
      { "vendor.io/programs": "refused: cannot mount the control groups at /usr/cgroup: it is read-only there" },
      {
        programs: {
          refused: {
            code: "CgroupPathNotWritable",
            why: "cannot mount the control groups at /usr/cgroup: it is read-only there",
          },
        },
      },
    ],
    [
      "BPF, proven",
      { "vendor.io/dataplane": "BPF", "vendor.io/service-routing": "proven" },
      { dataplane: "BPF", servicesProven: true },
    ],
    ["nftables", { "vendor.io/dataplane": "Nftables" }, { dataplane: "Nftables" }],
    ["leaving", { "vendor.io/dataplane": "LeavingBPF" }, { dataplane: "LeavingBPF" }],
    ["draining", { "vendor.io/dataplane": "DrainingBPF" }, { dataplane: "DrainingBPF" }],
    ["kube-proxy's rules left alone", { "vendor.io/service-proxy-rules": "left alone" }, { proxyRules: "left alone" }],
    [
      "kube-proxy that keeps writing its rules",
      { "vendor.io/service-proxy-rules": "conflict: the service proxy wrote its rules again" },
      { proxyRules: { conflict: "the service proxy wrote its rules again" } },
    ],
    [
      "pods that fill a connection table",
      { "vendor.io/limited-workloads": "default/loader, shop/web" },
      { limitedWorkloads: ["default/loader", "shop/web"] },
    ],
    [
      "objects that are not in effect",
      { "vendor.io/problems": "interface wg0 EBPF_INTERFACE_NOT_ETHERNET, 2 more" },
      { problems: ["interface wg0 EBPF_INTERFACE_NOT_ETHERNET", "2 more"] },
    ],
    ["full maps", { "vendor.io/full-maps": "flows, frontends" }, { fullMaps: ["flows", "frontends"] }],
  ])("%s", (_, annotations, expected) => {
    expect(readAgentReport(annotations)).toEqual({ ...NOTHING, ...expected });
  });

  it("reads what it writes of the overlay", () => {
    for (const overlay of [
      undefined,
      { verifiedSince: undefined, losses: ["a to b (UDP 1 from c to d)", "b to a (UDP 1 from d to c)"] },
      { verifiedSince: "2026-01-31T12:00:00Z", losses: [] },
    ]) {
      const written = agentReportAnnotations({ ...NOTHING, overlay });
      const kept = Object.entries(written).filter((one): one is [string, string] => one[1] !== null);
      expect(readAgentReport(Object.fromEntries(kept)).overlay).toEqual(overlay);
    }
  });

  it("a word of a newer release is known to be one", () => {
    expect(readAgentReport({ "vendor.io/dataplane": "DPU", "vendor.io/programs": "warming up" })).toEqual({
      ...NOTHING,
      dataplane: "unknown",
    });
  });
});

describe("what an agent writes now", () => {
  const refused = { code: "CgroupPathNotWritable", why: "/usr/x is read-only" } as const;

  it("has the values an older operator reads", () => {
    const report: AgentReport = {
      programs: { refused },
      dataplane: "DrainingBPF",
      servicesProven: false,
      proxyRules: { conflict: "the service proxy wrote its rules again" },
      fullMaps: ["flows", "frontends"],
      limitedWorkloads: ["shop/web"],
      problems: Array.from({ length: 12 }, (_, at) => `Service shop/s${at} SERVICE_ADDRESS_REFUSED`),
      overlay: { verifiedSince: undefined, losses: ["node-1 to node-2 (UDP 4789 from 10.0.0.1 to 10.0.0.2)"] },
    };
    expect(agentReportAnnotations(report)).toEqual({
      "vendor.io/programs": "refused: /usr/x is read-only",
      "vendor.io/programs-refusal": "CgroupPathNotWritable",
      "vendor.io/dataplane": "DrainingBPF",
      "vendor.io/service-routing": null,
      "vendor.io/service-proxy-rules": "conflict: the service proxy wrote its rules again",
      "vendor.io/full-maps": "flows, frontends",
      "vendor.io/limited-workloads": "shop/web",
      "vendor.io/problems": expect.stringMatching(/^Service shop\/s0 SERVICE_ADDRESS_REFUSED, .*, 2 more$/),
      "vendor.io/overlay": "unverified",
      "vendor.io/overlay-losses": "node-1 to node-2 (UDP 4789 from 10.0.0.1 to 10.0.0.2)",
      "vendor.io/pool-encapsulations": null,
      "vendor.io/tunnels": null,
    });
    expect(agentReportAnnotations({ ...NOTHING, programs: "loads", dataplane: "BPF", servicesProven: true })).toEqual({
      "vendor.io/programs": "loads",
      "vendor.io/programs-refusal": null,
      "vendor.io/dataplane": "BPF",
      "vendor.io/service-routing": "proven",
      "vendor.io/service-proxy-rules": null,
      "vendor.io/full-maps": null,
      "vendor.io/limited-workloads": null,
      "vendor.io/problems": null,
      "vendor.io/overlay": null,
      "vendor.io/overlay-losses": null,
      "vendor.io/pool-encapsulations": null,
      "vendor.io/tunnels": null,
    });
  });

  it.each<[string, Partial<AgentReport>]>([
    ["nothing", {}],
    ["a refusal whose sentence names no control groups", { programs: { refused } }],
    [
      "a refusal that only mentions cgroups",
      { programs: { refused: { code: "EbpfProgramsRefused", why: "cgroup_skb is unknown" } } },
    ],
    ["rules left alone", { dataplane: "BPF", servicesProven: true, proxyRules: "left alone" }],
    ["a conflict over two lines", { proxyRules: { conflict: "one\ntwo" }, fullMaps: ["flows"] }],
  ])("is read back as it was: %s", (_, part) => {
    const report = { ...NOTHING, ...part };
    const written = Object.entries(agentReportAnnotations(report)).filter(([, value]) => value !== null);
    expect(readAgentReport(Object.fromEntries(written) as Record<string, string>)).toEqual(report);
  });
});
