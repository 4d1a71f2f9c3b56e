import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import type { ClusterKind } from "../../src/api/cluster-kinds.ts";
import { type ClusterOptions, type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { findKubectls, type Kubectl, openKubectl } from "./kubectl.ts";

/** A file as it is published. */
export function manifest(name: string): string {
  return readFileSync(resolve("manifests", name), "utf8");
}

export type StoryCluster = Partial<ClusterOptions> & { kind: ClusterKind };

/** A cluster nobody has installed anything on, and a kubectl for it. */
export interface OperatorStory {
  readonly cluster: LocalCluster;
  readonly kubectl: Kubectl;
}

const program = findKubectls().at(-1);

/**
 * A story told with kubectl on a cluster of its own: its steps are the tests of this suite, in order. Without a kubectl they are
 * skipped, with the reason.
 */
export function tellWithKubectl(options: StoryCluster): OperatorStory & { step: Step } {
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

/** Install step 2: where the API server really is, as each kind of cluster has it. Nothing where none is needed. */
export function endpointMap(kind: ClusterKind, cluster: LocalCluster): string | undefined {
  const { port } = new URL(cluster.url);
  const addresses: Record<ClusterKind, [host: string, port: string] | undefined> = {
    generic: ["api.story.internal", port],
    iac: ["api.internal.story", port],
    openshift: undefined,
    aks: ["story-dns-7c1d2f3a.hcp.westeurope.azmk8s.internal", "443"],
    eks: ["story.gr7.eu-west-1.eks.internal", "443"],
    mke: ["proxy.local", "6444"],
  };
  const address = addresses[kind];
  return address && endpointMapOf(...address);
}

export function endpointMapOf(host: string, port: string): string {
  return `
apiVersion: v1
kind: ConfigMap
metadata:
  name: orchestrator-services-endpoint
  namespace: vendor-operator
data:
  ORCHESTRATOR_SERVICE_HOST: "${host}"
  ORCHESTRATOR_SERVICE_PORT: "${port}"
`;
}

/** Install step 4's patch, as the specification writes it. */
export const DNS_PATCH = JSON.stringify({
  spec: { template: { spec: { dnsConfig: { nameservers: ["169.254.169.253"] } } } },
});

/** Install steps 2 to 4, in one go, for stories that begin after them. */
export async function installOperator({ kubectl, cluster }: OperatorStory, kind: ClusterKind): Promise<void> {
  await kubectl.ok("create", "namespace", "vendor-operator");
  const map = endpointMap(kind, cluster);
  if (map) await kubectl.ok("apply", "-f", kubectl.file("endpoint-map.yaml", map));
  await kubectl.ok("apply", "--server-side", "-f", resolve("manifests/operator-crds.yaml"));
  await kubectl.ok("apply", "--server-side", "-f", resolve("manifests/vendor-operator.yaml"));
  if (kind === "iac" || kind === "eks") {
    await kubectl.ok("-n", "vendor-operator", "patch", "deployment", "vendor-operator", "-p", DNS_PATCH);
  }
}

/** The published custom resources with lines added to the networking section, as somebody with an editor would. */
export function customResources(...lines: string[]): string {
  const published = manifest("custom-resources.yaml");
  return published.replace(/^( {2}vendorNetwork:\n)/m, `$1${lines.map((line) => `    ${line}\n`).join("")}`);
}

/** With flow logs and their page asked for too: the last lines of the file, uncommented. */
export function withFlows(text: string): string {
  const [head = "", tail = ""] = text.split(/^(?=# Flow logs, and)/m);
  return head + tail.replace(/^# (?=---|apiVersion|kind|metadata|spec| {2}name)/gm, "");
}
