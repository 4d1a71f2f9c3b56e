import { describe, expect, it } from "vitest";
import { installation } from "../resources/installation.ts";
import { CLUSTER_KINDS, type ClusterKind, isClusterKind } from "./cluster-kinds.ts";
import { ENDPOINT_RULES } from "./endpoint-rules.ts";
import { SERVICE_PROXY } from "./kube-proxy.ts";

/** The specification's tables read across: one line per cluster kind. */
const SPEC: Record<
  ClusterKind,
  { atInstall: string; after: string; first?: string; host?: string; port?: string; ebpf: boolean; dns: boolean }
> = {
  generic: { atInstall: "skip-phase", after: "park-by-node-selector", ebpf: true, dns: false },
  iac: {
    atInstall: "disable-in-cluster-configuration",
    after: "disable-in-cluster-configuration",
    host: "api.internal.demo.example",
    ebpf: false,
    dns: true,
  },
  openshift: { atInstall: "none", after: "none", ebpf: true, dns: false },
  aks: {
    atInstall: "impossible",
    after: "leave-its-rules-alone",
    host: "demo.hcp.example",
    port: "443",
    ebpf: false,
    dns: false,
  },
  eks: {
    atInstall: "none",
    after: "park-by-node-selector",
    first: "leave-ipvs-mode",
    host: "ABC.gr7.example",
    port: "443",
    ebpf: false,
    dns: true,
  },
  mke: { atInstall: "install-flags", after: "not-shown", host: "proxy.local", port: "6444", ebpf: false, dns: false },
};

describe.each(Object.entries(SPEC) as [ClusterKind, (typeof SPEC)["generic"]][])(
  "a cluster of kind %s",
  (kind, row) => {
    it("handles the service proxy as the specification says", () => {
      const { atInstall, afterInstall } = SERVICE_PROXY[kind];
      expect(atInstall.action).toBe(row.atInstall);
      expect(afterInstall.action).toBe(row.after);
      expect([...afterInstall.first]).toEqual(row.first ? [row.first] : []);
    });

    it("finds the API server where the specification says", () => {
      const rule = ENDPOINT_RULES[kind];
      expect(rule.needed).toBe(kind !== "openshift");
      expect("port" in rule ? rule.port : undefined).toBe(row.port);
      if ("host" in rule) expect(row.host).toMatch(rule.host.pattern);
      else expect(row.host).toBeUndefined();
    });

    it("knows its default data plane and whether its operator needs the cloud's nameserver", () => {
      const facts = CLUSTER_KINDS[kind];
      expect(facts.ebpfByDefault).toBe(row.ebpf);
      expect(facts.operatorNameserver).toBe(row.dns ? "169.254.169.253" : undefined);
    });

    it("says which sentence of the specification each of these comes from", () => {
      for (const table of [CLUSTER_KINDS, SERVICE_PROXY, ENDPOINT_RULES])
        expect(table[kind].because).toMatch(/\w{3,}.*\.$/);
    });
  },
);

it("the installation accepts exactly these kinds", () => {
  expect(installation.spec.properties.clusterKind.enum).toEqual(Object.keys(CLUSTER_KINDS));
  expect(isClusterKind("eks")).toBe(true);
  expect(isClusterKind("toString")).toBe(false);
});
