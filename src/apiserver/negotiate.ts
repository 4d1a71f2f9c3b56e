import { notAcceptable } from "./status-errors.ts";

/** In which shape the client wants objects: themselves, rows of a table, or only their metadata. */
export type Shape = "object" | "table" | "metadata";

export interface RequestedFormat {
  shape: Shape;
  /** Version of the table or metadata kind the client asked for. */
  version: string;
  yaml: boolean;
}

const PLAIN: RequestedFormat = { shape: "object", version: "v1", yaml: false };

/** The first entry of `Accept` this server can serve. */
export function negotiate(accept: string | undefined): RequestedFormat {
  if (accept === undefined || accept === "") return PLAIN;
  for (const entry of accept.split(",")) {
    const [type, ...parameters] = entry.split(";").map((part) => part.trim());
    const yaml = type === "application/yaml";
    if (!yaml && type !== "application/json" && type !== "*/*" && type !== "application/*") continue;
    const given = new Map(parameters.map((parameter) => parameter.split("=", 2) as [string, string]));
    const as = given.get("as");
    const version = given.get("v") ?? "v1";
    if (as === undefined) return { ...PLAIN, yaml };
    if (given.get("g") !== "meta.k8s.io") continue;
    if (as === "Table") return { shape: "table", version, yaml };
    if (as === "PartialObjectMetadata" || as === "PartialObjectMetadataList") {
      return { shape: "metadata", version, yaml };
    }
  }
  throw notAcceptable();
}
