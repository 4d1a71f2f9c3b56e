import { describe, expect, it } from "vitest";
import type { KubeObject } from "../object.ts";
import type { ClusterFacts } from "./facts.ts";
import { validateSet } from "./validate-set.ts";

const operator = (kind: string, spec: object = {}): KubeObject => ({
  apiVersion: "operator.vendor.io/v1",
  kind,
  metadata: { name: "default" },
  spec,
});
const v3 = (kind: string, name: string, spec: object): KubeObject => ({
  apiVersion: "vendor.io/v3",
  kind,
  metadata: { name },
  spec,
});
const ebpf = operator("Installation", {
  variant: "OpenSource",
  vendorNetwork: { linuxDataplane: "BPF", hostPorts: null },
});
const standard = operator("Installation", { variant: "OpenSource" });
const endpoint: KubeObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "orchestrator-services-endpoint", namespace: "vendor-operator" },
  data: { ORCHESTRATOR_SERVICE_HOST: "api.example.com", ORCHESTRATOR_SERVICE_PORT: "443" },
};
const sctp: KubeObject = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "signalling", namespace: "telco" },
  spec: { ports: [{ port: 1, protocol: "SCTP" }] },
};
const said = (objects: KubeObject[], facts: ClusterFacts = {}) =>
  validateSet(objects, facts).map(({ object, code }) => `${object}: ${code}`);

describe("objects that go together", () => {
  it("are fine as the specification's procedure makes them", () => {
    expect(said([endpoint, ebpf, operator("APIServer"), operator("FlowLogs"), operator("FlowUI")])).toEqual([]);
  });

  it("include the API server's address, where the kind of cluster needs one", () => {
    expect(said([ebpf], { kind: "generic" })).toEqual(["Installation default: ENDPOINT_MAP_MISSING"]);
    expect(said([ebpf], { kind: "openshift" })).toEqual([]);
    expect(said([standard], { kind: "generic" })).toEqual([]);
  });

  it("leave a proxy alone that cannot be disabled", () => {
    const facts = { kind: "aks", serviceProxyMode: "iptables" } as const;
    const config = v3("DataplaneConfiguration", "default", { bpfServiceProxyIptablesCleanupEnabled: false });
    expect(said([endpoint, ebpf], facts)).toEqual(["Installation default: SERVICE_PROXY_CONFLICT"]);
    expect(said([endpoint, ebpf, config], facts)).toEqual([]);
  });

  it("hold nothing eBPF cannot carry on", () => {
    const pool = v3("IPPool", "old", { cidr: "10.0.0.0/16", ipipMode: "Always" });
    expect(said([endpoint, ebpf, sctp, pool])).toEqual([
      "Service telco/signalling: EBPF_SCTP",
      "IPPool old: EBPF_IPIP_POOL",
    ]);
    expect(said([standard, sctp, pool])).toEqual([]);
  });

  it("have pools apart, and a flow UI only with flow logs, from v3.30 on", () => {
    const pools = ["a", "b"].map((name) => v3("IPPool", name, { cidr: "10.0.0.0/16" }));
    pools.push(v3("IPPool", "c", { cidr: "10.1.0.0/16" }));
    expect(said(pools)).toEqual(["IPPool b: POOLS_OVERLAP"]);
    expect(said([operator("FlowUI")])).toEqual(["FlowUI default: FLOW_UI_NEEDS_LOGS"]);
    expect(said([operator("FlowLogs")], { version: "v3.29.1" })).toEqual([
      "FlowLogs default: FLOW_RESOURCES_TOO_EARLY",
    ]);
  });

  it("export flows to URLs, and trust certificates", () => {
    const exporting = (otlp: object) => said([operator("FlowLogs", { export: { otlp } })]);
    for (const endpoint of ["http://collector:4318", "https://otlp.example.test/team/"])
      expect(exporting({ endpoint })).toEqual([]);
    const hosts = [
      "collector:4318",
      "ftp://collector",
      "http://",
      "https://user:word@collector",
      "http://collector/?a=b",
    ];
    for (const endpoint of hosts)
      expect(exporting({ endpoint })).toEqual(["FlowLogs default: FLOW_EXPORT_ENDPOINT_MALFORMED"]);
    const pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    expect(exporting({ endpoint: "https://c", certificateAuthority: pem + pem })).toEqual([]);
    expect(exporting({ endpoint: "https://c", certificateAuthority: "ca.crt" })).toEqual([
      "FlowLogs default: FLOW_EXPORT_AUTHORITY_MALFORMED",
    ]);
  });
});
