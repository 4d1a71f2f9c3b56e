import { mkdirSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { CONFIG_MAPS, SERVICES } from "../../src/cluster/kinds.ts";
import { describeKind, type KindScenario } from "../support/kind-scenario.ts";
import { manifest } from "../support/operator-manifests.ts";
import { settledState, untilState } from "../support/procedure-state.ts";

/** Refused with a code and a fix, and the cluster is what it was. */
async function refused(story: KindScenario, argv: string[], code: string, exit = 3): Promise<string> {
  const before = await settledState(story.cluster.client);
  const ran = await story.run(...argv);
  expect(ran.err).toContain(`[${code}]`);
  expect(ran.exit).toBe(exit);
  expect(await untilState(story.cluster.client, before)).toEqual([]);
  return ran.err;
}

describe("a plain cluster", () => {
  const story = describeKind({ kind: "generic" });

  it.each<[what: string, argv: string[], code: string, exit?: number]>([
    ["the API server's cluster IP", ["install", "-y", "--api-server", "10.96.0.1:443"], "ENDPOINT_HOST_CLUSTER_IP"],
    [
      "the name of its service",
      ["install", "-y", "--api-server", "kubernetes.default.svc:443"],
      "ENDPOINT_HOST_CLUSTER_IP",
    ],
    [
      "an address that means every machine itself",
      ["install", "-y", "--api-server", "localhost:6443"],
      "ENDPOINT_HOST_LOOPBACK",
    ],
    ["another of those", ["install", "-y", "--api-server", "127.0.0.1:6443"], "ENDPOINT_HOST_LOOPBACK"],
    [
      "a kind it is not, where the kind needs another address",
      ["install", "-y", "--kind", "mke", "--api-server", "lb.example.com:6443"],
      "ENDPOINT_HOST_NOT_FOR_KIND",
    ],
    ["a field that is none", ["install", "-y", "--set", "spec.vendorNetwork.mtuu=1400"], "INSTALL_EDIT_REFUSED", 64],
    [
      "a value the field does not take",
      ["install", "-y", "--set", "spec.vendorNetwork.mtu=tiny"],
      "INSTALL_EDIT_REFUSED",
      64,
    ],
    [
      "a pool outside the cluster's pod prefix",
      ["install", "-y", "--pod-cidr", "10.99.0.0/16"],
      "INSTALL_EDIT_REFUSED",
      64,
    ],
    [
      "a place files cannot be read from",
      ["install", "-y", "--manifest-url", "ftp://example.com"],
      "MANIFEST_URL_UNUSABLE",
      64,
    ],
    ["a place without the files", ["install", "-y", "--manifest-url", "file:///nowhere"], "MANIFEST_NOT_FOUND", 1],
    [
      "files in another dialect than the tool brought",
      ["--names", "calico", "install", "-y"],
      "MANIFEST_MISSING_FROM_PACKAGE",
      1,
    ],
    [
      "a file that cannot be written",
      ["plan", "install", "--save-custom-resources", "/nowhere/at/all.yaml"],
      "FILE_NOT_WRITTEN",
      1,
    ],
    ["nobody to say yes", ["install"], "CONFIRMATION_NEEDED", 64],
    ["a switch of what is not installed", ["switch", "--to", "BPF", "-y"], "NOT_INSTALLED"],
    ["parking the only one who serves", ["proxy", "disable", "-y"], "PROXY_STILL_NEEDED"],
    ["taking away what is not there", ["uninstall", "-y"], "UNINSTALL_NOTHING"],
  ])("%s is refused, and nothing is changed", async (_what, argv, code, exit) => {
    await refused(story, argv, code, exit);
  });

  it.each<[what: string, text: string, code: string]>([
    ["that are no YAML", "a: [", "MANIFEST_NOT_YAML"],
    ["that are no objects", "- just\n- a list\n", "MANIFEST_NOT_OBJECTS"],
    ["without an Installation", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n", "MANIFEST_WITHOUT_KIND"],
  ])("published custom resources %s are refused", async (_what, text, code) => {
    const folder = story.file("published");
    mkdirSync(`${folder}/manifests`, { recursive: true });
    for (const name of ["operator-crds.yaml", "vendor-operator.yaml"])
      writeFileSync(`${folder}/manifests/${name}`, manifest(name));
    writeFileSync(`${folder}/manifests/custom-resources.yaml`, text);
    await refused(story, ["install", "-y", "--manifest-url", pathToFileURL(folder).href], code, 1);
  });

  it("a service with SCTP, which eBPF cannot carry, is found before anything is made", async () => {
    const service: KubeObject = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "signals", namespace: "default" },
      spec: { ports: [{ port: 9999, protocol: "SCTP" }] },
    };
    await story.cluster.client.create(SERVICES, service);
    expect(await refused(story, ["install", "-y"], "EBPF_SCTP")).toContain("signals");
    await story.cluster.client.delete(SERVICES, { namespace: "default", name: "signals" });
  });
});

describe("a cluster with a node that is too old for eBPF", () => {
  const story = describeKind({ kind: "generic", nodes: 3, oldNodes: 1 });

  it("is refused with the node's name, and installs the nftables data plane instead", async () => {
    expect(await refused(story, ["install", "-y"], "EBPF_KERNEL_TOO_OLD")).toContain("4.15.0-213-generic");
    await story.ok("install", "--dataplane", "standard", "-y");
    expect(await story.looks()).toBe("Nftables on 3 nodes; service proxy on 3 nodes");
    await refused(story, ["switch", "--to", "BPF", "-y"], "EBPF_KERNEL_TOO_OLD");
  });
});

describe("a person who will not be told", () => {
  const unheard = ["EBPF_KERNEL_TOO_OLD", "AGENT_PROGRAMS_REFUSED"].flatMap((code) => ["--suppress", code]);
  const story = describeKind({ kind: "generic", nodes: 3, oldNodes: 1 });
  const { step, ok, run, looks } = story;

  step("may suppress the checks, and is then told which node it is and why, with the proxy untouched", async () => {
    await ok("install", "--dataplane", "standard", "-y");
    const { exit, err } = await run("switch", "--to", "BPF", ...unheard, "-y");
    expect(exit).toBe(1);
    expect(err).toMatch(/node story-worker-2 cannot run eBPF: .* is too old.* \[STEP_NODE_REFUSES_EBPF\]/);
    expect(await looks()).toBe("Nftables on 3 nodes; service proxy on 3 nodes");
  });

  step("and gets back to where it was", async () => {
    await ok("rollback", "-y");
    expect(await ok("proxy", "status")).toMatch(/verdict: +ok/);
    await expect.poll(looks).toBe("Nftables on 3 nodes; service proxy on 3 nodes");
  });
});

describe("a cluster that tells no stable address of its API server", () => {
  const story = describeKind({ kind: "generic" });
  const { step, ok, plan, looks } = story;

  step("gets the nftables data plane, and is told how to switch later", async () => {
    const { client } = story.cluster;
    const untold = {
      "kubeadm-config": { ClusterConfiguration: "kind: ClusterConfiguration\n" },
      "kube-proxy": { "kubeconfig.conf": "kind: Config\n" },
    };
    for (const [name, data] of Object.entries(untold)) {
      await client.patch(CONFIG_MAPS, { namespace: "kube-system", name }, { type: "merge", patch: { data } });
    }
    const { plan: made } = await plan("install");
    expect(made.title).toContain("with the nftables data plane");
    expect(made.notes.join("\n")).toMatch(
      /eBPF cannot be enabled at install time .* Later: vendorctl switch --to bpf --api-server HOST:PORT/,
    );
    await refused(story, ["install", "--dataplane", "BPF", "-y"], "INSTALL_NO_STABLE_ADDRESS");
    await ok("install", "-y");
    expect(await looks()).toBe("Nftables on 2 nodes; service proxy on 2 nodes");
  });

  step("later, with the address given, it is switched", async () => {
    await refused(story, ["switch", "--to", "BPF", "-y"], "SWITCH_NO_ADDRESS");
    await ok("switch", "--to", "BPF", "--api-server", `api.story.internal:${new URL(story.cluster.url).port}`, "-y");
    expect(await looks()).toBe("eBPF on 2 nodes; service proxy parked");
  });
});

describe("a cluster with a Windows node", () => {
  const story = describeKind({ kind: "aks", nodes: 3, windowsNodes: 1 });
  it("is a mixed one, which eBPF does not support", async () => {
    expect(await refused(story, ["install", "-y"], "EBPF_MIXED_CLUSTER")).toContain("akswin");
  });
});

describe("a cluster that keeps its resources in etcd", () => {
  const story = describeKind({ kind: "generic", installed: { version: "v3.27", method: "manifest-etcd" } });
  it("cannot be switched to eBPF, because that datastore cannot watch services", async () => {
    await refused(story, ["switch", "--to", "BPF", "-y"], "EBPF_NEEDS_KUBE_DATASTORE");
  });
  it("nor installed over, nor taken away as if the operator had made it", async () => {
    await refused(story, ["install", "--dataplane", "standard", "-y"], "INSTALL_OTHER_METHOD");
    await refused(story, ["uninstall", "-y"], "UNINSTALL_BY_HAND");
  });
});

describe("a cluster that shows what kind it is", () => {
  const story = describeKind({ kind: "eks" });
  it("a kind that contradicts what shows is refused", async () => {
    await refused(story, ["install", "-y", "--kind", "aks"], "OBSERVE_KIND_CONTRADICTED", 64);
  });
});
