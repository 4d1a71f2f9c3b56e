import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { expect } from "vitest";
import type { Settings } from "./config.ts";

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

interface Conditions {
  conditions: { type: string; status: string }[];
}

interface NodeStatus extends Conditions {
  addresses: { type: string; address: string }[];
}

interface PodStatus extends Conditions {
  phase: string;
  podIPs: { ip: string }[];
}

interface DaemonSetStatus {
  observedGeneration: number;
  desiredNumberScheduled: number;
  updatedNumberScheduled: number;
  numberReady: number;
}

/** What the test reads of the objects that it lists. */
export interface KubeObject {
  metadata: { name: string; namespace?: string; generation?: number; deletionTimestamp?: string };
  spec: { nodeName?: string; hostNetwork?: boolean; clusterIP?: string };
  status: Partial<NodeStatus & PodStatus & DaemonSetStatus>;
}

/** A cluster as its administrator has it: a kubeconfig, vendorctl and kubectl. */
export interface Cluster {
  /** What it prints; fails with all it printed unless it exits with 0. */
  vendorctl(...args: string[]): Promise<string>;
  kubectl(...args: string[]): Promise<string>;
  helm(...args: string[]): Promise<string>;
  /** The exit status is the caller's to judge. */
  tryVendorctl(...args: string[]): Promise<Ran>;
  tryKubectl(...args: string[]): Promise<Ran>;
  apply(...objects: object[]): Promise<void>;
  list(kind: string, ...args: string[]): Promise<KubeObject[]>;
}

export function openCluster({ kubeconfig, context }: Settings): Cluster {
  const flags = ["--kubeconfig", kubeconfig, ...(context === undefined ? [] : ["--context", context])];
  const helmFlags = ["--kubeconfig", kubeconfig, ...(context === undefined ? [] : ["--kube-context", context])];
  const tryVendorctl = (...args: string[]) => run(process.execPath, [resolve("bin/vendorctl"), ...args, ...flags]);
  const tryKubectl = (...args: string[]) => run("kubectl", [...flags, ...args]);
  const kubectl = async (...args: string[]) => ok(await tryKubectl(...args), `kubectl ${args.join(" ")}`);
  return {
    tryVendorctl,
    tryKubectl,
    kubectl,
    vendorctl: async (...args) => ok(await tryVendorctl(...args), `vendorctl ${args.join(" ")}`),
    helm: async (...args) => ok(await run("helm", [...args, ...helmFlags]), `helm ${args.join(" ")}`),
    async apply(...objects) {
      const text = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
      ok(await run("kubectl", [...flags, "apply", "-f", "-"], text), "kubectl apply");
    },
    async list(kind, ...args) {
      return (JSON.parse(await kubectl("get", kind, "-o", "json", ...args)) as { items: KubeObject[] }).items;
    },
  };
}

/** Runs the command of the user that reboots a node, and returns when the node's kubelet reports a new boot. */
export async function rebootNode(cluster: Cluster, command: string, name: string): Promise<void> {
  const bootOf = async () =>
    (await cluster.tryKubectl("get", "node", name, "-o", "jsonpath={.status.nodeInfo.bootID}")).stdout;
  const before = await bootOf();
  ok(await run("sh", ["-c", `${command} "$0"`, name]), `${command} ${name}`);
  await expect.poll(async () => ["", before].includes(await bootOf()), { message: `${name} boots` }).toBe(false);
}

function ok({ code, stdout, stderr }: Ran, what: string): string {
  if (code !== 0) throw new Error(`${what} exited with ${code}:\n${stdout}${stderr}`);
  return stdout;
}

function run(command: string, args: readonly string[], stdin = ""): Promise<Ran> {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { stdio: "pipe" });
    const said = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said.stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said.stderr += text;
    });
    child.stdin.on("error", () => {}).end(stdin);
    child.on("error", fail).on("close", (code) => done({ code: code ?? 1, ...said }));
  });
}
