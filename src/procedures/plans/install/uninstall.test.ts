import { describe, expect, it } from "vitest";
import { calicoNames, type Names, vendorNames } from "../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../api/object.ts";
import type { Observation } from "../../observation.ts";
import type { Plan } from "../../plan.ts";
import { type Differently, observed } from "../../testing/observed.ts";
import { releaseTexts } from "../../testing/release-texts.ts";
import { atPath } from "../cluster-view.ts";
import { planUninstall, type UninstallInputs } from "./uninstall.ts";

function installed(names: Names, service: Differently["service"] = {}, more: Differently = {}): Observation {
  const own = (kind: string): KubeObject => ({
    apiVersion: groupVersion(names.groups.operator),
    kind,
    metadata: { name: "default" },
  });
  const operator = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: names.workloads.operator, namespace: names.namespaces.operator },
    spec: { template: { spec: { containers: [{ name: "operator", image: "registry/vendor:v3.31.3" }] } } },
  };
  const endpointMap = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: names.endpointMap.name, namespace: names.namespaces.operator },
  };
  return observed({
    names,
    ...more,
    service: {
      method: "operator",
      version: "v3.31.3",
      installation: own(names.kinds.installation.kind),
      apiServer: own(names.kinds.apiServer.kind),
      operator,
      endpointMap,
      ...service,
    },
  });
}

function plan(observation: Observation, inputs: Partial<UninstallInputs> = {}): Plan {
  const files = releaseTexts(observation.names);
  return planUninstall(observation, {
    removeCrds: false,
    files,
    chartTool: true,
    command: "vendorctl uninstall",
    ...inputs,
  });
}

const ids = ({ steps }: Plan) => steps.map(({ id }) => id);
const REST = ["remove-operator", "remove-endpoint-map", "remove-namespaces"];
/** Nodes of the public system are its own tools' to clean. */
const LAST = { vendor: ["clean-nodes", "prove-removed"], calico: ["prove-removed"] } as const;

describe.each(["vendor", "calico"] as const)("taking everything away, in the %s dialect", (dialect) => {
  const names = dialect === "calico" ? calicoNames : vendorNames;

  it("custom resources first, the last of them first; then the operator, and a proof at the end", () => {
    expect(ids(plan(installed(names)))).toEqual(["remove-apiserver", "remove-installation", ...REST, ...LAST[dialect]]);
    const flowUI = { apiVersion: "x/v1", kind: names.kinds.flowUI.kind, metadata: { name: "default" } };
    const flowLogs = { ...flowUI, kind: names.kinds.flowLogs.kind };
    const [first, second] = ids(plan(installed(names, { flowUI, flowLogs })));
    expect([first, second]).toEqual([
      `remove-${names.kinds.flowUI.kind.toLowerCase()}`,
      `remove-${names.kinds.flowLogs.kind.toLowerCase()}`,
    ]);
  });

  it("the proxy serves again before the data plane goes", () => {
    const { key, value } = names.labels.parkServiceProxy;
    const daemonSet = {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name: "kube-proxy", namespace: "kube-system" },
      spec: { template: { spec: { nodeSelector: { [key]: value } } } },
    };
    const dataplaneConfiguration = {
      apiVersion: groupVersion(names.groups.stored),
      kind: names.kinds.dataplaneConfiguration.kind,
      metadata: { name: "default" },
      ...atPath(names.fields.ebpfEnabled, true),
    };
    const seen = installed(names, { dataplaneConfiguration }, { proxy: { daemonSet, parked: "by-hand" } });
    expect(ids(plan(seen))[0]).toBe("restore-proxy");
    const managed = {
      ...seen.service.installation,
      ...atPath(names.fields.serviceProxyManagement, "Enabled"),
    } as KubeObject;
    expect(ids(plan({ ...seen, service: { ...seen.service, installation: managed } }))[0]).toBe("remove-apiserver");
  });

  it("definitions go only when asked for, and what is lost with them is said before the start", () => {
    const policy = { apiVersion: "x/v1", kind: "GlobalNetworkPolicy", metadata: { name: "deny-all" } };
    const auto = {
      apiVersion: "x/v1",
      kind: "HostEndpoint",
      metadata: { name: "a-auto-hep", labels: { [names.labels.createdBy.key]: names.labels.createdBy.value } },
    };
    const seen = installed(names, {}, { v3: { globalNetworkPolicies: [policy], hostEndpoints: [auto] } });
    const kept = plan(seen);
    const lasting = kept.steps.filter(({ reversible }) => reversible !== true).map(({ id }) => id);
    expect(lasting).toEqual(dialect === "vendor" ? ["clean-nodes"] : []);
    expect(kept.notes.join("\n")).toContain("The CRDs stay, with 1 resource of yours.");
    const step = plan(seen, { removeCrds: true }).steps.find(({ id }) => id === "remove-definitions");
    expect(step).toMatchObject({ risk: "high", reversible: "cannot be restored: GlobalNetworkPolicy deny-all" });
  });
});

describe("uninstall", () => {
  it("hands a chart's release to the chart tool, or says what to run", () => {
    const seen = installed(vendorNames, {
      method: "chart",
      release: {
        name: "mine",
        namespace: "vendor-operator",
        chart: "vendor-operator",
        version: "v3.31.3",
        status: "deployed",
      },
    });
    const step = (chartTool: boolean) => plan(seen, { chartTool }).steps.find(({ id }) => id === "remove-operator");
    expect(step(true)).toMatchObject({
      action: "run-tool",
      inputs: { args: ["uninstall", "mine", "--namespace", "vendor-operator", "--wait", "--no-hooks"] },
    });
    expect(step(false)).toMatchObject({
      action: "wait-outside",
      inputs: { tell: ["helm uninstall mine --namespace vendor-operator --wait --no-hooks"] },
    });
  });

  it("goes on after one that was given up: what is left is taken away", () => {
    const left = installed(vendorNames, { installation: undefined, apiServer: undefined });
    expect(ids(plan(left))).toEqual([...REST, ...LAST.vendor]);
  });

  it("without an operator the finalizers and what it installed are removed here, and kube-proxy is restored first", () => {
    for (const operator of [
      undefined,
      { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "o" }, spec: { replicas: 0 } },
    ]) {
      const made = plan(installed(vendorNames, { operator }));
      expect(ids(made)).toContain("remove-orphans");
      expect(made.steps.find(({ id }) => id === "remove-installation")?.inputs).toMatchObject({
        withoutOperator: true,
      });
    }
    expect(ids(plan(installed(vendorNames)))).not.toContain("remove-orphans");
  });

  it("cleans every node with the agents' image, where the agents' plugin is; nodes that are not ready are named", () => {
    const hostPath = (name: string, path: string) => ({ name, hostPath: { path } });
    const spec = {
      containers: [{ name: "vendor-node", image: "mirror/vendor:v3.31.3" }],
      volumes: [hostPath("cni-bin-dir", "/var/lib/cni/bin"), hostPath("cni-conf-dir", "/etc/kubernetes/cni/net.d")],
    };
    const nodeAgents = { apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "vendor-node" } };
    const seen = installed(vendorNames, { nodeAgents: { ...nodeAgents, spec: { template: { spec } } } as KubeObject });
    const nodes = seen.nodes.map((node, at) => ({ ...node, ready: at !== 2 }));
    const made = plan({ ...seen, nodes });
    expect(made.steps.find(({ id }) => id === "clean-nodes")).toMatchObject({
      risk: "high",
      inputs: {
        image: "mirror/vendor:v3.31.3",
        nodes: ["control-plane", "worker-1", "worker-2"],
        cni: { binDir: "/var/lib/cni/bin", confDir: "/etc/kubernetes/cni/net.d" },
      },
    });
    expect(made.notes.join("\n")).toContain("Not ready: worker-2.");
  });

  it.each([
    ["nothing is installed", observed(), "UNINSTALL_NOTHING"],
    ["plain manifests", observed({ service: { method: "manifest" } }), "UNINSTALL_BY_HAND"],
  ])("refuses: %s", (_what, seen, code) => {
    expect(() => plan(seen)).toThrow(expect.objectContaining({ code }));
  });
});
