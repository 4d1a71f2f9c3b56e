import { describe, expect, it } from "vitest";
import { calicoNames } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import { type CustomResourceDefinition, customResourceDefinitions } from "../../../api/schema/crd.ts";
import { REFUSED_FIELDS } from "../../../api/tables/refused-fields.ts";
import { REMOVED_KINDS } from "../../../releases/not-carried/kinds.ts";
import { UNCARRIED_VALUES } from "../../../releases/not-carried/values.ts";
import { oldDefinitions } from "../../../releases/old-definitions.ts";
import { findRelease } from "../../../releases/old-release.ts";
import type { Observation, SeenStored } from "../../observation.ts";
import { type Differently, node, object, observed } from "../../testing/observed.ts";
import { blockingItems, inventoryOf } from "./inventory.ts";

const STORED = "crd.vendor.io/v1";
const OPERATOR = "operator.vendor.io/v1";

function cluster(stored: Partial<SeenStored>, more: Differently = {}): Observation {
  return observed({ ...more, stored: { objects: [], deployments: [], annotated: [], ...stored } });
}
const listed = (seen: Observation, accepted: string[] = []) =>
  inventoryOf(seen, customResourceDefinitions(), { accepted }).map(
    ({ fate, name, found }) => `${fate} ${name}: ${found.join(", ")}`,
  );
const stored = (kind: string, name: string, spec: object, apiVersion = STORED) =>
  object(kind, name, { spec }, apiVersion);
const agents = (env: object[]) => ({
  ...object(
    "DaemonSet",
    "vendor-node",
    { spec: { template: { spec: { containers: [{ name: "vendor-node", env }] } } } },
    "apps/v1",
  ),
  metadata: { name: "vendor-node", namespace: "kube-system" },
});
const byManifest = (env: object[]) =>
  cluster({}, { service: { method: "manifest", datastore: "api", nodeAgents: agents(env) } });

describe("an object", () => {
  it.each<[what: string, given: KubeObject, item: string[]]>([
    ["of BGP", stored("BGPPeer", "rack-1", { peerIP: "10.0.0.1" }), ["lost BGPPeer: BGPPeer rack-1"]],
    [
      "of BGP, with defaults only",
      stored("BGPConfiguration", "default", { logSeverityScreen: "Info", nodeToNodeMeshEnabled: true }),
      ["stays BGPConfiguration: BGPConfiguration default"],
    ],
    ["of a kind nobody knows", stored("Widget", "w", {}), ["lost Widget: Widget w"]],
    [
      "with WireGuard",
      stored("DataplaneConfiguration", "default", { wireguardEnabled: true }),
      ["lost DataplaneConfiguration.spec.wireguardEnabled: DataplaneConfiguration default (true)"],
    ],
    [
      "without WireGuard, by name",
      stored("DataplaneConfiguration", "default", { wireguardEnabled: false }),
      ["changes DataplaneConfiguration.spec.wireguardEnabled: DataplaneConfiguration default (false)"],
    ],
    [
      "with a field nobody knows, deep down",
      stored(
        "Installation",
        "default",
        { vendorNetwork: { ipPools: [{ cidr: "10.0.0.0/8", colour: "red" }] } },
        OPERATOR,
      ),
      ['lost Installation.spec.vendorNetwork.ipPools.colour: Installation default ("red")'],
    ],
    [
      "with a setting that is refused here",
      stored("DataplaneConfiguration", "node.a", { bpfLogLevel: "Debug" }),
      ['changes DataplaneConfiguration.spec.bpfLogLevel: DataplaneConfiguration node.a ("Debug")'],
    ],
    [
      "with a setting that has one value here",
      stored("DataplaneConfiguration", "default", { floatingIPs: "Enabled", bpfEnforceRPF: "Disabled" }),
      ['lost DataplaneConfiguration.spec.floatingIPs: DataplaneConfiguration default ("Enabled")'],
    ],
    [
      "with IPIP",
      stored("IPPool", "old", { cidr: "10.0.0.0/16", ipipMode: "CrossSubnet", vxlanMode: "Never" }),
      ['lost IPPool.spec.ipipMode: IPPool old ("CrossSubnet")'],
    ],
    [
      "with a value that is refused, in the table's words and once",
      stored("Installation", "default", { vendorNetwork: { linuxDataplane: "Iptables" } }, OPERATOR),
      ['blocks Installation.spec.vendorNetwork.linuxDataplane: Installation default ("Iptables")'],
    ],
    [
      "of another type",
      stored("Installation", "default", { vendorNetwork: { hostPorts: "Enabled" } }, OPERATOR),
      ['blocks Installation.spec.vendorNetwork.hostPorts: Installation default ("Enabled")'],
    ],
    [
      "with host-local IPAM",
      stored("Installation", "default", { cni: { ipam: { type: "HostLocal" } } }, OPERATOR),
      ['stays Installation.spec.cni.ipam.type: Installation default ("HostLocal")'],
    ],
    ["that is all carried", stored("IPPool", "new", { cidr: "10.0.0.0/16", ipipMode: "Never", natOutgoing: true }), []],
  ])("%s", (_what, given, items) => {
    expect(listed(cluster({ objects: [given] }))).toEqual(items);
  });

  it("that has the same as others is listed with them, and says what to type", () => {
    const pools = ["a", "b"].map((name) => stored("IPPool", name, { cidr: "10.0.0.0/16", ipipMode: "Always" }));
    const [item, ...more] = inventoryOf(cluster({ objects: pools }), customResourceDefinitions());
    expect(more).toEqual([]);
    expect(item?.found).toEqual(['IPPool a ("Always")', 'IPPool b ("Always")']);
    expect(item?.todo).toContain("vendorctl migrate encapsulation --to vxlan-cross-subnet");
  });
});

describe("a setting outside the resources", () => {
  it.each<[what: string, seen: Observation, items: string[]]>([
    [
      "a variable nobody reads",
      byManifest([{ name: "MY_SWITCH", value: "on" }]),
      ["lost MY_SWITCH: DaemonSet kube-system/vendor-node (on)"],
    ],
    ["a variable that is read", byManifest([{ name: "IP_AUTODETECTION_METHOD", value: "interface=eth1" }]), []],
    [
      "a default that older files set",
      byManifest([{ name: "DATAPLANE_DEFAULTENDPOINTTOHOSTACTION", value: "ACCEPT" }]),
      ["changes DATAPLANE_DEFAULTENDPOINTTOHOSTACTION: DaemonSet kube-system/vendor-node (ACCEPT)"],
    ],
    [
      "a variable for a field, which agents read",
      byManifest([{ name: "DATAPLANE_DEFAULTENDPOINTTOHOSTACTION", value: "Drop" }]),
      [],
    ],
    [
      "WireGuard by a variable",
      byManifest([{ name: "DATAPLANE_WIREGUARDENABLED", value: "true" }]),
      ["lost DATAPLANE_WIREGUARDENABLED: DaemonSet kube-system/vendor-node (true)"],
    ],
    [
      "annotations of pods",
      cluster({
        annotated: [
          {
            object: "Pod shop/web",
            annotations: { "cni.vendor.io/hwAddr": "00:11:22:33:44:55", "cni.vendor.io/ipv4pools": "[]" },
          },
          { object: "Namespace old", annotations: { "net.beta.kubernetes.io/network-policy": "{}" } },
          { object: "Pod shop/db", annotations: { "qos.vendor.io/ingressBandwidth": "1M" } },
        ],
      }),
      [
        "lost cni.vendor.io/hwAddr: Pod shop/web",
        "lost qos.vendor.io/ingressBandwidth: Pod shop/db",
        "stays net.beta.kubernetes.io/network-policy: Namespace old",
      ],
    ],
    [
      "ranges of host-local, bandwidth, and BGP in the settings map",
      cluster(
        {},
        {
          service: {
            method: "manifest",
            datastore: "api",
            settings: object("ConfigMap", "vendor-config", {
              data: {
                vendor_backend: "bird",
                cni_network_config: `{"plugins":[{"type":"vendor","mtu":__CNI_MTU__,"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}},{"type":"bandwidth"}]}`,
              },
            }),
          },
        },
      ),
      [
        "lost cni.bandwidth: ConfigMap vendor-config",
        "lost cni.ipam.host-local: ConfigMap vendor-config",
        "lost vendor_backend: ConfigMap vendor-config (bird)",
      ],
    ],
    [
      "Typha",
      cluster({ deployments: [object("Deployment", "vendor-typha", {}, "apps/v1")] }),
      ["changes typha: Deployment vendor-typha"],
    ],
    [
      "Windows nodes",
      cluster({}, { nodes: [node("win-1", { operatingSystem: "windows" })] }),
      ["blocks windows: Node win-1"],
    ],
  ])("%s", (_what, seen, items) => {
    expect(listed(seen)).toEqual(items);
  });
});

describe("what keeps an upgrade from starting", () => {
  const seen = cluster(
    {
      objects: [
        stored("BGPPeer", "rack-1", {}),
        stored("DataplaneConfiguration", "default", { reportingInterval: "0s" }),
      ],
    },
    { nodes: [node("win-1", { operatingSystem: "windows" })] },
  );
  const blocking = (accepted: string[]) =>
    blockingItems(inventoryOf(seen, customResourceDefinitions(), { accepted })).map(({ name }) => name);

  it("is every loss until it is accepted by its name, and what cannot be accepted", () => {
    expect(blocking([])).toEqual(["windows", "BGPPeer"]);
    expect(blocking(["BGPPeer"])).toEqual(["windows"]);
    expect(blocking(["BGPPeer", "windows"])).toEqual(["windows"]);
  });
});

it("an upgrade within a line ends nothing that was not at an end before", () => {
  const objects = [
    stored("BGPPeer", "rack-1", {}),
    stored("IPPool", "old", { cidr: "10.0.0.0/16", ipipMode: "Always" }),
  ];
  expect(listed(cluster({ objects }, { service: { version: "v3.31.2" } }))).toEqual([]);
});

describe("the public system's release", () => {
  const schema = { type: "object", properties: { spec: { type: "object", properties: { kept: { type: "string" } } } } };
  const definition = {
    ...object("CustomResourceDefinition", "felixconfigurations.crd.projectcalico.org", {}, "apiextensions.k8s.io/v1"),
    spec: {
      ...{ group: "crd.projectcalico.org", names: { kind: "FelixConfiguration" } },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    },
  } as unknown as CustomResourceDefinition;

  it("is known by its CRDs alone: BGP and WireGuard are its own", () => {
    const objects = [
      stored("FelixConfiguration", "default", { kept: "a", gone: 1 }, "crd.projectcalico.org/v1"),
      stored("OldKind", "one", {}, "crd.projectcalico.org/v1"),
      stored("Installation", "default", { any: 1 }, "operator.tigera.io/v1"),
    ];
    const found = inventoryOf(cluster({ objects }, { names: calicoNames }), [definition]);
    expect(found.map(({ fate, name }) => `${fate} ${name}`)).toEqual([
      "lost FelixConfiguration.spec.gone",
      "lost OldKind",
    ]);
  });
});

describe("the tables", () => {
  const now = customResourceDefinitions();
  const release = findRelease("v3.30");
  const old = release.is === "known" ? oldDefinitions(release.release) : [];

  it("name no kind and no field that this release has", () => {
    const kinds = now.map(({ spec }) => spec.names.kind);
    expect(REMOVED_KINDS.filter(({ kind }) => kinds.includes(kind))).toEqual([]);
    for (const [noun, fields] of Object.entries(REFUSED_FIELDS)) {
      for (const path of Object.keys(fields)) expect(hasField(now, noun, path), `${noun} ${path}`).toBe(false);
    }
    for (const { noun, path } of UNCARRIED_VALUES) expect(hasField(now, noun, path), `${noun} ${path}`).toBe(true);
  });

  it("are what old clusters have: an object with such a field is stored there", () => {
    expect(hasField(old, "dataplaneConfiguration", "spec.wireguardEnabled")).toBe(true);
    expect(hasField(old, "installation", "spec.vendorNetwork.sysctl")).toBe(true);
    expect(old.map(({ spec }) => spec.names.kind)).toEqual(
      expect.arrayContaining(["BGPPeer", "AdminNetworkPolicy", "ImageSet"]),
    );
  });
});

function hasField(definitions: readonly CustomResourceDefinition[], noun: string, path: string): boolean {
  const found = definitions.find(({ spec }) => spec.names.kind.toLowerCase() === noun.toLowerCase());
  let schema = found?.spec.versions[0]?.schema.openAPIV3Schema;
  for (const name of path.split(".")) schema = (schema?.items ?? schema)?.properties?.[name];
  return schema !== undefined;
}
