import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { findRelease } from "../../releases/old-release.ts";
import { type ManifestFile, publishedObjects } from "../../releases/published.ts";
import { publishedText } from "../../releases/published-text.ts";
import { appliedObject } from "./live-edits.ts";
import { type MergedManifest, mergeManifest } from "./merge-manifest.ts";

const release = (version: string) => {
  const found = findRelease(version);
  if (found.is !== "known") throw new Error(version);
  return found.release;
};
const newText = (file: ManifestFile) => readFileSync(`manifests/${vendorNames.manifests[file]}`, "utf8");
const NODE = "DaemonSet/kube-system/vendor-node";
const CONTROLLERS = "Deployment/kube-system/vendor-kube-controllers";
const SETTINGS = "ConfigMap/kube-system/vendor-config";

/** A person's edit in the words of their editor: the first place that matches is replaced. */
type TextEdit = readonly [find: string | RegExp, replace: string];

function upgraded(file: ManifestFile, edits: readonly TextEdit[], take = {}, version = "v3.27"): MergedManifest {
  const base = publishedText(file, release(version));
  const text = edits.reduce((before, [find, replace]) => {
    const after = before.replace(find, replace);
    if (after === before) throw new Error(`nothing to edit: ${find}`);
    return after;
  }, base);
  return mergeManifest({ base, theirs: { file: "mine.yaml", text }, ours: newText(file), take });
}

const find = ({ objects }: MergedManifest, only: string, name: string) =>
  objects({ only }).find(({ metadata }) => metadata.name === name) as KubeObject;
const applied = (merged: MergedManifest) => merged.objects({ not: "CustomResourceDefinition" });
interface PodSpec {
  containers: { name: string; image?: string; env?: { name: string; value?: string }[]; [field: string]: unknown }[];
  [field: string]: unknown;
}
const pod = (merged: MergedManifest, kind = "DaemonSet", name = "vendor-node") =>
  (find(merged, kind, name)["spec"] as { template: { spec: PodSpec } }).template.spec;
const agent = (merged: MergedManifest) => pod(merged).containers.find(({ name }) => name === "vendor-node")!;
const data = (merged: MergedManifest) => find(merged, "ConfigMap", "vendor-config")["data"] as Record<string, string>;
const controllers = (merged: MergedManifest) => pod(merged, "Deployment", "vendor-kube-controllers");

const env = (name: string, value: string): TextEdit => [
  "            - name: NODENAME\n",
  `            - name: ${name}\n              value: "${value}"\n            - name: NODENAME\n`,
];
const inAgent = (lines: string): TextEdit => ["          envFrom:\n", `${lines}          envFrom:\n`];
const inPod = (lines: string): TextEdit => [
  "      serviceAccountName: vendor-node\n",
  `      serviceAccountName: vendor-node\n${lines}`,
];

/** What people do to the manifest of policy and networking, and what they must find again. */
const SURVIVES: readonly (readonly [
  what: string,
  edits: TextEdit[],
  sees: (merged: MergedManifest) => unknown,
  is: unknown,
])[] = [
  [
    "a new environment variable",
    [env("DATAPLANE_LOGSEVERITYSCREEN", "Warning")],
    (m) => agent(m).env,
    expect.arrayContaining([{ name: "DATAPLANE_LOGSEVERITYSCREEN", value: "Warning" }]),
  ],
  [
    "how node addresses are found",
    [env("IP6_AUTODETECTION_METHOD", "interface=eth1")],
    (m) => agent(m).env,
    expect.arrayContaining([{ name: "IP6_AUTODETECTION_METHOD", value: "interface=eth1" }]),
  ],
  [
    "a variable from a secret",
    [
      inAgent(
        "            - name: TOKEN\n              valueFrom:\n                secretKeyRef:\n                  name: extra\n                  key: token\n",
      ),
    ],
    (m) => agent(m).env,
    expect.arrayContaining([{ name: "TOKEN", valueFrom: { secretKeyRef: { name: "extra", key: "token" } } }]),
  ],
  [
    "a registry of their own",
    [["registry.vendor.io/vendor/node:", "mirror.example.com/net/node:"]],
    (m) => agent(m).image,
    "mirror.example.com/net/vendor:v3.31.3",
  ],
  [
    "a registry with a port",
    [["registry.vendor.io/vendor/node:", "10.0.0.5:5000/node:"]],
    (m) => agent(m).image,
    "10.0.0.5:5000/vendor:v3.31.3",
  ],
  [
    "resources where the manifest had none",
    [inAgent("          resources:\n            limits:\n              memory: 512Mi\n")],
    (m) => agent(m)["resources"],
    { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "512Mi" } },
  ],
  [
    "a toleration",
    [
      [
        "        - operator: Exists\n",
        "        - operator: Exists\n        - key: dedicated\n          value: net\n          effect: NoSchedule\n",
      ],
    ],
    (m) => pod(m)["tolerations"],
    [{ operator: "Exists" }, { key: "dedicated", value: "net", effect: "NoSchedule" }],
  ],
  [
    "a toleration of the controllers",
    [
      [
        "        - key: CriticalAddonsOnly\n",
        "        - key: spot\n          operator: Exists\n        - key: CriticalAddonsOnly\n",
      ],
    ],
    (m) => controllers(m)["tolerations"],
    expect.arrayContaining([{ key: "spot", operator: "Exists" }]),
  ],
  [
    "a node selector",
    [["        kubernetes.io/os: linux\n", "        kubernetes.io/os: linux\n        network: vendor\n"]],
    (m) => pod(m)["nodeSelector"],
    { "kubernetes.io/os": "linux", network: "vendor" },
  ],
  ["the MTU", [['veth_mtu: "0"', 'veth_mtu: "1440"']], (m) => data(m)["veth_mtu"], "1440"],
  ["the pool's addresses", [["192.168.0.0/16", "10.48.0.0/16"]], (m) => data(m)["ipv4_pool_cidr"], "10.48.0.0/16"],
  [
    "the backend",
    [["NETWORKING_BACKEND\n              value: vxlan", "NETWORKING_BACKEND\n              value: none"]],
    (m) => JSON.stringify(pod(m)["containers"]),
    expect.stringContaining('{"name":"NETWORKING_BACKEND","value":"none"}'),
  ],
  [
    "how often readiness is asked",
    [["periodSeconds: 10", "periodSeconds: 60"]],
    (m) => JSON.stringify(pod(m)["containers"]),
    expect.stringContaining('"periodSeconds":60'),
  ],
  [
    "the MTU inside the CNI configuration",
    [['"mtu": 0', '"mtu": 8951']],
    (m) => JSON.parse(data(m)["cni_network_config"]!).plugins[0],
    expect.objectContaining({ mtu: 8951, socket: expect.any(String) }),
  ],
  [
    "a plugin of their own",
    [['"mtu": 0\n        }', '"mtu": 0\n        },\n        { "type": "bandwidth" }']],
    (m) => JSON.parse(data(m)["cni_network_config"]!).plugins.map((plugin: { type: string }) => plugin.type),
    ["vendor", "bandwidth"],
  ],
  [
    "an extra key of the settings",
    [["data:\n  vendor_backend", "data:\n  typha: none\n  vendor_backend"]],
    (m) => data(m)["typha"],
    "none",
  ],
  [
    "an extra container",
    [
      [
        "        - name: install-cni\n",
        "        - name: exporter\n          image: mirror.example.com/exporter:1.2\n          args: [--all]\n        - name: install-cni\n",
      ],
    ],
    (m) => pod(m).containers,
    expect.arrayContaining([{ name: "exporter", image: "mirror.example.com/exporter:1.2", args: ["--all"] }]),
  ],
  [
    "an init container",
    [
      [
        "      containers:\n",
        "      initContainers:\n        - name: wait\n          image: busybox:1.36\n      containers:\n",
      ],
    ],
    (m) => pod(m)["initContainers"],
    expect.arrayContaining([{ name: "wait", image: "busybox:1.36" }]),
  ],
  [
    "a volume and its mount",
    [
      ["      volumes:\n", "      volumes:\n        - name: ca\n          configMap:\n            name: company-ca\n"],
      [
        "          volumeMounts:\n",
        "          volumeMounts:\n            - name: ca\n              mountPath: /etc/ssl/company\n",
      ],
    ],
    (m) => [pod(m)["volumes"], agent(m)["volumeMounts"]],
    [
      expect.arrayContaining([{ name: "ca", configMap: { name: "company-ca" } }]),
      expect.arrayContaining([{ name: "ca", mountPath: "/etc/ssl/company" }]),
    ],
  ],
  [
    "labels",
    [["  labels:\n    k8s-app: vendor-node\n", "  labels:\n    k8s-app: vendor-node\n    team: platform\n"]],
    (m) => find(m, "DaemonSet", "vendor-node").metadata.labels,
    { "k8s-app": "vendor-node", team: "platform" },
  ],
  [
    "annotations where there were none",
    [
      [
        "metadata:\n  name: vendor-node\n  namespace: kube-system\n  labels",
        "metadata:\n  name: vendor-node\n  annotations:\n    example.com/owned-by: platform\n  namespace: kube-system\n  labels",
      ],
    ],
    (m) => find(m, "DaemonSet", "vendor-node").metadata.annotations,
    { "example.com/owned-by": "platform" },
  ],
  [
    "a priority class",
    [["priorityClassName: system-node-critical", "priorityClassName: network-critical"]],
    (m) => pod(m)["priorityClassName"],
    "network-critical",
  ],
  [
    "how many nodes are updated at once",
    [["maxUnavailable: 1", "maxUnavailable: 10%"]],
    (m) => find(m, "DaemonSet", "vendor-node")["spec"],
    expect.objectContaining({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } } }),
  ],
  [
    "a host alias",
    [inPod("      hostAliases:\n        - ip: 10.0.0.9\n          hostnames: [etcd.internal]\n")],
    (m) => pod(m)["hostAliases"],
    [{ ip: "10.0.0.9", hostnames: ["etcd.internal"] }],
  ],
  [
    "image pull secrets",
    [inPod("      imagePullSecrets:\n        - name: mirror\n")],
    (m) => pod(m)["imagePullSecrets"],
    [{ name: "mirror" }],
  ],
  [
    "DNS settings",
    [inPod("      dnsConfig:\n        nameservers: [169.254.169.253]\n")],
    (m) => pod(m)["dnsConfig"],
    { nameservers: ["169.254.169.253"] },
  ],
  [
    "a right of their own",
    [["rules:\n", "rules:\n  - apiGroups: [example.com]\n    resources: [things]\n    verbs: [get]\n"]],
    (m) => find(m, "ClusterRole", "vendor-node")["rules"],
    expect.arrayContaining([{ apiGroups: ["example.com"], resources: ["things"], verbs: ["get"] }]),
  ],
  [
    "another subject of a binding",
    [["subjects:\n", "subjects:\n  - kind: Group\n    name: net-admins\n"]],
    (m) => find(m, "ClusterRoleBinding", "vendor-node")["subjects"],
    expect.arrayContaining([{ kind: "Group", name: "net-admins" }]),
  ],
  [
    "an object of their own",
    [
      [
        /$/,
        "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: vendor-metrics\n  namespace: kube-system\nspec:\n  clusterIP: None\n",
      ],
    ],
    (m) => find(m, "Service", "vendor-metrics")["spec"],
    { clusterIP: "None" },
  ],
  [
    "a variable taken out",
    [["            - name: CLUSTER_TYPE\n              value: k8s\n", ""]],
    (m) => agent(m).env?.map(({ name }) => name),
    expect.not.arrayContaining(["CLUSTER_TYPE"]),
  ],
  [
    "a remark above a setting",
    [['  veth_mtu: "0"', '  # Jumbo frames, see ticket 4711.\n  veth_mtu: "8951"']],
    (m) => /# Jumbo frames, see ticket 4711\.\n {2}veth_mtu: "8951"/.test(m.text),
    true,
  ],
  [
    "a remark behind a value",
    [['veth_mtu: "0"', 'veth_mtu: "1440" # cloud tunnel']],
    (m) => m.text.includes('veth_mtu: "1440" # cloud tunnel'),
    true,
  ],
  [
    "a remark at the top of the file",
    [[/^/, "# Ours since 2021: ask the platform team.\n"]],
    (m) =>
      m.text.startsWith("# Policy and networking, without an operator") &&
      m.text.includes("# Ours since 2021: ask the platform team.\n"),
    true,
  ],
  [
    "a remark about an extra container",
    [
      [
        "        - name: install-cni\n",
        "        # Counts packets.\n        - name: exporter\n          image: mirror.example.com/exporter:1.2 # pinned\n        - name: install-cni\n",
      ],
    ],
    (m) =>
      /# Counts packets\.\n {8}- name: exporter\n {10}image: mirror\.example\.com\/exporter:1\.2 # pinned/.test(m.text),
    true,
  ],
];

/** The same where the datastore is etcd. */
const SURVIVES_ON_ETCD: typeof SURVIVES = [
  [
    "where etcd is",
    [["https://<ETCD_IP>:<ETCD_PORT>", "https://10.1.0.1:2379,https://10.1.0.2:2379"]],
    (m) => data(m)["etcd_endpoints"],
    "https://10.1.0.1:2379,https://10.1.0.2:2379",
  ],
  [
    "how to speak to it without TLS",
    [
      ["etcd_ca: /vendor-secrets/etcd-ca", 'etcd_ca: ""'],
      ["etcd_key: /vendor-secrets/etcd-key", 'etcd_key: ""'],
      ["etcd_cert: /vendor-secrets/etcd-cert", 'etcd_cert: ""'],
    ],
    (m) => [data(m)["etcd_ca"], data(m)["etcd_cert"], data(m)["etcd_key"]],
    ["", "", ""],
  ],
  [
    "its certificates",
    [
      ['etcd-ca: ""', "etcd-ca: Y2E="],
      ['etcd-key: ""', "etcd-key: a2V5"],
    ],
    (m) => find(m, "Secret", "vendor-etcd-secrets")["data"],
    { "etcd-ca": "Y2E=", "etcd-cert": "", "etcd-key": "a2V5" },
  ],
];

/** What cannot be decided for somebody: the path it is told under. */
const CLASHES: readonly (readonly [what: string, edits: TextEdit[], path: string, why: string])[] = [
  [
    "an image of another version",
    [["vendor/node:v3.27.5", "vendor/node:v3.27.5-fix1"]],
    `${NODE}:spec.template.spec.containers[vendor-node].image`,
    "both changed",
  ],
  [
    "an image by its digest",
    [["vendor/node:v3.27.5", `vendor/node@sha256:${"a".repeat(64)}`]],
    `${NODE}:spec.template.spec.containers[vendor-node].image`,
    "both changed",
  ],
  [
    "a variable the new version does not have",
    [['DATAPLANE_HEALTHENABLED\n              value: "true"', 'DATAPLANE_HEALTHENABLED\n              value: "false"']],
    `${NODE}:spec.template.spec.containers[vendor-node].env[DATAPLANE_HEALTHENABLED]`,
    "gone",
  ],
  [
    "a setting the new version does not have",
    [["vendor_backend: vxlan", "vendor_backend: none"]],
    `${SETTINGS}:data.vendor_backend`,
    "gone",
  ],
  [
    "how readiness is asked",
    [["- -ready", "- -ready-fast"]],
    `${NODE}:spec.template.spec.containers[vendor-node].readinessProbe`,
    "both changed",
  ],
  [
    "how long a pod may take to end",
    [["terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 20"]],
    `${NODE}:spec.template.spec.terminationGracePeriodSeconds`,
    "both changed",
  ],
  [
    "how many controllers there are",
    [["  replicas: 1", "  replicas: 3"]],
    `${CONTROLLERS}:spec.replicas`,
    "both changed",
  ],
  [
    "how the controllers are replaced",
    [["    type: Recreate", "    type: OnDelete"]],
    `${CONTROLLERS}:spec.strategy.type`,
    "both changed",
  ],
  [
    "the version of the CNI configuration",
    [['"cniVersion": "0.3.1"', '"cniVersion": "0.4.0"']],
    `${SETTINGS}:data.cni_network_config.cniVersion`,
    "both changed",
  ],
  [
    "a section both put in",
    [
      [
        "          readinessProbe:",
        "          livenessProbe:\n            exec:\n              command: [/bin/true]\n          readinessProbe:",
      ],
    ],
    `${NODE}:spec.template.spec.containers[vendor-node].livenessProbe`,
    "both changed",
  ],
];

describe("a person's edits of the manifest of v3.27", () => {
  it.each(SURVIVES)("survive: %s", (_what, edits, sees, is) => {
    const merged = upgraded("policyAndNetworking", edits);
    expect(merged.conflicts).toEqual([]);
    expect(sees(merged)).toEqual(is);
  });

  it.each(SURVIVES_ON_ETCD)("survive on etcd: %s", (_what, edits, sees, is) => {
    const merged = upgraded("policyAndNetworkingEtcd", edits);
    expect(merged.conflicts).toEqual([]);
    expect(sees(merged)).toEqual(is);
  });

  it("survive together", () => {
    const base = publishedText("policyAndNetworking", release("v3.27"));
    // Two of them that edit the same letters cannot both be made.
    const others = SURVIVES.filter(([what]) => what !== "a remark about an extra container");
    const text = others.flatMap(([, edits]) => edits).reduce((before, [find, to]) => before.replace(find, to), base);
    const ours = newText("policyAndNetworking");
    const merged = mergeManifest({ base, theirs: { file: "mine.yaml", text }, ours, take: {} });
    expect(merged.conflicts).toEqual([]);
    expect(merged.edits.length).toBeGreaterThanOrEqual(25);
    const again = mergeManifest({ base: ours, theirs: { file: "mine.yaml", text: merged.text }, ours, take: {} });
    expect(again.conflicts).toEqual([]);
    expect(again.text).toBe(merged.text);
  });
});

describe("an unedited manifest", () => {
  const FILES = [
    "policyAndNetworking",
    "policyAndOverlay",
    "policyOnly",
    "policyAndNetworkingEtcd",
    "policyAndOverlayEtcd",
  ] as const;
  it.each(
    FILES.flatMap((file) =>
      ["v3.15", "v3.20", "v3.27", "v3.28", "v3.29", "v3.30"].map((version) => [version, file] as const),
    ),
  )("of %s becomes the new one as it was published: %s", (version, file) => {
    const merged = upgraded(file, [], {}, version);
    expect(merged).toMatchObject({ edits: [], conflicts: [], comments: 0 });
    expect(merged.text).toBe(newText(file));
    // Kinds of the old release alone stay with their objects: only what defines them is named.
    expect(merged.dropped.filter((name) => !name.startsWith("CustomResourceDefinition/"))).toEqual([]);
  });
});

describe("what both changed, or is gone", () => {
  it.each(CLASHES)("is told and left as the new version has it: %s", (_what, edits, path, why) => {
    const merged = upgraded("policyAndNetworking", edits);
    expect(merged.conflicts).toMatchObject([{ path, why }]);
    expect(merged.conflicts[0]).toHaveProperty("theirs");
    expect(applied(merged)).toEqual(applied(upgraded("policyAndNetworking", [])));
  });

  it.each(CLASHES)("is decided by who is asked: %s", (_what, edits, path) => {
    const untouched = applied(upgraded("policyAndNetworking", []));
    const asNew = upgraded("policyAndNetworking", edits, { [path]: "new" });
    expect(asNew).toMatchObject({ conflicts: [], untaken: [] });
    expect(applied(asNew)).toEqual(untouched);
    const asMine = upgraded("policyAndNetworking", edits, { [path]: "mine" });
    expect(asMine).toMatchObject({ conflicts: [], untaken: [] });
    expect(applied(asMine)).not.toEqual(untouched);
  });

  it("is also an object that was taken out: nobody guesses that it should stay out", () => {
    const base = publishedText("policyAndNetworking", release("v3.27"));
    const text = base.slice(0, base.lastIndexOf("---\n"));
    const merge = (take: Record<string, "mine" | "new">) =>
      mergeManifest({ base, theirs: { file: "mine.yaml", text }, ours: newText("policyAndNetworking"), take });
    expect(merge({}).conflicts).toMatchObject([{ path: CONTROLLERS, theirs: undefined }]);
    expect(find(merge({ [CONTROLLERS]: "mine" }), "Deployment", "vendor-kube-controllers")).toBeUndefined();
    expect(find(merge({ [CONTROLLERS]: "new" }), "Deployment", "vendor-kube-controllers")).toBeDefined();
  });

  it("is not what both changed to the same", () => {
    const merged = upgraded("policyAndNetworking", [
      ["terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 5"],
    ]);
    expect(merged).toMatchObject({ edits: [], conflicts: [] });
  });

  it("says which decisions fit nothing", () => {
    expect(upgraded("policyAndNetworking", [], { "DaemonSet/x:spec": "mine" }).untaken).toEqual(["DaemonSet/x:spec"]);
  });
});

describe("a base that is only close to what was published", () => {
  const role = (resources: string, also = "") =>
    `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: vendor-operator\nrules:\n- apiGroups: [""]\n  resources: [${resources}]\n  verbs: [get]\n${also}`;
  const settings = (data: string) =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: vendor-config\ndata:\n${data}`;
  const own = '- apiGroups: ["batch"]\n  resources: [jobs]\n  verbs: [get]\n';
  const ours = `${role("services, services/status")}---\n${settings('  a: "1"\n  b: "2"\n')}`;
  const theirs = { file: "mine.yaml", text: `${role("services", own)}---\n${settings('  a: "1"\n')}` };
  const rulesOf = (merged: MergedManifest) =>
    (find(merged, "ClusterRole", "vendor-operator")["rules"] as { resources: string[] }[]).flatMap(
      ({ resources }) => resources,
    );

  it("does not keep a right away that the new version needs, and keeps the rights people added", () => {
    const merged = mergeManifest({ base: ours, baseGuessed: true, theirs, ours, take: {} });
    expect(rulesOf(merged)).toEqual(expect.arrayContaining(["services/status", "jobs"]));
    expect(data(merged)).toEqual({ a: "1" });
  });

  it("as published, a right that is missing was removed by somebody", () => {
    expect(rulesOf(mergeManifest({ base: ours, theirs, ours, take: {} }))).not.toContain("services/status");
  });
});

describe("a file that cannot be merged", () => {
  it.each([
    ["not YAML", "a: [", "MERGE_FILE_UNREADABLE"],
    ["no objects", "- 1\n", "MERGE_FILE_NOT_OBJECTS"],
    ["an object without a name", "apiVersion: v1\nkind: Secret\n", "MERGE_FILE_NOT_OBJECTS"],
    [
      "an object twice",
      "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
      "MERGE_FILE_TWICE",
    ],
  ])("is refused: %s", (_what, text, code) => {
    const merge = () => mergeManifest({ base: "", theirs: { file: "mine.yaml", text }, ours: "", take: {} });
    expect(merge).toThrow(expect.objectContaining({ code }));
  });
});

describe("edits found in the cluster", () => {
  const published = publishedObjects("policyAndNetworking", release("v3.27")).find(({ kind }) => kind === "DaemonSet")!;
  const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
  /** As a real server has it: with everything it fills in. */
  const live = (
    change: (object: ReturnType<typeof structuredClone<KubeObject>>) => void,
    managedFields: unknown[] = [],
  ): KubeObject => {
    const object = structuredClone(published);
    object.metadata.annotations = {
      [LAST_APPLIED]: JSON.stringify(published),
      "deprecated.daemonset.template.generation": "3",
    };
    Object.assign(object.metadata, { uid: "u", resourceVersion: "7", generation: 3, managedFields });
    Object.assign(object, { status: { numberReady: 2 } });
    const spec = object["spec"] as { template: { spec: PodSpec } } & Record<string, unknown>;
    spec["revisionHistoryLimit"] = 10;
    Object.assign(spec.template.spec, {
      restartPolicy: "Always",
      dnsPolicy: "ClusterFirst",
      schedulerName: "default-scheduler",
      serviceAccount: "vendor-node",
      securityContext: {},
    });
    for (const container of spec.template.spec.containers)
      Object.assign(container, { imagePullPolicy: "IfNotPresent", terminationMessagePath: "/dev/termination-log" });
    change(object);
    return object;
  };
  const podOf = (object: KubeObject) => (object["spec"] as { template: { spec: PodSpec } }).template.spec;

  it("are none where nobody changed anything, however much the server filled in", () => {
    expect(
      appliedObject(
        live(() => {}),
        published,
      ),
    ).toEqual(published);
    const created = live((object) => {
      object.metadata.annotations = {};
    });
    expect(appliedObject(created, published)).toEqual(published);
  });

  it("are values that differ from what was applied, and what was taken out", () => {
    const edited = live((object) => {
      podOf(object)["priorityClassName"] = "network-critical";
      delete podOf(object)["terminationGracePeriodSeconds"];
    });
    const spec = podOf(appliedObject(edited, published));
    expect(spec["priorityClassName"]).toBe("network-critical");
    expect(spec).not.toHaveProperty("terminationGracePeriodSeconds");
  });

  it("are what others put in, as the server's record of owners says; not what controllers did", () => {
    const path = {
      "f:spec": {
        "f:template": {
          "f:spec": {
            "f:containers": {
              'k:{"name":"vendor-node"}': { "f:env": { 'k:{"name":"MTU"}': { ".": {}, "f:name": {}, "f:value": {} } } },
            },
          },
        },
      },
    };
    const byController = { "f:metadata": { "f:labels": { "f:touched": {} } } };
    const edited = live(
      (object) => {
        podOf(object).containers[0]!.env!.push({ name: "MTU", value: "1440" });
        object.metadata.labels = { ...object.metadata.labels, touched: "yes" };
      },
      [
        { manager: "kubectl-edit", operation: "Update", fieldsV1: path },
        { manager: "kube-controller-manager", operation: "Update", fieldsV1: byController },
      ],
    );
    const applied = appliedObject(edited, published);
    expect(podOf(applied).containers[0]!.env).toContainEqual({ name: "MTU", value: "1440" });
    expect(applied.metadata.labels).not.toHaveProperty("touched");
  });
});

describe("a manifest is read as kubectl reads it", () => {
  const secretVolume = (mode: string, more = "") =>
    `apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: node\nspec:\n  defaultMode: ${mode}\n  at: 10:20\n  on: 2020-01-01\n${more}`;

  it("octal modes are octal, yes is true, and times are texts", () => {
    const text = secretVolume("0400", "  hostNetwork: yes\n");
    const { objects } = mergeManifest({ base: text, theirs: { file: "mine.yaml", text }, ours: text, take: {} });
    expect(objects({})[0]?.["spec"]).toEqual({ defaultMode: 256, at: "10:20", true: "2020-01-01", hostNetwork: true });
  });

  it("and so is what a person had in the cluster, where the server has a number", () => {
    const live = {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name: "node" },
      spec: { defaultMode: 256, at: "10:20", true: "2020-01-01" },
    };
    const { edits, conflicts } = mergeManifest({
      base: secretVolume("0400"),
      theirs: { objects: [live] },
      ours: secretVolume("0440"),
      take: {},
    });
    expect({ edits, conflicts }).toEqual({ edits: [], conflicts: [] });
  });
});

describe("a private registry", () => {
  const pods = (containers: [name: string, image: string][]) =>
    `apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: node\nspec:\n  template:\n    spec:\n      containers:\n${containers
      .map(([name, image]) => `        - name: ${name}\n          image: ${image}\n`)
      .join("")}`;

  it("is kept where the release moved, for containers that are new, and asks nothing of one that is gone", () => {
    const base = pods([
      ["node", "docker.io/x/node:v1"],
      ["mount", "docker.io/x/node:v1"],
    ]);
    const text = base.replaceAll("docker.io/x/", "corp.example/mirror/x/");
    const ours = pods([
      ["node", "quay.io/x/node:v2"],
      ["bootstrap", "quay.io/x/boot:v2"],
      ["other", "ghcr.io/y/z:v1"],
    ]);
    const merged = mergeManifest({ base, theirs: { file: "mine.yaml", text }, ours, take: {} });
    expect(merged.conflicts).toEqual([]);
    const images = [...merged.text.matchAll(/image: (\S+)/g)].map(([, image]) => image);
    expect(images).toEqual(["corp.example/mirror/x/node:v2", "corp.example/mirror/x/boot:v2", "ghcr.io/y/z:v1"]);
  });
});
