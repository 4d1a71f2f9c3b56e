import type { KubeObject } from "../../../api/object.ts";
import { RESOURCES } from "../../../api/resources/all.ts";
import { objectSchema } from "../../../api/resources/resource.ts";
import type { V3Place } from "../../../api/resources/v3-places.ts";
import { servedKinds } from "../../../apiserver/custom-resources.ts";
import { printedName } from "../../../procedures/resources/resource-store.ts";
import { formatTable, print, type Table } from "../../printer.ts";
import type { Session } from "../../session.ts";

export interface Found {
  place: V3Place;
  object: KubeObject;
}

/** Objects the way `-o` asks for; one alone is printed alone, as kubectl does. */
export async function printObjects(
  session: Session,
  found: readonly Found[],
  options: { single: boolean; namespaces: boolean },
): Promise<void> {
  const { output } = session.flags;
  if (output === "name") {
    session.out(found.map(({ place, object }) => `${printedName(place, object.metadata.name)}\n`).join(""));
    return;
  }
  if (output !== "table" && output !== "wide") {
    const objects = found.map(({ object }) => withoutManagers(object));
    const value =
      options.single && objects.length === 1 ? objects[0] : { apiVersion: "v1", kind: "List", items: objects };
    return await print(session, value, () => ({ columns: [], rows: [] }));
  }
  const kinds = [...new Set(found.map(({ place }) => place))];
  const tables = kinds.map((place) => {
    const objects = found.filter((one) => one.place === place).map(({ object }) => object);
    const table = tableOf(place, objects, { ...options, wide: output === "wide", prefix: kinds.length > 1 });
    return formatTable(table, session.config.outColumns);
  });
  session.out((await Promise.all(tables)).join("\n"));
}

/** Who manages which field is for programs; people ask for the object. */
function withoutManagers(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

interface TableOptions {
  namespaces: boolean;
  wide: boolean;
  /** The kind before the name, where a list has several. */
  prefix: boolean;
}

function tableOf(place: V3Place, objects: readonly KubeObject[], options: TableOptions): Table {
  const columns = columnsOf(place).filter(({ priority }) => priority === 0 || options.wide);
  const now = new Date();
  const namespaced = options.namespaces && place.served.namespaced;
  const cell = (value: unknown) => (value === null || value === undefined ? "" : listText(String(value)));
  return {
    columns: [...(namespaced ? ["NAMESPACE"] : []), ...columns.map(({ name }) => name.toUpperCase())],
    rows: objects.map((object) => {
      const [name = "", ...rest] = columns.map((column) => cell(column.value(object, now)));
      const shown = options.prefix ? printedName(place, name) : name;
      return [...(namespaced ? [object.metadata.namespace ?? ""] : []), shown, ...rest];
    }),
  };
}

/** A list is printed without its JSON: `Ingress,Egress`. */
function listText(text: string): string {
  return /^\["[^"\\]*"(?:,"[^"\\]*")*\]$/.test(text) ? (JSON.parse(text) as string[]).join(",") : text;
}

/** Made like the columns of a definition, so that kubectl and this tool print the same. */
function columnsOf({ noun, served }: V3Place) {
  const resource = RESOURCES.find((one) => one.noun === noun)!;
  const [kind] = servedKinds({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${served.plural}.${served.group}` },
    spec: {
      group: served.group,
      scope: served.namespaced ? "Namespaced" : "Cluster",
      names: { kind: served.kind, plural: served.plural },
      versions: [
        {
          name: served.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: objectSchema(resource) },
          additionalPrinterColumns: [...resource.columns],
        },
      ],
    },
  });
  return kind!.columns;
}
