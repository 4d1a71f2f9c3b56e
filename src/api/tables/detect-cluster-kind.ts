import type { KubeObject } from "../object.ts";
import type { ClusterKind } from "./cluster-kinds.ts";

/** What a platform shows of itself, as far as kinds are distinguished by it. */
export interface PlatformSigns {
  /** Names of the custom resource definitions there are. */
  definitions: readonly string[];
  /** Of the orchestrator's system namespace. */
  configMaps: readonly KubeObject[];
  nodes: readonly KubeObject[];
}

export interface DetectedKind {
  kind: ClusterKind;
  /** What was seen, for people who wonder why. */
  seen: string;
}

interface Sign extends DetectedKind {
  found(signs: PlatformSigns): boolean;
}

const CLUSTER_VERSIONS = "clusterversions.config.openshift.io";

/** The marks platforms leave, the surest first. A cluster with none of them is taken as a plain one. */
const SIGNS: readonly Sign[] = [
  {
    kind: "openshift",
    seen: `CRD ${CLUSTER_VERSIONS}`,
    found: ({ definitions }) => definitions.includes(CLUSTER_VERSIONS),
  },
  { kind: "mke", seen: "node labels com.docker.ucp", found: ({ nodes }) => nodes.some(labelled("com.docker.ucp")) },
  {
    kind: "eks",
    seen: "ConfigMap aws-auth, or node labels eks.amazonaws.com",
    found: ({ configMaps, nodes }) =>
      configMaps.some(named("aws-auth", "eks-certificates-controller")) || nodes.some(labelled("eks.amazonaws.com/")),
  },
  {
    kind: "aks",
    seen: "node labels kubernetes.azure.com",
    found: ({ nodes }) => nodes.some(labelled("kubernetes.azure.com/")),
  },
  { kind: "iac", seen: "node labels kops.k8s.io", found: ({ nodes }) => nodes.some(labelled("kops.k8s.io/")) },
];

/** The kind of cluster this is, as far as it shows; nothing where it shows nothing. */
export function detectClusterKind(signs: PlatformSigns): DetectedKind | undefined {
  const sign = SIGNS.find(({ found }) => found(signs));
  return sign && { kind: sign.kind, seen: sign.seen };
}

function named(...names: string[]): (object: KubeObject) => boolean {
  return ({ metadata }) => names.includes(metadata.name);
}

function labelled(prefix: string): (object: KubeObject) => boolean {
  return ({ metadata }) => Object.keys(metadata.labels ?? {}).some((label) => label.startsWith(prefix));
}
