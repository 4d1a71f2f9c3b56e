import type { ClusterKind } from "../api/cluster-kinds.ts";
import type { KubeObject } from "../api/object.ts";
import type { Observed, PlatformObjects } from "./observed.ts";

interface Sign {
  kind: ClusterKind;
  /** What was seen, for people who wonder why. */
  seen: string;
  found(platform: PlatformObjects, nodes: readonly KubeObject[]): boolean;
}

const CLUSTER_VERSIONS = "clusterversions.config.openshift.io";

/** The marks platforms leave, the surest first. A cluster with none of them is taken as a plain one. */
const SIGNS: readonly Sign[] = [
  {
    kind: "openshift",
    seen: `the definition ${CLUSTER_VERSIONS}`,
    found: ({ definitions }) => definitions.includes(CLUSTER_VERSIONS),
  },
  { kind: "mke", seen: "node labels com.docker.ucp", found: (_, nodes) => nodes.some(labelled("com.docker.ucp")) },
  {
    kind: "eks",
    seen: "the config map aws-auth, or node labels eks.amazonaws.com",
    found: ({ configMaps }, nodes) =>
      configMaps.some(named("aws-auth", "eks-certificates-controller")) || nodes.some(labelled("eks.amazonaws.com/")),
  },
  {
    kind: "aks",
    seen: "node labels kubernetes.azure.com",
    found: (_, nodes) => nodes.some(labelled("kubernetes.azure.com/")),
  },
  { kind: "iac", seen: "node labels kops.k8s.io", found: (_, nodes) => nodes.some(labelled("kops.k8s.io/")) },
];

/** The kind of cluster this is, as far as it shows; nothing where it shows nothing. */
export function detectClusterKind({ platform, nodes }: Pick<Observed, "platform" | "nodes">): ClusterKind | undefined {
  return SIGNS.find((sign) => sign.found(platform, nodes))?.kind;
}

function named(...names: string[]): (object: KubeObject) => boolean {
  return ({ metadata }) => names.includes(metadata.name);
}

function labelled(prefix: string): (object: KubeObject) => boolean {
  return ({ metadata }) => Object.keys(metadata.labels ?? {}).some((label) => label.startsWith(prefix));
}
