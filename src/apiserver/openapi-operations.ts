import type { ServedKind, Verb } from "./resource.ts";

/** What can be done where, for one kind: the part of OpenAPI that v2 and v3 only write differently. */
export interface Operation {
  method: "get" | "put" | "post" | "delete" | "patch";
  action: string;
  id: string;
  kind: GroupVersionKind;
  query: readonly Parameter[];
  /** What the request carries: a type by name, or any patch. */
  body?: { type: string; consumes: readonly string[] };
  result: string;
}

export interface GroupVersionKind {
  group: string;
  version: string;
  kind: string;
}

export interface Parameter {
  name: string;
  type: "string" | "boolean" | "integer";
}

export interface Path {
  path: string;
  /** `namespace`, `name`: the parts of the path in braces. */
  variables: readonly string[];
  operations: readonly Operation[];
}

const text = (name: string): Parameter => ({ name, type: "string" });
const flag = (name: string): Parameter => ({ name, type: "boolean" });
const number = (name: string): Parameter => ({ name, type: "integer" });

const WRITE = [text("dryRun"), text("fieldManager"), text("fieldValidation"), text("pretty")];
const SELECT = [
  flag("allowWatchBookmarks"),
  text("continue"),
  text("fieldSelector"),
  text("labelSelector"),
  number("limit"),
  text("resourceVersion"),
  text("resourceVersionMatch"),
  flag("sendInitialEvents"),
  number("timeoutSeconds"),
  flag("watch"),
];
const REMOVE = [text("dryRun"), number("gracePeriodSeconds"), flag("orphanDependents"), text("propagationPolicy")];

const JSON_BODY = ["application/json", "application/yaml"];
const CLASSIC_PATCHES = ["application/json-patch+json", "application/merge-patch+json"];
const APPLY = "application/apply-patch+yaml";
const STRATEGIC = "application/strategic-merge-patch+json";

export const META = "io.k8s.apimachinery.pkg.apis.meta.v1";
export const SCALE = "io.k8s.api.autoscaling.v1.Scale";

export function pathsOf(kind: ServedKind, type: string): Path[] {
  const group = kind.group === "" ? "/api" : `/apis/${kind.group}`;
  const scope = kind.namespaced ? "/namespaces/{namespace}" : "";
  const collection = `${group}/${kind.version}${scope}/${kind.plural}`;
  const within = kind.namespaced ? ["namespace"] : [];
  const make = maker(kind, type);
  const item = { path: `${collection}/{name}`, variables: [...within, "name"] };
  const paths: Path[] = [
    { path: collection, variables: within, operations: make.collection() },
    { ...item, operations: make.item("", type) },
  ];
  if (kind.status) paths.push({ ...item, path: `${item.path}/status`, operations: make.item("Status", type) });
  if (kind.scale) paths.push({ ...item, path: `${item.path}/scale`, operations: make.item("Scale", SCALE) });
  if (kind.namespaced && kind.verbs.includes("list")) {
    const everywhere = make.collection().filter(({ action }) => action === "list");
    const renamed = everywhere.map((one) => ({ ...one, id: `${one.id}ForAllNamespaces` }));
    paths.push({ path: `${group}/${kind.version}/${kind.plural}`, variables: [], operations: renamed });
  }
  return paths.filter(({ operations }) => operations.length > 0);
}

function maker(kind: ServedKind, type: string) {
  const gvk = { group: kind.group, version: kind.version, kind: kind.kind };
  const scale = { group: "autoscaling", version: "v1", kind: "Scale" };
  const groupWord = kind.group === "" ? "core" : (kind.group.split(".")[0] ?? "");
  const words = [groupWord, kind.version, kind.namespaced ? "Namespaced" : "", kind.kind].map(capital).join("");
  const can = (verb: Verb) => kind.verbs.includes(verb);
  const patches = kind.custom ? [...CLASSIC_PATCHES, APPLY] : [...CLASSIC_PATCHES, STRATEGIC, APPLY];
  const options = { type: `${META}.DeleteOptions`, consumes: JSON_BODY };

  const collection = (): Operation[] => {
    const made: (Operation | false)[] = [
      can("list") && {
        method: "get",
        action: "list",
        id: `list${words}`,
        kind: gvk,
        query: SELECT,
        result: `${type}List`,
      },
      can("create") && {
        method: "post",
        action: "post",
        id: `create${words}`,
        kind: gvk,
        query: WRITE,
        body: { type, consumes: JSON_BODY },
        result: type,
      },
      can("deletecollection") && {
        method: "delete",
        action: "deletecollection",
        id: `deleteCollection${words}`,
        kind: gvk,
        query: [...REMOVE, ...SELECT],
        body: options,
        result: `${META}.Status`,
      },
    ];
    return made.filter((one) => one !== false);
  };

  const item = (part: "" | "Status" | "Scale", result: string): Operation[] => {
    const of = { id: `${words}${part}`, kind: part === "Scale" ? scale : gvk, result };
    const body = { type: result, consumes: JSON_BODY };
    const made: (Operation | false)[] = [
      can("get") && { ...of, method: "get", action: "get", id: `read${of.id}`, query: [text("resourceVersion")] },
      can("update") && { ...of, method: "put", action: "put", id: `replace${of.id}`, query: WRITE, body },
      part === "" &&
        can("delete") && {
          ...of,
          method: "delete",
          action: "delete",
          id: `delete${of.id}`,
          query: REMOVE,
          body: options,
          result: `${META}.Status`,
        },
      can("patch") && {
        ...of,
        method: "patch",
        action: "patch",
        id: `patch${of.id}`,
        query: [...WRITE, flag("force")],
        body: { type: `${META}.Patch`, consumes: patches },
      },
    ];
    return made.filter((one) => one !== false);
  };
  return { collection, item };
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
