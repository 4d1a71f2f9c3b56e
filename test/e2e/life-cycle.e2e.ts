import { describe, expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { type KubeObject, openCluster, rebootNode } from "./cluster.ts";
import { readSettings } from "./config.ts";
import { leftOnNodes } from "./leftovers.ts";
import { methodOf, type Plane } from "./methods.ts";
import { allAnswer, noneAnswers } from "./traffic.ts";
import {
  duplicateAddresses,
  NAMESPACE,
  POLICY,
  podUrls,
  serverUrls,
  workloadObjects,
  workloadsReady,
} from "./workloads.ts";

const settings = readSettings();
const cluster = openCluster(settings);
const image = settings.image ?? `registry.vendor.io/vendor/vendor:v${packageJson.version}`;
const last = settings.methods.at(-1);
const urls = () => serverUrls(cluster);

describe.each(settings.methods)("the service on a cluster, by %s", (name) => {
  const method = methodOf(name, cluster, settings);

  test("the cluster does not have the service yet", async () => {
    const { stdout } = await cluster.tryKubectl("get", "installations.operator.vendor.io", "-o", "name");
    expect(stdout, "uninstall it first").toBe("");
  });

  test("check --pre accepts the cluster", async () => {
    await cluster.vendorctl("check", "--pre", "--dataplane", "standard");
  });

  test("plan install shows the steps and changes nothing", async () => {
    expect(await cluster.vendorctl("plan", "install", "--dataplane", "standard")).toContain("Apply the CRDs");
    expect((await cluster.tryKubectl("get", "namespace", "vendor-operator")).code).not.toBe(0);
  });

  test("install with nftables", () => method.install("standard"));
  restartsPods();
  works("standard");

  test("switch to eBPF", () => method.switchTo("bpf"));
  works("bpf");
  rebootsEachNode();

  test("switch back to nftables", () => method.switchTo("standard"));
  works("standard");
  rebootsEachNode();

  test("uninstall", () => method.uninstall());

  test("nothing is left on the nodes", async () => {
    await workloadsReady(cluster, ["host"]);
    expect(await leftOnNodes(cluster)).toEqual([]);
  });

  test("pods of before can be deleted without the service", async () => {
    await cluster.kubectl("delete", "pod", "-n", NAMESPACE, "-l", "app=stranger", "--timeout=2m");
  });

  test("install again, with eBPF", () => method.install("bpf"));

  restartsPods();
  works("bpf");

  test.skipIf(settings.keep && name === last)("uninstall, and delete the test's own objects", async () => {
    await method.uninstall();
    expect(await leftOnNodes(cluster)).toEqual([]);
    await cluster.kubectl("delete", "namespace", NAMESPACE);
  });
});

/** The same on either data plane, after an install, a switch and a reboot. */
function works(plane: Plane): void {
  test(`every component is Available (${plane})`, async () => {
    await available();
    await expect.poll(() => nodesNotReady(), { message: "nodes that are not ready" }).toEqual([]);
  });

  test(`pods run on every node, each with its own address (${plane})`, async () => {
    await cluster.apply(...workloadObjects(image));
    await workloadsReady(cluster);
    expect(await duplicateAddresses(cluster)).toEqual([]);
  });

  test(`pods and nodes reach pods, Service, node port and host port (${plane})`, async () => {
    await allAnswer(cluster, ["client", "stranger", "host"], urls);
  });

  test(`a NetworkPolicy denies and allows (${plane})`, async () => {
    const pods = async () => podUrls(await urls());
    await cluster.apply(POLICY);
    await noneAnswers(cluster, "stranger", pods);
    await allAnswer(cluster, ["client"], pods);
    await cluster.kubectl("delete", "networkpolicy", "-n", NAMESPACE, POLICY.metadata.name);
    await allAnswer(cluster, ["stranger"], pods);
  });
}

/** Pods that were there when the nodes were cleaned have no network until they are restarted; the name server may be one of them. */
function restartsPods(): void {
  test("pods of an earlier installation are restarted", async () => {
    const service = ["vendor-operator", "vendor-system", "vendor-apiserver"];
    for (const { metadata, spec } of await cluster.list("pods", "-A")) {
      if (spec.hostNetwork || service.includes(metadata.namespace ?? "")) continue;
      await cluster.kubectl("delete", "pod", "-n", metadata.namespace ?? "", metadata.name, "--wait=false");
    }
    await expect.poll(() => podsWithoutReadiness(), { message: "pods that are not ready" }).toEqual([]);
  });
}

function rebootsEachNode(): void {
  test.skipIf(settings.rebootCommand === undefined)("each node works again after a reboot", async () => {
    for (const { metadata } of await cluster.list("nodes")) {
      await rebootNode(cluster, settings.rebootCommand ?? "", metadata.name);
      await expect.poll(() => nodesNotReady(), { message: "nodes that are not ready" }).toEqual([]);
      await workloadsReady(cluster);
      expect(await duplicateAddresses(cluster)).toEqual([]);
      await allAnswer(cluster, ["client", "stranger", "host"], urls);
      await available();
    }
  });
}

/** The last lines name the cause of what is not Available. */
async function available(): Promise<void> {
  const problem = async () => {
    const { code, stdout, stderr } = await cluster.tryVendorctl("status");
    return code === 0 && stdout.startsWith("ok") ? "" : stdout + stderr;
  };
  await expect.poll(problem, { message: "vendorctl status" }).toBe("");
}

async function podsWithoutReadiness(): Promise<string[]> {
  const pods = await cluster.list("pods", "-A");
  const isReady = ({ metadata, status: { phase, conditions = [] } }: KubeObject) =>
    phase === "Succeeded" ||
    (metadata.deletionTimestamp === undefined &&
      conditions.some(({ type, status }) => type === "Ready" && status === "True"));
  return pods.filter((pod) => !isReady(pod)).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
}

async function nodesNotReady(): Promise<string[]> {
  const nodes = await cluster.list("nodes").catch(() => undefined);
  if (nodes === undefined) return ["no answer"];
  const isReady = ({ status: { conditions = [] } }: KubeObject) =>
    conditions.some(({ type, status }) => type === "Ready" && status === "True");
  return nodes.filter((node) => !isReady(node)).map(({ metadata }) => metadata.name);
}
