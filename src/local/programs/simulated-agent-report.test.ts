import { describe, expect, it } from "vitest";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { type AgentNode, agentReport } from "./simulated-agent-report.ts";

const ubuntu: AgentNode = {
  annotations: {},
  osImage: "Ubuntu 24.04.3 LTS",
  kernelVersion: "6.8.0-79-generic",
  architecture: "amd64",
};
const bottlerocket: AgentNode = { ...ubuntu, osImage: "Bottlerocket OS 1.44.0", kernelVersion: "6.1.147" };
const asked = { bpfEnabled: true, cgroupV2Path: undefined };
const programs = (node: AgentNode, settings = asked, kind: ClusterKind = "generic") =>
  agentReport(node, settings, kind)["vendor.io/programs"];

const NOTHING_ELSE = {
  "vendor.io/programs-refusal": null,
  "vendor.io/service-proxy-rules": null,
  "vendor.io/full-maps": null,
  "vendor.io/limited-workloads": null,
  "vendor.io/overlay": null,
  "vendor.io/overlay-losses": null,
  "vendor.io/pool-encapsulations": null,
  "vendor.io/tunnels": "",
  "vendor.io/problems": null,
};

describe("what a simulated agent reports about its node", () => {
  it("loads, and stays with the nftables data plane until it is told", () => {
    expect(agentReport(ubuntu, { ...asked, bpfEnabled: false }, "generic")).toEqual({
      "vendor.io/programs": "loads",
      "vendor.io/dataplane": "Nftables",
      "vendor.io/service-routing": null,
      ...NOTHING_ELSE,
    });
  });

  it("proves service routing once eBPF acts", () => {
    expect(agentReport(ubuntu, asked, "generic")).toEqual({
      "vendor.io/programs": "loads",
      "vendor.io/dataplane": "BPF",
      "vendor.io/service-routing": "proven",
      ...NOTHING_ELSE,
    });
  });

  const REFUSALS: [what: string, node: AgentNode, settings: typeof asked | object, kind: ClusterKind, why: RegExp][] = [
    ["an old kernel", { ...ubuntu, kernelVersion: "4.15.0-213-generic" }, {}, "generic", /kernel 4\.15.*5\.3/],
    ["an architecture", { ...ubuntu, architecture: "s390x" }, {}, "generic", /architecture s390x/],
    ["a node image", { ...ubuntu, osImage: "Ubuntu 18.04.6 LTS" }, {}, "eks", /newer node image/],
    ["a path that is read-only", bottlerocket, { cgroupV2Path: "/sys/fs/cgroup" }, "eks", /read-only there/],
    [
      "the node's owner",
      { ...ubuntu, annotations: { "local.vendor.io/refuse-programs": "BTF is missing" } },
      {},
      "aks",
      /BTF is missing/,
    ],
  ];
  it.each(REFUSALS)("refuses because of %s, and then eBPF does not act", (_what, node, settings, kind, why) => {
    const word = agentReport(node, { ...asked, ...settings }, kind);
    expect(word["vendor.io/programs"]).toMatch(/^refused: /);
    expect(word["vendor.io/programs"]).toMatch(why);
    expect(word["vendor.io/dataplane"]).toBe("Nftables");
    expect(word["vendor.io/service-routing"]).toBeNull();
    const cgroup = node === bottlerocket;
    expect(word["vendor.io/programs-refusal"]).toBe(cgroup ? "CgroupPathNotWritable" : "EbpfProgramsRefused");
  });

  it("a writable path is well on an immutable system, and any path on another", () => {
    expect(programs(bottlerocket)).toBe("loads");
    expect(programs(bottlerocket, { ...asked, cgroupV2Path: "/var/cgroup" } as never)).toBe("loads");
    expect(programs(ubuntu, { ...asked, cgroupV2Path: "/sys/fs/cgroup" } as never)).toBe("loads");
  });
});
