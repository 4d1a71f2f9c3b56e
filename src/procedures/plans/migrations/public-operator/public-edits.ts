import { isDeepStrictEqual } from "node:util";
import type { Names } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import type { Consequence } from "../../../../api/tables/fate.ts";
import { fieldAt } from "../../../field-at.ts";
import type { CarriedEdit } from "../../../merge/merge-manifest.ts";
import type { Found } from "../../upgrade/inventory.ts";
import type { VariableOutcome } from "./convert-live.ts";
import { AGENT, containerIn, type LiveManifest, liveVariables, parseCniConfiguration } from "./live-manifest.ts";

interface Context {
  outcomes: readonly VariableOutcome[];
  live: LiveManifest;
  configuration: KubeObject | undefined;
}

const POD = "spec\\.template\\.spec";
const RESOURCES = "Installation spec.componentResources";
const PULL_SECRETS = "Installation spec.imagePullSecrets";

/** By object and path: the field that has the edit's meaning. */
const FIELDS: readonly [object: RegExp, path: RegExp, field: string][] = [
  [/^ConfigMap\/.*calico-config$/, /^data\.veth_mtu$/, "Installation spec.calicoNetwork.mtu"],
  [/^ConfigMap\/.*calico-config$/, /^data\.calico_backend$/, "Installation spec.calicoNetwork.bgp"],
  [/^ConfigMap\/.*calico-config$/, /^data\.typha_service_name$/, "the operator's own Typha"],
  [/^DaemonSet\//, /^spec\.updateStrategy(?!.*maxSurge)/, "Installation spec.nodeUpdateStrategy"],
  [/^DaemonSet\//, new RegExp(`^${POD}\\.volumes\\[flexvol-driver-host\\]`), "Installation spec.flexVolumePath"],
  [/^DaemonSet\//, new RegExp(`^${POD}\\.initContainers\\[flexvol-driver\\]`), "Installation spec.flexVolumePath"],
  [/^DaemonSet\//, new RegExp(`^${POD}\\.containers\\[calico-node\\]\\.resources`), RESOURCES],
  [/^(DaemonSet|Deployment)\//, new RegExp(`^${POD}\\.imagePullSecrets`), PULL_SECRETS],
  [/^Deployment\//, new RegExp(`^${POD}\\.containers\\[calico-(kube-controllers|typha)\\]\\.resources`), RESOURCES],
  [/^Deployment\/.*controllers$/, new RegExp(`^${POD}\\.nodeSelector`), "Installation spec.controlPlaneNodeSelector"],
  [/^Deployment\/.*controllers$/, new RegExp(`^${POD}\\.tolerations`), "Installation spec.controlPlaneTolerations"],
  [
    /^Deployment\/.*typha$/,
    new RegExp(`^${POD}\\.containers\\[calico-typha\\]\\.env\\[TYPHA_PROMETHEUSMETRICS(ENABLED|PORT)\\]`),
    "Installation spec.typhaMetricsPort",
  ],
  [/^Deployment\/.*typha$/, new RegExp(`^${POD}\\.affinity`), "Installation spec.typhaDeployment"],
];

const WRITTEN: Consequence = {
  ...{ fate: "lost", why: "The operator writes its own objects, and its conversion does not read this." },
  todo: "Remove the edit, or accept the loss.",
};

/** Every edit is either carried, and then it is said where to, or listed with what becomes of it. */
export function publicEdits(
  edits: readonly CarriedEdit[],
  context: Context,
  names: Names,
): { carried: { edit: string; field: string }[]; lost: Found[] } {
  const carried: { edit: string; field: string }[] = [];
  const lost: Found[] = [];
  for (const edit of edits) {
    const found = fateOf(edit, context, names);
    if (typeof found === "string") carried.push({ edit: edit.path, field: found });
    else if (found) lost.push(found);
  }
  return { carried, lost };
}

/** The field, the loss, or nothing where the edit is listed among what stops the operator. */
function fateOf(edit: CarriedEdit, context: Context, names: Names): string | Found | undefined {
  const [, object = edit.path, path = ""] = /^([^:]+)(?::(.*))?$/s.exec(edit.path) ?? [];
  const variable = object.startsWith("DaemonSet/") ? variableIn(path) : undefined;
  if (variable) return ofVariable({ ...variable, object }, context, names);
  if (path.endsWith(".image")) return sameSource(edit, context) ? "Installation spec.registry" : loss(object, path);
  if (path === "data.cni_network_config" && sameButFields(edit)) return "Installation spec.calicoNetwork";
  const kept = FIELDS.find(([of, pattern]) => of.test(object) && pattern.test(path))?.[2];
  return kept ?? ofMap(object, path, context) ?? loss(object, path);
}

function variableIn(path: string): { container: string; name: string } | undefined {
  const [, container, name] = new RegExp(`^${POD}\\.\\w+\\[([^\\]]+)\\]\\.env\\[([^\\]]+)\\]`).exec(path) ?? [];
  return container !== undefined && name !== undefined ? { container, name } : undefined;
}

function ofVariable(
  { container, name, object }: { container: string; name: string; object: string },
  { outcomes, configuration, live }: Context,
  names: Names,
): string | Found | undefined {
  const outcome = outcomes.find((one) => one.container === container && one.name === name)?.outcome;
  // Removed by the user: the operator sets it as it sets the rest.
  if (!outcome) return loss(object, `${container}.${name}`, name);
  if ("refused" in outcome) return undefined;
  if ("carried" in outcome) return outcome.carried;
  const { kind } = names.kinds.dataplaneConfiguration;
  const value = liveVariables(live).find((one) => one.container === container && one.name === name)?.value;
  const field = outcome.ignored;
  if (field !== undefined && String(fieldAt(configuration, `spec.${field}`)) === value)
    return `${kind} spec.${field}, which has it already`;
  const todo =
    field === undefined
      ? WRITTEN.todo
      : `Set spec.${field} of ${kind} default to ${value}: then nothing is lost. Or accept the loss.`;
  return { ...WRITTEN, name, at: object, todo };
}

/** A key of a ConfigMap that variables refer to has their meaning. */
function ofMap(object: string, path: string, { live, outcomes }: Context): string | undefined {
  const [, map] = /^ConfigMap\/(?:.*\/)?([^/]+)$/.exec(object) ?? [];
  const [, key] = /^data\.([\w.-]+)$/.exec(path) ?? [];
  if (map === undefined || key === undefined) return undefined;
  const { containers, initContainers = [] } = live.agents.spec.template.spec;
  const referring = [...containers, ...initContainers].flatMap(({ name: container, env = [] }) =>
    env.flatMap(({ name, valueFrom }) => {
      const ref = valueFrom?.configMapKeyRef;
      return ref?.name === map && ref.key === key ? [{ container, name }] : [];
    }),
  );
  const fields = referring.flatMap(({ container, name }) => {
    const outcome = outcomes.find((one) => one.container === container && one.name === name)?.outcome;
    return outcome && "carried" in outcome ? [outcome.carried] : [];
  });
  return referring.length > 0 && fields.length === referring.length ? [...new Set(fields)].join(", ") : undefined;
}

/** Of the same place, under the same tag, as the agent's image. */
function sameSource({ from, to }: CarriedEdit, { live }: Context): boolean {
  const agent = containerIn(live.agents.spec.template.spec, AGENT)?.image ?? "";
  const place = (image: unknown) => String(image).replace(/[^/]*$/, "");
  const tag = (image: unknown) => /:[^/:]+$/.exec(String(image))?.[0];
  return place(to) === place(agent) && tag(from) === tag(to);
}

/** Only what the operator's conversion reads has changed: the MTU, and whether containers forward packets. */
function sameButFields({ from, to }: CarriedEdit): boolean {
  const [before, after] = [from, to].map((text) => parseCniConfiguration(typeof text === "string" ? text : ""));
  if (!before || !after) return false;
  const rest = (one: typeof before) =>
    one.plugins.flatMap(({ mtu: _, container_settings: __, ...other }) => (other.type === "portmap" ? [] : [other]));
  return before.name === after.name && isDeepStrictEqual(rest(before), rest(after));
}

function loss(object: string, path: string, name?: string): Found {
  const [kind = object] = object.split("/");
  // Without the items of lists: one name for all that are alike.
  const field = path.replace(/\[\{.*$/s, "").replace(/\[(?:"(?:[^"\\]|\\.)*"|[^\]]*)\]/g, "");
  return { ...WRITTEN, name: name ?? (field === "" ? kind : `${kind}.${field}`), at: object };
}
