import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { KubeObject } from "../src/api/object.ts";
import type { Client } from "../src/cluster/client.ts";
import { isConflict } from "../src/cluster/failures.ts";
import { NODES } from "../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../src/local/cluster.ts";
import { findKubectls } from "../test/support/kubectl.ts";
import { median, type Row } from "./run.ts";

const ROUNDS = 25;

const NODE = ["-e", "0"];
const COMMANDS = {
  "vendorctl version --client": ["bin/vendorctl", "version", "--client"],
  "vendorctl --help": ["bin/vendorctl", "--help"],
  "node dist/main.js version --client": ["dist/main.js", "version", "--client"],
};

/** How long a person waits: for the simplest answers beside what Node takes to start, and for checks of a big cluster beside kubectl. */
export async function run(): Promise<Row[]> {
  return [...startUp(), ...(await checks())];
}

function startUp(): Row[] {
  const times = new Map<string, number[]>();
  // One run of each in turn, so that a busy moment of the machine slows all of them alike. The first round only warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, args] of Object.entries({ node: NODE, ...COMMANDS })) {
      const took = timeOf(args);
      if (round > 0) times.set(name, [...(times.get(name) ?? []), took]);
    }
  }
  const beside = { name: "node -e 0", value: median(times.get("node")!) };
  return Object.keys(COMMANDS).map((name) => ({ name, value: median(times.get(name)!), unit: "ms", beside }));
}

function timeOf(args: string[]): number {
  const started = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`node ${args.join(" ")} ended with ${status}: ${stderr}`);
  return performance.now() - started;
}

const NODE_COUNT = 1_000;
const CHECK_ROUNDS = 9;

/** All checks of a thousand nodes, in a process of its own, against a server in this one; kubectl asks the same server. */
async function checks(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "bench-cli-"));
  const cluster = await startCluster({ name: "bench", kind: "generic", nodes: 1 });
  try {
    await addNodes(cluster, NODE_COUNT - 1);
    const kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, cluster.kubeconfig);
    const check = ["bin/vendorctl", "check", "--pre", "--no-probe", "-o", "json", "--kubeconfig", kubeconfig];
    const kubectl = findKubectls().at(-1);
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let round = 0; round <= CHECK_ROUNDS; round++) {
      const took = await timeOfCall(process.execPath, check);
      const beside = kubectl
        ? await timeOfCall(kubectl.path, ["get", "nodes", "-o", "json", "--kubeconfig", kubeconfig])
        : 0;
      if (round === 0) continue;
      ours.push(took);
      theirs.push(beside);
    }
    const name = `vendorctl check --pre, ${NODE_COUNT} nodes`;
    const beside = kubectl && { name: "kubectl get nodes -o json", value: median(theirs) };
    return [{ name, value: median(ours), unit: "ms", ...(beside ? { beside } : {}) }];
  } finally {
    await cluster.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Nodes on paper only: as the first one is, but for their names. */
async function addNodes({ client }: LocalCluster, count: number): Promise<void> {
  const [first] = (await client.list<KubeObject>(NODES)).items;
  const { labels = {} } = first!.metadata;
  const { "node-role.kubernetes.io/control-plane": _, ...worker } = labels;
  for (let index = 0; index < count; index++) {
    const name = `paper-${index}`;
    const metadata = { name, labels: { ...worker, "kubernetes.io/hostname": name } };
    await client.create(NODES, { apiVersion: "v1", kind: "Node", metadata, spec: {} });
    await report(client, name, first!["status"]);
  }
}

/** The controllers write to a new node too; whoever comes second tries again. */
async function report(client: Client, name: string, status: unknown): Promise<void> {
  try {
    await client.patch(NODES, { name }, { type: "merge", patch: { status } }, { subresource: "status" });
  } catch (error) {
    if (!isConflict(error)) throw error;
    await report(client, name, status);
  }
}

const call = promisify(execFile);
const MAX_OUTPUT = 64 * 1024 * 1024;

async function timeOfCall(program: string, args: string[]): Promise<number> {
  const started = performance.now();
  await call(program, args, { maxBuffer: MAX_OUTPUT });
  return performance.now() - started;
}
