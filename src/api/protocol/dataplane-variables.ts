import { type DataplaneConfiguration, dataplaneConfiguration } from "../resources/dataplane-configuration.ts";
import type { Schema } from "../schema/schema.ts";

/** `DATAPLANE_BPFENABLED=true` is `bpfEnabled: true` of the DataplaneConfiguration, for one agent. */
const PREFIX = "DATAPLANE_";

type Env = Readonly<Record<string, string | undefined>>;
type Spec = DataplaneConfiguration["spec"];

interface ParsedVariables {
  spec: Spec;
  /** With the prefix, and no field: manifests of older releases have some. */
  unknown: string[];
  /** Not of the field's type. */
  wrong: { name: string; text: string; expected: string }[];
}

export const dataplaneVariable = (field: string) => `${PREFIX}${field.toUpperCase()}`;

/** What variables set of a DataplaneConfiguration, by the types of its fields; whether the values are allowed is not asked. */
export function parseDataplaneVariables(env: Env): ParsedVariables {
  const fields: Readonly<Record<string, Schema>> = dataplaneConfiguration.spec.properties;
  const byVariable = new Map(Object.keys(fields).map((field) => [dataplaneVariable(field), field]));
  const spec: Record<string, unknown> = {};
  const parsed: ParsedVariables = { spec, unknown: [], wrong: [] };
  for (const name of Object.keys(env).sort()) {
    const text = name.startsWith(PREFIX) ? env[name] : undefined;
    if (!text) continue;
    const field = byVariable.get(name);
    const value = field === undefined ? undefined : parsedAs(text, fields[field] as Schema);
    if (field === undefined) parsed.unknown.push(name);
    else if (value instanceof Expected) parsed.wrong.push({ name, text, expected: value.words });
    else spec[field] = value;
  }
  return parsed;
}

class Expected {
  readonly words: string;
  constructor(words: string) {
    this.words = words;
  }
}

/** Lists and objects are JSON; a list of texts may also be separated by commas. */
function parsedAs(text: string, schema: Schema): unknown {
  switch (schema.type) {
    case "boolean":
      return /^(?:true|false)$/i.test(text) ? text.toLowerCase() === "true" : new Expected("true or false");
    case "integer":
    case "number":
      return /^-?\d+$/.test(text) ? Number(text) : new Expected("a whole number");
    case "array":
      return schema.items?.type === "string" && !text.startsWith("[")
        ? text.split(",").map((one) => one.trim())
        : jsonOf(text);
    case "object":
      return jsonOf(text);
    default:
      return schema.enum?.find((one) => String(one).toLowerCase() === text.toLowerCase()) ?? text;
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return new Expected("JSON, as in the DataplaneConfiguration");
  }
}
