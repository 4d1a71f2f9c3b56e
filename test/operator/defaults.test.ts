import { resolve } from "node:path";
import { describe, expect } from "vitest";
import { CLUSTER_KINDS, type ClusterKind } from "../../src/api/tables/cluster-kinds.ts";
import { installOperator, runWithKubectl } from "../support/operator-scenario.ts";
import { untilAvailable } from "../support/operator-status.ts";

const KINDS: ClusterKind[] = ["generic", "openshift", "aks"];

describe.each(KINDS)("the custom resources as they are published, on %s", (kind) => {
  const story = runWithKubectl({ kind });
  const { step } = story;
  const ebpf = CLUSTER_KINDS[kind].ebpfByDefault;

  step(`bring ${ebpf ? "eBPF" : "the nftables data plane"} without being asked`, async () => {
    const { kubectl, cluster } = story;
    await installOperator(story, kind);
    await kubectl.ok("create", "-f", resolve("manifests/custom-resources.yaml"));
    for (const part of ["network", "ippools", "apiserver", "service-proxy"]) await untilAvailable(cluster.client, part);
    const table = await kubectl.ok("get", "installation");
    expect(table).toMatch(/^NAME +DATAPLANE +VERSION +READY +PROGRESSING +DEGRADED +AGE +MESSAGE$/m);
    expect(table).toMatch(new RegExp(`^default +${ebpf ? "BPF" : "Nftables"} +v3\\.31\\.3 +True +False +False`, "m"));
  });

  step("leave no kube-proxy that works against eBPF", async () => {
    const pods = await story.kubectl.ok("-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-proxy", "-o", "name");
    expect(pods === "").toBe(ebpf);
  });

  step("what somebody wrote stays as they wrote it; what it comes to is in status", async () => {
    const { kubectl } = story;
    const read = async (path: string) =>
      JSON.parse(await kubectl.ok("get", "installation", "default", "-o", `jsonpath={${path}}`)) as unknown;
    expect(await read(".spec")).toEqual({
      variant: "OpenSource",
      vendorNetwork: { serviceProxyManagement: "Enabled" },
    });
    expect(await read(".status.computed")).toMatchObject({
      clusterKind: kind,
      controlPlaneReplicas: 2,
      vendorNetwork: {
        linuxDataplane: ebpf ? "BPF" : "Nftables",
        ...(ebpf ? {} : { hostPorts: { portMapping: "Enabled" } }),
        ipPools: [expect.objectContaining({ encapsulation: "VXLANCrossSubnet", natOutgoing: "Enabled" })],
      },
    });
  });
});
