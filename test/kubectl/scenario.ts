import { afterAll, beforeAll, describe, it } from "vitest";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { type Kubectl, type KubectlProgram, minorOf, openKubectl } from "../support/kubectl.ts";

export interface Needs {
  /** The minor version of Kubernetes 1 whose kubectl first has what the step shows. */
  since: number;
  /** What older ones lack. */
  what: string;
}

/** One step of a story: what kubectl is asked, and what it must print. Steps run in order on the same cluster. */
export type Step = (title: string, body: (kubectl: Kubectl) => Promise<void>, needs?: Needs) => void;

/** Steps that belong together. A chapter stands alone: it makes what it needs. */
export interface Chapter {
  title: string;
  steps: (step: Step) => void;
}

/** Tells the chapters to one kubectl, on a cluster of its own. */
export function runScenario(program: KubectlProgram, chapters: readonly Chapter[]): void {
  let cluster: LocalCluster | undefined;
  let kubectl: Kubectl;
  beforeAll(async () => {
    cluster = await startCluster({ name: "story", kind: "generic", nodes: 3, cni: "preinstalled" });
    kubectl = openKubectl(program, cluster.kubeconfig);
  });
  afterAll(async () => {
    kubectl?.close();
    await cluster?.close();
  });
  const step: Step = (title, body, needs) =>
    it(title, async ({ skip }) => {
      if (needs) skip(minorOf(program.version) < needs.since, `kubectl ${program.version} has no ${needs.what}`);
      await body(kubectl);
    });
  for (const { title, steps } of chapters) describe(title, () => steps(step));
}
