import type { Condition, KubeObject } from "../api/object.ts";
import { compileJsonPath } from "../api/schema/json-path.ts";
import type { Schema } from "../api/schema/schema.ts";
import { pruneUnknown } from "../api/schema/schema-walk.ts";
import type { Admission, Change } from "./call.ts";
import { type Core, objectOf, putNow, removeNow, timestamp } from "./core.ts";
import { fieldAt } from "./field-path.ts";
import { ageSince } from "./kubernetes/age.ts";
import { AGE, NAME } from "./kubernetes/column.ts";
import { storageKey } from "./registry.ts";
import { ALL_VERBS, type Column, type ServedKind } from "./resource.ts";

const CLEANUP = "customresourcecleanup.apiextensions.k8s.io";
const SYSTEM = { name: "system:apiserver", groups: ["system:masters"] };

export interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string;
    scope: "Namespaced" | "Cluster";
    names: {
      plural: string;
      singular?: string;
      kind: string;
      listKind?: string;
      shortNames?: string[];
      categories?: string[];
    };
    versions: CustomVersion[];
    preserveUnknownFields?: boolean;
  };
  status?: { conditions?: Condition[]; acceptedNames?: unknown; storedVersions?: string[] };
}

interface CustomVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean;
  schema?: { openAPIV3Schema?: Schema };
  subresources?: {
    status?: object;
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string };
  };
  additionalPrinterColumns?: {
    name: string;
    type: string;
    jsonPath: string;
    description?: string;
    format?: string;
    priority?: number;
  }[];
  selectableFields?: { jsonPath: string }[];
}

/**
 * Serves what CustomResourceDefinitions define, from the moment they are stored to the moment their last object is gone.
 * A definition whose names another one has already taken is stored and not served, and says so in its conditions.
 */
export class CustomResources implements Admission {
  readonly #core: Core;
  #own = false;

  constructor(core: Core) {
    this.#core = core;
  }

  /** After a restart: everything stored is served again. */
  load(): void {
    for (const definition of this.#definitions()) this.#serve(definition);
  }

  admit(change: Change): void {
    if (!isDefinition(change) || change.operation !== "CREATE") return;
    const { metadata } = change.object;
    metadata.finalizers = [...new Set([...(metadata.finalizers ?? []), CLEANUP])];
  }

  committed(change: Change): void {
    if (isDefinition(change)) this.#definitionChanged(change);
    else if (change.operation === "DELETE" && change.kind.custom) this.#instanceGone(change.kind);
  }

  #definitionChanged(change: Change): void {
    if (this.#own) return;
    const definition = change.object as CustomResourceDefinition;
    if (change.operation === "DELETE") {
      this.#core.registry.remove(definition.spec.group, definition.spec.names.plural);
      this.#core.store.dropResource(storageKey({ group: definition.spec.group, plural: definition.spec.names.plural }));
      return;
    }
    if (definition.metadata.deletionTimestamp) this.#clear(definition, change.kind);
    else {
      this.#writeStatus(change.kind, definition, this.#serve(definition));
      if (change.operation === "UPDATE") this.#pruneInstances(definition);
    }
  }

  /** Kubernetes prunes what a schema does not have when it reads an object; here it is pruned once, when the schema changes. */
  #pruneInstances({ spec }: CustomResourceDefinition): void {
    const kind = this.#core.registry.all().find((one) => one.group === spec.group && one.plural === spec.names.plural);
    if (!kind) return;
    for (const stored of this.#core.store.list(storageKey(kind))) {
      const old = objectOf(kind, stored);
      const object = objectOf(kind, stored);
      if (pruneUnknown(kind.schema, kind.definitions, object).length > 0)
        this.#put(kind, object, { old, subresource: "" });
    }
  }

  /** Registers the served versions; says why not when the names are taken. */
  #serve(definition: CustomResourceDefinition): string | undefined {
    const { group, names } = definition.spec;
    const clash = this.#definitions().find(
      (other) =>
        other.metadata.name !== definition.metadata.name &&
        other.spec.group === group &&
        (other.spec.names.kind === names.kind || shares(other.spec.names.shortNames, names.shortNames)),
    );
    if (clash) return `"${names.kind}" is already in use by ${clash.metadata.name}`;
    this.#core.registry.replace(group, names.plural, servedKinds(definition));
    return undefined;
  }

  #definitions(): CustomResourceDefinition[] {
    const kind = this.#core.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    if (!kind) return [];
    return this.#core.store.list(storageKey(kind)).map((stored) => objectOf(kind, stored) as CustomResourceDefinition);
  }

  #writeStatus(kind: ServedKind, definition: CustomResourceDefinition, clash: string | undefined): void {
    const now = timestamp(this.#core.now());
    const before = definition.status?.conditions ?? [];
    const accepted = clash === undefined;
    const conditions = [
      condition(
        before,
        now,
        "NamesAccepted",
        accepted,
        accepted ? "NoConflicts" : "KindConflict",
        clash ?? "no conflicts found",
      ),
      condition(
        before,
        now,
        "Established",
        accepted,
        accepted ? "InitialNamesAccepted" : "NotAccepted",
        accepted ? "the initial names have been accepted" : "not all names are accepted",
      ),
    ];
    const storage = definition.spec.versions.find((version) => version.storage)?.name;
    const storedVersions = [...new Set([...(definition.status?.storedVersions ?? []), ...(storage ? [storage] : [])])];
    const status = { conditions, acceptedNames: fullNames(definition), storedVersions };
    if (JSON.stringify(status) === JSON.stringify(definition.status)) return;
    this.#put(kind, { ...definition, status });
  }

  #put(kind: ServedKind, object: KubeObject, { old = object, subresource = "status" } = {}): void {
    this.#own = true;
    try {
      const change = {
        operation: "UPDATE" as const,
        kind,
        subresource,
        object,
        old,
        user: SYSTEM,
        dryRun: false,
      };
      putNow(this.#core, change, Number(object.metadata.resourceVersion));
    } finally {
      this.#own = false;
    }
  }

  /** A deleted definition takes its objects with it; those with finalizers hold it until they are let go. */
  #clear(definition: CustomResourceDefinition, kind: ServedKind): void {
    const { group, names } = definition.spec;
    const served = this.#core.registry.all().find((one) => one.group === group && one.plural === names.plural);
    if (served) {
      for (const stored of this.#core.store.list(storageKey(served))) {
        this.#deleteInstance(served, objectOf(served, stored));
      }
    }
    this.#finishIfEmpty(kind, definition);
  }

  #deleteInstance(kind: ServedKind, object: KubeObject): void {
    const base = { kind, subresource: "", old: object, user: SYSTEM, dryRun: false };
    const revision = Number(object.metadata.resourceVersion);
    if (!object.metadata.finalizers?.length) {
      removeNow(this.#core, { ...base, operation: "DELETE", object }, revision);
    } else if (!object.metadata.deletionTimestamp) {
      const metadata = {
        ...object.metadata,
        deletionTimestamp: timestamp(this.#core.now()),
        deletionGracePeriodSeconds: 0,
      };
      putNow(this.#core, { ...base, operation: "UPDATE", object: { ...object, metadata } }, revision);
    }
  }

  #instanceGone(kind: ServedKind): void {
    const definitions = this.#core.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    const stored = definitions && this.#core.store.get(storageKey(definitions), "", `${kind.plural}.${kind.group}`);
    if (!stored?.deleting || !definitions) return;
    this.#finishIfEmpty(definitions, objectOf(definitions, stored) as CustomResourceDefinition);
  }

  #finishIfEmpty(kind: ServedKind, definition: CustomResourceDefinition): void {
    const { group, names } = definition.spec;
    if (this.#core.store.count(storageKey({ group, plural: names.plural })) > 0) return;
    const finalizers = (definition.metadata.finalizers ?? []).filter((name) => name !== CLEANUP);
    const object = { ...definition, metadata: { ...definition.metadata, finalizers } };
    if (finalizers.length > 0) {
      if (finalizers.length !== definition.metadata.finalizers?.length) this.#put(kind, object);
      return;
    }
    const change = {
      operation: "DELETE" as const,
      kind,
      subresource: "",
      object,
      old: definition,
      user: SYSTEM,
      dryRun: false,
    };
    removeNow(this.#core, change, Number(definition.metadata.resourceVersion));
  }
}

function isDefinition(change: Change): boolean {
  return change.kind.group === "apiextensions.k8s.io" && change.kind.kind === "CustomResourceDefinition";
}

function shares(a: readonly string[] | undefined, b: readonly string[] | undefined): boolean {
  return (a ?? []).some((name) => b?.includes(name));
}

function fullNames(definition: CustomResourceDefinition): Record<string, unknown> {
  const { names } = definition.spec;
  return { ...names, singular: singularOf(names), listKind: names.listKind ?? `${names.kind}List` };
}

function singularOf(names: CustomResourceDefinition["spec"]["names"]): string {
  return names.singular ?? names.kind.toLowerCase();
}

function condition(
  before: readonly Condition[],
  now: string,
  type: string,
  holds: boolean,
  reason: string,
  message: string,
): Condition {
  const status = holds ? "True" : "False";
  const known = before.find((one) => one.type === type);
  const since = known?.status === status ? (known.lastTransitionTime ?? now) : now;
  return { type, status, lastTransitionTime: since, reason, message };
}

/** The kinds a definition serves, one for each served version. */
export function servedKinds(definition: CustomResourceDefinition): ServedKind[] {
  const { group, names, scope, versions } = definition.spec;
  const storageVersion = versions.find((version) => version.storage)?.name;
  return versions
    .filter((version) => version.served)
    .map((version) => ({
      group,
      version: version.name,
      kind: names.kind,
      plural: names.plural,
      singular: singularOf(names),
      namespaced: scope === "Namespaced",
      shortNames: names.shortNames ?? [],
      categories: names.categories ?? [],
      schema: schemaOf(version),
      definitions: {},
      verbs: ALL_VERBS,
      status: version.subresources?.status !== undefined,
      ...(version.subresources?.scale && { scale: scalePaths(version.subresources.scale) }),
      columns: columnsOf(version),
      selectable: selectableOf(version),
      strategy: {},
      storageVersion: storageVersion ?? version.name,
      custom: true,
    }));
}

function schemaOf(version: CustomVersion): Schema {
  return version.schema?.openAPIV3Schema ?? { type: "object", "x-kubernetes-preserve-unknown-fields": true };
}

function scalePaths(paths: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string }) {
  const { specReplicasPath: spec, statusReplicasPath: status, labelSelectorPath: selector } = paths;
  return selector === undefined ? { spec, status } : { spec, status, selector };
}

function selectableOf(version: CustomVersion): ServedKind["selectable"] {
  const fields = (version.selectableFields ?? []).map(({ jsonPath }) => {
    const path = jsonPath.replace(/^\./, "");
    return [path, (object: KubeObject) => String(fieldAt(object, path) ?? "")] as const;
  });
  return Object.fromEntries(fields);
}

function columnsOf(version: CustomVersion): Column[] {
  const printed = version.additionalPrinterColumns;
  if (!printed) return [NAME, AGE];
  const columns = printed.map((column): Column => {
    const find = compileJsonPath(column.jsonPath);
    const type = column.type as Column["type"];
    return {
      name: column.name,
      type,
      ...(column.format && { format: column.format }),
      description: column.description ?? "",
      priority: column.priority ?? 0,
      value: (object, now) => cell(find(object), type, now),
    };
  });
  return [NAME, ...columns];
}

function cell(found: readonly unknown[], type: Column["type"], now: Date): string | number | boolean | null {
  const value = found[0];
  if (value === undefined || value === null) return null;
  if (type === "date") return ageSince(String(value), now);
  if (found.length > 1) return found.map(String).join(",");
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
    return type === "string" ? String(value) : value;
  }
  return JSON.stringify(value);
}
