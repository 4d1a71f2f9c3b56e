// Reads Kubernetes' Go type declarations and prints what our API server must know of them, as OpenAPI-like
// definitions: names, types, list and patch rules. Facts only; no text of the originals is kept.
//
//   Unpack the distribution's golang-k8s-api-dev, golang-k8s-apimachinery-dev and golang-k8s-apiextensions-apiserver-dev
//   packages into one folder (dpkg-deb -x FILE FOLDER), then:
//   node tools/kubernetes-types.mjs --from FOLDER > src/apiserver/kubernetes/types.gen.json
//   node tools/kubernetes-types.mjs --from FOLDER --protobuf > src/apiserver/kubernetes/protobuf.gen.json
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

const META = "k8s.io/apimachinery/pkg/apis/meta/v1";
const APIEXTENSIONS = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1";

/** What the server serves, per Go package; everything they refer to follows. */
const ROOTS = {
  "k8s.io/api/core/v1":
    "Pod PodTemplate Node Namespace Service Endpoints ConfigMap Secret ServiceAccount Event PersistentVolume PersistentVolumeClaim ReplicationController LimitRange ResourceQuota Binding",
  "k8s.io/api/apps/v1": "Deployment ReplicaSet DaemonSet StatefulSet ControllerRevision",
  "k8s.io/api/batch/v1": "Job CronJob",
  "k8s.io/api/discovery/v1": "EndpointSlice",
  "k8s.io/api/coordination/v1": "Lease",
  "k8s.io/api/rbac/v1": "Role ClusterRole RoleBinding ClusterRoleBinding",
  "k8s.io/api/policy/v1": "PodDisruptionBudget Eviction",
  "k8s.io/api/scheduling/v1": "PriorityClass",
  "k8s.io/api/networking/v1": "NetworkPolicy Ingress IngressClass",
  [APIEXTENSIONS]: "CustomResourceDefinition",
  "k8s.io/api/authentication/v1": "TokenReview TokenRequest SelfSubjectReview",
  "k8s.io/api/authorization/v1":
    "SubjectAccessReview SelfSubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview",
  "k8s.io/api/events/v1": "Event",
  "k8s.io/api/autoscaling/v1": "Scale HorizontalPodAutoscaler",
  "k8s.io/api/autoscaling/v2": "HorizontalPodAutoscaler",
  "k8s.io/api/storage/v1": "StorageClass CSIDriver CSINode",
  "k8s.io/api/node/v1": "RuntimeClass",
  "k8s.io/api/admissionregistration/v1": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
  [META]: "Status DeleteOptions ListMeta ObjectMeta",
};

/** Names the optional fields of a type that are written even when they are empty. */
const KEPT = "x-kept-when-empty";

const OPAQUE = { "x-kubernetes-preserve-unknown-fields": true };

/** Types whose JSON is not what their declaration says. */
const SPECIAL = {
  [`${META}.Time`]: { type: "string", format: "date-time" },
  [`${META}.MicroTime`]: { type: "string", format: "date-time" },
  [`${META}.Duration`]: { type: "string" },
  [`${META}.FieldsV1`]: { type: "object", ...OPAQUE },
  "k8s.io/apimachinery/pkg/api/resource.Quantity": { type: "string", format: "quantity" },
  "k8s.io/apimachinery/pkg/util/intstr.IntOrString": {
    type: "string",
    format: "int-or-string",
    "x-kubernetes-int-or-string": true,
  },
  "k8s.io/apimachinery/pkg/runtime.RawExtension": { type: "object", ...OPAQUE },
  [`${APIEXTENSIONS}.JSON`]: OPAQUE,
  [`${APIEXTENSIONS}.JSONSchemaPropsOrArray`]: OPAQUE,
  [`${APIEXTENSIONS}.JSONSchemaPropsOrBool`]: OPAQUE,
  [`${APIEXTENSIONS}.JSONSchemaPropsOrStringArray`]: OPAQUE,
};

const SCALARS = {
  string: { type: "string" },
  bool: { type: "boolean" },
  int: { type: "integer", format: "int32" },
  int32: { type: "integer", format: "int32" },
  uint32: { type: "integer", format: "int64" },
  int64: { type: "integer", format: "int64" },
  float64: { type: "number", format: "double" },
  "interface{}": { ...OPAQUE },
};

const AGGREGATOR = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1";

/** The aggregation layer's one kind: its declarations are in a package of their own that distributions leave out. */
const AGGREGATION = {
  [`${AGGREGATOR}.APIService`]: {
    type: "object",
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { $ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" },
      spec: { $ref: `#/definitions/${AGGREGATOR}.APIServiceSpec` },
      status: { $ref: `#/definitions/${AGGREGATOR}.APIServiceStatus` },
    },
  },
  [`${AGGREGATOR}.APIServiceSpec`]: {
    type: "object",
    required: ["groupPriorityMinimum", "versionPriority"],
    properties: {
      caBundle: { type: "string", format: "byte", "x-kubernetes-list-type": "atomic" },
      group: { type: "string" },
      groupPriorityMinimum: { type: "integer", format: "int32" },
      insecureSkipTLSVerify: { type: "boolean" },
      service: { $ref: `#/definitions/${AGGREGATOR}.ServiceReference` },
      version: { type: "string" },
      versionPriority: { type: "integer", format: "int32" },
    },
  },
  [`${AGGREGATOR}.ServiceReference`]: {
    type: "object",
    properties: {
      name: { type: "string" },
      namespace: { type: "string" },
      port: { type: "integer", format: "int32" },
    },
  },
  [`${AGGREGATOR}.APIServiceStatus`]: {
    type: "object",
    properties: {
      conditions: {
        type: "array",
        items: { $ref: `#/definitions/${AGGREGATOR}.APIServiceCondition` },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "x-kubernetes-patch-merge-key": "type",
        "x-kubernetes-patch-strategy": "merge",
      },
    },
  },
  [`${AGGREGATOR}.APIServiceCondition`]: {
    type: "object",
    required: ["type", "status"],
    properties: {
      lastTransitionTime: { $ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Time" },
      message: { type: "string" },
      reason: { type: "string" },
      status: { type: "string" },
      type: { type: "string" },
    },
  },
};

/** @typedef {{ kind: "struct", fields: {type: string, tag: string, name: string, notes: string[]}[], notes: string[], imports: Map<string, string> }} Struct */
/** @typedef {{ kind: "alias", type: string, notes: string[], imports: Map<string, string> }} Alias */
/** @typedef {{ types: Map<string, Struct | Alias>, constants: Map<string, {type: string, value: string}> }} GoPackage */

/** @type {Map<string, GoPackage>} */
const packages = new Map();
let root = "";

/** @param {string} path */
function goPackage(path) {
  const known = packages.get(path);
  if (known) return known;
  const folder = join(root, path);
  if (!existsSync(folder)) throw new Error(`no Go package ${path} under ${root}`);
  /** @type {GoPackage} */
  const made = { types: new Map(), constants: new Map() };
  packages.set(path, made);
  for (const file of readdirSync(folder).sort()) {
    if (!file.endsWith(".go") || file.endsWith("_test.go") || file.includes("generated")) continue;
    readGoFile(readFileSync(join(folder, file), "utf8"), made);
  }
  return made;
}

const FIELD = /^\s*(?:([\w, ]+?)\s+)?(\*?(?:\[\]|map\[[^\]]+\]|[\w.*{}]+)+)\s*(?:`([^`]*)`)?\s*(?:\/\/.*)?$/;

/** @param {string} text @param {GoPackage} into */
function readGoFile(text, into) {
  const imports = new Map();
  const lines = text.replace(/\/\*[\s\S]*?\*\//g, "").split("\n");
  let notes = [];
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    const imported = /^\s*(?:(\w+)\s+)?"((?:k8s\.io|sigs\.k8s\.io)\/[^"]+)"$/.exec(line);
    if (imported) imports.set(imported[1] ?? imported[2].split("/").at(-1), imported[2]);
    const constant = /^\s*(?:const\s+)?(\w+)\s+(\w+)\s*=\s*"([^"]*)"/.exec(line);
    if (constant) into.constants.set(constant[1], { type: constant[2], value: constant[3] });
    const note = /^\/\/\s*(\+.*)$/.exec(line);
    if (note) notes.push(note[1]);
    const struct = /^type (\w+) struct ?\{(\})?/.exec(line);
    const alias = /^type (\w+) =? ?([^{]+?)(?:\s*\/\/.*)?$/.exec(line);
    if (struct) {
      const fields = [];
      if (!struct[2]) i = readFields(lines, i + 1, fields);
      into.types.set(struct[1], { kind: "struct", fields, notes, imports });
    } else if (alias) into.types.set(alias[1], { kind: "alias", type: alias[2], notes, imports });
    if (!line.startsWith("//") && line.trim() !== "") notes = [];
  }
}

/** @param {string[]} lines @param {number} at @param {Struct["fields"]} fields */
function readFields(lines, at, fields) {
  let notes = [];
  for (let i = at; ; i++) {
    const line = lines[i];
    if (line.startsWith("}")) return i;
    const note = /^\s*\/\/\s*(\+.*)$/.exec(line);
    if (note) notes.push(note[1]);
    if (line.trim() === "" || line.trim().startsWith("//")) continue;
    if (/^\s*[a-z]\w*\s/.test(line)) continue; // not exported, so not in the JSON
    const field = FIELD.exec(line);
    if (!field) throw new Error(`cannot read the field: ${line}`);
    fields.push({ name: field[1] ?? "", type: field[2], tag: field[3] ?? "", notes });
    notes = [];
  }
}

const definitions = {};
/** Field numbers by type, for clients that send protobuf: `"1": "name"`, or `"2": "@TYPE"` for fields that JSON writes inline. */
const wire = {};

/** @param {string} path @param {string} name */
function definitionName(path, name) {
  const [host, ...rest] = path.split("/");
  return `${host.split(".").reverse().join(".")}.${rest.join(".")}.${name}`;
}

/** Defines a named type and returns how a field refers to it. @param {string} path @param {string} name */
function named(path, name) {
  const special = SPECIAL[`${path}.${name}`];
  const id = definitionName(path, name);
  const reference = { $ref: `#/definitions/${id}` };
  if (definitions[id]) return reference;
  if (special) {
    definitions[id] = special;
    return reference;
  }
  const declared = goPackage(path).types.get(name);
  if (!declared) throw new Error(`${path} has no type ${name}`);
  if (declared.kind === "alias") {
    const schema = typed(declared.type, path, declared.imports);
    return { ...schema, ...enumOf(path, name, declared.notes) };
  }
  const schema = { type: "object" };
  definitions[id] = schema;
  numberFields(path, name);
  fillStruct(schema, declared, path);
  if (declared.notes.some((note) => note === "+structType=atomic")) schema["x-kubernetes-map-type"] = "atomic";
  return reference;
}

/** @param {string} path @param {string} name @param {string[]} notes */
function enumOf(path, name, notes) {
  if (!notes.includes("+enum")) return {};
  const values = [...goPackage(path).constants.values()].filter((c) => c.type === name).map((c) => c.value);
  return values.length > 0 ? { enum: [...new Set(values)].sort() } : {};
}

/** @param {object} schema @param {Struct} declared @param {string} path */
function fillStruct(schema, declared, path) {
  for (const field of declared.fields) {
    const [jsonName, ...flags] = (/json:"([^"]*)"/.exec(field.tag)?.[1] ?? "").split(",");
    if (jsonName === "-") continue;
    if (flags.includes("inline") || (jsonName === "" && field.name === "")) {
      const [at, name] = locate(field.type, path, declared.imports);
      const inlined = goPackage(at).types.get(name);
      fillStruct(schema, inlined, at);
      continue;
    }
    if (jsonName === "") continue;
    schema.properties ??= {};
    const property = { ...typed(field.type, path, declared.imports), ...remarks(field, path) };
    schema.properties[jsonName] = property;
    const omitted = flags.includes("omitempty") || flags.includes("omitzero");
    const optional = field.notes.includes("+optional") || omitted;
    // Go leaves an empty value out of the JSON, unless it is behind a pointer or the tag does not say so.
    const kept = optional && (!omitted || field.type.startsWith("*")) && property.$ref === undefined;
    if (kept) schema[KEPT] = [...(schema[KEPT] ?? []), jsonName];
    if (!optional) schema.required = [...(schema.required ?? []), jsonName];
  }
}

/** @param {string} path @param {string} name */
function numberFields(path, name) {
  const id = definitionName(path, name);
  const declared = goPackage(path).types.get(name);
  if (wire[id] || declared?.kind !== "struct") return;
  const numbers = {};
  for (const field of declared.fields) {
    const number = /protobuf:"\w+,(\d+),/.exec(field.tag)?.[1];
    const [jsonName, ...flags] = (/json:"([^"]*)"/.exec(field.tag)?.[1] ?? "").split(",");
    if (number === undefined || jsonName === "-") continue;
    if (!flags.includes("inline") && jsonName !== "") {
      numbers[number] = jsonName;
      continue;
    }
    const [at, inlined] = locate(field.type, path, declared.imports);
    numberFields(at, inlined);
    numbers[number] = `@${definitionName(at, inlined)}`;
  }
  wire[id] = numbers;
}

/** What a field's markers and tags say. @param {Struct["fields"][0]} field @param {string} path */
function remarks(field, path) {
  const said = (marker) =>
    field.notes.filter((note) => note.startsWith(`${marker}=`)).map((note) => note.slice(marker.length + 1).trim());
  const made = {};
  const preset = said("+default")[0];
  if (preset !== undefined) {
    const constant = /^ref\((\w+)\)$/.exec(preset);
    made.default = constant ? goPackage(path).constants.get(constant[1]).value : JSON.parse(preset);
  }
  const [listType, mapType] = [said("+listType")[0], said("+mapType")[0] ?? said("+structType")[0]];
  if (listType) made["x-kubernetes-list-type"] = listType;
  if (listType === "map") made["x-kubernetes-list-map-keys"] = said("+listMapKey");
  if (mapType) made["x-kubernetes-map-type"] = mapType;
  const mergeKey = /patchMergeKey:"([^"]*)"/.exec(field.tag)?.[1];
  const strategy = /patchStrategy:"([^"]*)"/.exec(field.tag)?.[1];
  if (mergeKey) made["x-kubernetes-patch-merge-key"] = mergeKey;
  if (strategy) made["x-kubernetes-patch-strategy"] = strategy;
  return made;
}

/** @param {string} type @param {string} path @param {Map<string, string>} imports @returns {[string, string]} */
function locate(type, path, imports) {
  const bare = type.replace(/^\*/, "");
  const dot = bare.indexOf(".");
  if (dot < 0) return [path, bare];
  const from = imports.get(bare.slice(0, dot));
  if (!from) throw new Error(`${path} does not import ${bare}`);
  return [from, bare.slice(dot + 1)];
}

/** @param {string} type @param {string} path @param {Map<string, string>} imports */
function typed(type, path, imports) {
  const bare = type.trim().replace(/^\*/, "");
  if (bare === "[]byte") return { type: "string", format: "byte" };
  if (SCALARS[bare]) return SCALARS[bare];
  if (bare.startsWith("[]")) return { type: "array", items: typed(bare.slice(2), path, imports) };
  const map = /^map\[[^\]]+\](.+)$/.exec(bare);
  if (map) return { type: "object", additionalProperties: typed(map[1], path, imports) };
  return named(...locate(bare, path, imports));
}

function main() {
  const { values } = parseArgs({ options: { from: { type: "string" }, protobuf: { type: "boolean" } } });
  if (!values.from) throw new Error("say where the Go packages were unpacked: --from FOLDER");
  const unpacked = join(values.from, "usr/share/gocode/src");
  root = existsSync(unpacked) ? unpacked : values.from;
  for (const [path, kinds] of Object.entries(ROOTS)) for (const kind of kinds.split(" ")) named(path, kind);
  Object.assign(definitions, AGGREGATION);
  const printed = values.protobuf ? wire : definitions;
  const lines = Object.keys(printed)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${JSON.stringify(printed[name])}`);
  process.stdout.write(`{\n${lines.join(",\n")}\n}\n`);
}

main();
