import { describe, expect, it } from "vitest";
import { calicoNames } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import type { ManifestWorkload } from "../operator/manifest-view.ts";
import { convertLive } from "./convert-live.ts";

const POOL = {
  ...{ cidr: "10.0.0.0/16", ipipMode: "Always", vxlanMode: "Never", natOutgoing: true, blockSize: 26 },
  ...{ nodeSelector: "all()", allowedUses: ["Workload", "Tunnel"], assignmentMode: "Automatic" },
};
const CNI = '{"name":"k8s-pod-network","plugins":[{"type":"calico","mtu":__CNI_MTU__,"ipam":{"type":"calico-ipam"}}]}';

interface Options {
  env?: Record<string, string>;
  cni?: Record<string, string>;
  config?: string;
  pod?: object;
  metadata?: object;
  pool?: object;
  edits?: { path: string; from?: unknown; to?: unknown }[];
  felix?: object;
  hasMap?: boolean;
  image?: string;
}

function converted(options: Options) {
  const {
    env = {},
    cni = {},
    config = CNI,
    pod,
    metadata,
    pool,
    edits = [],
    felix = {},
    hasMap,
    image = "quay.io/calico/node:v3.31.3",
  } = options;
  const values = (of: Record<string, string>) => Object.entries(of).map(([name, value]) => ({ name, value }));
  const paths = ["/lib/modules", "/var/run/calico", "/var/lib/calico", "/run/xtables.lock", "/opt/cni/bin"];
  const names = ["lib-modules", "var-run-calico", "var-lib-calico", "xtables-lock", "cni-bin-dir"];
  const volumes = [
    ...names.map((name, at) => ({ name, hostPath: { path: paths[at] } })),
    { name: "cni-net-dir", hostPath: { path: "/etc/cni/net.d" } },
  ];
  const agents = {
    ...{ apiVersion: "apps/v1", kind: "DaemonSet" },
    metadata: { name: "calico-node", namespace: "kube-system", ...metadata },
    spec: {
      template: {
        spec: {
          initContainers: [{ name: "install-cni", env: values({ CNI_NETWORK_CONFIG: config, CNI_MTU: "0", ...cni }) }],
          containers: [{ name: "calico-node", image, env: values(env) }],
          ...{ volumes, ...pod },
        },
      },
    },
  } as unknown as ManifestWorkload;
  const own = (kind: string, spec: object): KubeObject =>
    ({ apiVersion: "crd.projectcalico.org/v1", kind, metadata: { name: "default" }, spec }) as KubeObject;
  return convertLive(
    {
      live: { agents, controllers: undefined, typha: undefined, maps: new Map() },
      edits: edits.map((edit) => ({ from: undefined, to: undefined, ...edit })),
      pools: [own("IPPool", { ...POOL, ...pool })],
      kind: "generic",
      configuration: own("FelixConfiguration", felix),
      endpointMap: hasMap ? own("ConfigMap", {}) : undefined,
    },
    calicoNames,
  );
}

const AGENT_ENV = "DaemonSet/kube-system/calico-node:spec.template.spec.containers[calico-node].env";
const blocked = (options: Options) =>
  converted(options).notCarried.flatMap(({ name, fate }) => (fate === "blocks" ? [name] : []));

describe("the public operator's conversion, foreseen", () => {
  it.each<[what: string, Options]>([
    ["nothing of its own", {}],
    [
      "values that the operator sets too",
      { env: { FELIX_DEFAULTENDPOINTTOHOSTACTION: "ACCEPT", FELIX_IPV6SUPPORT: "false" } },
    ],
    ["settings of FelixConfiguration", { env: { FELIX_CHAININSERTMODE: "Append", FELIX_REPORTINGINTERVAL: "0s" } }],
    ["a duration without its unit", { env: { FELIX_IPTABLESREFRESHINTERVAL: "90" } }],
    ["one MTU", { env: { FELIX_IPINIPMTU: "1440", FELIX_VXLANMTU: "1440" }, cni: { CNI_MTU: "1440" } }],
    ["eBPF with the address of the API server", { env: { FELIX_BPFENABLED: "true" }, hasMap: true }],
    ["annotations of kubectl", { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": "now" } } }],
  ])("goes through with %s", (_, options) => {
    expect(blocked(options)).toEqual([]);
  });

  it.each<[name: string, Options]>([
    ["HTTP_PROXY", { env: { HTTP_PROXY: "x" } }],
    ["FELIX_NOSUCHSETTING", { env: { FELIX_NOSUCHSETTING: "1" } }],
    ["FELIX_HEALTHPORT", { env: { FELIX_HEALTHPORT: "many" } }],
    ["FELIX_DEFAULTENDPOINTTOHOSTACTION", { env: { FELIX_DEFAULTENDPOINTTOHOSTACTION: "DROP" } }],
    ["IP", { env: { IP: "10.0.0.1" } }],
    ["IP6_AUTODETECTION_METHOD", { env: { IP6_AUTODETECTION_METHOD: "first-found" } }],
    ["IP_AUTODETECTION_METHOD", { env: { IP_AUTODETECTION_METHOD: "by-magic" } }],
    ["FELIX_IPV6SUPPORT", { env: { IP6: "autodetect", FELIX_IPV6SUPPORT: "false" } }],
    ["CNI_CONF_NAME", { cni: { CNI_CONF_NAME: "05-mine.conflist" } }],
    ["mtu", { env: { FELIX_VXLANMTU: "1400" } }],
    ["linuxDataplane", { env: { FELIX_BPFENABLED: "true", FELIX_NFTABLESMODE: "Enabled" }, hasMap: true }],
    ["kubernetes-services-endpoint", { felix: { bpfEnabled: true } }],
    ["ConfigMap.data.cni_network_config", { config: "{" }],
    ["ConfigMap.data.cni_network_config.name", { config: CNI.replace("k8s-pod-network", "mine") }],
    ["ConfigMap.data.cni_network_config.ipam.type", { config: CNI.replace("calico-ipam", "dhcp") }],
    ["DaemonSet.spec.template.spec.affinity", { pod: { affinity: { podAffinity: {} } } }],
    ["DaemonSet.spec.template.spec.nodeSelector.pool", { pod: { nodeSelector: { pool: "a" } } }],
    ["DaemonSet.metadata.annotations.team", { metadata: { annotations: { team: "a" } } }],
    [
      "DaemonSet.metadata.labels.addonmanager.kubernetes.io/mode",
      { metadata: { labels: { "addonmanager.kubernetes.io/mode": "x" } } },
    ],
    ["IPPool.spec.allowedUses", { pool: { allowedUses: ["Workload"] } }],
    ["IPPool.spec.ipipMode", { env: { CALICO_NETWORKING_BACKEND: "vxlan" } }],
    ["cni_network_config.ipam.assign_ipv4", { pool: { disabled: true } }],
  ])("stops at %s", (name, options) => {
    expect(blocked(options)).toEqual([name]);
  });

  it("says where an edit goes, and lists the others by name", () => {
    const { carried, notCarried } = converted({
      env: { FELIX_CHAININSERTMODE: "Append", FELIX_LOGSEVERITYSCREEN: "Warning", CLUSTER_TYPE: "mine" },
      edits: [
        { path: `${AGENT_ENV}[FELIX_CHAININSERTMODE]` },
        { path: `${AGENT_ENV}[FELIX_LOGSEVERITYSCREEN]` },
        { path: `${AGENT_ENV}[CLUSTER_TYPE]` },
        { path: "DaemonSet/kube-system/calico-node:spec.updateStrategy.rollingUpdate.maxUnavailable" },
        { path: "DaemonSet/kube-system/calico-node:metadata.labels.team" },
      ],
    });
    expect(carried.map(({ field }) => field)).toEqual([
      "FelixConfiguration spec.chainInsertMode",
      "Installation spec.nodeUpdateStrategy",
    ]);
    expect(notCarried.map(({ name, fate }) => `${name} ${fate}`)).toEqual([
      "FELIX_LOGSEVERITYSCREEN lost",
      "CLUSTER_TYPE lost",
      "DaemonSet.metadata.labels.team lost",
    ]);
  });

  it("loses no setting that FelixConfiguration has already", () => {
    const edits = [{ path: `${AGENT_ENV}[FELIX_LOGSEVERITYSCREEN]` }];
    const { notCarried } = converted({
      env: { FELIX_LOGSEVERITYSCREEN: "Warning" },
      felix: { logSeverityScreen: "Warning" },
      edits,
    });
    expect(notCarried).toEqual([]);
  });
});

describe("where images come from", () => {
  it.each([
    ["quay.io/calico/node:v3.31.3", {}],
    ["registry.corp:5000/mirror/calico/node:v3.31.3", { registry: "registry.corp:5000/", imagePath: "mirror/calico" }],
    ["docker.io/calico/node:v3.31.3", { registry: "docker.io/", imagePath: "calico" }],
    ["mine/calico-node:v3.31.3", { registry: "docker.io/", imagePath: "mine", imagePrefix: "calico-" }],
    ["quay.io/calico/node@sha256:0123", {}],
  ])("%s", (image, source) => expect(converted({ image }).installation).toEqual({ variant: "Calico", ...source }));
});
