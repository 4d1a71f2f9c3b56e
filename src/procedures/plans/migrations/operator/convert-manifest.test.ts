import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { vendorNames } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import type { ClusterKind } from "../../../../api/tables/cluster-kinds.ts";
import { mergeManifest } from "../../../merge/merge-manifest.ts";
import { type Conversion, convertManifest } from "./convert-manifest.ts";

const published = (file: string) => readFileSync(new URL(`../../../../../manifests/${file}`, import.meta.url), "utf8");

type TextEdit = readonly [find: string | RegExp, replace: string];

interface Given {
  file?: string;
  kind?: ClusterKind;
  pools?: readonly KubeObject[];
  ebpf?: boolean;
}

/** What becomes of a published manifest, edited as a person would edit the file. */
function converted(edits: readonly TextEdit[], { file = "vendor.yaml", ...given }: Given = {}): Conversion {
  const base = published(file).replace(
    /---\napiVersion: apiextensions[\s\S]*?(?=\n---\n(?!apiVersion: apiextensions))/,
    "",
  );
  const text = edits.reduce((before, [find, replace]) => {
    const after = before.replace(find, replace);
    expect(after, `${find} is in ${file}`).not.toBe(before);
    return after;
  }, base);
  const merged = mergeManifest({ base, ours: base, theirs: { file, text }, take: {} });
  const objects = merged.objects({ not: "CustomResourceDefinition" });
  return convertManifest(
    { kind: "generic", pools: [], ebpf: false, ...given, objects, edits: merged.edits },
    vendorNames,
  );
}

/** Adds a variable to the agent's container. */
const variable = (name: string, value: string): TextEdit => [
  "            - name: NETWORKING_BACKEND\n",
  `            - name: ${name}\n              value: "${value}"\n            - name: NETWORKING_BACKEND\n`,
];
const setVariable = (name: string, value: string): TextEdit => [
  new RegExp(`- name: ${name}\\n( +)value: .*`),
  `- name: ${name}\n$1value: "${value}"`,
];
const setting = (key: string, value: string): TextEdit => [new RegExp(`${key}: .*`), `${key}: "${value}"`];
const inDeployment = (find: string, replace: string): TextEdit => [
  new RegExp(`(kind: Deployment[\\s\\S]*?)${find}`),
  `$1${replace}`,
];

const pool = (spec: object): KubeObject => ({
  apiVersion: "crd.vendor.io/v1",
  kind: "IPPool",
  metadata: { name: "pods" },
  spec: { cidr: "10.0.0.0/16", ...spec },
});

/** Fields of the Installation that an edit becomes. */
const CARRIED: readonly [what: string, edits: TextEdit[], spec: object, given?: Given][] = [
  ["nothing", [], { vendorNetwork: { linuxDataplane: "Nftables", serviceProxyManagement: "Disabled", ipPools: [] } }],
  ["eBPF that runs", [], { vendorNetwork: { linuxDataplane: "BPF" } }, { ebpf: true }],
  ["eBPF by a variable", [variable("DATAPLANE_BPFENABLED", "true")], { vendorNetwork: { linuxDataplane: "BPF" } }],
  ["the MTU", [setting("veth_mtu", "1400")], { vendorNetwork: { mtu: 1400 } }],
  ["the MTU in the CNI configuration", [['"mtu": 0', '"mtu": 1410']], { vendorNetwork: { mtu: 1410 } }],
  [
    "IP forwarding in pods",
    [['"allow_ip_forwarding": false', '"allow_ip_forwarding": true']],
    { vendorNetwork: { containerIPForwarding: "Enabled" } },
  ],
  [
    "how long pods wait for policy",
    [['"policy_setup_timeout_seconds": 0', '"policy_setup_timeout_seconds": 5']],
    { vendorNetwork: { linuxPolicySetupTimeoutSeconds: 5 } },
  ],
  ...(
    [
      ["can-reach=10.0.0.1", { canReach: "10.0.0.1" }],
      ["interface=eth.*", { interface: "eth.*" }],
      ["skip-interface=docker.*", { skipInterface: "docker.*" }],
      ["cidr=10.0.0.0/8,172.16.0.0/12", { cidrs: ["10.0.0.0/8", "172.16.0.0/12"] }],
      ["kubernetes-internal-ip", { orchestrator: "NodeInternalIP" }],
    ] as const
  ).map(([method, nodeAddressAutodetectionV4]): (typeof CARRIED)[number] => [
    `addresses by ${method}`,
    [setVariable("IP_AUTODETECTION_METHOD", method)],
    { vendorNetwork: { nodeAddressAutodetectionV4 } },
  ]),
  [
    "the published method where the operator has another",
    [],
    { vendorNetwork: { nodeAddressAutodetectionV4: { firstFound: true } } },
    { kind: "eks" },
  ],
  [
    "IPv6 addresses",
    [variable("IP6_AUTODETECTION_METHOD", "first-found")],
    { vendorNetwork: { nodeAddressAutodetectionV6: { firstFound: true } } },
  ],
  ["metrics", [variable("METRICS_PORT", "9091")], { nodeMetricsPort: 9091 }],
  [
    "no host ports",
    [variable("HOST_PORTS", "Disabled")],
    { vendorNetwork: { hostPorts: { portMapping: "Disabled" } } },
  ],
  [
    "another plugin",
    [setVariable("CNI_TYPE", "AmazonVPC")],
    { cni: { type: "AmazonVPC", ipam: { type: "AmazonVPC" } } },
  ],
  ["addresses of podCIDRs", [], { cni: { ipam: { type: "HostLocal" } } }, { file: "vendor-policy-only.yaml" }],
  ["an overlay", [], { cni: { ipam: { type: "HostLocal" } } }, { file: "vendor-overlay.yaml" }],
  [
    "resources of agents",
    [["              cpu: 100m", "              cpu: 250m"]],
    {
      componentResources: [
        { componentName: "Node", resourceRequirements: { requests: { cpu: "250m", memory: "128Mi" } } },
      ],
    },
  ],
  [
    "resources of controllers",
    [["              cpu: 20m", "              cpu: 30m"]],
    { componentResources: [{ componentName: "KubeControllers" }] },
  ],
  ["replicas", [["  replicas: 2", "  replicas: 3"]], { controlPlaneReplicas: 3 }],
  [
    "tolerations of controllers",
    [
      [
        "        - key: CriticalAddonsOnly",
        "        - key: infra\n          operator: Exists\n        - key: CriticalAddonsOnly",
      ],
    ],
    { controlPlaneTolerations: [{ key: "infra", operator: "Exists" }] },
  ],
  [
    "nodes of controllers",
    [inDeployment("kubernetes.io/os: linux", "kubernetes.io/os: linux\n        role: infra")],
    { controlPlaneNodeSelector: { role: "infra" } },
  ],
  [
    "the update strategy",
    [["      maxUnavailable: 1", "      maxUnavailable: 20%"]],
    { nodeUpdateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "20%" } } },
  ],
  [
    "directories of CNI",
    [
      [/path: \/opt\/cni\/bin/g, "path: /var/cni/bin"],
      [/path: \/etc\/cni\/net.d/g, "path: /var/cni/net.d"],
      [/value: \/opt\/cni\/bin/g, "value: /var/cni/bin"],
    ],
    { cni: { binDir: "/var/cni/bin", confDir: "/var/cni/net.d" } },
  ],
  [
    "a private registry",
    [[/image: registry\.vendor\.io\/vendor/g, "image: mirror.example.com:5000/net/vendor"]],
    { registry: "mirror.example.com:5000", imagePath: "net/vendor" },
  ],
  [
    "Secrets to pull images with",
    [["      hostNetwork: true\n", "      hostNetwork: true\n      imagePullSecrets:\n        - name: mirror\n"]],
    { imagePullSecrets: [{ name: "mirror" }] },
  ],
  [
    "a pool, as it is",
    [setting("ipv4_pool_cidr", "10.0.0.0/16"), setVariable("IPV4POOL_VXLAN", "Always")],
    {
      vendorNetwork: {
        ipPools: [
          {
            name: "pods",
            cidr: "10.0.0.0/16",
            encapsulation: "VXLAN",
            natOutgoing: "Enabled",
            blockSize: 28,
            nodeSelector: "zone == 'a'",
          },
        ],
      },
    },
    { pools: [pool({ vxlanMode: "Always", natOutgoing: true, blockSize: 28, nodeSelector: "zone == 'a'" })] },
  ],
  [
    "no pool that it has no words for",
    [],
    { vendorNetwork: { ipPools: [] } },
    { pools: [pool({ disableBGPExport: true }), pool({ namespaceSelector: "all()" })] },
  ],
];

/** Edits that no field has the meaning of: their names for --accept-loss. */
const LOST: readonly [what: string, edit: TextEdit, name: string, fate?: "blocks"][] = [
  ["a variable that nothing reads", variable("FEATURE", "on"), "FEATURE"],
  ["a variable of the data plane that is no field", variable("DATAPLANE_NOSUCHTHING", "1"), "DATAPLANE_NOSUCHTHING"],
  ["a variable of the data plane with a bad value", variable("DATAPLANE_HEALTHPORT", "x"), "DATAPLANE_HEALTHPORT"],
  ["an unknown way to find addresses", setVariable("IP_AUTODETECTION_METHOD", "guess"), "IP_AUTODETECTION_METHOD"],
  [
    "a variable of the controllers",
    inDeployment(
      "          env:\n",
      "          env:\n            - name: AUTO_HOST_ENDPOINTS\n              value: enabled\n",
    ),
    "AUTO_HOST_ENDPOINTS",
  ],
  [
    "tolerations of agents",
    ["        - operator: Exists\n", "        - key: only\n          operator: Exists\n"],
    "DaemonSet.spec.template.spec.tolerations",
  ],
  ["a right", ["      - nodes\n", "      - nodes\n      - events\n"], "ClusterRole.rules"],
  [
    "an image of another version",
    [/(kind: DaemonSet[\s\S]*?)vendor:v3\.31\.3/, "$1vendor:v3.31.9"],
    "DaemonSet.spec.template.spec.initContainers.image",
  ],
  ["a second CNI plugin", ['"plugins": [', '"plugins": [{"type":"bandwidth"},'], "ConfigMap.data.cni_network_config"],
  ["pools without routes", setVariable("NETWORKING_BACKEND", "none"), "NETWORKING_BACKEND", "blocks"],
  ["podCIDRs with routes", variable("USE_POD_CIDR", "true"), "USE_POD_CIDR", "blocks"],
];

describe("a plain manifest becomes custom resources", () => {
  it.each(CARRIED)("with %s", (_what, edits, spec, given) => {
    const { installation, notCarried, carried } = converted(edits, given);
    expect(installation).toMatchObject({ variant: "OpenSource", ...spec });
    expect(notCarried).toEqual([]);
    expect(carried.length).toBeGreaterThanOrEqual(edits.length === 0 ? 0 : 1);
  });

  it("asks for nothing that the operator does by itself", () => {
    expect(converted([]).installation).toEqual({
      variant: "OpenSource",
      vendorNetwork: { serviceProxyManagement: "Disabled", linuxDataplane: "Nftables", ipPools: [] },
    });
  });

  it("has variables of the data plane as fields of its configuration", () => {
    const edits = [variable("DATAPLANE_LOGSEVERITYSCREEN", "warning"), setVariable("HEALTH_PORT", "9199")];
    expect(converted(edits).configuration).toEqual({ logSeverityScreen: "Warning", healthPort: 9199 });
  });

  it.each(LOST)("lists %s as lost, or as what must change first", (_what, edit, name, fate) => {
    const { notCarried } = converted([edit]);
    expect(notCarried.map((one) => `${one.name} ${one.fate}`)).toContain(`${name} ${fate ?? "lost"}`);
  });

  it("leaves the overlay's own settings to the overlay, which stays", () => {
    const { notCarried, carried } = converted([['masquerade: "true"', 'masquerade: "false"']], {
      file: "vendor-overlay.yaml",
    });
    expect([notCarried, carried.map(({ field }) => field)]).toEqual([[], [expect.stringContaining("overlay")]]);
  });
});
