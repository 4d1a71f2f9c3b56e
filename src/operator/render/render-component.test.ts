import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { managedKind } from "../managed-kinds.ts";
import { imageFor } from "./image.ts";
import { renderComponent } from "./render-component.ts";
import { COMPONENTS, inputsFor, KINDS } from "./testing-inputs.fixture.ts";

interface Container {
  name: string;
  image: string;
  command: string[];
  env: { name: string; value?: string }[];
  resources: { requests?: Record<string, string> };
  securityContext: { privileged?: boolean; runAsUser?: number };
  livenessProbe?: object;
  readinessProbe?: object;
  volumeMounts?: { name: string; mountPath: string }[];
}

interface PodSpec {
  securityContext?: { runAsUser?: number };
  hostNetwork?: boolean;
  automountServiceAccountToken?: boolean;
  initContainers?: Container[];
  containers: Container[];
  volumes?: { name: string }[];
  dnsPolicy?: string;
  dnsConfig?: object;
  tolerations: object[];
}

function podSpecOf(object: KubeObject): PodSpec | undefined {
  const spec = object["spec"] as { template?: { spec: PodSpec } } | undefined;
  return spec?.template?.spec;
}

function workload(objects: readonly KubeObject[], name: string): PodSpec {
  const found = objects.find((object) => object.metadata.name === name && podSpecOf(object));
  return podSpecOf(found as KubeObject) as PodSpec;
}

function agentOf(inputs: Parameters<typeof renderComponent>[1]): PodSpec {
  return workload(renderComponent("network", inputs), "vendor-node");
}

const everything = (asked: Parameters<typeof inputsFor>[0]) => {
  const inputs = inputsFor(asked);
  return COMPONENTS.flatMap((component) => renderComponent(component, inputs));
};

/** Any cluster an operator may meet, as far as rendering is concerned. */
const anyInputs = fc
  .record({
    kind: fc.constantFrom(...KINDS),
    bpf: fc.boolean(),
    endpoint: fc.option(fc.constantFrom("api.example.test", "192.0.2.10", "proxy.local"), { nil: undefined }),
    registry: fc.option(fc.constantFrom("registry.example.test", "registry.example.test/mirror/"), { nil: undefined }),
    nodes: fc.nat({ max: 2000 }),
    replicas: fc.integer({ min: 1, max: 5 }),
    pullSecrets: fc.subarray(["one", "two"]),
  })
  .map(({ kind, bpf, endpoint, registry, nodes, replicas, pullSecrets }) =>
    inputsFor({
      kind,
      bpf,
      spec: { controlPlaneReplicas: replicas, ...(registry ? { registry } : {}) },
      more: {
        apiEndpoint: endpoint ? { host: endpoint, port: "6443" } : undefined,
        nodes: { linux: nodes },
        pullSecrets,
      },
    }),
  );

const HOST = "ORCHESTRATOR_SERVICE_HOST";
const hasEnv = ({ env }: Container, name: string) => env.some((each) => each.name === name);

describe("every rendered object, whatever the cluster", () => {
  it("carries the labels the operator knows its own by, and is owned by who asked for it, but for pools", () => {
    fc.assert(
      fc.property(anyInputs, (inputs) => {
        for (const component of COMPONENTS) {
          for (const { kind, metadata } of renderComponent(component, inputs)) {
            expect(metadata.labels).toMatchObject({
              "app.kubernetes.io/managed-by": "vendor-operator",
              "operator.vendor.io/component": component,
            });
            const owners = metadata.ownerReferences ?? [];
            expect(owners.map(({ blockOwnerDeletion }) => blockOwnerDeletion)).toEqual(
              kind === "IPPool" ? [] : [false],
            );
          }
        }
      }),
      { numRuns: 50 },
    );
  });

  it("is of a kind that the operator creates", () => {
    for (const kind of KINDS) expect(() => everything({ kind }).map(managedKind)).not.toThrow();
  });

  it("is the same for the same inputs, and the inputs stay as they were", () => {
    fc.assert(
      fc.property(anyInputs, (inputs) => {
        const before = JSON.stringify(inputs);
        const once = COMPONENTS.map((component) => renderComponent(component, inputs));
        const twice = COMPONENTS.map((component) => renderComponent(component, inputs));
        expect(once).toEqual(twice);
        expect(JSON.stringify(inputs)).toBe(before);
      }),
      { numRuns: 50 },
    );
  });

  it("labels every object as Kubernetes recommends, and no selector", () => {
    const inputs = inputsFor({});
    for (const component of COMPONENTS) {
      for (const { metadata, ...object } of renderComponent(component, inputs)) {
        expect(metadata.labels).toMatchObject({
          "app.kubernetes.io/name": metadata.labels?.["k8s-app"] ?? "vendor",
          "app.kubernetes.io/part-of": "vendor",
          "app.kubernetes.io/component": component,
          "app.kubernetes.io/version": inputs.version,
        });
        expect(JSON.stringify(object)).not.toContain("app.kubernetes.io/version");
      }
    }
  });

  it("says nothing twice and nothing empty, so that what is live can be compared with it", () => {
    const empty = (value: unknown, path: string): string[] => {
      if (value === undefined || value === null) return [path];
      if (typeof value !== "object") return [];
      const entries = Object.entries(value);
      const isOpen = /(podSelector|spec\.resources)$/.test(path);
      if (entries.length === 0 && !isOpen) return [path];
      return entries.flatMap(([key, inner]) => empty(inner, `${path}.${key}`));
    };
    fc.assert(
      fc.property(anyInputs, (inputs) => {
        for (const component of COMPONENTS) {
          const objects = renderComponent(component, inputs);
          const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`);
          expect(new Set(names).size).toBe(names.length);
          expect(objects.flatMap((object) => empty(object, object.kind))).toEqual([]);
        }
      }),
      { numRuns: 50 },
    );
  });

  it("comes after what it refers to", () => {
    const objects = everything({ bpf: true });
    const place = (kind: string, name: string) =>
      objects.findIndex((object) => object.kind === kind && object.metadata.name === name);
    expect(place("Namespace", "vendor-system")).toBe(0);
    expect(place("RoleBinding", "vendor-operator-system")).toBe(1);
    for (const name of ["vendor-node", "vendor-kube-controllers", "vendor-apiserver"]) {
      const runs = Math.max(place("DaemonSet", name), place("Deployment", name));
      expect(place("ServiceAccount", name)).toBeLessThan(runs);
      expect(place("ClusterRoleBinding", name)).toBeLessThan(runs);
    }
    expect(place("APIService", "v3.vendor.io")).toBeGreaterThan(place("Deployment", "vendor-apiserver"));
  });
});

describe("every container", () => {
  const containers = (inputs: Parameters<typeof renderComponent>[1]) =>
    COMPONENTS.flatMap((component) => renderComponent(component, inputs))
      .flatMap((object) => podSpecOf(object) ?? [])
      .flatMap((pod) => [
        ...(pod.initContainers ?? []).map((container) => ({ container, pod, init: true })),
        ...pod.containers.map((container) => ({ container, pod, init: false })),
      ]);

  it("runs the one image, is sized, probed, held to what it needs, and sees only volumes its pod has", () => {
    fc.assert(
      fc.property(anyInputs, (inputs) => {
        for (const { container, pod, init } of containers(inputs)) {
          expect(container.image).toBe(imageFor(inputs.installation, inputs.version));
          expect(container.command[0]).toBe("vendor");
          expect(container.resources.requests).toMatchObject({ cpu: expect.any(String), memory: expect.any(String) });
          expect(container.securityContext).toBeDefined();
          if (!init) expect(container).toMatchObject({ livenessProbe: {}, readinessProbe: {} });
          const volumes = new Set(pod.volumes?.map(({ name }) => name));
          expect(container.volumeMounts?.filter(({ name }) => !volumes.has(name)) ?? []).toEqual([]);
        }
      }),
      { numRuns: 50 },
    );
  });

  it("is privileged only where it runs eBPF, and only on the node", () => {
    for (const kind of KINDS) {
      for (const bpf of [false, true]) {
        const privileged = containers(inputsFor({ kind, bpf }))
          .filter(({ container }) => container.securityContext.privileged)
          .map(({ container }) => container.name);
        expect(privileged).toEqual(bpf ? ["node-init", "vendor-node"] : []);
      }
    }
  });

  it("says whether it is root, which the image is not", () => {
    for (const { container, pod } of containers(inputsFor({ bpf: true, spec: { vendorNetwork: { mtu: 1400 } } }))) {
      const user = container.securityContext.runAsUser ?? pod.securityContext?.runAsUser;
      expect(user, container.name).toBe(
        ["vendor-node", "node-init", "cni-install"].includes(container.name) ? 0 : 10001,
      );
    }
  });

  it("has the API server's address exactly when there is one, its pod speaks to the API and can reach the address", () => {
    fc.assert(
      fc.property(anyInputs, (inputs) => {
        const { apiEndpoint, kind } = inputs;
        for (const { container, pod, init } of containers(inputs)) {
          const speaks = !init && pod.automountServiceAccountToken !== false;
          const reaches = pod.hostNetwork || !(kind === "mke" && apiEndpoint?.host === "proxy.local");
          expect(hasEnv(container, HOST)).toBe(apiEndpoint !== undefined && speaks && reaches);
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe("rights", () => {
  const roles = KINDS.flatMap((kind) => everything({ kind, bpf: true })).filter(({ kind }) => /Role$/.test(kind));
  const rules = roles.flatMap(({ rules: each }) => each as Record<"apiGroups" | "resources" | "verbs", string[]>[]);

  it("never say everything", () => {
    expect(rules.length).toBeGreaterThan(10);
    for (const { apiGroups, resources, verbs } of rules) {
      expect([...apiGroups, ...resources, ...verbs].filter((word) => word.includes("*"))).toEqual([]);
    }
  });

  it("never touch Secrets, and never write what is not the program's own", () => {
    const writes = rules.filter(({ verbs }) => verbs.some((verb) => !["get", "list", "watch", "use"].includes(verb)));
    const written = new Set(
      writes.flatMap(({ apiGroups, resources }) => resources.map((each) => `${each}.${apiGroups[0]}`)),
    );
    const foreign = [...written].filter((each) => !each.endsWith(".crd.vendor.io")).sort();
    expect(rules.flatMap(({ resources }) => resources)).not.toContain("secrets");
    expect(foreign).toEqual([
      "configmaps.",
      "events.",
      "flowlogs/status.operator.vendor.io",
      "leases.coordination.k8s.io",
      "nodes/status.",
      "pods.",
      "pods/status.",
      "services/status.",
    ]);
  });
});

describe("exporting flows", () => {
  it("gives the program the collector, its Secret by reference, and the way there, and nothing if it is not asked for", () => {
    const render = (more: object) => renderComponent("flow-logs", inputsFor({ more }));
    const of = (objects: readonly KubeObject[]) => ({
      env: workload(objects, "vendor-flow-logs").containers[0]?.env.filter(({ name }) => name.startsWith("EXPORT")),
      ports: JSON.stringify(objects.find(({ kind }) => kind === "NetworkPolicy")?.["spec"]),
    });
    const flowExport = { endpoint: "https://collector.observability.svc:4318", headersSecret: { name: "collector" } };
    const { env, ports } = of(render({ flowExport }));
    expect(env).toEqual([
      { name: "EXPORT_OTLP_ENDPOINT", value: flowExport.endpoint },
      {
        name: "EXPORT_OTLP_HEADERS",
        valueFrom: { secretKeyRef: { name: "collector", key: "headers", optional: true } },
      },
    ]);
    expect(ports).toContain("4318");
    expect(of(render({ flowExport: { endpoint: "http://collector" } })).ports).toContain('"port":80}');
    expect(of(render({}))).toEqual({ env: [], ports: expect.not.stringContaining("4318") });
  });
});

describe("keeping flows on disk", () => {
  it("gives the program the volume, and how much of it, and nothing if it is not asked for", () => {
    const pod = (more: object) =>
      workload(renderComponent("flow-logs", inputsFor({ more })), "vendor-flow-logs") as unknown as {
        containers: [{ env: { name: string }[]; volumeMounts: { name: string }[] }];
        volumes: { name: string }[];
      };
    const { containers, volumes } = pod({ flowDisk: { persistentVolumeClaim: "flows", days: 30 } });
    expect(containers[0].env.filter(({ name }) => name.startsWith("HISTORY"))).toEqual([
      { name: "HISTORY_DIRECTORY", value: "/var/lib/vendor/flows" },
      { name: "HISTORY_DAYS", value: "30" },
    ]);
    expect(containers[0].volumeMounts).toContainEqual({ name: "flows", mountPath: "/var/lib/vendor/flows" });
    expect(volumes).toContainEqual({ name: "flows", persistentVolumeClaim: { claimName: "flows" } });
    expect(JSON.stringify(pod({}))).not.toMatch(/HISTORY|"flows"/);
  });
});

describe("the agent's pod", () => {
  it("finds names as the operator does", () => {
    const config = { nameservers: ["169.254.169.253"] };
    expect(agentOf(inputsFor({ more: { dns: { policy: "Default", config } } }))).toMatchObject({
      dnsPolicy: "Default",
      dnsConfig: config,
    });
    expect(agentOf(inputsFor({ more: { dns: undefined } }))).not.toHaveProperty("dnsPolicy");
  });

  it("mounts control groups where the data plane configuration says, because on immutable systems the usual place cannot be written", () => {
    const paths = (pod: PodSpec) => pod.containers[0]?.volumeMounts?.map(({ mountPath }) => mountPath);
    expect(paths(agentOf(inputsFor({ bpf: true })))).toContain("/run/vendor/cgroup");
    expect(paths(agentOf(inputsFor({ bpf: true, more: { cgroupV2Path: "/var/opt/cgroup" } })))).toContain(
      "/var/opt/cgroup",
    );
    expect(paths(agentOf(inputsFor()))).not.toContain("/run/vendor/cgroup");
  });

  it("leaves the CNI plugin of a platform alone", () => {
    const initOf = (kind: "generic" | "eks" | "aks") =>
      agentOf(inputsFor({ kind })).initContainers?.map(({ name }) => name);
    expect(initOf("generic")).toEqual(["cni-install"]);
    expect(initOf("eks")).toBeUndefined();
    expect(initOf("aks")).toBeUndefined();
  });

  it("serves host ports unless the installation says otherwise, which it cannot with eBPF", () => {
    const told = (asked: Parameters<typeof inputsFor>[0]) =>
      agentOf(inputsFor(asked)).containers[0]?.env.find(({ name }) => name === "HOST_PORTS")?.value;
    const spec = { vendorNetwork: { hostPorts: { portMapping: "Disabled" as const } } };
    expect(told({})).toBeUndefined();
    expect(told({ spec })).toBe("Disabled");
    expect(told({ bpf: true })).toBeUndefined();
  });

  it("brings the volume driver only where the platform looks for it elsewhere", () => {
    const spec = { vendorNetwork: { flexVolumePath: "/var/lib/kubelet/plugins" } };
    const driver = (kind: "generic" | "eks") =>
      agentOf(inputsFor({ kind, spec })).volumes?.find(({ name }) => name === "flexvolume");
    expect(driver("eks")).toMatchObject({ hostPath: { path: "/var/lib/kubelet/plugins/nodeagent~uds" } });
    expect(driver("generic")).toBeUndefined();
  });

  it("tolerates every taint, and is rolled as the installation asks", () => {
    const spec = { nodeUpdateStrategy: { rollingUpdate: { maxUnavailable: "10%" } } };
    const objects = renderComponent("network", inputsFor({ spec }));
    expect(workload(objects, "vendor-node").tolerations).toEqual([{ operator: "Exists" }]);
    expect(objects.find(({ kind }) => kind === "DaemonSet")).toMatchObject({
      spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } } },
    });
  });

  it("is rolled by a new certificate, a new authority and a new CNI configuration", () => {
    const annotations = (more: Parameters<typeof inputsFor>[0]) => {
      const daemonSet = renderComponent("network", inputsFor(more)).find(({ kind }) => kind === "DaemonSet");
      const { template } = daemonSet!["spec"] as { template: { metadata: object } };
      return JSON.stringify(template.metadata);
    };
    const usual = annotations({});
    const { certificates } = inputsFor();
    expect(annotations({ more: { caHash: "another" } })).not.toBe(usual);
    expect(annotations({ more: { certificates: { ...certificates, node: { secretName: "a", hash: "b" } } } })).not.toBe(
      usual,
    );
    expect(annotations({ spec: { vendorNetwork: { mtu: 1400 } } })).not.toBe(usual);
    expect(annotations({})).toBe(usual);
  });

  it("is asked for its health where the data plane configuration puts it", () => {
    const asked = (inputs: Parameters<typeof renderComponent>[1]) => agentOf(inputs).containers[0]?.readinessProbe;
    expect(asked(inputsFor())).toMatchObject({ httpGet: { port: 9099 } });
    expect(asked(inputsFor({ kind: "openshift" }))).toMatchObject({ httpGet: { port: 9199 } });
    expect(asked(inputsFor({ more: { healthPort: 9999 } }))).toMatchObject({ httpGet: { port: 9999 } });
  });

  it("has the resources the installation gives it", () => {
    const resourceRequirements = { requests: { cpu: "1" }, limits: { memory: "1Gi" } };
    const spec = { componentResources: [{ componentName: "Node" as const, resourceRequirements }] };
    expect(agentOf(inputsFor({ spec })).containers[0]?.resources).toEqual(resourceRequirements);
  });
});

describe("pools", () => {
  it.each([
    ["VXLAN", "Always", "Never"],
    ["VXLANCrossSubnet", "CrossSubnet", "Never"],
    ["IPIP", "Never", "Always"],
    ["IPIPCrossSubnet", "Never", "CrossSubnet"],
    ["None", "Never", "Never"],
  ] as const)("say %s in the stored kind's words", (encapsulation, vxlanMode, ipipMode) => {
    const spec = { vendorNetwork: { ipPools: [{ cidr: "10.0.0.0/16", encapsulation }] } };
    const [pool] = renderComponent("ippools", inputsFor({ spec }));
    expect(pool).toMatchObject({ apiVersion: "crd.vendor.io/v1", spec: { cidr: "10.0.0.0/16", vxlanMode, ipipMode } });
  });

  it("are none where the installation lists none: somebody else makes them", () => {
    expect(renderComponent("ippools", inputsFor({ spec: { vendorNetwork: { ipPools: [] } } }))).toEqual([]);
  });
});

describe("the aggregated API", () => {
  const pod = (asked: Parameters<typeof inputsFor>[0]) =>
    workload(renderComponent("apiserver", inputsFor(asked)), "vendor-apiserver");

  it("is on the node's network where the platform's API server cannot reach pods of ours", () => {
    expect(pod({ kind: "eks", spec: { cni: { type: "Vendor" } } }).hostNetwork).toBe(true);
    expect(pod({ kind: "eks" }).hostNetwork).toBeUndefined();
    expect(pod({ kind: "generic" }).hostNetwork).toBeUndefined();
  });
});

describe("copies of the control plane", () => {
  it.each([
    [0, 2, 1],
    [1, 2, 1],
    [2, 2, 2],
    [100, 3, 3],
  ])("on %i nodes with %i asked for are %i", (linux, asked, replicas) => {
    const inputs = inputsFor({ spec: { controlPlaneReplicas: asked }, more: { nodes: { linux } } });
    const deployments = renderComponent("apiserver", inputs).filter(({ kind }) => kind === "Deployment");
    expect(deployments).toMatchObject([{ spec: { replicas } }]);
  });
});

describe("what the agent mounts from its node", () => {
  it.each(KINDS)("%s: need not be there before, but for what the kernel itself serves", (kind) => {
    const { volumes = [] } = workload(renderComponent("network", inputsFor({ kind, bpf: true })), "vendor-node");
    const paths = (volumes as { hostPath?: { path: string; type: string } }[]).flatMap(({ hostPath = [] }) => hostPath);
    const needed = paths.filter(({ type }) => !type.endsWith("OrCreate")).map(({ path }) => path);
    expect(needed.filter((path) => !/^\/(proc|sys)(\/|$)/.test(path))).toEqual([]);
    expect(paths.map(({ path }) => path)).toContain("/lib/modules");
  });
});

describe("the copies of a Deployment", () => {
  type Spread = { metadata: { labels: Record<string, string> }; spec: { affinity: unknown } };
  const templateOf = (registry: number) => {
    const inputs = inputsFor({ kind: "generic", spec: { registry: `registry-${registry}.example.test` } });
    const found = renderComponent("apiserver", inputs).find(({ kind }) => kind === "Deployment");
    return (found as KubeObject & { spec: { template: Spread } }).spec.template;
  };

  it("are kept apart from each other, and not from those that a roll-out replaces", () => {
    const [before, after] = [templateOf(1), templateOf(2)];
    const term = (labels: Record<string, string>) => ({
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          {
            weight: 100,
            podAffinityTerm: { labelSelector: { matchLabels: labels }, topologyKey: "kubernetes.io/hostname" },
          },
        ],
      },
    });
    expect(before.spec.affinity).toEqual(term(before.metadata.labels));
    expect(after.spec.affinity).toEqual(term(after.metadata.labels));
    expect(before.metadata.labels).not.toEqual(after.metadata.labels);
    expect(templateOf(1)).toEqual(before);
  });
});

describe("overrides of workloads", () => {
  const object = (objects: readonly KubeObject[], kind: string) =>
    objects.find((one) => one.kind === kind) as KubeObject & {
      metadata: { labels: Record<string, string> };
      spec: { selector: { matchLabels: object }; strategy?: object; template: { metadata: object; spec: object } };
    };

  it("add labels and node labels; the operator's own stay", () => {
    const labels = { team: "network", "k8s-app": "stolen" };
    const nodeSelector = { disk: "ssd", "kubernetes.io/os": "windows" };
    const nodeDaemonSet = {
      metadata: { labels },
      spec: { template: { metadata: { labels }, spec: { nodeSelector } } },
    };
    const { metadata, spec } = object(renderComponent("network", inputsFor({ spec: { nodeDaemonSet } })), "DaemonSet");
    expect(metadata.labels).toMatchObject({ team: "network", "k8s-app": "vendor-node" });
    expect(spec.template.metadata).toMatchObject({ labels: { team: "network", ...spec.selector.matchLabels } });
    expect(spec.template.spec).toMatchObject({ nodeSelector: { disk: "ssd", "kubernetes.io/os": "linux" } });
  });

  it("leave an agent off nodes that still have that of a plain manifest, whichever nodes they select", () => {
    const term = (key: string) => ({ matchExpressions: [{ key, operator: "Exists" }] });
    const required = { nodeSelectorTerms: [term("a"), term("b")] };
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } };
    const spec = { nodeDaemonSet: { spec: { template: { spec: { affinity } } } } };
    const unlabelled = { key: inputsFor().names.labels.nodeMigration, operator: "DoesNotExist" };
    expect(agentOf(inputsFor({ spec }))).toMatchObject({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: ["a", "b"].map((key) => ({
              matchExpressions: [unlabelled, ...term(key).matchExpressions],
            })),
          },
        },
      },
    });
  });

  it("with an affinity of people, copies are spread by it alone", () => {
    const affinity = { podAntiAffinity: {} };
    const apiServer = { spec: { template: { spec: { affinity } } } };
    const objects = renderComponent("apiserver", inputsFor({ more: { overrides: { apiServer } } }));
    expect(workload(objects, "vendor-apiserver")).toMatchObject({ affinity });
    expect(object(objects, "Deployment").spec.template.metadata).toMatchObject({
      labels: { "k8s-app": "vendor-apiserver" },
    });
  });

  it("win over componentResources, for the container they name", () => {
    const resources = { requests: { cpu: "2" } };
    const containers = [{ name: "vendor-node", resources }];
    const spec = {
      vendorNetwork: { bgp: "Enabled" as const },
      componentResources: [{ componentName: "Node" as const, resourceRequirements: { requests: { cpu: "1" } } }],
      nodeDaemonSet: { spec: { template: { spec: { containers } } } },
    };
    const [agent, bgp] = agentOf(inputsFor({ spec })).containers;
    expect(agent?.resources).toEqual(resources);
    expect(bgp?.resources).not.toEqual(resources);
  });

  it("of a roll-out change one limit and keep the other", () => {
    const apiServer = { spec: { strategy: { rollingUpdate: { maxUnavailable: 0 } } } };
    const objects = renderComponent("apiserver", inputsFor({ more: { overrides: { apiServer } } }));
    expect(object(objects, "Deployment").spec.strategy).toEqual({
      ...{ type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    });
  });
});

describe("BGP", () => {
  const spec = { vendorNetwork: { bgp: "Enabled" as const } };
  const containers = (given = {}) => workload(renderComponent("network", inputsFor(given)), "vendor-node").containers;

  it("is no container unless the Installation enables it", () => {
    expect(containers().map(({ name }) => name)).toEqual(["vendor-node"]);
    expect(containers().flatMap(({ env }) => env.filter(({ name }) => name === "BGP"))).toEqual([]);
  });

  it.each([false, true])("is a container with three capabilities and one directory, eBPF %s", (bpf) => {
    const [agent, bgp] = containers({ bpf, spec });
    expect(agent?.env).toContainEqual({ name: "BGP", value: "Enabled" });
    expect(bgp).toMatchObject({
      ...{ name: "bgp", command: ["vendor", "bgp"] },
      securityContext: {
        ...{ privileged: false, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
        capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "NET_BIND_SERVICE", "NET_RAW"] },
      },
      volumeMounts: [{ name: "var-run-vendor", mountPath: "/var/run/vendor" }],
      // Of sessions neither asks: a router that is down is no fault of the node.
      readinessProbe: { exec: { command: ["birdc", "-r", "-s", "/var/run/vendor/bgp/bird.ctl", "show", "status"] } },
      livenessProbe: { exec: { command: ["sh", "-c", expect.stringMatching(/^test ! -e .*bird.conf \|\| birdc /)] } },
    });
  });
});
