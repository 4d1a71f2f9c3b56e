import { describe, expect, it } from "vitest";
import { EXPLANATIONS } from "../validation/explain.ts";
import { isReportedByAgents, isTerminal, reasonOf } from "./status-reasons.ts";

describe("a Degraded condition", () => {
  it.each([
    ["a request that validation refuses", reasonOf("EBPF_IPIP_POOL")],
    ["an endpoint map that cannot be used", reasonOf("ENDPOINT_HOST_LOOPBACK")],
    ["a pool that overlaps another", reasonOf("POOLS_OVERLAP")],
    ["a platform whose CNI does not fit", reasonOf("CNI_WRONG_PLATFORM")],
    ["programs the kernel refuses", "EbpfProgramsRefused"],
    ["an image that cannot be pulled", "PodImagePullBackOff"],
    ["the public system's refusal of a configuration", "InvalidConfigurationError"],
  ])("ends only with a change: %s", (_, reason) => {
    expect(isTerminal(reason)).toBe(true);
  });

  it.each([
    ["a resource under another name", reasonOf("NAME_NOT_DEFAULT")],
    ["a UI whose flow logs are not asked for yet", reasonOf("FLOW_UI_NEEDS_LOGS")],
    ["kube-proxy that will go", reasonOf("SERVICE_PROXY_CONFLICT")],
    ["a pod that crashes", "PodCrashLoopBackOff"],
    ["a server that is busy", "RequestFailed"],
    ["a reason of a newer operator", "SomethingNew"],
    ["no reason", undefined],
  ])("may end by itself: %s", (_, reason) => {
    expect(isTerminal(reason)).toBe(false);
  });

  it("names problems by codes that exist", () => {
    expect(Object.keys(EXPLANATIONS)).toEqual(
      expect.arrayContaining([
        "FLOW_RESOURCES_TOO_EARLY",
        "FLOW_UI_NEEDS_LOGS",
        "NAME_NOT_DEFAULT",
        "SERVICE_PROXY_CONFLICT",
      ]),
    );
  });

  it("repeats what agents report only for their refusals", () => {
    expect(["EbpfProgramsRefused", "CgroupPathNotWritable", "MapFull", undefined].map(isReportedByAgents)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});
