import { resolve } from "node:path";
import { describe, expect } from "vitest";
import type { ClusterKind } from "../../src/api/tables/cluster-kinds.ts";
import { commandIn } from "../support/operator-commands.ts";
import { customResources, DNS_PATCH, endpointMap } from "../support/operator-manifests.ts";
import { type OperatorScenario, runWithKubectl } from "../support/operator-scenario.ts";
import { untilAvailable, untilStatus } from "../support/operator-status.ts";

/** What differs between kinds of clusters in the installation procedure. */
interface Kind {
  kind: ClusterKind;
  /** Lines to add to the networking section of the custom resources, besides the one that selects eBPF. */
  also?: string[];
  proxy: Proxy;
}

/** The row of the specification's table about the service proxy. */
interface Proxy {
  /** What its status tells people to do once eBPF serves. */
  says: RegExp;
  byHand?: (story: OperatorScenario, told: string) => Promise<void>;
  /** What its status says when that is done, and what is then there: its node selector, and on how many nodes it runs. */
  ends: RegExp;
  left: { selector: object; nodes: number } | "no service proxy";
  /** Why the way back to the nftables data plane is barred, and what opens it. */
  barred?: { reason: string; byHand: (story: OperatorScenario, told: string) => Promise<void> };
  /** What its status says when the operator was asked to look after it. */
  managed: { available: boolean; says: RegExp };
}

const NODES = 2;
const RUNS = { selector: { "kubernetes.io/os": "linux" }, nodes: NODES };
const PARKED = { selector: { "kubernetes.io/os": "linux", "non-vendor": "true" }, nodes: 0 };

/** Runs the command that a status tells, as somebody who copies it from there. */
const asTold = async ({ kubectl }: OperatorScenario, told: string) => void (await kubectl.ok(...commandIn(told)));

/** Edits the configuration of the cluster tool, and rolls it out: our stand-in for the tool's own command. */
const withTheTool = (enabled: boolean) => async (story: OperatorScenario) => {
  const { kubectl } = story;
  const map = ["-n", "kube-system", "get", "configmap", "cluster-configuration", "-o"];
  const before = await kubectl.ok(...map, "jsonpath={.data.cluster\\.yaml}");
  const data = { "cluster.yaml": before.replace(/enabled: \w+/, `enabled: ${enabled}`) };
  const patch = JSON.stringify({ metadata: { annotations: { "local.vendor.io/rollout": `proxy-${enabled}` } }, data });
  await kubectl.ok("-n", "kube-system", "patch", "configmap", "cluster-configuration", "--type=merge", "-p", patch);
};

const PARKED_BY_SELECTOR: Proxy = {
  says: /^serviceProxyManagement is Disabled\. kube-proxy still runs, .* Fix: kubectl -n kube-system patch /,
  byHand: asTold,
  ends: /kube-proxy does not run\.$/,
  left: PARKED,
  barred: { reason: "ServiceProxyParked", byHand: asTold },
  managed: { available: true, says: /kube-proxy is disabled/ },
};

const RULES_LEFT_ALONE: Proxy = {
  says: /Fix: kubectl patch dataplaneconfigurations\.crd\.vendor\.io default /,
  byHand: asTold,
  ends: /its rules are kept/,
  left: RUNS,
  managed: { available: true, says: /its rules are kept/ },
};

const KINDS: Kind[] = [
  { kind: "generic", proxy: PARKED_BY_SELECTOR },
  {
    kind: "iac",
    proxy: {
      says: /set kubeProxy.enabled to false in the cluster configuration, then run the tool's cluster update/,
      byHand: withTheTool(false),
      ends: /kube-proxy does not run\.$/,
      left: "no service proxy",
      barred: { reason: "ServiceProxyMissing", byHand: withTheTool(true) },
      managed: {
        available: false,
        says: /The cluster tool manages kube-proxy.*then run the tool's cluster update/,
      },
    },
  },
  {
    kind: "openshift",
    proxy: {
      says: /kube-proxy does not run\.$/,
      ends: /kube-proxy does not run\.$/,
      left: "no service proxy",
      managed: { available: true, says: /there is no kube-proxy/ },
    },
  },
  { kind: "aks", proxy: RULES_LEFT_ALONE },
  // Its Bottlerocket-like node image keeps volume plugins elsewhere.
  { kind: "eks", also: ["flexVolumePath: /var/lib/kubelet/plugins"], proxy: PARKED_BY_SELECTOR },
  { kind: "mke", proxy: RULES_LEFT_ALONE },
];

const SWITCH_TO_EBPF = '{"spec":{"vendorNetwork":{"linuxDataplane":"BPF","hostPorts":null}}}';
const SWITCH_BACK = '{"spec":{"vendorNetwork":{"linuxDataplane":"Nftables"}}}';
const HAND_THE_PROXY_OVER = '{"spec":{"vendorNetwork":{"serviceProxyManagement":"Enabled"}}}';

const patchInstallation = async ({ kubectl }: OperatorScenario, patch: string) =>
  void (await kubectl.ok("patch", "installation", "default", "--type=merge", "-p", patch));

async function expectProxy({ kubectl }: OperatorScenario, expected: Proxy["left"]): Promise<void> {
  const get = ["-n", "kube-system", "get", "daemonset", "kube-proxy"];
  if (expected === "no service proxy") {
    expect(await kubectl.refused(...get)).toContain("not found");
    return;
  }
  await kubectl.ok("-n", "kube-system", "rollout", "status", "daemonset", "kube-proxy", "--timeout=60s");
  const selector = await kubectl.ok(...get, "-o", "jsonpath={.spec.template.spec.nodeSelector}");
  const nodes = await kubectl.ok(...get, "-o", "jsonpath={.status.desiredNumberScheduled}");
  expect({ selector: JSON.parse(selector), nodes: Number(nodes) }).toEqual(expected);
}

describe.each(KINDS)(
  "installing with kubectl alone, with eBPF from the start, on $kind",
  ({ kind, also = [], proxy }) => {
    const story = runWithKubectl({ kind, nodes: NODES });
    const { step } = story;

    step("2: the endpoint map says where the API server really is, before anything else is there", async () => {
      const { kubectl, cluster } = story;
      await kubectl.ok("create", "namespace", "vendor-operator");
      const map = endpointMap(kind, cluster);
      if (!map) return;
      const said = await kubectl.ok("apply", "-f", kubectl.file("endpoint-map.yaml", map));
      expect(said).toBe("configmap/orchestrator-services-endpoint created\n");
    });

    step("3: definitions and the operator, without the custom resources", async () => {
      const { kubectl } = story;
      const definitions = await kubectl.ok("apply", "--server-side", "-f", resolve("manifests/operator-crds.yaml"));
      expect(definitions).toContain("installations.operator.vendor.io serverside-applied");
      const operator = await kubectl.ok("apply", "--server-side", "-f", resolve("manifests/vendor-operator.yaml"));
      expect(operator).toContain("deployment.apps/vendor-operator serverside-applied");
    });

    step("4: in AWS-like clouds the operator is told the cloud's name server", async () => {
      const { kubectl } = story;
      if (kind === "iac" || kind === "eks") {
        await kubectl.ok("-n", "vendor-operator", "patch", "deployment", "vendor-operator", "-p", DNS_PATCH);
      }
      const rollout = ["-n", "vendor-operator", "rollout", "status", "deployment", "vendor-operator", "--timeout=60s"];
      expect(await kubectl.ok(...rollout)).toContain("successfully rolled out");
      expect((await kubectl.run(["get", "vendorstatus"])).stdout).toBe("");
    });

    step("5 and 6: one line is added to the custom resources, and they are created", async () => {
      const { kubectl } = story;
      const edited = customResources("linuxDataplane: BPF", ...also);
      const said = await kubectl.ok("create", "-f", kubectl.file("custom-resources.yaml", edited));
      expect(said).toBe(
        "installation.operator.vendor.io/default created\napiserver.operator.vendor.io/default created\n",
      );
    });

    step("7: the status resources are watched until the installation is complete", async () => {
      const { kubectl } = story;
      const watching = kubectl.start("get", "vendorstatus", "-w");
      await watching.line(/^NAME +AVAILABLE +PROGRESSING +DEGRADED +SINCE +MESSAGE$/);
      for (const part of ["network", "ippools", "apiserver"]) {
        await watching.line(new RegExp(`^${part} +True +False +False`));
      }
      await watching.stop();
      await kubectl.ok("wait", "--for=condition=Ready", "installation/default", "--timeout=60s");
      expect(await kubectl.ok("get", "installation")).toMatch(/^default +BPF +v3\.31\.3 +True +False +False/m);
      const asked = await kubectl.ok("get", "installation", "default", "-o", "jsonpath={.spec.vendorNetwork}");
      expect(Object.keys(JSON.parse(asked)).sort()).toEqual(
        ["linuxDataplane", "serviceProxyManagement", ...also.map((line) => line.split(":", 1)[0])].sort(),
      );
    });

    step("the v3 API answers, and what was not asked for says so", async () => {
      const { kubectl } = story;
      expect(await kubectl.ok("get", "ippools.vendor.io", "-o", "name")).toMatch(/^ippool\.vendor\.io\//);
      const table = await kubectl.ok("get", "vendorstatus", "flow-logs", "flow-ui");
      expect(table).toMatch(/^flow-logs +False +False +False/m);
      const path = "jsonpath={.status.conditions[?(@.type=='Available')].reason}";
      expect(await kubectl.ok("get", "vendorstatus", "flow-ui", "-o", path)).toBe("NotInstalled");
    });

    step("8: the status of the service proxy tells what is left to do about it, and that is done", async () => {
      const { client } = story.cluster;
      const told = await untilStatus(client, "service-proxy", ({ message }) => proxy.says.test(message));
      await proxy.byHand?.(story, told.message);
      await untilStatus(client, "service-proxy", ({ message }) => proxy.ends.test(message));
      await expectProxy(story, proxy.left);
    });

    step("back to the nftables data plane: not before a service proxy serves again", async () => {
      const { client } = story.cluster;
      await patchInstallation(story, SWITCH_BACK);
      if (proxy.barred) {
        const { reason, byHand } = proxy.barred;
        const told = await untilStatus(client, "network", (status) => status.degraded && status.reason === reason);
        expect(told.message).toMatch(/^eBPF stays enabled/);
        await byHand(story, told.message);
      }
      expect((await untilAvailable(client, "network")).message).toMatch(/^The nftables data plane runs on 2 nodes\./);
      await expectProxy(story, proxy.left === "no service proxy" && !proxy.barred ? proxy.left : RUNS);
    });

    step(
      "the merge patch of the specification switches to eBPF, and the operator looks after the proxy if asked",
      async () => {
        const { client } = story.cluster;
        await patchInstallation(story, HAND_THE_PROXY_OVER);
        await patchInstallation(story, SWITCH_TO_EBPF);
        expect((await untilAvailable(client, "network")).message).toMatch(/^eBPF runs on 2 nodes\./);
        const { available, says } = proxy.managed;
        await untilStatus(client, "service-proxy", (told) => told.available === available && says.test(told.message));
        await expectProxy(story, kind === "iac" ? RUNS : proxy.left);
        expect(await story.kubectl.ok("get", "installation")).toMatch(/^default +BPF +v3\.31\.3 +True/m);
      },
    );

    step("and back: the operator brings the proxy back first", async () => {
      const { client } = story.cluster;
      await patchInstallation(story, SWITCH_BACK);
      expect((await untilAvailable(client, "network")).message).toMatch(/^The nftables data plane runs on 2 nodes\./);
      await untilStatus(client, "service-proxy", ({ available }) => available);
      await expectProxy(story, kind === "openshift" ? proxy.left : RUNS);
      expect(await story.kubectl.ok("get", "installation")).toMatch(/^default +Nftables +v3\.31\.3 +True/m);
    });
  },
);
