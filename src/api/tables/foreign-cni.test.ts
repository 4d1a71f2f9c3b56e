import { describe, expect, it } from "vitest";
import { calicoNames, vendorNames } from "../names.ts";
import { FOREIGN_ELSEWHERE, foreignCni } from "./foreign-cni.ts";

const daemonSet = (
  namespace: string,
  name: string,
  labels: Record<string, string> = {},
  desiredNumberScheduled = 3,
) => ({
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { namespace, name, labels },
  status: { desiredNumberScheduled },
});

describe("CNI plugins of others", () => {
  it.each([
    ["kube-flannel", "kube-flannel-ds", "Flannel"],
    ["kube-system", "cilium", "Cilium"],
    ["cilium", "cilium", "Cilium"],
    ["kube-system", "kindnet", "kindnet"],
    ["calico-system", "calico-node", "Calico"],
    ["kube-system", "calico-node", "Calico"],
    ["kube-system", "canal", "Canal"],
    ["kube-system", "antrea-agent", "Antrea"],
    ["kube-system", "weave-net", "Weave Net"],
    ["kube-system", "kube-router", "kube-router"],
    ["kube-system", "kube-ovn-cni", "Kube-OVN"],
    ["ovn-kubernetes", "ovnkube-node", "OVN-Kubernetes"],
    ["openshift-ovn-kubernetes", "ovnkube-node", "OVN-Kubernetes"],
  ])("%s/%s, as its published manifest has it, is %s", (namespace, name, plugin) => {
    expect(foreignCni(daemonSet(namespace, name), "generic", vendorNames, undefined)).toBe(
      `${plugin} is this cluster's CNI plugin`,
    );
    // The operator sees all of the orchestrator's namespace, and elsewhere what it has the right to by name.
    if (namespace !== "kube-system") expect(FOREIGN_ELSEWHERE).toContain(name);
  });

  it.each([
    ["rke2-canal", { "k8s-app": "canal" }, "Canal"],
    ["kube-flannel-ds-amd64", { app: "flannel" }, "Flannel"],
    ["flannel", { "k8s-app": "flannel" }, "Flannel"],
    ["my-antrea", { app: "antrea", component: "antrea-agent" }, "Antrea"],
  ])("%s is recognised by its labels", (name, labels, plugin) => {
    expect(foreignCni(daemonSet("kube-system", name, labels), "generic", vendorNames, undefined)).toContain(plugin);
  });

  it("a cloud's own plugin is foreign only away from its cloud", () => {
    expect(foreignCni(daemonSet("kube-system", "aws-node"), "eks", vendorNames, undefined)).toBeUndefined();
    expect(
      foreignCni(daemonSet("kube-system", "azure-cni-networkmonitor"), "aks", vendorNames, undefined),
    ).toBeUndefined();
    expect(foreignCni(daemonSet("kube-system", "aws-node"), "generic", vendorNames, undefined)).toContain("is for eks");
  });

  it.each([
    ["aws-node", "AmazonVPC"],
    ["azure-cni-networkmonitor", "AzureVNET"],
    ["netd", "GKE"],
    ["kindnet", "PointToPoint"],
  ] as const)("%s is not, where the installation has cni.type %s; two at once are", (name, cni) => {
    const running = daemonSet("kube-system", name);
    expect(foreignCni(running, "generic", vendorNames, cni)).toBeUndefined();
    expect(foreignCni(running, "generic", vendorNames, "Vendor")).toBeDefined();
    expect(foreignCni(daemonSet("kube-system", "cilium"), "generic", vendorNames, cni)).toContain("Cilium");
  });

  it("one without pods, a program of another kind, and the one that these names are of, are not", () => {
    expect(foreignCni(daemonSet("kube-system", "cilium", {}, 0), "generic", vendorNames, undefined)).toBeUndefined();
    expect(
      foreignCni(
        daemonSet("kube-system", "kube-proxy", { "k8s-app": "kube-proxy" }),
        "generic",
        vendorNames,
        undefined,
      ),
    ).toBe(undefined);
    expect(foreignCni(daemonSet("kube-system", "constructor"), "generic", vendorNames, undefined)).toBeUndefined();
    expect(foreignCni(daemonSet("calico-system", "calico-node"), "generic", calicoNames, undefined)).toBeUndefined();
  });
});
