import { describe, expect } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { CONFIG_MAPS, NODES, PODS } from "../../src/cluster/kinds.ts";
import type { NodeSpec } from "../../src/local/runtime/node-runtime.ts";
import { customResources, manifest } from "../support/operator-manifests.ts";
import { installOperator, type OperatorScenario, runWithKubectl } from "../support/operator-scenario.ts";
import { listEverything, untilQuiet, written } from "../support/operator-snapshot.ts";
import { untilAvailable, untilStatus } from "../support/operator-status.ts";

const TO_EBPF = { spec: { vendorNetwork: { linuxDataplane: "BPF", hostPorts: null } } };
const STAY = { spec: { vendorNetwork: { linuxDataplane: "Nftables", hostPorts: null, ipPools: null } } };

/** Something that is asked for and cannot be. */
interface Refusal {
  what: string;
  /** What the cluster is like, or has in it, that makes it impossible. */
  given?: (story: OperatorScenario) => Promise<void>;
  asked?: object;
  reason: string;
  /** What is wrong, and what to do about it. */
  says: RegExp;
  /** Makes the cluster as it was before. */
  undo?: (story: OperatorScenario) => Promise<void>;
}

const NODE: NodeSpec = {
  name: "guest",
  internalIPs: ["172.18.0.99"],
  podCIDRs: ["10.244.99.0/24"],
  osImage: "Ubuntu 24.04.3 LTS",
  kernelVersion: "6.8.0-79-generic",
  architecture: "amd64",
  // It does not stay: a pod that moved in would have to move out again, in the middle of another story.
  taints: [{ key: "story/guest", effect: "NoSchedule" }],
};

/** A node joins the cluster, and leaves it when the story is over. */
const withNode = (spec: Partial<NodeSpec>): Pick<Refusal, "given" | "undo"> => ({
  given: ({ cluster }) => cluster.kubelet.addNode({ ...NODE, ...spec }),
  async undo({ cluster }) {
    await cluster.client.delete(NODES, { name: NODE.name });
    await cluster.kubelet.removeNode(NODE.name);
  },
});

const withObject = (object: KubeObject): Pick<Refusal, "given" | "undo"> => ({
  async given({ cluster: { client } }) {
    await client.create(await client.resourceFor(object), object);
  },
  async undo({ cluster: { client } }) {
    await client.delete(await client.resourceFor(object), object.metadata);
  },
});

const withDataplaneSetting = (setting: Record<string, unknown>): Pick<Refusal, "given" | "undo"> => {
  const patch =
    (spec: object) =>
    async ({ kubectl }: OperatorScenario) => {
      const words = ["patch", "dataplaneconfigurations.crd.vendor.io", "default", "--type=merge", "-p"];
      await kubectl.ok(...words, JSON.stringify({ spec }));
    };
  const nothing = Object.fromEntries(Object.keys(setting).map((field) => [field, null]));
  return { given: patch(setting), undo: patch(nothing) };
};

const IPIP_POOL = { spec: { vendorNetwork: { ipPools: [{ cidr: "10.244.0.0/16", encapsulation: "IPIP" }] } } };

const REFUSALS: Refusal[] = [
  {
    what: "eBPF with a pool that travels in IPIP",
    asked: { spec: { vendorNetwork: { ...TO_EBPF.spec.vendorNetwork, ...IPIP_POOL.spec.vendorNetwork } } },
    reason: "EbpfIpipPool",
    says: /Pool 10\.244\.0\.0\/16 uses IPIP, which eBPF does not support\. Fix: Change the pool to VXLAN or VXLANCrossSubnet/,
  },
  {
    what: "eBPF while somebody's own pool travels in IPIP",
    ...withObject({
      apiVersion: "crd.vendor.io/v1",
      kind: "IPPool",
      metadata: { name: "theirs" },
      spec: { cidr: "10.250.0.0/16", ipipMode: "Always" },
    }),
    reason: "EbpfIpipPool",
    says: /IPPool theirs uses IPIP\. Fix: Change the pool to VXLAN/,
  },
  {
    what: "eBPF on the etcd datastore, which an installation by manifests keeps its objects in",
    ...withObject({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "vendor-config", namespace: "kube-system" },
      data: { etcd_endpoints: "https://10.0.0.5:2379" },
    }),
    reason: "EbpfNeedsKubeDatastore",
    says: /eBPF cannot run on the etcd datastore\. Fix: Move to the Kubernetes API datastore first\./,
  },
  {
    what: "eBPF with a Windows node: a mixed cluster",
    ...withNode({
      osImage: "Windows Server 2022 Datacenter",
      kernelVersion: "10.0.20348.3932",
      operatingSystem: "windows",
    }),
    reason: "EbpfMixedCluster",
    says: /Node guest runs Windows\. Fix: Make every node run Linux with eBPF/,
  },
  {
    what: "eBPF with a node whose kernel is too old",
    ...withNode({ osImage: "Debian GNU/Linux 10 (buster)", kernelVersion: "4.19.0-27-amd64" }),
    reason: "EbpfKernelTooOld",
    says: /Node guest has Debian GNU\/Linux 10 \(buster\) with kernel 4\.19\.0-27-amd64, which needs .* Fix: Upgrade the node's/,
  },
  {
    what: "eBPF with a node of another architecture",
    ...withNode({ architecture: "s390x" }),
    reason: "EbpfArchitecture",
    says: /Node guest has a CPU of type s390x\. Fix: Remove the node from the cluster/,
  },
  {
    what: "eBPF with floating IPs turned on",
    ...withDataplaneSetting({ floatingIPs: "Enabled" }),
    reason: "EbpfFloatingIps",
    says: /enables floating IPs\. Fix: Remove the floating IPs, or stay on the nftables data plane/,
  },
  {
    what: "eBPF with a pod that has a floating IP",
    async given({ cluster: { client } }) {
      const floating = { "cni.vendor.io/floatingIPs": '["203.0.113.7"]' };
      await client.create(PODS, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "web", namespace: "default", annotations: floating },
        spec: { containers: [{ name: "web", image: "web" }] },
      });
      await untilRunning({ client, name: "web" });
    },
    async undo({ cluster: { client } }) {
      await client.delete(PODS, { name: "web", namespace: "default" }, { gracePeriodSeconds: 0 });
    },
    reason: "EbpfFloatingIps",
    says: /Pod default\/web has floating IPs\. Fix: Remove the floating IPs/,
  },
  {
    what: "eBPF with a control-group path that an immutable system does not let anybody write",
    async given(story) {
      await withNode({ osImage: "Flatcar Container Linux 4230.2.2", kernelVersion: "6.6.95-flatcar" }).given?.(story);
      await withDataplaneSetting({ cgroupV2Path: "/usr/vendor/cgroup" }).given?.(story);
    },
    async undo(story) {
      await withDataplaneSetting({ cgroupV2Path: "" }).undo?.(story);
      await withNode({}).undo?.(story);
    },
    reason: "CgroupPathNotWritable",
    says: /\/usr\/vendor\/cgroup.* Fix: Use a path under \/run or \/var, such as \/run\/vendor\/cgroup/,
  },
  {
    what: "an endpoint map with one key",
    async given({ kubectl }) {
      const patch = '{"data":{"ORCHESTRATOR_SERVICE_PORT":null}}';
      await kubectl.ok("-n", "vendor-operator", "patch", "configmap", MAP, "--type=merge", "-p", patch);
    },
    async undo({ cluster }) {
      const patch = { data: { ORCHESTRATOR_SERVICE_PORT: new URL(cluster.url).port } };
      await cluster.client.patch(CONFIG_MAPS, { name: MAP, namespace: "vendor-operator" }, { type: "merge", patch });
    },
    asked: {},
    reason: "EndpointKeyMissing",
    says: /The API endpoint ConfigMap lacks ORCHESTRATOR_SERVICE_PORT\. Fix: Set data\.ORCHESTRATOR_SERVICE_PORT/,
  },
];

const MAP = "orchestrator-services-endpoint";

describe("what cannot be is refused, and nothing changes", () => {
  const story = runWithKubectl({ kind: "generic" });
  const { step } = story;
  const patchInstallation = (patch: object) =>
    story.kubectl.ok("patch", "installation", "default", "--type=merge", "-p", JSON.stringify(patch));

  step("on a cluster with the nftables data plane, where all is well", async () => {
    await installOperator(story, "generic");
    const file = story.kubectl.file("custom-resources.yaml", customResources("linuxDataplane: Nftables"));
    await story.kubectl.ok("create", "-f", file);
    for (const part of ["network", "ippools", "apiserver"]) await untilAvailable(story.cluster.client, part);
  });

  for (const { what, given, asked = TO_EBPF, reason, says, undo } of REFUSALS) {
    step(what, async () => {
      const { cluster, kubectl } = story;
      await given?.(story);
      // A new node gets its agent before anything is asked for.
      if (given) await untilQuiet(story.cluster.client);
      const before = await listEverything(cluster.client);
      if (Object.keys(asked).length > 0) await patchInstallation(asked);
      const told = await untilStatus(cluster.client, "network", ({ degraded }) => degraded);
      expect(told).toMatchObject({ available: false, progressing: false, reason });
      expect(told.message).toMatch(says);
      expect(told.message).toMatch(/\(vendorctl explain [A-Z_]+\)/);
      expect(await kubectl.ok("get", "vendorstatus", "network", "-o", "wide")).toMatch(
        /^network +False +False +True +/m,
      );
      expect(await kubectl.ok("get", "installation", "default")).toMatch(
        /^default +Nftables +v3\.31\.3 +False +False +True/m,
      );
      expect(written(before, await listEverything(cluster.client)).filter(isNotStatus)).toEqual([]);
      await undo?.(story);
      await patchInstallation(STAY);
      await untilAvailable(cluster.client, "network");
      await untilQuiet(story.cluster.client);
    });
  }

  step(
    "an Installation that is not named default: it is told so itself, and the one that counts works on",
    async () => {
      const { kubectl, cluster } = story;
      const before = await untilQuiet(cluster.client);
      const second =
        manifest("custom-resources.yaml").split(/^---$/m)[1]?.replace("name: default", "name: second") ?? "";
      await kubectl.ok("create", "-f", kubectl.file("second.yaml", second));
      const path = "jsonpath={.status.conditions[?(@.type=='Degraded')].reason}";
      await kubectl.until(["get", "installation", "second", "-o", path], /^NameNotDefault$/);
      const message = path.replace("reason", "message");
      expect(await kubectl.ok("get", "installation", "second", "-o", message)).toMatch(
        /Installation second is ignored: the only one that is read is named default\. Fix: /,
      );
      expect(await kubectl.ok("get", "vendorstatus", "network")).toMatch(/^network +True +False +False/m);
      await kubectl.ok("delete", "installation", "second", "--timeout=30s");
      expect(written(before, await listEverything(cluster.client)).filter(isNotStatus)).toEqual([]);
    },
  );

  step("the flow UI without flow logs", async () => {
    const { kubectl, cluster } = story;
    const before = await untilQuiet(cluster.client);
    const text = "apiVersion: operator.vendor.io/v1\nkind: FlowUI\nmetadata:\n  name: default\nspec: {}\n";
    const file = kubectl.file("flow-ui.yaml", text);
    await kubectl.ok("create", "-f", file);
    const told = await untilStatus(cluster.client, "flow-ui", ({ degraded }) => degraded);
    expect(told.reason).toBe("FlowUiNeedsLogs");
    expect(told.message).toMatch(/Fix: Create the FlowLogs resource named default too\./);
    const changed = written(before, await listEverything(cluster.client)).filter(isNotStatus);
    expect(changed).toEqual(["FlowUI default (operator.vendor.io)"]);
    await kubectl.ok("delete", "-f", file, "--timeout=30s");
    await untilStatus(cluster.client, "flow-ui", ({ reason }) => reason === "NotInstalled");
  });

  step("a second operator, in another namespace: it ends with a reason, and status tells what to remove", async () => {
    const { kubectl, cluster } = story;
    const before = await untilQuiet(cluster.client);
    const elsewhere = manifest("vendor-operator.yaml")
      .replace(/namespace: vendor-operator$/gm, "namespace: elsewhere")
      .replace(/(kind: Namespace\nmetadata:\n {2}name:) vendor-operator/, "$1 elsewhere")
      .replace(/(kind: (Cluster)?RoleBinding\nmetadata:\n {2}name: vendor-operator)$/gm, "$1-elsewhere");
    await kubectl.ok("apply", "--server-side", "-f", kubectl.file("second-operator.yaml", elsewhere));
    const told = await untilStatus(cluster.client, "network", ({ degraded }) => degraded);
    expect(told.reason).toBe("SecondOperator");
    expect(told.message).toMatch(
      /^A second operator, in namespace elsewhere, was refused.* Fix: kubectl -n elsewhere delete deployment vendor-operator/,
    );
    const pod = await kubectl.ok("-n", "elsewhere", "get", "pods", "-o", "name");
    const logs = await kubectl.until(["-n", "elsewhere", "logs", "--previous", pod.trim()], /SECOND_OPERATOR/);
    expect(logs).toContain("the operator in namespace vendor-operator already manages this cluster");
    const changed = written(before, await listEverything(cluster.client)).filter(isNotStatus);
    expect(changed.filter((name) => !name.includes("elsewhere"))).toEqual(["ConfigMap vendor-system/active-operator"]);
  });
});

/** What tells of the refusal, and what was asked. */
function isNotStatus(name: string): boolean {
  return !/^(VendorStatus|Installation default)/.test(name);
}

async function untilRunning({ client, name }: { client: OperatorScenario["cluster"]["client"]; name: string }) {
  const phase = async () =>
    ((await client.get(PODS, { name, namespace: "default" }))["status"] as { phase?: string } | undefined)?.phase;
  while ((await phase()) !== "Running") await new Promise((resolve) => setTimeout(resolve, 20));
}
