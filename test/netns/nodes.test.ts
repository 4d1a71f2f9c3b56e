import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { release } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EVENTS, NODES, PODS } from "../../src/cluster/kinds.ts";
import type { Node, Pod } from "../../src/local/controllers/workload-types.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { findKubectls, type Kubectl, openKubectl } from "../support/kubectl.ts";
import { vendorctl } from "../support/vendorctl.ts";
import { createPod, leftOf, type RealCluster, readyPods, startReal, whyNoRealNodes } from "./real-cluster.ts";

const kubectlProgram = findKubectls().at(-1);

describe.skipIf(whyNoRealNodes)(`nodes that are namespaces${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`, () => {
  let before: ReturnType<typeof leftOf>;
  let cluster: RealCluster;
  let kubectl: Kubectl | undefined;
  beforeAll(async () => {
    before = leftOf("none-yet");
    cluster = await startReal({ nodes: 2 });
    kubectl = kubectlProgram && openKubectl(kubectlProgram, cluster.kubeconfig);
  });
  afterAll(async () => {
    kubectl?.close();
    await cluster?.close();
    expect(leftOf(cluster.name)).toEqual(before);
  });

  it("say of themselves what this machine is, and reach the API server and each other", async () => {
    const { items } = await cluster.client.list<Node>(NODES);
    expect(items.map(({ status }) => status?.nodeInfo?.["kernelVersion"])).toEqual([release(), release()]);
    const [first, second] = cluster.nodeNames.map((name) => cluster.runtime.machine(name));
    const other = second?.spec.internalIPs[0] as string;
    const ping = `exec 3<>/dev/tcp/172.18.0.1/6443 && ip route get ${other} && ls /sys/class/net && hostname`;
    const ran = await first?.run(["bash", "-c", ping]);
    expect(ran?.code).toBe(0);
    expect(ran?.out).toContain(`${other} dev eth0`);
    expect(ran?.out).toContain(first?.spec.name);
  });

  it("keep pods waiting until a network is installed, and say what for", async () => {
    const node = cluster.nodeNames[0] as string;
    const ready = (await cluster.client.get<Node>(NODES, { name: node })).status?.conditions?.find(
      ({ type }) => type === "Ready",
    );
    expect(ready).toMatchObject({ status: "False", reason: "KubeletNotReady" });
    await createPod(cluster, { name: "waiting", node });
    const events = await eventually(
      async () => (await cluster.client.list(EVENTS, { namespace: "default" })).items,
      (items) => items.some(({ reason }) => (reason as string) === "NetworkNotReady"),
    );
    const why = events.find(({ reason }) => (reason as string) === "NetworkNotReady");
    expect(JSON.stringify(why)).toContain("cni plugin not initialized");
    const pod = await cluster.client.get<Pod>(PODS, { name: "waiting", namespace: "default" });
    expect(pod.status?.containerStatuses?.[0]?.state.waiting?.reason).toBe("ContainerCreating");
    await cluster.client.delete(PODS, { name: "waiting", namespace: "default" });
  });

  it("say of an image that cannot be run here why", async () => {
    const containers = [{ name: "main", image: "registry.example/nothing:1", command: ["/no/such/program"] }];
    await createPod(cluster, { name: "nothing", spec: { hostNetwork: true, containers } });
    const pod = await eventually(
      () => cluster.client.get<Pod>(PODS, { name: "nothing", namespace: "default" }),
      ({ status }) => status?.containerStatuses?.[0]?.state.waiting?.reason === "ImagePullBackOff",
    );
    expect(pod.status?.containerStatuses?.[0]?.state.waiting?.message).toContain(
      'there is no program "/no/such/program" on this machine',
    );
    await cluster.client.delete(PODS, { name: "nothing", namespace: "default" });
  });

  it("run a container's command with its volumes and environment, and count its ends", async () => {
    const script = "cat /settings/greeting; echo $GREETING from $(hostname); touch /var/run/seen/$$; exit 4";
    await cluster.client.create(
      { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true },
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "words", namespace: "default" },
        data: { greeting: "hi\n" },
      },
    );
    await createPod(cluster, {
      name: "once",
      spec: {
        hostNetwork: true,
        restartPolicy: "Never",
        containers: [
          {
            name: "main",
            image: "any",
            command: ["sh", "-c", script],
            env: [{ name: "GREETING", valueFrom: { configMapKeyRef: { name: "words", key: "greeting" } } }],
            volumeMounts: [
              { name: "words", mountPath: "/settings" },
              { name: "seen", mountPath: "/var/run/seen" },
            ],
          },
        ],
        volumes: [
          { name: "words", configMap: { name: "words" } },
          { name: "seen", hostPath: { path: "/var/run/seen", type: "DirectoryOrCreate" } },
        ],
      },
    });
    const pod = await eventually(
      () => cluster.client.get<Pod>(PODS, { name: "once", namespace: "default" }),
      ({ status }) => status?.phase === "Failed",
    );
    expect(pod.status?.containerStatuses?.[0]?.state.terminated?.exitCode).toBe(4);
    const machine = cluster.runtime.machine(pod.spec.nodeName as string);
    expect((await machine.run(["ls", "/run/seen"])).out).toMatch(/^\d+\n$/);
    await cluster.client.delete(PODS, { name: "once", namespace: "default" });
  });

  it("kubectl logs, exec with its exit code and its input, and port-forward", async ({ skip }) => {
    if (!kubectl) return skip("needs kubectl");
    await createPod(cluster, { name: "probe", image: "probe", spec: { hostNetwork: true } });
    await eventually(
      async () => (await kubectl?.run(["logs", "probe"]))?.stdout ?? "",
      (text) => text.includes('"listening"'),
    );
    const words = ["exec", "probe", "--", "sh", "-c", "hostname; echo trouble >&2; exit 3"];
    const ran = await kubectl.run(words);
    expect(ran.code).toBe(3);
    expect(ran.stdout).toMatch(/worker|control-plane/);
    expect(ran.stderr).toContain("trouble");
    const much = "0123456789".repeat(20_000);
    const echoed = await kubectl.run(["exec", "-i", "probe", "--", "cat"], { stdin: much });
    expect(echoed.stdout).toBe(much);
    const forward = kubectl.start("port-forward", "pod/probe", ":8080");
    const line = await forward.line(/^Forwarding from 127\.0\.0\.1:/);
    const port = Number(/:(\d+) ->/.exec(line)?.[1]);
    expect(JSON.parse(await firstLine(port))).toMatchObject({ client: "127.0.0.1", port: 8080 });
    await forward.stop();
    await cluster.client.delete(PODS, { name: "probe", namespace: "default" });
  });

  it("lose a killed container and start it again", async () => {
    await createPod(cluster, { name: "mortal", spec: { hostNetwork: true } });
    const pods = await readyPods(cluster, "default", 1);
    expect(cluster.programs.kill(pods.get("mortal")?.pod.metadata.uid ?? "")).toBe(true);
    await eventually(
      () => cluster.client.get<Pod>(PODS, { name: "mortal", namespace: "default" }),
      ({ status }) => status?.containerStatuses?.[0]?.restartCount === 1 && status.containerStatuses[0].ready,
    );
    await cluster.client.delete(PODS, { name: "mortal", namespace: "default" });
  });
});

describe.skipIf(whyNoRealNodes)(`a cluster that was killed${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`, () => {
  it("is recognised by the next one of its name, and by cluster down; nothing of it is left", async () => {
    const tool = vendorctl();
    const name = `vt${randomBytes(3).toString("hex")}`;
    const before = leftOf(name);
    try {
      const up = ["cluster", "up", "--name", name, "--runtime", "netns", "--nodes", "1", "--detach"];
      expect(await tool.run(...up)).toMatchObject({ status: 0 });
      const record = JSON.parse(readFileSync(join(tool.home, "clusters", name, "cluster.json"), "utf8"));
      process.kill(record.pid, "SIGKILL");
      await eventually(
        async () => leftOf(name)["processes"]?.length,
        (count) => count === before["processes"]?.length,
      );
      expect(leftOf(name)["namespaces"]).not.toEqual(before["namespaces"]);
      expect(await tool.run(...up)).toMatchObject({ status: 0 });
      const again = JSON.parse(readFileSync(join(tool.home, "clusters", name, "cluster.json"), "utf8"));
      process.kill(again.pid, "SIGKILL");
      await eventually(
        async () => leftOf(name)["processes"]?.length,
        (count) => count === before["processes"]?.length,
      );
      expect(await tool.run("cluster", "down", "--name", name)).toMatchObject({ status: 0 });
      expect(leftOf(name)).toEqual(before);
    } finally {
      await tool.clear();
    }
  });
});

function firstLine(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", reject).once("data", (bytes) => {
      socket.destroy();
      resolve(bytes.toString().split("\n")[0] as string);
    });
  });
}
