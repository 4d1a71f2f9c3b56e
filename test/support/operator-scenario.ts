import { resolve } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import type { ClusterKind } from "../../src/api/tables/cluster-kinds.ts";
import { type ClusterOptions, type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { findKubectls, type Kubectl, openKubectl } from "./kubectl.ts";
import { DNS_PATCH, endpointMap } from "./operator-manifests.ts";

export type ScenarioCluster = Partial<ClusterOptions> & { kind: ClusterKind };

/** A cluster nobody has installed anything on, and a kubectl for it. */
export interface OperatorScenario {
  readonly cluster: LocalCluster;
  readonly kubectl: Kubectl;
}

const program = findKubectls().at(-1);

/**
 * A story told with kubectl on a cluster of its own: its steps are the tests of this suite, in order. Without a kubectl they are
 * skipped, with the reason.
 */
export function runWithKubectl(options: ScenarioCluster): OperatorScenario & { step: Step } {
  let cluster: LocalCluster | undefined;
  let kubectl: Kubectl | undefined;
  beforeAll(async () => {
    if (!program) return;
    cluster = await startCluster({ name: "story", nodes: 2, ...options });
    kubectl = openKubectl(program, cluster.kubeconfig);
  });
  afterAll(async () => {
    kubectl?.close();
    await cluster?.close();
  });
  return {
    get cluster() {
      return there(cluster);
    },
    get kubectl() {
      return there(kubectl);
    },
    step: (title, body) =>
      it(title, async ({ skip }) => {
        skip(program === undefined, "needs kubectl");
        await body();
      }),
  };
}

/** One step of a story: what somebody does, and what they then see. */
export type Step = (title: string, body: () => Promise<void>) => void;

function there<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the story has not begun");
  return value;
}

/** Install steps 2 to 4, in one go, for stories that begin after them. */
export async function installOperator({ kubectl, cluster }: OperatorScenario, kind: ClusterKind): Promise<void> {
  await kubectl.ok("create", "namespace", "vendor-operator");
  const map = endpointMap(kind, cluster);
  if (map) await kubectl.ok("apply", "-f", kubectl.file("endpoint-map.yaml", map));
  await kubectl.ok("apply", "--server-side", "-f", resolve("manifests/operator-crds.yaml"));
  await kubectl.ok("apply", "--server-side", "-f", resolve("manifests/vendor-operator.yaml"));
  if (kind === "iac" || kind === "eks") {
    await kubectl.ok("-n", "vendor-operator", "patch", "deployment", "vendor-operator", "-p", DNS_PATCH);
  }
}
