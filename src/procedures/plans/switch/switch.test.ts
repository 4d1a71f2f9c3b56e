import { describe, expect, it } from "vitest";
import { calicoNames, type Names, vendorNames } from "../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../api/object.ts";
import type { ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import type { Observation } from "../../observation.ts";
import type { Plan } from "../../plan.ts";
import { type Differently, observed } from "../../testing/observed.ts";
import { atPath } from "../cluster-view.ts";
import { planProxy, proxyStatus } from "../kube-proxy/proxy.ts";
import { planSwitch, type SwitchInputs } from "./switch.ts";

interface Installed {
  ebpf?: boolean;
  managed?: boolean;
  rulesLeft?: boolean;
  hostPorts?: unknown;
  /** Where the proxy is not the usual one, running in iptables mode. */
  proxy?: "absent" | "parked" | "ipvs";
  map?: boolean;
  /** Why the nftables data plane runs by default. */
  fallback?: string;
}

const TALKS = ["vendor", "calico"] as const;
const namesOf = (dialect: Names["dialect"]) => (dialect === "calico" ? calicoNames : vendorNames);

/** A cluster on which it is installed, with the operator that the kind needs. */
function cluster(kind: ClusterKind, names: Names, is: Installed = {}): Observation {
  const { ebpf = false, managed = false, map = true } = is;
  const nameserver = kind === "iac" || kind === "eks" ? { dnsConfig: { nameservers: ["169.254.169.253"] } } : {};
  const [host, port] =
    kind === "mke" ? ["proxy.local", "6444"] : kind === "iac" ? ["api.internal.demo", "443"] : ["api.demo", "443"];
  const service: Differently["service"] = {
    method: "operator",
    datastore: "api",
    version: "v3.31.3",
    installation: merged(
      object(names, "operator", names.kinds.installation.kind),
      is.fallback === undefined
        ? atPath(names.fields.linuxDataplane, ebpf ? "BPF" : names.dataplanes.standard[0])
        : atPath("status.dataplaneFallback", is.fallback),
      managed ? atPath(names.fields.serviceProxyManagement, "Enabled") : {},
      is.hostPorts === undefined ? {} : atPath(names.fields.hostPorts, is.hostPorts),
    ),
    dataplaneConfiguration: merged(
      object(names, "stored", names.kinds.dataplaneConfiguration.kind),
      atPath(names.fields.ebpfEnabled, ebpf),
      is.rulesLeft ? atPath(names.fields.iptablesCleanup, false) : {},
    ),
    operator: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: names.workloads.operator, namespace: names.namespaces.operator },
      spec: { template: { spec: nameserver } },
    },
    ...(map && {
      endpointMap: {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: names.endpointMap.name, namespace: names.namespaces.operator },
        data: { [names.endpointMap.hostKey]: host, [names.endpointMap.portKey]: port },
      },
    }),
  };
  return observed({
    names,
    kind: { detected: kind === "generic" ? undefined : kind },
    service,
    proxy: proxyOf(kind, names, is),
    apiAddress: {
      candidates: [{ host: host ?? "", port: port ?? "", from: "the platform", sources: [], against: [] }],
    },
  });
}

function proxyOf(kind: ClusterKind, names: Names, { proxy, managed }: Installed): NonNullable<Differently["proxy"]> {
  if (proxy === "absent" || kind === "openshift") return { daemonSet: undefined, mode: "unknown" };
  const { key, value } = names.labels.parkServiceProxy;
  const nodeSelector = proxy === "parked" ? { [key]: value } : {};
  return {
    daemonSet: {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: {
        name: "kube-proxy",
        namespace: "kube-system",
        ...(kind === "aks" && { labels: { "addonmanager.kubernetes.io/mode": "Reconcile" } }),
      },
      spec: { template: { spec: { nodeSelector } } },
    },
    ...(proxy === "parked" && { parked: managed ? ("by-operator" as const) : ("by-hand" as const) }),
    ...(proxy === "ipvs" && { mode: "ipvs" as const, modeEvidence: "mode: ipvs" }),
  };
}

function object(names: Names, group: "operator" | "stored", kind: string): KubeObject {
  return { apiVersion: groupVersion(names.groups[group]), kind, metadata: { name: "default" } };
}

function merged(first: KubeObject, ...more: Record<string, unknown>[]): KubeObject {
  const join = (a: unknown, b: unknown): unknown =>
    isRecord(a) && isRecord(b)
      ? Object.fromEntries([...Object.keys(a), ...Object.keys(b)].map((key) => [key, join(a[key], b[key])]))
      : (b ?? a);
  return more.reduce<KubeObject>((all, part) => join(all, part) as KubeObject, first);
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function to(mode: SwitchInputs["to"], observation: Observation, more: Partial<SwitchInputs> = {}): Plan {
  return planSwitch(observation, { to: mode, command: `vendorctl switch --to ${mode}`, ...more });
}

const ids = ({ steps }: Plan) => steps.map(({ id }) => id);
const inputsOf = ({ steps }: Plan, id: string) => steps.find((step) => step.id === id)?.inputs;
const SELECT = ["select-dataplane", "network-available", "prove-dataplane"];

describe.each(TALKS)("the steps of a switch in the %s dialect", (dialect) => {
  const names = namesOf(dialect);
  const managedOnly = dialect === "vendor";

  it.each<[ClusterKind, string, Installed, string[]]>([
    ["generic", "the proxy is parked when eBPF is proved", {}, [...SELECT, "park-proxy"]],
    ["generic", "the operator does it where it was asked to", { managed: true }, [...SELECT, "proxy-settled"]],
    ["generic", "no proxy, nothing to do", { proxy: "absent" }, SELECT],
    ["generic", "IPVS is left first", { proxy: "ipvs" }, ["leave-ipvs", ...SELECT, "park-proxy"]],
    ["generic", "the address comes first", { map: false }, ["endpoint-map", ...SELECT, "park-proxy"]],
    [
      "generic",
      "an operator that waits for the address does not switch all nodes when it comes",
      { map: false, fallback: "EndpointMapMissing" },
      ["keep-dataplane", "endpoint-map", ...SELECT, "park-proxy"],
    ],
    ["iac", "the cluster tool does it", {}, [...SELECT, "disable-proxy"]],
    ["openshift", "no action", { map: false }, SELECT],
    ["aks", "its rules are left alone, before eBPF acts", {}, ["leave-proxy-rules", ...SELECT]],
    ["aks", "as they are already", { rulesLeft: true }, SELECT],
    ["eks", "as generic", {}, [...SELECT, "park-proxy"]],
    ["mke", "it cannot be disabled, so its rules are left alone", {}, ["leave-proxy-rules", ...SELECT]],
  ])("to eBPF, %s: %s", (kind, _what, is, expected) => {
    expect(ids(to("BPF", cluster(kind, names, is)))).toEqual(expected);
  });

  it.each<[ClusterKind, string, Installed, string[]]>([
    ["generic", "the proxy serves again first", { proxy: "parked" }, ["restore-proxy", ...SELECT]],
    ["generic", "one that runs is seen to serve", {}, ["proxy-serves", ...SELECT]],
    [
      "generic",
      "the operator brings back what it parked",
      { proxy: "parked", managed: true },
      [...SELECT, "proxy-settled"],
    ],
    [
      "generic",
      "one left out when the cluster was made comes back by its tool",
      { proxy: "absent" },
      ["restore-proxy", "proxy-serves", ...SELECT],
    ],
    ["iac", "the cluster tool brings it back", { proxy: "absent" }, ["restore-proxy", "proxy-serves", ...SELECT]],
    ["openshift", "no action", {}, SELECT],
    ["aks", "it runs anyhow", { rulesLeft: true }, SELECT],
    ["eks", "as generic", { proxy: "parked" }, ["restore-proxy", ...SELECT]],
    ["mke", "it runs anyhow", { rulesLeft: true }, SELECT],
  ])("back to the nftables data plane, %s: %s", (kind, _what, is, expected) => {
    expect(ids(to("Nftables", cluster(kind, names, { ebpf: true, ...is })))).toEqual(expected);
  });

  it("the patch is the specification's, letter for letter", () => {
    const network = managedOnly ? "vendorNetwork" : "calicoNetwork";
    expect(inputsOf(to("BPF", cluster("generic", names)), "select-dataplane")).toMatchObject({
      target: { kind: "Installation", name: "default" },
      patch: { spec: { [network]: { linuxDataplane: "BPF", hostPorts: null } } },
    });
    expect(inputsOf(to("Nftables", cluster("generic", names, { ebpf: true })), "select-dataplane")).toMatchObject({
      patch: { spec: { [network]: { linuxDataplane: names.dataplanes.standard[0] } } },
    });
  });

  it("taken back, it waits until the network is what it was", () => {
    expect(inputsOf(to("BPF", cluster("eks", names)), "select-dataplane")?.["afterUndo"]).toMatchObject({
      status: { statuses: [names.statuses.network] },
      expect: [{ path: ["spec", "bpfEnabled"], equals: false }],
    });
  });

  it("the address of the API server taken back, it waits until agents run without it", () => {
    expect(inputsOf(to("BPF", cluster("generic", names, { map: false })), "endpoint-map")?.["afterUndo"]).toMatchObject(
      {
        expect: [{ target: { kind: "DaemonSet" }, lacks: names.endpointMap.hostKey }],
        rollouts: [{ workload: { kind: "DaemonSet" } }],
      },
    );
  });
});

describe("a switch says", () => {
  it("what becomes of host ports", () => {
    const { notes } = to("BPF", cluster("generic", vendorNames, { hostPorts: { portMapping: "Disabled" } }));
    expect(notes.join("\n")).toContain('hostPorts is {"portMapping":"Disabled"} and becomes null');
  });

  it("the exact command of the cluster tool, and of the real one where its configuration is outside", () => {
    const step = to("BPF", cluster("iac", vendorNames)).steps.at(-1);
    expect(step?.inputs["tell"]).toEqual([
      "kops edit cluster   # set spec.kubeProxy.enabled to false",
      "kops update cluster --yes",
      "kops rolling-update cluster --yes",
    ]);
    const seen = cluster("iac", vendorNames);
    const text = "spec:\n  # ours\n  kubeProxy:\n    enabled: true\n";
    const clusterConfiguration = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "cluster-configuration" },
      data: { "cluster.yaml": text },
    };
    const embedded = to("BPF", { ...seen, proxy: { ...seen.proxy, clusterConfiguration } }).steps.at(-1);
    expect(String(embedded?.inputs["tell"])).toContain("spec:\\n  # ours\\n  kubeProxy:\\n    enabled: false\\n");
  });

  it.each<[string, () => unknown, string]>([
    ["nothing is installed", () => to("BPF", observed()), "SWITCH_NOT_INSTALLED"],
    [
      "plain manifests have no switch",
      () => to("BPF", observed({ service: { method: "manifest" } })),
      "SWITCH_NEEDS_OPERATOR",
    ],
    [
      "no address is known",
      () => {
        const seen = cluster("generic", vendorNames, { map: false });
        return to("BPF", { ...seen, apiAddress: { ...seen.apiAddress, candidates: [] } });
      },
      "SWITCH_NO_ADDRESS",
    ],
    [
      "nobody would serve services",
      () => to("Nftables", cluster("mke", vendorNames, { ebpf: true, proxy: "absent" })),
      "SWITCH_NO_SERVICE_PROXY",
    ],
    [
      "the address is the cluster IP",
      () => to("BPF", cluster("generic", vendorNames), { apiServer: { host: "10.96.0.1", port: "443" } }),
      "ENDPOINT_HOST_CLUSTER_IP",
    ],
  ])("no where %s", (_what, make, code) => {
    expect(make).toThrow(expect.objectContaining({ code }));
  });

  it("yes with --force where it was asked for", () => {
    expect(ids(to("Nftables", cluster("mke", vendorNames, { ebpf: true, proxy: "absent" }), { force: true }))).toEqual(
      SELECT,
    );
  });
});

describe.each(TALKS)("proxy disable and restore in the %s dialect", (dialect) => {
  const names = namesOf(dialect);
  const disable = (seen: Observation, force?: boolean) =>
    ids(planProxy(seen, { to: "disabled", command: "vendorctl proxy disable", ...(force && { force }) }));
  const restore = (seen: Observation, leaveRules?: boolean) =>
    ids(planProxy(seen, { to: "restored", command: "vendorctl proxy restore", ...(leaveRules && { leaveRules }) }));

  it.each<[ClusterKind, Installed, string[]]>([
    ["generic", {}, ["prove-dataplane", "park-proxy"]],
    ["generic", { proxy: "ipvs" }, ["prove-dataplane", "leave-ipvs", "park-proxy"]],
    ["generic", { proxy: "parked" }, []],
    ["iac", {}, ["prove-dataplane", "disable-proxy"]],
    ["openshift", {}, []],
    ["aks", {}, ["leave-proxy-rules"]],
    ["eks", {}, ["prove-dataplane", "park-proxy"]],
    ["mke", {}, ["leave-proxy-rules"]],
    ["mke", { rulesLeft: true }, []],
  ])("disable on %s (%o)", (kind, is, expected) => {
    expect(disable(cluster(kind, names, { ebpf: true, ...is }))).toEqual(expected);
  });

  it("parks nothing while the proxy is what serves, unless forced", () => {
    expect(() => disable(cluster("generic", names))).toThrow(expect.objectContaining({ code: "PROXY_STILL_NEEDED" }));
    expect(disable(cluster("generic", names), true)).toEqual(["park-proxy"]);
  });

  it("restores nothing that would fight, and says what to do instead", () => {
    const parked = cluster("generic", names, { ebpf: true, proxy: "parked" });
    expect(() => restore(parked)).toThrow(
      expect.objectContaining({ code: "PROXY_WOULD_FIGHT", fix: expect.stringContaining("--leave-rules") }),
    );
    expect(restore(parked, true)).toEqual(["leave-proxy-rules", "restore-proxy"]);
    expect(restore(cluster("generic", names, { ebpf: true, proxy: "parked", rulesLeft: true }))).toEqual([
      "restore-proxy",
    ]);
    expect(restore(cluster("generic", names, { proxy: "parked" }))).toEqual(["restore-proxy"]);
    expect(() => restore(cluster("generic", names, { ebpf: true, proxy: "parked", managed: true }))).toThrow(
      expect.objectContaining({ code: "PROXY_KEPT_BY_OPERATOR" }),
    );
    expect(() => restore(cluster("openshift", names))).toThrow(expect.objectContaining({ code: "PROXY_ABSENT" }));
  });

  it.each<[Installed, string, string | undefined]>([
    [{}, "ok", undefined],
    [{ ebpf: true }, "conflict", "vendorctl proxy disable"],
    [{ ebpf: true, managed: true }, "in the way", "vendorctl status --watch"],
    [{ ebpf: true, rulesLeft: true }, "ok", undefined],
    [{ ebpf: true, proxy: "parked" }, "ok", undefined],
    [{ proxy: "parked" }, "nobody serves", "vendorctl proxy restore"],
    [{ proxy: "absent" }, "nobody serves", "vendorctl switch --to bpf"],
  ])("status of %o", (is, verdict, next) => {
    expect(proxyStatus(cluster("generic", names, is))).toMatchObject({ verdict, next });
  });
});

describe("a switch to what is there", () => {
  const status = (conditions: readonly object[]): KubeObject => ({
    apiVersion: groupVersion(vendorNames.groups.operator),
    kind: vendorNames.kinds.status.kind,
    metadata: { name: vendorNames.statuses.network },
    status: { conditions },
  });
  const available = { type: "Available", status: "True" };
  const settled = (is: Installed, conditions: readonly object[] = [available]): Observation => {
    const seen = cluster("generic", vendorNames, is);
    return { ...seen, service: { ...seen.service, statuses: [status(conditions)] } };
  };

  it.each<[string, SwitchInputs["to"], Installed]>([
    ["eBPF, kube-proxy disabled", "BPF", { ebpf: true, proxy: "parked" }],
    ["eBPF, no kube-proxy", "BPF", { ebpf: true, proxy: "absent" }],
    ["standard, kube-proxy runs", "Nftables", {}],
  ])("has no steps: %s", (_name, mode, is) => {
    const { steps, title } = to(mode, settled(is));
    expect({ steps, title }).toEqual({ steps: [], title: expect.stringMatching(/^The data plane is .+ already$/) });
  });

  it.each<[string, SwitchInputs["to"], Observation]>([
    [
      "the roll-out is under way",
      "BPF",
      settled({ ebpf: true, proxy: "parked" }, [available, { type: "Progressing", status: "True" }]),
    ],
    ["the operator has not reported", "BPF", settled({ ebpf: true, proxy: "parked" }, [])],
    ["kube-proxy still runs", "BPF", settled({ ebpf: true })],
    ["host ports are set", "BPF", settled({ ebpf: true, proxy: "parked", hostPorts: "Enabled" })],
    ["kube-proxy is disabled", "Nftables", settled({ proxy: "parked" })],
  ])("has steps when %s", (_name, mode, seen) => {
    expect(to(mode, seen).steps).not.toEqual([]);
  });
});
