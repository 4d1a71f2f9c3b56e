import { describe, expect, it } from "vitest";
import { calicoNames, type Names, vendorNames } from "../../../api/names.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import type { ApiAddressSource, Observation } from "../../observation.ts";
import type { Plan } from "../../plan.ts";
import { type Differently, node, observed } from "../../testing/observed.ts";
import { releaseTexts } from "../../testing/release-texts.ts";
import { type InstallInputs, planInstall } from "./install.ts";

/** The address each kind of cluster has, found where its platform tells it. */
const ADDRESSES: Record<ClusterKind, { host: string; port: string; from: string; sources: ApiAddressSource[] }> = {
  generic: {
    host: "api.demo.internal",
    port: "6443",
    from: "controlPlaneEndpoint of kubeadm-config",
    sources: ["kubeadmConfig"],
  },
  iac: {
    host: "api.internal.demo",
    port: "443",
    from: "the cluster tool's configuration",
    sources: ["clusterToolConfiguration"],
  },
  openshift: {
    host: "api-int.demo",
    port: "6443",
    from: "apiServerInternalURI of Infrastructure cluster",
    sources: ["infrastructure"],
  },
  aks: {
    host: "demo.hcp.azmk8s.internal",
    port: "443",
    from: "the config map kube-public/cluster-info",
    sources: ["clusterInfo"],
  },
  eks: {
    host: "demo.eks.internal",
    port: "443",
    from: "the kubeconfig of kube-proxy",
    sources: ["kubeProxyKubeconfig"],
  },
  mke: { host: "proxy.local", port: "6444", from: "the rule for this kind of cluster", sources: ["kindRule"] },
};

function cluster(kind: ClusterKind, names: Names = vendorNames, differently: Differently = {}): Observation {
  const { proxy, apiAddress, ...rest } = differently;
  return observed({
    names,
    kind: { detected: kind === "generic" ? undefined : kind },
    ...rest,
    apiAddress: { candidates: [{ ...ADDRESSES[kind], against: [] }], ...apiAddress },
    proxy: { ...(kind === "openshift" ? { daemonSet: undefined } : {}), ...proxy },
  });
}

function plan(observation: Observation, inputs: Partial<InstallInputs> = {}): Plan {
  return planInstall(observation, {
    method: "operator",
    files: releaseTexts(observation.names),
    edits: [],
    flowLogs: false,
    flowUI: false,
    chartTool: true,
    command: "vendorctl install",
    ...inputs,
  });
}

const ids = ({ steps }: Plan) => steps.map(({ id }) => id);
const inputsOf = ({ steps }: Plan, id: string) => steps.find((step) => step.id === id)?.inputs;
const words = (step: Plan["steps"][number] | undefined, input: string) => (step?.inputs[input] ?? []) as string[];
const text = (made: Plan) => String(inputsOf(made, "custom-resources")?.["text"]);

const MAP = ["operator-namespace", "endpoint-map"];
const OPERATOR = ["definitions", "operator"];
const DONE = ["custom-resources", "installed", "prove-dataplane"];

describe("the steps of an installation with eBPF, by kind of cluster", () => {
  it.each<[ClusterKind, Names["dialect"], string[]]>([
    ["generic", "vendor", [...OPERATOR, "operator-ready", ...DONE, "proxy-settled"]],
    ["iac", "vendor", [...MAP, ...OPERATOR, "operator-nameserver", "operator-ready", ...DONE, "disable-proxy"]],
    ["openshift", "vendor", [...OPERATOR, "operator-ready", ...DONE]],
    ["aks", "vendor", [...MAP, ...OPERATOR, "operator-ready", ...DONE, "proxy-settled"]],
    ["eks", "vendor", [...MAP, ...OPERATOR, "operator-nameserver", "operator-ready", ...DONE, "proxy-settled"]],
    ["mke", "vendor", [...MAP, ...OPERATOR, "operator-ready", "leave-proxy-rules", ...DONE]],
    // The public system has no default of its own, and its operator does not wait for a proof: more is done here.
    ["generic", "calico", [...MAP, ...OPERATOR, "operator-ready", ...DONE, "park-proxy"]],
    ["iac", "calico", [...MAP, ...OPERATOR, "operator-nameserver", "operator-ready", ...DONE, "disable-proxy"]],
    ["openshift", "calico", [...OPERATOR, "operator-ready", ...DONE]],
    ["aks", "calico", [...MAP, ...OPERATOR, "operator-ready", "leave-proxy-rules", ...DONE]],
    ["eks", "calico", [...MAP, ...OPERATOR, "operator-nameserver", "operator-ready", ...DONE, "park-proxy"]],
    ["mke", "calico", [...MAP, ...OPERATOR, "operator-ready", "leave-proxy-rules", ...DONE]],
  ])("%s in the %s dialect", (kind, dialect, expected) => {
    const names = dialect === "calico" ? calicoNames : vendorNames;
    expect(ids(plan(cluster(kind, names)))).toEqual(expected);
  });

  it.each(Object.keys(CLUSTER_KINDS) as ClusterKind[])(
    "%s: every step has a way back, and says why it is there",
    (kind) => {
      for (const step of plan(cluster(kind)).steps) {
        expect(step.reversible).toBe(true);
        expect(step.because).not.toBe("");
      }
    },
  );

  it("speaks the names of the public system throughout", () => {
    const made = plan(cluster("eks", calicoNames));
    expect(inputsOf(made, "endpoint-map")).toMatchObject({
      objects: [
        {
          metadata: { name: "kubernetes-services-endpoint", namespace: "tigera-operator" },
          data: { KUBERNETES_SERVICE_HOST: "demo.eks.internal", KUBERNETES_SERVICE_PORT: "443" },
        },
      ],
    });
    expect(inputsOf(made, "park-proxy")).toMatchObject({
      patch: { spec: { template: { spec: { nodeSelector: { "non-calico": "true" } } } } },
    });
    expect(inputsOf(made, "installed")).toEqual({ statuses: ["calico", "ippools", "apiserver"] });
    expect(text(made)).toContain(
      "calicoNetwork:\n    # Who looks after the proxy.\n    kubeProxyManagement: Disabled\n    linuxDataplane: BPF\n",
    );
    expect(JSON.stringify(made.steps)).not.toMatch(/vendor-operator|vendorNetwork|orchestrator-services/);
  });
});

describe("what is decided", () => {
  it("the operator's single nameserver comes with the policy that makes it the only one", () => {
    expect(inputsOf(plan(cluster("iac")), "operator-nameserver")?.["patch"]).toEqual({
      spec: { template: { spec: { dnsPolicy: "None", dnsConfig: { nameservers: ["169.254.169.253"] } } } },
    });
  });

  it("the custom resources are edited with their comments kept", () => {
    const made = plan(cluster("aks"), {
      podCidr: "10.244.128.0/17",
      edits: [{ path: ["spec", "vendorNetwork", "mtu"], value: 1400 }],
    });
    expect(text(made)).toContain(
      "  vendorNetwork:\n    # Who looks after the proxy.\n    serviceProxyManagement: Enabled\n    linuxDataplane: BPF\n    ipPools:\n      - cidr: 10.244.128.0/17\n    mtu: 1400\n",
    );
    expect(text(made)).toMatch(/^# What the operator installs\./);
    expect(made.notes.join("\n")).toContain(
      "custom-resources.yaml is edited: serviceProxyManagement: Enabled; linuxDataplane: BPF;",
    );
  });

  it("flexVolumePath is written for the Bottlerocket-like image on eks, and nowhere else", () => {
    const nodes = [node("a"), node("b", { osImage: "Bottlerocket OS 1.44.0 (aws-k8s-1.33)" })];
    expect(text(plan(cluster("eks", vendorNames, { nodes })))).toContain("flexVolumePath: /var/lib/kubelet/plugins\n");
    expect(text(plan(cluster("eks")))).not.toContain("flexVolumePath");
    expect(text(plan(cluster("generic", vendorNames, { nodes })))).not.toContain("flexVolumePath");
  });

  it("where eBPF is the default nothing is written that the default already says", () => {
    const made = plan(cluster("generic"));
    expect(text(made)).not.toContain("linuxDataplane: BPF\n");
    expect(made.notes.join("\n")).toContain("eBPF is the default data plane here");
    expect(ids(plan(cluster("generic"), { dataplane: "BPF" }))).toContain("endpoint-map");
    expect(ids(plan(cluster("generic"), { method: "chart" }))).toContain("endpoint-map");
  });

  it("without a proxy nothing leads the operator to the cluster IP, so the address is written there too", () => {
    const made = plan(cluster("generic", vendorNames, { proxy: { daemonSet: undefined } }));
    expect(ids(made)).toEqual([...MAP, ...OPERATOR, "operator-ready", ...DONE]);
    expect(text(made)).not.toContain("linuxDataplane: BPF\n");
  });

  it("a given address is written, whatever the platform tells", () => {
    const made = plan(cluster("generic"), { apiServer: { host: "lb.example.com", port: "8443" } });
    expect(inputsOf(made, "endpoint-map")).toMatchObject({
      objects: [{ data: { ORCHESTRATOR_SERVICE_HOST: "lb.example.com", ORCHESTRATOR_SERVICE_PORT: "8443" } }],
    });
  });

  it("an IPVS proxy leaves that mode before eBPF is asked for", () => {
    const order = ids(plan(cluster("eks", vendorNames, { proxy: { mode: "ipvs" } })));
    expect(order.indexOf("leave-ipvs")).toBeGreaterThan(0);
    expect(order.indexOf("leave-ipvs")).toBeLessThan(order.indexOf("custom-resources"));
  });

  it("without a stable address the nftables data plane is installed, and the later switch is told", () => {
    const nowhere = { apiAddress: { candidates: [{ ...ADDRESSES.eks, against: ["It changes."] }] } };
    const made = plan(cluster("eks", vendorNames, nowhere));
    expect(made.title).toContain("with the nftables data plane");
    expect(ids(made)).toEqual([...OPERATOR, "operator-ready", ...DONE]);
    expect(text(made)).not.toContain("linuxDataplane: BPF");
    expect(made.notes.join("\n")).toContain("Later: vendorctl switch --to bpf --api-server HOST:PORT");
    expect(() => plan(cluster("eks", vendorNames, nowhere), { dataplane: "BPF" })).toThrow(/needs a stable address/);
  });

  it("says before the start what should have been done when the cluster was made", () => {
    const told = (kind: ClusterKind) => plan(cluster(kind)).notes.join("\n");
    expect(told("generic")).toContain("pass --skip-phases=addon/kube-proxy to the cluster init command");
    expect(told("iac")).toContain("set kubeProxy.enabled to false in the cluster configuration");
    expect(told("mke")).toContain("--kube-proxy-mode=disabled and --kube-default-drop-masq-bits");
    const without = plan(cluster("mke", vendorNames, { proxy: { daemonSet: undefined } }));
    expect(without.notes.join("\n")).not.toContain("kube-proxy runs");
    expect(ids(without)).not.toContain("leave-proxy-rules");
  });

  it("a proxy that another tool keeps is left to that tool", () => {
    const daemonSet = {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: {
        name: "kube-proxy",
        namespace: "kube-system",
        annotations: { "argocd.argoproj.io/tracking-id": "proxy:apps/DaemonSet:kube-system/kube-proxy" },
      },
    };
    const made = plan(cluster("generic", vendorNames, { proxy: { daemonSet } }));
    expect(made.steps.at(-1)).toMatchObject({ id: "disable-proxy", action: "wait-outside" });
    expect(JSON.stringify(made.steps.at(-1)?.inputs)).toContain("argocd app sync proxy");
  });

  it("flow logs and their page are added, and waited for", () => {
    const made = plan(cluster("generic"), { flowLogs: true, flowUI: true });
    expect(text(made)).toContain("kind: FlowLogs");
    expect(inputsOf(made, "installed")).toEqual({
      statuses: ["network", "ippools", "apiserver", "flow-logs", "flow-ui"],
    });
  });
});

describe("by chart", () => {
  it("drives the chart tool where it is, without the chart's custom resources", () => {
    const step = plan(cluster("eks"), { method: "chart" }).steps.find(({ id }) => id === "operator");
    expect(step?.action).toBe("run-tool");
    expect(words(step, "args").join(" ")).toBe(
      "upgrade --install vendor vendor/vendor-operator --version v3.31.3 --namespace vendor-operator --create-namespace --set installation.enabled=false --set apiServer.enabled=false --set dnsPolicy=None --set dnsConfig.nameservers={169.254.169.253}",
    );
    expect(ids(plan(cluster("eks"), { method: "chart" }))).not.toContain("operator-nameserver");
  });

  it("tells the exact command where it is not", () => {
    const step = plan(cluster("generic"), { method: "chart", chartTool: false, chart: "./chart" }).steps.find(
      ({ id }) => id === "operator",
    );
    expect(step).toMatchObject({ action: "wait-outside", where: "helm, which is not on this machine" });
    expect(words(step, "tell")[0]).toMatch(/^helm upgrade --install vendor \.\/chart --namespace vendor-operator/);
  });
});

describe("what is refused before anything is made", () => {
  const installed = (differently: Differently["service"]) => cluster("generic", vendorNames, { service: differently });
  it.each<[string, () => unknown, string]>([
    [
      "the cluster IP",
      () => plan(cluster("generic"), { apiServer: { host: "10.96.0.1", port: "443" } }),
      "ENDPOINT_HOST_CLUSTER_IP",
    ],
    [
      "loopback",
      () => plan(cluster("generic"), { apiServer: { host: "localhost", port: "6443" } }),
      "ENDPOINT_HOST_LOOPBACK",
    ],
    [
      "a host the kind does not have",
      () => plan(cluster("iac"), { apiServer: { host: "lb.example.com", port: "443" } }),
      "ENDPOINT_HOST_NOT_FOR_KIND",
    ],
    [
      "a port the kind does not have",
      () => plan(cluster("aks"), { apiServer: { host: "lb.example.com", port: "6443" } }),
      "ENDPOINT_PORT_NOT_FOR_KIND",
    ],
    [
      "one of several API servers",
      () => {
        const nodes = [
          node("a", { controlPlane: true, addresses: ["10.0.0.1"] }),
          node("b", { controlPlane: true, addresses: ["10.0.0.2"] }),
        ];
        return plan(cluster("generic", vendorNames, { nodes }), { apiServer: { host: "10.0.0.1", port: "6443" } });
      },
      "ENDPOINT_HOST_ONE_OF_MANY",
    ],
    [
      "an address that changes",
      () => {
        const nodes = [node("a", { controlPlane: true, addresses: ["10.0.0.1"], addressAssignment: "dynamic" })];
        return plan(cluster("generic", vendorNames, { nodes }), { apiServer: { host: "10.0.0.1", port: "6443" } });
      },
      "ENDPOINT_HOST_DYNAMIC",
    ],
    ["another version", () => plan(installed({ method: "operator", version: "v3.27.2" })), "INSTALL_OTHER_VERSION"],
    ["another method", () => plan(installed({ method: "manifest", version: "v3.31.3" })), "INSTALL_OTHER_METHOD"],
    [
      "an edit no file may have",
      () => plan(cluster("generic"), { edits: [{ path: ["spec", "nonsense"], value: 1 }] }),
      "INSTALL_EDIT_REFUSED",
    ],
    [
      "the data plane as an edit",
      () => plan(cluster("generic"), { edits: [{ path: ["spec", "vendorNetwork", "linuxDataplane"], value: "BPF" }] }),
      "INSTALL_EDIT_REFUSED",
    ],
    [
      "IPVS that only the platform can change",
      () => plan(cluster("aks", vendorNames, { proxy: { mode: "ipvs" } })),
      "SERVICE_PROXY_IPVS",
    ],
  ])("%s", (_what, make, code) => {
    expect(make).toThrow(expect.objectContaining({ code, fix: expect.any(String) }));
  });
});
