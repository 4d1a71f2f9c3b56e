import type { KubeObject } from "../../api/object.ts";
import type { Column } from "../resource.ts";
import { ageSince } from "./age.ts";
import type { Container, PodTemplate, Selector } from "./shapes.ts";

export const NONE = "<none>";

export type Read = (object: KubeObject, now: Date) => string | number | boolean | null;

export const NAME: Column = {
  name: "Name",
  type: "string",
  format: "name",
  description: "Name of the object, unique among its kind within a namespace.",
  priority: 0,
  value: (object) => object.metadata.name,
};

export const AGE: Column = {
  name: "Age",
  type: "string",
  description: "Time since the object was created.",
  priority: 0,
  value: (object, now) => ageSince(object.metadata.creationTimestamp, now),
};

export const CREATED_AT: Column = {
  name: "Created At",
  type: "date",
  description: "When the object was created.",
  priority: 0,
  value: (object) => object.metadata.creationTimestamp ?? null,
};

export function text(name: string, value: Read, description = ""): Column {
  return { name, type: "string", description, priority: 0, value };
}

export function count(name: string, value: Read, description = ""): Column {
  return { name, type: "integer", description, priority: 0, value };
}

/** Shown with `-o wide` only. */
export function wide(column: Column): Column {
  return { ...column, priority: 1 };
}

/** The value at a dotted path, or undefined. */
export function dig(object: unknown, path: string): unknown {
  let at: unknown = object;
  for (const step of path.split(".")) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Record<string, unknown>)[step];
  }
  return at;
}

export const numberAt =
  (path: string): Read =>
  (object) =>
    Number(dig(object, path) ?? 0);

export const textAt =
  (path: string, otherwise = NONE): Read =>
  (object) => {
    const found = dig(object, path);
    return found === undefined || found === null || found === "" ? otherwise : String(found);
  };

/** `app=web,tier in (a,b)`, as selectors are written on a command line. */
export function selectorText(selector: Selector | undefined): string {
  const labels = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const rules = (selector?.matchExpressions ?? []).map(({ key = "", operator, values = [] }) => {
    if (operator === "Exists") return key;
    if (operator === "DoesNotExist") return `!${key}`;
    return `${key} ${operator === "In" ? "in" : "notin"} (${[...values].sort().join(",")})`;
  });
  return [...labels.sort(), ...rules.sort()].join(",") || NONE;
}

export function labelsText(labels: Record<string, string> | undefined): string {
  return selectorText(labels ? { matchLabels: labels } : undefined);
}

const templateAt = (object: KubeObject, path: string) => dig(object, path) as PodTemplate | undefined;
const listed = (containers: Container[] | undefined, read: (container: Container) => string | undefined): string =>
  (containers ?? []).map((container) => read(container) ?? "").join(",");

/** The three wide columns every workload has. */
export function templateColumns(template = "spec.template", selector?: Read): Column[] {
  const columns = [
    wide(text("Containers", (object) => listed(templateAt(object, template)?.spec?.containers, (one) => one.name))),
    wide(text("Images", (object) => listed(templateAt(object, template)?.spec?.containers, (one) => one.image))),
  ];
  if (selector) columns.push(wide(text("Selector", selector)));
  return columns;
}

export const SPEC_SELECTOR: Read = (object) => selectorText(dig(object, "spec.selector") as Selector | undefined);
