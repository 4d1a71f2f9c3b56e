import { type Noun, vendorNames } from "../../api/names.ts";
import { RESOURCES } from "../../api/resources/all.ts";
import { DATAPLANE_SETTINGS, type Setting } from "../../api/resources/dataplane-settings.ts";
import { policyRule } from "../../api/resources/policy-rule.ts";
import { placesOf, type Resource } from "../../api/resources/resource.ts";
import type { Schema } from "../../api/schema/schema.ts";
import { REFUSED_FIELDS } from "../../api/tables/refused-fields.ts";
import { fieldDefaults } from "./field-defaults.ts";
import { anchor, code, GENERATED, plain, sentence, table } from "./markdown.ts";

/** One page per resource, one for rules, which three resources share, and an index; by path. */
export function resourceReference(folder: string): Record<string, string> {
  const pages = RESOURCES.map((resource) => [`${folder}/${fileOf(resource)}`, page(resource)] as const);
  return { [`${folder}/README.md`]: index(), [`${folder}/rule.md`]: rulePage(), ...Object.fromEntries(pages) };
}

const RULE = "rule.md";
const SOURCE = GENERATED("src/api/resources");

function index(): string {
  const rows = RESOURCES.map((resource) => {
    const { served } = placesOf(resource, vendorNames);
    return [
      `[${served.kind}](${fileOf(resource)})`,
      code(`${served.group}/${served.version}`),
      resource.namespaced ? "namespaced" : "cluster",
      sentence(plain(resource.description)),
    ];
  });
  return [
    SOURCE,
    "# Resource reference\n",
    "`kubectl explain KIND.FIELD` shows the same descriptions. " +
      "Resources of `vendor.io/v3` are stored as custom resources of `crd.vendor.io/v1`; use the v3 form, " +
      "it fills in defaults and validates. [Rules](rule.md) of policies and profiles have a page of their own.\n",
    table(["Kind", "API version", "Scope", "Purpose"], rows),
  ].join("\n");
}

function page(resource: Resource): string {
  const { served, stored } = placesOf(resource, vendorNames);
  const { shortNames } = vendorNames.kinds[resource.noun];
  const statusFields = resource.status ? fieldsOf("status", resource.status) : [];
  return [
    SOURCE,
    `# ${served.kind}\n`,
    `${sentence(plain(resource.description))}\n`,
    `- API version: ${code(`${served.group}/${served.version}`)}`,
    ...(stored.group === served.group ? [] : [`- Stored as: ${code(`${stored.plural}.${stored.group}`)}`]),
    `- Resource: ${code(served.plural)}${shortNames.length > 0 ? `, short ${shortNames.map(code).join(", ")}` : ""}`,
    `- Scope: ${resource.namespaced ? "namespaced" : "cluster"}`,
    "",
    ...specSection(resource),
    ...(statusFields.length === 0 ? [] : ["## Status\n", fieldTable(statusFields, new Map())]),
  ].join("\n");
}

function specSection(resource: Resource): string[] {
  const fields = fieldsOf("spec", resource.spec);
  if (fields.length === 0) return ["## Spec\n", "The spec has no fields.\n"];
  const settings = resource.noun === "dataplaneConfiguration";
  return [
    "## Spec\n",
    ...(settings
      ? [
          "Each field has an effect; the description says which. A change takes effect at once, unless the table says that the agent must restart, " +
            "or that the operator rolls it out. `vendor node show settings` prints what is in force on a node, and where it is set.\n",
        ]
      : []),
    fieldTable(fields, fieldDefaults(resource.noun), settings ? DATAPLANE_SETTINGS : undefined),
    ...refusedSection(resource.noun),
  ];
}

/** Fields that a user of the public system or of an older release may look for. */
function refusedSection(noun: Noun): string[] {
  const rows = Object.entries(REFUSED_FIELDS[noun] ?? {});
  if (rows.length === 0) return [];
  const sorted = rows.sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    "## Refused fields\n",
    "Older releases, or the public system, have these. They are no fields here: `vendorctl` and the v3 API refuse them with this sentence, the API server by its " +
      "schema (`unknown field`), and `vendorctl diff upgrade` lists those that are stored.\n",
    table(
      ["Field", "Why", "Instead"],
      sorted.map(([path, { why, todo }]) => [
        code(path),
        plain(why),
        plain(todo === "Nothing." ? "Remove the field." : todo),
      ]),
    ),
  ];
}

function rulePage(): string {
  return [
    SOURCE,
    "# Rule\n",
    "One item of `ingress` and `egress` of a NetworkPolicy, a GlobalNetworkPolicy or a Profile. " +
      "All criteria of a rule must match; within one list any item may match. The first rule that matches decides.\n",
    fieldTable(fieldsOf("", policyRule), new Map()),
  ].join("\n");
}

interface Field {
  path: string;
  schema: Schema;
  required: boolean;
}

/** Every field below a schema, parents before children; a rule is described on its own page. */
function fieldsOf(path: string, schema: Schema, required = false): Field[] {
  const inner = schema.items ?? schema;
  const at = schema.items ? `${path}[]` : path;
  const below =
    inner === policyRule && path !== ""
      ? []
      : Object.entries(inner.properties ?? {}).flatMap(([name, field]) =>
          fieldsOf(at === "" ? name : `${at}.${name}`, field, inner.required?.includes(name) ?? false),
        );
  const itself = path === "" || path === "spec" || path === "status" ? [] : [{ path, schema, required }];
  return [...itself, ...below];
}

function fieldTable(
  fields: readonly Field[],
  defaults: ReadonlyMap<string, string>,
  settings?: Readonly<Record<string, Setting>>,
): string {
  return table(
    ["Field", "Type", "Default", ...(settings ? ["Since", "Data plane", "Takes effect"] : []), "Description"],
    fields.map(({ path, schema, required }) => [
      `${code(path)}${required ? " *required*" : ""}`,
      typeOf(schema),
      defaults.get(path) === undefined ? "" : plain(defaults.get(path) as string),
      ...(settings ? settingCells(path, settings) : []),
      descriptionOf(schema),
    ]),
  );
}

function settingCells(path: string, settings: Readonly<Record<string, Setting>>): string[] {
  const row = settings[path.replace("spec.", "")];
  if (!row) return ["", "", ""];
  const possible = row.fixed ? `only ${code(String(row.fixed.value))} is possible` : (row.takesEffect ?? "at once");
  return [row.since ?? "", row.only ?? "both", possible];
}

function typeOf(schema: Schema): string {
  if (schema.items) {
    const rule = schema.items === policyRule;
    return rule ? `list of [rules](${RULE})` : `list of ${typeOf(schema.items)}`;
  }
  if (schema.enum) return schema.enum.map((value) => code(String(value))).join(", ");
  if (schema["x-kubernetes-int-or-string"]) return "integer or string";
  if (schema.type === "object" && typeof schema.additionalProperties === "object") return "map of strings";
  const range = rangeOf(schema);
  return `${schema.type ?? "any"}${range === "" ? "" : `, ${range}`}${schema.nullable ? " or null" : ""}`;
}

function rangeOf({ minimum, maximum }: Schema): string {
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`;
  if (minimum !== undefined) return `at least ${minimum}`;
  return maximum === undefined ? "" : `at most ${maximum}`;
}

/** Items that are plain values need no line of their own; what is said of them is added to the list's. */
function descriptionOf(schema: Schema): string {
  return sentence(plain(schema.description ?? ""));
}

function fileOf(resource: Resource): string {
  return `${anchor(placesOf(resource, vendorNames).served.kind)}.md`;
}
