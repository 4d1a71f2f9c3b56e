import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../../api/object.ts";
import { strategyOf } from "./strategy-of.ts";

type Draft = { metadata?: object; spec?: unknown; [field: string]: unknown };

const named = (kind: string, draft: Draft): KubeObject =>
  ({
    apiVersion: "v1",
    kind,
    ...structuredClone(draft),
    metadata: { name: "a", namespace: "default", uid: "u1", ...draft.metadata },
  }) as KubeObject;

/** What the server makes of a new object. */
function created(group: string, kind: string, draft: Draft): KubeObject {
  const object = named(kind, draft);
  const strategy = strategyOf(group, "v1", kind);
  strategy.setDefaults?.(object);
  strategy.prepareForCreate?.(object);
  return object;
}

function problems(group: string, kind: string, draft: Draft): string[] {
  const found = strategyOf(group, "v1", kind).validate?.(created(group, kind, draft)) ?? [];
  return found.map(({ field, message }) => `${field}: ${message}`);
}

/** What the server says when the first object is to become the second. */
function changeProblems(group: string, kind: string, from: Draft, to: Draft): string[] {
  const old = created(group, kind, from);
  const strategy = strategyOf(group, "v1", kind);
  const next = { ...created(group, kind, to), status: old["status"] };
  strategy.prepareForUpdate?.(next, old);
  return (strategy.validateUpdate?.(next, old) ?? []).map(({ field, message }) => `${field}: ${message}`);
}

const container = { name: "c", image: "web:1" };
const pod = (more: object = {}, first: object = {}) => ({
  spec: { containers: [{ ...container, ...first }], ...more },
});
const labels = { app: "web" };
const workload = (more: object = {}) => ({
  spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, ...pod() }, ...more },
});

describe("a new pod", () => {
  it("gets what everybody expects a pod to have", () => {
    const made = created("", "Pod", pod({ serviceAccountName: "sa" }, { livenessProbe: { httpGet: { port: 80 } } }));
    expect(made["spec"]).toMatchObject({
      restartPolicy: "Always",
      dnsPolicy: "ClusterFirst",
      terminationGracePeriodSeconds: 30,
      securityContext: {},
      schedulerName: "default-scheduler",
      enableServiceLinks: true,
      serviceAccount: "sa",
      priority: 0,
      containers: [
        {
          imagePullPolicy: "IfNotPresent",
          terminationMessagePath: "/dev/termination-log",
          terminationMessagePolicy: "File",
          resources: {},
          livenessProbe: { httpGet: { path: "/", scheme: "HTTP" }, periodSeconds: 10, failureThreshold: 3 },
        },
      ],
      tolerations: [
        { key: "node.kubernetes.io/not-ready", tolerationSeconds: 300 },
        { key: "node.kubernetes.io/unreachable" },
      ],
    });
    expect(made["status"]).toEqual({ phase: "Pending", qosClass: "BestEffort" });
  });

  it.each([
    ["web", "Always"],
    ["web:latest", "Always"],
    ["web:1.2", "IfNotPresent"],
    ["registry:5000/web", "Always"],
    ["web@sha256:abc", "IfNotPresent"],
  ])("pulls %s %s", (image, policy) => {
    expect(created("", "Pod", pod({}, { image }))["spec"]).toMatchObject({ containers: [{ imagePullPolicy: policy }] });
  });

  it("asks for what it may use at most, and is rated by it", () => {
    const limits = { cpu: "1", memory: "1Gi" };
    const guaranteed = created("", "Pod", pod({}, { resources: { limits } }));
    expect(guaranteed["spec"]).toMatchObject({ containers: [{ resources: { requests: limits } }] });
    expect(guaranteed["status"]).toMatchObject({ qosClass: "Guaranteed" });
    const burstable = created("", "Pod", pod({}, { resources: { limits, requests: { cpu: "500m" } } }));
    expect(burstable["status"]).toMatchObject({ qosClass: "Burstable" });
  });

  it("gives its volumes the modes a real server does", () => {
    const volumes = [{ name: "e" }, { name: "s", secret: {} }, { name: "h", hostPath: { path: "/" } }];
    expect(created("", "Pod", pod({ volumes }))["spec"]).toMatchObject({
      volumes: [{ emptyDir: {} }, { secret: { defaultMode: 420 } }, { hostPath: { type: "" } }],
    });
  });

  it("is told everything that is wrong with it", () => {
    const bad = {
      spec: {
        containers: [
          {
            name: "A",
            ports: [{ containerPort: 70000, name: "http" }, { name: "http" }],
            volumeMounts: [{ name: "v" }],
          },
          { ...container, resources: { requests: { cpu: 2 }, limits: { cpu: "1" } } },
          { ...container, livenessProbe: {} },
        ],
      },
    };
    const found = problems("", "Pod", bad);
    const short = found.map((line) => /^[^:]+: [^:]+/.exec(line)![0]);
    expect(short).toEqual([
      "spec.containers[2].name: Duplicate value",
      "spec.containers[0].name: Invalid value",
      "spec.containers[0].image: Required value",
      "spec.containers[0].ports[0].containerPort: Invalid value",
      "spec.containers[0].ports[1].containerPort: Required value",
      "spec.containers[0].ports[1].name: Duplicate value",
      "spec.containers[0].volumeMounts[0].name: Not found",
      "spec.containers[1].resources.requests: Invalid value",
      "spec.containers[2].livenessProbe: Required value",
    ]);
    expect(found).toContain(
      "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
    );
    expect(problems("", "Pod", { spec: {} })).toEqual(["spec.containers: Required value"]);
  });

  it("may later change its image and little else", () => {
    expect(changeProblems("", "Pod", pod(), pod({}, { image: "web:2" }))).toEqual([]);
    expect(changeProblems("", "Pod", pod(), pod({ nodeName: "n1" }))).toEqual([]);
    expect(changeProblems("", "Pod", pod(), pod({ hostNetwork: true }))[0]).toMatch(
      /^spec: Forbidden: pod updates may not/,
    );
    expect(changeProblems("", "Pod", pod({ nodeName: "n1" }), pod({ nodeName: "n2" }))).toHaveLength(1);
  });

  it("is given time to stop once it runs somewhere", () => {
    const { gracePeriodSeconds } = strategyOf("", "v1", "Pod");
    expect(gracePeriodSeconds!(created("", "Pod", pod()))).toBe(0);
    expect(gracePeriodSeconds!(created("", "Pod", pod({ nodeName: "n1" })))).toBe(30);
  });
});

describe("a malformed object", () => {
  it("never makes defaulting fail: its schema will say what is wrong", () => {
    for (const spec of ["text", [], { containers: {} }, { containers: [null] }, { containers: "c", volumes: 7 }]) {
      expect(() => created("", "Pod", { spec })).not.toThrow();
      expect(() => created("apps", "Deployment", { spec: { template: { spec } } })).not.toThrow();
    }
  });
});

describe("what says nothing", () => {
  it("is not kept: clients of one language send empty fields that those of another leave out", () => {
    const chatty = pod({ nodeSelector: {}, hostNetwork: false, volumes: [] }, { tty: false, workingDir: "", env: [] });
    expect(created("", "Pod", chatty)).toEqual(created("", "Pod", pod()));
  });

  it("is kept where empty differs from absent", () => {
    const spec = created("", "Pod", pod({ automountServiceAccountToken: false, terminationGracePeriodSeconds: 0 }))[
      "spec"
    ];
    expect(spec).toMatchObject({ automountServiceAccountToken: false, terminationGracePeriodSeconds: 0 });
    expect(created("apps", "Deployment", workload({ replicas: 0 }))["spec"]).toMatchObject({ replicas: 0 });
    expect(created("", "ConfigMap", { data: { a: "" } })["data"]).toEqual({ a: "" });
  });
});

describe("workloads", () => {
  it("fill their strategies", () => {
    expect(created("apps", "Deployment", workload())["spec"]).toMatchObject({
      replicas: 1,
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } },
      template: { spec: { restartPolicy: "Always" } },
    });
    expect(created("apps", "DaemonSet", workload())["spec"]).toMatchObject({
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
    });
    expect(created("apps", "StatefulSet", workload())["spec"]).toMatchObject({ podManagementPolicy: "OrderedReady" });
  });

  it("must select their own pods, for good", () => {
    const other = workload({ selector: { matchLabels: { app: "other" } } });
    expect(problems("apps", "Deployment", other)).toEqual([
      'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ]);
    expect(problems("apps", "ReplicaSet", workload({ selector: undefined }))).toEqual([
      "spec.selector: Required value",
    ]);
    expect(changeProblems("apps", "Deployment", workload(), other)).toEqual([
      'spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable',
    ]);
  });

  it("keep pods running; a job lets them end", () => {
    const ending = { metadata: { labels }, ...pod({ restartPolicy: "Never" }) };
    expect(problems("apps", "DaemonSet", workload({ template: ending }))).toEqual([
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ]);
    expect(problems("batch", "Job", { spec: { template: ending } })).toEqual([]);
    expect(problems("batch", "Job", { spec: { template: pod() } })).toEqual([
      'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    ]);
  });

  it("a job finds its pods by its own uid, and its template is fixed", () => {
    const draft = { spec: { template: pod({ restartPolicy: "Never" }) } };
    expect(created("batch", "Job", draft)["spec"]).toMatchObject({
      completions: 1,
      parallelism: 1,
      backoffLimit: 6,
      selector: { matchLabels: { "batch.kubernetes.io/controller-uid": "u1" } },
      template: { metadata: { labels: { "job-name": "a", "controller-uid": "u1" } } },
    });
    const later = { spec: { template: pod({ restartPolicy: "Never" }, { image: "web:2" }) } };
    expect(changeProblems("batch", "Job", draft, later)[0]).toMatch(
      /^spec\.template: Invalid value: .*field is immutable$/,
    );
  });
});

describe("services", () => {
  const service = (more: object = {}) => ({ spec: { ports: [{ port: 80 }], ...more } });

  it("are cluster services on the port they name", () => {
    expect(created("", "Service", service())["spec"]).toEqual({
      type: "ClusterIP",
      sessionAffinity: "None",
      internalTrafficPolicy: "Cluster",
      ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
    });
  });

  it("say which port is wrong", () => {
    const ports = [{ port: 80 }, { port: 80, name: "b", nodePort: 30000 }, { port: 0, name: "c" }];
    expect(problems("", "Service", service({ ports }))).toEqual([
      "spec.ports[0].name: Required value",
      "spec.ports[1].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
      "spec.ports[2].port: Invalid value: 0: must be between 1 and 65535, inclusive",
      "spec.ports[2].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
      'spec.ports[1]: Duplicate value: {"protocol":"TCP","port":80}',
    ]);
    expect(problems("", "Service", { spec: {} })).toEqual(["spec.ports: Required value"]);
  });

  it("keep their address: written back without it, and against a change", () => {
    const given = service({ clusterIP: "10.0.0.1", clusterIPs: ["10.0.0.1"] });
    expect(changeProblems("", "Service", given, service())).toEqual([]);
    expect(changeProblems("", "Service", given, service({ clusterIP: "10.0.0.2", clusterIPs: ["10.0.0.2"] }))).toEqual([
      'spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set',
    ]);
  });
});

describe("configuration", () => {
  it("takes a secret's plain text and keeps it encoded", () => {
    const secret = created("", "Secret", { stringData: { a: "hi" } });
    expect(secret).toMatchObject({ type: "Opaque", data: { a: "aGk=" } });
    expect(secret).not.toHaveProperty("stringData");
    expect(problems("", "Secret", { type: "kubernetes.io/tls", data: { "tls.crt": "" } })).toEqual([
      "data[tls.key]: Required value",
    ]);
  });

  it("may be frozen", () => {
    const frozen = { immutable: true, data: { a: "1" } };
    expect(changeProblems("", "ConfigMap", frozen, { immutable: true, data: { a: "2" } })).toEqual([
      "data: Forbidden: field is immutable when `immutable` is set",
    ]);
    expect(problems("", "ConfigMap", { data: { "a b": "" } })[0]).toMatch(
      /^data\[a b\]: Invalid value: "a b": a valid config key/,
    );
  });
});

describe("access", () => {
  const binding = (role: string) => ({
    roleRef: { kind: "ClusterRole", name: role },
    subjects: [
      { kind: "User", name: "u" },
      { kind: "ServiceAccount", name: "s" },
    ],
  });

  it("fills the groups nobody writes, and keeps a binding to its role", () => {
    expect(created("rbac.authorization.k8s.io", "RoleBinding", binding("view"))).toMatchObject({
      roleRef: { apiGroup: "rbac.authorization.k8s.io" },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io" }, { namespace: "default" }],
    });
    expect(changeProblems("rbac.authorization.k8s.io", "RoleBinding", binding("view"), binding("edit"))).toEqual([
      'roleRef: Invalid value: {"kind":"ClusterRole","name":"edit","apiGroup":"rbac.authorization.k8s.io"}: cannot change roleRef',
    ]);
  });

  it("wants whole rules", () => {
    expect(problems("rbac.authorization.k8s.io", "Role", { rules: [{ resources: ["pods"] }] })).toEqual([
      "rules[0].verbs: Required value: verbs must contain at least one value",
      "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
    ]);
  });
});

describe("what extends the API", () => {
  const version = { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } };
  const crd = (more: object = {}) => ({
    metadata: { name: "gates.example.io" },
    spec: {
      group: "example.io",
      scope: "Cluster",
      names: { plural: "gates", kind: "Gate" },
      versions: [version],
      ...more,
    },
  });
  const group = "apiextensions.k8s.io";

  it("gets its names, and remembers which versions objects may be kept in", () => {
    const made = created(group, "CustomResourceDefinition", crd());
    expect(made).toMatchObject({
      spec: { names: { singular: "gate", listKind: "GateList" }, conversion: { strategy: "None" } },
      status: { storedVersions: ["v1"] },
    });
  });

  it("is refused with every reason", () => {
    const versions = [
      { name: "v1", schema: { openAPIV3Schema: { type: "object", properties: { spec: {} } } } },
      { name: "v2" },
    ];
    expect(
      problems(group, "CustomResourceDefinition", { ...crd({ versions }), metadata: { name: "gate.example.io" } }),
    ).toEqual([
      'metadata.name: Invalid value: "gate.example.io": must be spec.names.plural+"."+spec.group',
      'spec.versions: Invalid value: ["v1","v2"]: must have exactly one version marked as storage version',
      "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields",
      "spec.versions[1].schema.openAPIV3Schema: Required value: schemas are required",
    ]);
  });

  it("may not drop a version that objects may still be kept in", () => {
    const renamed = crd({ versions: [{ ...version, name: "v2" }] });
    expect(changeProblems(group, "CustomResourceDefinition", crd(), renamed)[0]).toMatch(
      /storedVersions\[0\].*missing from spec\.versions/,
    );
  });

  it("an aggregated API is named after what it serves", () => {
    const spec = {
      group: "vendor.io",
      version: "v3",
      groupPriorityMinimum: 100,
      versionPriority: 10,
      service: { name: "s", namespace: "n" },
    };
    expect(created("apiregistration.k8s.io", "APIService", { spec })["spec"]).toMatchObject({ service: { port: 443 } });
    expect(problems("apiregistration.k8s.io", "APIService", { spec })).toEqual([
      'metadata.name: Invalid value: "a": must be `spec.version+"."+spec.group`: "v3.vendor.io"',
    ]);
  });
});

describe("the rest of the cluster", () => {
  it("namespaces carry their name as a label and wait to be cleared", () => {
    expect(created("", "Namespace", {})).toMatchObject({
      metadata: { labels: { "kubernetes.io/metadata.name": "a" } },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    });
  });

  it("network policies say which directions they rule", () => {
    const types = (spec: object) => created("networking.k8s.io", "NetworkPolicy", { spec })["spec"];
    expect(types({ ingress: [{ ports: [{ port: 80 }] }] })).toMatchObject({
      podSelector: {},
      policyTypes: ["Ingress"],
      ingress: [{ ports: [{ protocol: "TCP" }] }],
    });
    expect(types({ egress: [] })).toMatchObject({ policyTypes: ["Ingress", "Egress"] });
    expect(
      problems("networking.k8s.io", "NetworkPolicy", {
        spec: { ingress: [{ from: [{ ipBlock: { cidr: "10/8" } }] }] },
      }),
    ).toEqual(['spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "10/8": must be a valid CIDR value']);
  });

  it("a disruption budget counts one way", () => {
    expect(problems("policy", "PodDisruptionBudget", { spec: { minAvailable: 1, maxUnavailable: 1 } })).toHaveLength(1);
  });
});
