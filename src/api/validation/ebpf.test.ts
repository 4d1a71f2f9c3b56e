import { describe, expect, it } from "vitest";
import { calicoNames, vendorNames } from "../names.ts";
import type { KubeObject } from "../object.ts";
import { holdAnnotations } from "../protocol/node-hold.ts";
import { ebpfObjectProblems, ebpfPlatformProblems } from "./ebpf.ts";
import { EXPLANATIONS } from "./explain.ts";

const object = (kind: string, name: string, spec: object, metadata: object = {}): KubeObject => ({
  apiVersion: "any/v1",
  kind,
  metadata: { name, ...metadata },
  spec,
});

describe("what a cluster has that eBPF cannot carry on", () => {
  it.each([
    [
      object("Service", "dns", { ports: [{ protocol: "UDP" }, { protocol: "SCTP" }] }),
      ["EBPF_SCTP spec.ports[1].protocol"],
    ],
    [
      object("NetworkPolicy", "a", { ingress: [{ ports: [{ protocol: "SCTP", port: 1 }] }] }),
      ["EBPF_SCTP spec.ingress[0].ports[0].protocol"],
    ],
    [object("GlobalNetworkPolicy", "a", { egress: [{ protocol: 132 }] }), ["EBPF_SCTP spec.egress[0].protocol"]],
    [object("Service", "web", { ports: [{ protocol: "TCP" }] }), []],
    [object("IPPool", "a", { ipipMode: "CrossSubnet" }), ["EBPF_IPIP_POOL spec.ipipMode"]],
    [object("IPPool", "a", { ipipMode: "Never", vxlanMode: "Always" }), []],
    [object("HostEndpoint", "a", { interfaceName: "eth0.100" }), ["EBPF_VLAN spec.interfaceName"]],
    [object("HostEndpoint", "a", { interfaceName: "eth0" }), []],
    [object("DataplaneConfiguration", "default", { floatingIPs: "Enabled" }), ["EBPF_FLOATING_IPS spec.floatingIPs"]],
    [object("DataplaneConfiguration", "node.a", { bpfEnabled: false }), ["EBPF_MIXED_CLUSTER spec.bpfEnabled"]],
    [
      object(
        "DataplaneConfiguration",
        "node.a",
        { bpfEnabled: false },
        { annotations: holdAnnotations("field-added") },
      ),
      [],
    ],
    [
      object("Pod", "a", {}, { annotations: { [vendorNames.annotations.floatingIPs]: '["192.0.2.1"]' } }),
      ["EBPF_FLOATING_IPS metadata.annotations"],
    ],
  ])("%j: %j", (given, expected) =>
    expect(ebpfObjectProblems([given]).map(({ code, path }) => `${code} ${path}`)).toEqual(expected),
  );

  it("is found under the public system's names too, and named in the sentence", () => {
    const felix = object("FelixConfiguration", "default", { floatingIPs: "Enabled" });
    const service = object("Service", "dns", { ports: [{ protocol: "SCTP" }] }, { namespace: "kube-system" });
    expect(ebpfObjectProblems([felix, service], calicoNames).map(({ message }) => message)).toEqual([
      "FelixConfiguration default enables floating IPs.",
      "Service kube-system/dns uses SCTP.",
    ]);
  });
});

describe("where a cluster is", () => {
  it("must be a kind that is supported", () => {
    expect(ebpfPlatformProblems({ kind: "gke" }).map(({ code }) => code)).toEqual(["EBPF_CLUSTER_KIND"]);
    expect(ebpfPlatformProblems({ kind: "aks", datastore: "api", serviceProxyMode: "iptables" })).toEqual([]);
  });
});

it.each(Object.entries(EXPLANATIONS))("%s can be explained without a cluster", (code, { title, why, fix, rule }) => {
  expect(code).toMatch(/^[A-Z0-9]+(_[A-Z0-9]+)*$/);
  expect(title).not.toMatch(/\.$/);
  expect(why).toMatch(/\.$/);
  // A sentence, or a command to paste.
  expect(fix).toMatch(/\.$|^vendorctl |^kubectl /);
  expect(rule).not.toBe("");
});
