import { isDeepStrictEqual } from "node:util";
import type { Names } from "../../../../api/names.ts";
import type { Consequence } from "../../../../api/tables/fate.ts";
import type { CarriedEdit } from "../../../merge/merge-manifest.ts";
import type { Found } from "../../upgrade/inventory.ts";
import type { Conversion } from "./convert-manifest.ts";
import { pluginIn } from "./manifest-view.ts";
import { VARIABLES } from "./variables.ts";

interface Context {
  /** Variables whose value no field can have. */
  refused: ReadonlySet<string>;
  /** The agent's image; all components come from the same place. */
  image: string | undefined;
}

/** An edit: the kind of its object, and the path in it. */
interface Place {
  kind: string;
  path: string;
  edit: CarriedEdit;
}

const POD = "spec\\.template\\.spec";

/** By kind and path: the field that has the edit's meaning. */
const FIELDS: readonly [kind: string, path: RegExp, field: string][] = [
  ["ConfigMap", /^data\.veth_mtu$/, "Installation spec.vendorNetwork.mtu"],
  ["ConfigMap", /^data\.ipv4_pool_cidr$/, "the IP pools, as they are"],
  ["DaemonSet", /^spec\.updateStrategy(?!.*maxSurge)/, "Installation spec.nodeUpdateStrategy"],
  ["DaemonSet", new RegExp(`^${POD}\\.volumes\\[cni-bin-dir\\]`), "Installation spec.cni.binDir"],
  ["DaemonSet", new RegExp(`^${POD}\\.volumes\\[cni-conf-dir\\]`), "Installation spec.cni.confDir"],
  ["DaemonSet", new RegExp(`^${POD}\\.\\w+\\[[a-z-]+\\]\\.env\\[CNI_BIN_HOST_DIR\\]`), "Installation spec.cni.binDir"],
  [
    "DaemonSet",
    new RegExp(`^${POD}\\.containers\\[vendor-node\\]\\.resources`),
    "Installation spec.componentResources",
  ],
  ["DaemonSet", new RegExp(`^${POD}\\.imagePullSecrets`), "Installation spec.imagePullSecrets"],
  ["Deployment", /^spec\.replicas$/, "Installation spec.controlPlaneReplicas"],
  ["Deployment", new RegExp(`^${POD}\\.nodeSelector`), "Installation spec.controlPlaneNodeSelector"],
  ["Deployment", new RegExp(`^${POD}\\.tolerations`), "Installation spec.controlPlaneTolerations"],
  ["Deployment", new RegExp(`^${POD}\\.containers\\[[a-z-]+\\]\\.resources`), "Installation spec.componentResources"],
  ["Deployment", new RegExp(`^${POD}\\.imagePullSecrets`), "Installation spec.imagePullSecrets"],
];

/** What the overlay of its own has; it stays, as a DaemonSet of its own. */
const OF_OVERLAY = new RegExp(`^data(?:\\.masquerade|\\["net-conf\\.json"\\])$|^${POD}\\.containers\\[overlay\\]`);

const REMOVE = "Remove the edit, or accept the loss.";
const WRITTEN: Consequence = {
  ...{ fate: "lost", why: "The operator writes its own objects, and has no field for this.", todo: REMOVE },
};
const CONTROLLERS: Consequence = {
  ...{ fate: "lost", why: "The operator gives vendor-kube-controllers no variables of yours." },
  todo: "Set the field of KubeControllersConfiguration default that has its meaning, and remove the variable.",
};
const ADDRESSING: Consequence = {
  ...{
    fate: "blocks",
    why: "The operator has addresses from pools with routes of its own, or from the podCIDR of nodes without.",
  },
  todo: "Set NETWORKING_BACKEND and USE_POD_CIDR as one of the published manifests does.",
};

/** Every edit is either carried, and then it is said where to, or listed with what becomes of it. */
export function carriedEdits(
  edits: readonly CarriedEdit[],
  context: Context,
  names: Names,
): Pick<Conversion, "carried" | "notCarried"> {
  const carried: Conversion["carried"] = [];
  const notCarried: Found[] = [];
  for (const edit of edits) {
    const place = placeOf(edit);
    const field = fieldOf(place, context, names);
    if (field !== undefined) carried.push({ edit: edit.path, field });
    else notCarried.push(lossOf(place, names));
  }
  return { carried, notCarried };
}

function placeOf(edit: CarriedEdit): Place {
  const [, kind = edit.path, path = ""] = /^(\w+)\/[^:]+(?::(.*))?$/s.exec(edit.path) ?? [];
  return { kind, path, edit };
}

/** The variable that an edit is of, and the container it is in. */
function variableIn({ path }: Place): { container: string; name: string } | undefined {
  const [, container, name] = new RegExp(`^${POD}\\.\\w+\\[([^\\]]+)\\]\\.env\\[([^\\]]+)\\]`).exec(path) ?? [];
  return container !== undefined && name !== undefined ? { container, name } : undefined;
}

function fieldOf(place: Place, { refused, image }: Context, names: Names): string | undefined {
  const { kind, path, edit } = place;
  if (OF_OVERLAY.test(path)) return "the overlay's DaemonSet and ConfigMap, which stay";
  const variable = variableIn(place);
  if (variable?.container === names.workloads.node) {
    const { name } = variable;
    if (refused.has(name)) return undefined;
    const known = /^DATAPLANE_/.test(name) ? "DataplaneConfiguration spec" : VARIABLES[name]?.field;
    if (known !== undefined) return known;
  }
  if (path.endsWith(".image")) return sameSource(edit, image) ? "Installation spec.registry" : undefined;
  if (kind === "ConfigMap" && path === "data.cni_network_config") {
    return sameButFields(edit) ? "Installation spec.vendorNetwork" : undefined;
  }
  return FIELDS.find(([of, pattern]) => of === kind && pattern.test(path))?.[2];
}

const tagOf = (image: string) => /:[^/:]+$/.exec(image)?.[0];

/** From another place, in the same version, as the agent's image. */
function sameSource({ from, to }: CarriedEdit, image: string | undefined): boolean {
  return typeof from === "string" && to === image && tagOf(from) === tagOf(to as string);
}

/** Only fields of the plugin have changed that the Installation has too. */
function sameButFields({ from, to }: CarriedEdit): boolean {
  const [before, after] = [from, to].map((text) => pluginIn(text as string | undefined));
  if (!before || !after) return false;
  const rest = ({ mtu: _, container_settings: __, policy_setup_timeout_seconds: ___, ...other }: typeof before) =>
    other;
  const { container_settings: settings = {} } = after;
  return isDeepStrictEqual(rest(before), rest(after)) && Object.keys(settings).length <= 1;
}

function lossOf(place: Place, names: Names): Found {
  const { kind, path, edit } = place;
  const variable = variableIn(place);
  const at = edit.path.replace(/:.*$/s, "");
  if (variable?.container === names.workloads.kubeControllers) return { name: variable.name, at, ...CONTROLLERS };
  if (variable && ["USE_POD_CIDR", "NETWORKING_BACKEND"].includes(variable.name))
    return { name: variable.name, at, ...ADDRESSING };
  if (variable) return { name: variable.name, at, ...WRITTEN };
  // Without the items of lists: one name for all that are alike. An item without a key of its own is written out in full.
  const field = path.replace(/\[\{.*$/s, "").replace(/\[(?:"(?:[^"\\]|\\.)*"|[^\]]*)\]/g, "");
  return { name: field === "" ? kind : `${kind}.${field}`, at, ...WRITTEN };
}
