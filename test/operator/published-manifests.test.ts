import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { manifestVariants } from "../../src/operator/published/manifest-variants.ts";
import { findKubectls, type Kubectl, openKubectl } from "../support/kubectl.ts";

const program = findKubectls().at(-1);
const NODES = 2;
const IN_SYSTEM = ["-n", "kube-system"];

/** What is installed without an operator: each published manifest as it is, on a cluster of its own. */
describe.each(manifestVariants(vendorNames))("installing $file with kubectl alone", (variant) => {
  let cluster: LocalCluster | undefined;
  let started: Kubectl | undefined;
  const daemonSet = variant.networking === "overlay" ? "vendor-overlay" : "vendor-node";

  beforeAll(async () => {
    if (!program) return;
    // Where only policy is ours, another plugin is there before.
    const cni = variant.networking === "foreign" ? { cni: "preinstalled" as const } : {};
    cluster = await startCluster({ name: "manifests", kind: "generic", nodes: NODES, ...cni });
    started = openKubectl(program, cluster.kubeconfig);
  });
  afterAll(async () => {
    started?.close();
    await cluster?.close();
  });

  const step = (title: string, body: (kubectl: Kubectl) => Promise<void>) =>
    it(title, async ({ skip }) => {
      if (!started) return skip("needs kubectl");
      await body(started);
    });

  step("takes the file whole, and takes it again without changing a thing", async (kubectl) => {
    const apply = ["apply", "--server-side", "--force-conflicts", "-f", resolve("manifests", variant.file)];
    expect(await kubectl.ok(...apply)).toContain(`daemonset.apps/${daemonSet} serverside-applied`);
    await kubectl.ok(...apply);
    const generation = ["get", "daemonset", ...IN_SYSTEM, daemonSet, "-o", "jsonpath={.metadata.generation}"];
    expect(await kubectl.ok(...generation)).toBe("1");
  });

  step("runs an agent of two containers on every node", async (kubectl) => {
    const path = "jsonpath={range .items[*]}{.status.phase}:{range .spec.containers[*]}{.name},{end} {end}";
    const pods = ["get", "pods", ...IN_SYSTEM, "-l", `k8s-app=${daemonSet}`, "-o", path];
    const beside = variant.networking === "overlay" ? "overlay" : "install-cni";
    await expect.poll(() => kubectl.ok(...pods)).toBe(`Running:vendor-node,${beside}, `.repeat(NODES));
  });

  if (variant.datastore === "api") {
    step("runs controllers whose rights in that namespace are enough", async (kubectl) => {
      const rollout = ["rollout", "status", ...IN_SYSTEM, "deployment", "vendor-kube-controllers", "--timeout=60s"];
      expect(await kubectl.ok(...rollout)).toContain("successfully rolled out");
    });
  }
});
