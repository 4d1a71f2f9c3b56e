import { randomBytes } from "node:crypto";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { announcedDataplane } from "../../src/api/protocol/agent-report.ts";
import { EVENTS, NODES, PODS } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { stateDirectory } from "../../src/local/config.ts";
import { isReady } from "../../src/local/controllers/pod-state.ts";
import type { Node, Pod } from "../../src/local/controllers/workload-types.ts";
import { whyNoContainers } from "../../src/local/runtime/containerd/why-no-containers.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { whyNoPacketFilters } from "../kernel/why-not.ts";
import { createPod, leftOf } from "../netns/real-cluster.ts";
import { findKubectls, type Kubectl, openKubectl } from "../support/kubectl.ts";
import { type Vendorctl, vendorctl } from "../support/vendorctl.ts";

const why = (await whyNoContainers(realKernel)) ?? whyNoPacketFilters();
const reason = why === undefined ? "" : `: needs containerd: ${why}`;
const kubectlProgram = findKubectls().at(-1);
const PATIENCE_MS = 300_000;
const OURS = { namespace: "vendor-system" };
const SYSTEM_CAPABILITIES = { NET_ADMIN: 12, NET_RAW: 13, SYS_ADMIN: 21 };

const newName = () => `vt${randomBytes(3).toString("hex")}`;

describe.skipIf(why)(`nodes that run the image in containers${reason}`, () => {
  const name = newName();
  let before: ReturnType<typeof leftOf>;
  let cluster: LocalCluster;
  let tool: Vendorctl;
  let kubeconfig: string;
  let kubectl: Kubectl | undefined;

  beforeAll(async () => {
    before = leftOf(name);
    cluster = await startCluster({ name, kind: "generic", nodes: 2, runtime: "containerd" });
    tool = vendorctl();
    kubeconfig = join(tool.home, "kubeconfig");
    writeFileSync(kubeconfig, cluster.kubeconfig);
    kubectl = kubectlProgram && openKubectl(kubectlProgram, cluster.kubeconfig);
  });
  afterAll(async () => {
    kubectl?.close();
    await cluster?.close();
    await tool?.clear();
    expect(leftOf(name)).toEqual(before);
  });

  const podsOf = async (app: string) =>
    (await cluster.client.list<Pod>(PODS, { ...OURS, labelSelector: `k8s-app=${app}` })).items;
  const isPrivileged = ({ spec }: Pod) =>
    (spec.containers[0]?.["securityContext"] as { privileged?: boolean } | undefined)?.privileged === true;
  const podNamed = (pod: string) => cluster.client.get<Pod>(PODS, { name: pod, namespace: "default" });
  const isUp = ({ status }: Pod) => status?.containerStatuses?.[0]?.ready === true;
  const said = async ({ metadata, spec }: Pod, command: string) => {
    const container = spec.containers[0]?.name ?? "";
    const session = await cluster.runtime.exec(metadata.uid ?? "", container, { command: ["sh", "-c", command] });
    session.stdin.end();
    let text = "";
    session.stderr.resume();
    for await (const part of session.stdout) text += part;
    return text;
  };
  /** Of the container's own program, which is the first in its namespace. */
  const processOf = async (pod: Pod) => {
    const lines = (await said(pod, "cat /proc/1/status")).split("\n").map((line) => line.split(/:\s*/));
    const { Uid, CapEff, NoNewPrivs, Seccomp } = Object.fromEntries(lines) as Record<string, string>;
    return { user: Uid?.split("\t")[0], capabilities: CapEff, noNewPrivileges: NoNewPrivs, seccomp: Seccomp };
  };
  const agentsSay = async (dataplane: string) => {
    const patch = { spec: { vendorNetwork: { linuxDataplane: dataplane } } };
    const installations = {
      group: "operator.vendor.io",
      version: "v1",
      kind: "Installation",
      plural: "installations",
      namespaced: false,
    };
    await cluster.client.patch(installations, { name: "default" }, { type: "merge", patch });
    await eventually(
      () => podsOf("vendor-node"),
      (agents) =>
        agents.length === 2 &&
        agents.every((agent) => isReady(agent) && announcedDataplane(agent.metadata.annotations) === dataplane),
      PATIENCE_MS,
    );
  };

  it("say which runtime they have", async () => {
    const { items } = await cluster.client.list<Node>(NODES);
    for (const { status } of items) expect(status?.nodeInfo?.["containerRuntimeVersion"]).toMatch(/^containerd:\/\/\d/);
  });

  it("vendorctl installs the service as published, and it becomes available", async () => {
    const { status, out, err } = await tool.run("install", "--yes", "--kubeconfig", kubeconfig);
    expect(`${out}${err}`).toContain("7 done");
    expect(status).toBe(0);
  });

  it("programs have the user, the capabilities and the files their manifests give them", async () => {
    for (const app of ["vendor-kube-controllers", "vendor-apiserver"]) {
      const [pod] = await podsOf(app);
      expect(await processOf(pod!)).toEqual({
        user: "10001",
        capabilities: "0".repeat(16),
        noNewPrivileges: "1",
        seccomp: "2",
      });
      expect(await said(pod!, "touch /file 2>&1")).toContain("Read-only file system");
      expect(await said(pod!, "stat -c %a:%g /var/run/secrets/kubernetes.io/serviceaccount/token")).toBe("640:10001\n");
    }
    const [agent] = await podsOf("vendor-node");
    const { user, capabilities } = await processOf(agent!);
    expect({ user, isPrivileged: BigInt(`0x${capabilities}`) > 2n ** 38n }).toEqual({ user: "0", isPrivileged: true });
  });

  it("pods reach each other across nodes through the chain of plugins as it was written", async () => {
    const [one = "", other = ""] = cluster.nodeNames;
    const readinessProbe = { tcpSocket: { port: 8080 }, periodSeconds: 1 };
    const spec = { containers: [{ name: "main", image: "probe", readinessProbe }] };
    await createPod(cluster, { name: "one", node: one, spec });
    await createPod(cluster, { name: "other", node: other, spec });
    const [from, to] = await Promise.all(
      ["one", "other"].map((pod) => eventually(() => podNamed(pod), isUp, PATIENCE_MS)),
    );
    const address = to?.status?.podIP as string;
    const script = `require("net").connect(8080, "${address}").on("data", (text) => { console.log(String(text)); process.exit(); })`;
    const [line = ""] = (await said(from!, `node -e '${script}'`)).split("\n");
    expect(JSON.parse(line)).toMatchObject({ client: from?.status?.podIP, port: 8080 });
    // The node has no plugin of that name but the one the service brought.
    expect(await said(from!, "cat /sys/class/net/lo/operstate /etc/hostname")).toMatch(/^unknown\none/);
  });

  it("kubectl logs, and exec with its exit code and its input", async ({ skip }) => {
    if (!kubectl) return skip("needs kubectl");
    expect((await kubectl.run(["logs", "one"])).stdout).toContain('"listening"');
    const ran = await kubectl.run(["exec", "one", "--", "sh", "-c", "id -u; echo trouble >&2; exit 3"]);
    expect(ran).toMatchObject({ code: 3, stdout: "10001\n" });
    expect(ran.stderr).toContain("trouble");
    const much = "0123456789".repeat(20_000);
    expect((await kubectl.run(["exec", "-i", "one", "--", "cat"], { stdin: much })).stdout).toBe(much);
  });

  it("a command that fails as a probe keeps a pod from being ready, or has it started again", async () => {
    const container = { name: "main", image: "probe" };
    const readinessProbe = { exec: { command: ["sh", "-c", "echo not yet; [ -e /tmp/yes ]"] }, periodSeconds: 1 };
    const livenessProbe = { exec: { command: ["false"] }, periodSeconds: 1, failureThreshold: 1 };
    await createPod(cluster, { name: "unready", spec: { containers: [{ ...container, readinessProbe }] } });
    await createPod(cluster, { name: "dead", spec: { containers: [{ ...container, livenessProbe }] } });
    await eventually(
      async () => (await cluster.client.list(EVENTS, { namespace: "default" })).items,
      (items) => items.some(({ message }) => String(message) === "Readiness probe failed: not yet"),
      PATIENCE_MS,
    );
    const pod = await podNamed("unready");
    expect(pod.status).toMatchObject({ phase: "Running", containerStatuses: [{ ready: false, started: true }] });
    await said(pod, "touch /tmp/yes");
    await eventually(() => podNamed("unready"), isUp);
    await eventually(
      () => podNamed("dead"),
      ({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0,
      PATIENCE_MS,
    );
  });

  it.each([
    ["an image that is not here", { image: "nginx:1" }, "ImagePullBackOff", "have no registry"],
    [
      "root where it is forbidden",
      { image: "probe", securityContext: { runAsNonRoot: true, runAsUser: 0 } },
      "CreateContainerConfigError",
      "breaks non-root policy",
    ],
    [
      "a program that is not in the image",
      { image: "probe", command: ["/no/such"] },
      "CreateContainerError",
      "no such file or directory",
    ],
  ])("%s is refused, with the reason", async (_, container, waiting, words) => {
    const pod = newName();
    await createPod(cluster, { name: pod, spec: { hostNetwork: true, containers: [{ name: "main", ...container }] } });
    const { status } = await eventually(
      () => podNamed(pod),
      (now) => now.status?.containerStatuses?.[0]?.state.waiting?.reason === waiting,
      PATIENCE_MS,
    );
    expect(status?.containerStatuses?.[0]?.state.waiting?.message).toContain(words);
  });

  it("the other data plane needs three capabilities and no more, and eBPF comes back", async ({ skip }) => {
    if (process.env["CONTAINERS"] !== "full") return skip("a long run: npm run test:long -- containers");
    await agentsSay("Nftables");
    // They act before they are replaced by agents with fewer rights.
    const [agent] = await eventually(
      () => podsOf("vendor-node"),
      (agents) => agents.length === 2 && agents.every((one) => isReady(one) && !isPrivileged(one)),
      PATIENCE_MS,
    );
    const needed = Object.values(SYSTEM_CAPABILITIES).reduce((sum, bit) => sum | (1 << bit), 0);
    expect((await processOf(agent!)).capabilities).toBe(needed.toString(16).padStart(16, "0"));
    await agentsSay("BPF");
  });

  it("is found by cluster down after it was killed, and nothing of it is left", async () => {
    const second = newName();
    const start = leftOf(second);
    // Not built again.
    symlinkSync(join(stateDirectory(), "images"), join(tool.home, "images"));
    expect(
      await tool.run("cluster", "up", "--name", second, "--runtime", "containerd", "--nodes", "1", "--detach"),
    ).toMatchObject({ status: 0 });
    const { pid } = JSON.parse(readFileSync(join(tool.home, "clusters", second, "cluster.json"), "utf8")) as {
      pid: number;
    };
    process.kill(pid, "SIGKILL");
    expect(await tool.run("cluster", "down", "--name", second)).toMatchObject({ status: 0 });
    expect(leftOf(second)).toEqual(start);
  });
});

describe("a machine that cannot run containers", () => {
  it("refuses in one sentence, with what to install", async () => {
    const tool = vendorctl({ asNobody: true });
    try {
      const { status, err } = await tool.run("cluster", "up", "--runtime", "containerd");
      expect(err).toMatch(/containers cannot be run here: .*\[CONTAINERS_IMPOSSIBLE\]/);
      expect(err).toContain("apt-get install containerd runc buildah debootstrap");
      expect(status).toBe(69);
    } finally {
      await tool.clear();
    }
  });
});
