import { describe, expect, it } from "vitest";
import { NODE_IMAGES } from "../node-images.ts";
import type { ClusterKind } from "./cluster-kinds.ts";
import { compareKernels, parseKernelRelease } from "./kernel-release.ts";
import { parseOperatingSystem } from "./operating-system.ts";
import { kernelVerdict, PLATFORM_LIMITS, supportedArchitecture } from "./platform-limits.ts";

describe("kernel releases", () => {
  it.each([
    ["5.15.0-1019-aws", [5, 15, 0], [1019]],
    ["4.18.0-193.el8.x86_64", [4, 18, 0], [193]],
    ["4.18.0-193.6.3.el8_2.x86_64", [4, 18, 0], [193, 6, 3]],
    ["5.10.233-223.887.amzn2.x86_64", [5, 10, 233], [223, 887]],
    ["6.1.0-18-amd64", [6, 1, 0], [18]],
    ["5.3", [5, 3, 0], []],
    ["6.6.87.2-microsoft-standard-WSL2", [6, 6, 87], []],
    ["5.15.0+", [5, 15, 0], []],
  ])("%s is read", (text, version, build) => expect(parseKernelRelease(text)).toMatchObject({ version, build }));

  it.each(["", "linux", "v5.3", "10.0.17763.1"])("%j is not taken for a Linux kernel newer than any", (text) => {
    const kernel = parseKernelRelease(text);
    if (kernel) expect(kernel.version[0]).toBe(10);
  });

  it("compare build numbers only where asked", () => {
    const [a, b] = [parseKernelRelease("4.18.0-147.el8")!, parseKernelRelease("4.18.0-193.el8")!];
    expect(compareKernels(a, b, false)).toBe(0);
    expect(compareKernels(a, b, true)).toBeLessThan(0);
  });
});

describe("is the kernel recent enough for eBPF", () => {
  const rows: [string, string, ClusterKind | undefined, boolean][] = [
    ["Ubuntu 20.04.6 LTS", "5.4.0-150-generic", undefined, true],
    ["Ubuntu 22.04.4 LTS", "5.15.0-1019-aws", undefined, true],
    ["Ubuntu 20.04.6 LTS", "unknown", undefined, true],
    ["Ubuntu 20.04.6 LTS", "4.15.0-20-generic", undefined, false],
    ["Ubuntu 18.04.6 LTS", "4.15.0-213-generic", undefined, false],
    ["Ubuntu 18.04.6 LTS", "5.4.0-1104-azure", "aks", true],
    ["Ubuntu 18.04.6 LTS", "5.4.0-1104-aws", "eks", false],
    ["Red Hat Enterprise Linux 8.2 (Ootpa)", "4.18.0-193.el8.x86_64", undefined, true],
    ["Red Hat Enterprise Linux 8.1 (Ootpa)", "4.18.0-147.el8.x86_64", undefined, false],
    ["Red Hat Enterprise Linux 8.1 (Ootpa)", "4.18.0-193.el8.x86_64", undefined, false],
    ["Rocky Linux 9.4 (Blue Onyx)", "5.14.0-427.el9.x86_64", undefined, true],
    ["CentOS Linux 8", "4.18.0-348.el8.x86_64", undefined, true],
    ["CentOS Linux 7 (Core)", "3.10.0-1160.el7.x86_64", undefined, false],
    ["Red Hat Enterprise Linux CoreOS 411.86.202306 (Ootpa)", "4.18.0-372.59.1.el8_6.x86_64", "openshift", true],
    ["Amazon Linux 2", "5.10.233-223.887.amzn2.x86_64", "eks", true],
    ["Amazon Linux 2", "4.14.301-224.520.amzn2.x86_64", "eks", false],
    ["Bottlerocket OS 1.20.0 (aws-k8s-1.29)", "6.1.90", "eks", true],
    ["Debian GNU/Linux 12 (bookworm)", "6.1.0-18-amd64", undefined, true],
    ["Debian GNU/Linux 10 (buster)", "4.19.0-26-amd64", undefined, false],
    ["Some Linux", "5.3.0", undefined, true],
    ["Some Linux", "5.2.21", undefined, false],
    ["Some Linux", "", undefined, false],
  ];
  it.each(rows)("%s with %s on %s: %s", (osImage, kernelVersion, kind, ok) =>
    expect(kernelVerdict({ osImage, kernelVersion }, kind).ok).toBe(ok),
  );

  it.each(NODE_IMAGES)("node image $family on $kind: $recentEnough", ({ kind, family, release, recentEnough }) => {
    const names = { ubuntu: "Ubuntu", "amazon-linux": "Amazon Linux", bottlerocket: "Bottlerocket OS" } as Record<
      string,
      string
    >;
    const osImage = `${names[family]} ${release ? `${release.major}.0${release.minor}` : "2"}`;
    expect(kernelVerdict({ osImage, kernelVersion: "" }, kind).ok).toBe(recentEnough);
  });
});

describe("the other limits", () => {
  it.each([
    ["amd64", true],
    ["x86_64", true],
    ["arm64", true],
    ["aarch64", true],
    ["s390x", false],
    ["ppc64le", false],
    ["", false],
  ])("architecture %s: %s", (architecture, ok) => expect(supportedArchitecture(architecture)).toBe(ok));

  it.each([
    ["Flatcar Container Linux by Kinvolk 3815", true],
    ["Bottlerocket OS 1.20.0", true],
    ["Talos (v1.7.0)", true],
    ["Ubuntu 22.04.4 LTS", false],
  ])("%s is immutable: %s", (osImage, immutable) => expect(parseOperatingSystem(osImage).immutable).toBe(immutable));

  it.each(Object.entries(PLATFORM_LIMITS))("%s has its rule and its sentence", (_name, { rule, because }) => {
    expect(rule).toMatch(/\w/);
    expect(because).toMatch(/\w.*\.$/);
  });
});
