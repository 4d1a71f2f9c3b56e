import type { KubeObject } from "../../api/object.ts";
import type { DaemonSetOverrides, DeploymentOverrides } from "../../api/resources/workload-overrides.ts";

/** As much of a pod's template as people may change. */
export interface PodTemplate {
  metadata: { labels: Record<string, string>; annotations?: Record<string, string> };
  spec: PodSpec;
}

export interface PodSpec {
  nodeSelector?: Record<string, string>;
  containers: readonly object[];
  initContainers?: readonly object[];
  affinity?: object;
  [field: string]: unknown;
}

type Overrides = NonNullable<(DaemonSetOverrides & DeploymentOverrides)["spec"]>;
type TemplateOverrides = NonNullable<Overrides["template"]>;
type PodOverrides = NonNullable<TemplateOverrides["spec"]>;
type ContainerOverrides = PodOverrides["containers"];

/** Labels and annotations are added; where the operator has the key, its value stays: selectors, roll-outs and status depend on it. */
export function withMetadata<T extends KubeObject["metadata"] | PodTemplate["metadata"]>(
  own: T,
  overrides: TemplateOverrides["metadata"] = {},
): T {
  const { labels, annotations } = overrides;
  return {
    ...own,
    ...(labels ? { labels: { ...labels, ...own.labels } } : {}),
    ...(annotations ? { annotations: { ...annotations, ...own.annotations } } : {}),
  };
}

export function withTemplate(own: PodTemplate, overrides: TemplateOverrides = {}): PodTemplate {
  const { containers, initContainers, nodeSelector, ...inPlace } = overrides.spec ?? {};
  return {
    metadata: withMetadata(own.metadata, overrides.metadata),
    spec: {
      ...own.spec,
      ...inPlace,
      ...(nodeSelector ? { nodeSelector: { ...nodeSelector, ...own.spec.nodeSelector } } : {}),
      ...(own.spec.initContainers
        ? { initContainers: own.spec.initContainers.map(withResources(initContainers)) }
        : {}),
      containers: own.spec.containers.map(withResources(containers)),
    },
  };
}

function withResources(overrides: ContainerOverrides = []): (container: object) => object {
  return (container) => {
    const set = overrides.find((one) => "name" in container && container.name === one.name);
    return set ? { ...container, resources: set.resources } : container;
  };
}

interface NodeTerm {
  matchExpressions?: readonly object[];
}

interface Affinity {
  nodeAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms?: readonly NodeTerm[] } };
}

/** Both hold: a node satisfies one of the terms of people, and what the operator needs. Terms are alternatives, so each gets it. */
export function withNodeTerms(own: Affinity, people: Affinity | undefined): object {
  if (!people) return own;
  const needed = (own.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []).flatMap(
    ({ matchExpressions = [] }) => matchExpressions,
  );
  const { requiredDuringSchedulingIgnoredDuringExecution: required, ...preferred } = people.nodeAffinity ?? {};
  const nodeSelectorTerms = (required?.nodeSelectorTerms ?? [{}]).map((term) => ({
    ...term,
    matchExpressions: [...needed, ...(term.matchExpressions ?? [])],
  }));
  return {
    ...people,
    nodeAffinity: { ...preferred, requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
  };
}
