import { vendorNames } from "../names.ts";
import { type DaemonSetOverrides, type DeploymentOverrides, OVERRIDES_FIELD } from "../resources/workload-overrides.ts";
import { type Problem, reporters } from "./problem.ts";
import { brief, labelKeyProblems, labelValueProblems } from "./values.ts";

export const OVERRIDE_PROBLEMS = {
  OVERRIDE_RESERVED: {
    title: "A label or annotation that the operator sets itself",
    why: "Selectors, roll-outs and status depend on it, and components run on Linux only.",
    fix: "Use another key.",
    rule: "Overrides add labels, annotations and labels of nodes; the operator's own stay.",
  },
} as const;

const at = reporters(OVERRIDE_PROBLEMS);

type Overrides = DaemonSetOverrides | DeploymentOverrides;

/** What people add to a workload of ours, in the resource that requests it. */
export function overridesProblems(overrides: Overrides | undefined, path: string): Problem[] {
  const { metadata, spec } = overrides ?? {};
  const pods = spec?.template;
  const nodes = pods?.spec?.nodeSelector;
  const nodesPath = `${path}.spec.template.spec.nodeSelector`;
  return [
    ...metadataProblems(metadata, `${path}.metadata`),
    ...metadataProblems(pods?.metadata, `${path}.spec.template.metadata`),
    ...labelProblems(nodes, nodesPath),
    ...(nodes?.[OS] === undefined || nodes[OS] === "linux" ? [] : [reserved(OS, nodesPath)]),
  ];
}

/** Of a resource that requests a part by being there. */
export function partOverridesProblems(
  noun: keyof typeof OVERRIDES_FIELD,
  spec: Record<string, unknown> = {},
): Problem[] {
  const field = OVERRIDES_FIELD[noun];
  return overridesProblems(spec[field] as DeploymentOverrides | undefined, `spec.${field}`);
}

const OS = "kubernetes.io/os";

function metadataProblems(metadata: Overrides["metadata"], path: string): Problem[] {
  const { labels = {}, annotations = {} } = metadata ?? {};
  return [
    ...labelProblems(labels, `${path}.labels`),
    ...Object.keys(annotations).flatMap((key) => labelKeyProblems(key, `${path}.annotations`)),
    ...Object.entries({ labels, annotations }).flatMap(([field, map]) =>
      Object.keys(map)
        .filter(isOurs)
        .map((key) => reserved(key, `${path}.${field}`)),
    ),
  ];
}

function labelProblems(labels: Record<string, string> | undefined, path: string): Problem[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...labelKeyProblems(key, path),
    ...labelValueProblems(value, path),
  ]);
}

function reserved(key: string, path: string): Problem {
  return at.OVERRIDE_RESERVED(path, `${brief(key)} is set by the operator itself.`);
}

const DOMAIN = vendorNames.groups.served.group;
const OURS = new Set(["k8s-app", "openshift.io/required-scc"]);

function isOurs(key: string): boolean {
  const domain = key.slice(0, Math.max(0, key.indexOf("/")));
  return OURS.has(key) || [DOMAIN, "app.kubernetes.io"].includes(domain) || domain.endsWith(`.${DOMAIN}`);
}
