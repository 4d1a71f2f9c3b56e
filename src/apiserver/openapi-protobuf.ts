/**
 * The binary form of an OpenAPI v2 document: gnostic's messages, the only form `kubectl` reads v2 in.
 * Field numbers are those of its `OpenAPIv2.proto`; only messages Kubernetes documents use are here.
 */
type Json = Record<string, unknown>;

const VARINT = 0;
const DOUBLE = 1;
const BYTES = 2;

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}

const tag = (field: number, wire: number): Buffer => varint(field * 8 + wire);

function bytes(field: number, content: Buffer): Buffer {
  return Buffer.concat([tag(field, BYTES), varint(content.length), content]);
}

const NOTHING = Buffer.alloc(0);

function text(field: number, value: unknown): Buffer {
  return typeof value === "string" && value !== "" ? bytes(field, Buffer.from(value)) : NOTHING;
}

const texts = (field: number, values: unknown): Buffer =>
  Buffer.concat(((values ?? []) as string[]).map((value) => bytes(field, Buffer.from(value))));

function flag(field: number, value: unknown): Buffer {
  return value === true ? Buffer.concat([tag(field, VARINT), varint(1)]) : NOTHING;
}

function integer(field: number, value: unknown): Buffer {
  return typeof value === "number" && value > 0 ? Buffer.concat([tag(field, VARINT), varint(value)]) : NOTHING;
}

function double(field: number, value: unknown): Buffer {
  if (typeof value !== "number") return NOTHING;
  const content = Buffer.alloc(8);
  content.writeDoubleLE(value);
  return Buffer.concat([tag(field, DOUBLE), content]);
}

/** `Any`: a value as YAML text, which JSON is. */
const any = (value: unknown): Buffer => text(2, `${JSON.stringify(value)}\n`);

const named = (name: string, value: Buffer): Buffer => Buffer.concat([text(1, name), bytes(2, value)]);

function extensions(field: number, from: Json): Buffer {
  const found = Object.entries(from).filter(([name]) => name.startsWith("x-"));
  return Buffer.concat(found.map(([name, value]) => bytes(field, named(name, any(value)))));
}

function schema(from: Json): Buffer {
  const type = from["type"] as string | undefined;
  const properties = Object.entries((from["properties"] ?? {}) as Record<string, Json>);
  const additional = from["additionalProperties"] as Json | boolean | undefined;
  return Buffer.concat([
    text(1, from["$ref"]),
    text(2, from["format"]),
    text(3, from["title"]),
    text(4, from["description"]),
    from["default"] === undefined ? NOTHING : bytes(5, any(from["default"])),
    double(6, from["multipleOf"]),
    double(7, from["maximum"]),
    flag(8, from["exclusiveMaximum"]),
    double(9, from["minimum"]),
    flag(10, from["exclusiveMinimum"]),
    integer(11, from["maxLength"]),
    integer(12, from["minLength"]),
    text(13, from["pattern"]),
    integer(14, from["maxItems"]),
    integer(15, from["minItems"]),
    flag(16, from["uniqueItems"]),
    integer(17, from["maxProperties"]),
    integer(18, from["minProperties"]),
    texts(19, from["required"]),
    Buffer.concat(((from["enum"] ?? []) as unknown[]).map((value) => bytes(20, any(value)))),
    additional === undefined
      ? NOTHING
      : bytes(21, typeof additional === "object" ? bytes(1, schema(additional)) : flag(2, additional)),
    type === undefined ? NOTHING : bytes(22, text(1, type)),
    from["items"] === undefined ? NOTHING : bytes(23, bytes(1, schema(from["items"] as Json))),
    properties.length === 0
      ? NOTHING
      : bytes(25, Buffer.concat(properties.map(([name, part]) => bytes(1, named(name, schema(part)))))),
    extensions(31, from),
  ]);
}

function parameter(from: Json): Buffer {
  if (from["in"] === "body") {
    const body = [
      text(2, from["name"]),
      text(3, "body"),
      flag(4, from["required"]),
      bytes(5, schema(from["schema"] as Json)),
    ];
    return bytes(1, bytes(1, Buffer.concat(body)));
  }
  const inPath = from["in"] === "path";
  const shared = [flag(1, from["required"]), text(2, from["in"]), text(3, from["description"]), text(4, from["name"])];
  const content = Buffer.concat([...shared, text(inPath ? 5 : 6, from["type"])]);
  return bytes(1, bytes(2, bytes(inPath ? 4 : 3, content)));
}

function operation(from: Json): Buffer {
  const responses = Object.entries((from["responses"] ?? {}) as Record<string, Json>).map(([code, response]) => {
    const result = response["schema"] as Json | undefined;
    const content = Buffer.concat([
      text(1, response["description"]),
      result ? bytes(2, bytes(1, schema(result))) : NOTHING,
    ]);
    return bytes(1, named(code, bytes(1, content)));
  });
  return Buffer.concat([
    texts(1, from["tags"]),
    text(3, from["description"]),
    text(5, from["operationId"]),
    texts(6, from["produces"]),
    texts(7, from["consumes"]),
    Buffer.concat(((from["parameters"] ?? []) as Json[]).map((one) => bytes(8, parameter(one)))),
    bytes(9, Buffer.concat(responses)),
    texts(10, from["schemes"]),
    extensions(13, from),
  ]);
}

const METHODS: readonly (readonly [string, number])[] = [
  ["get", 2],
  ["put", 3],
  ["post", 4],
  ["delete", 5],
  ["patch", 8],
];

/** One entry of `paths`, to be laid side by side with others. */
export function encodePath(path: string, item: Json): Buffer {
  const operations = METHODS.map(([method, field]) =>
    item[method] ? bytes(field, operation(item[method] as Json)) : NOTHING,
  );
  const parameters = ((item["parameters"] ?? []) as Json[]).map((one) => bytes(9, parameter(one)));
  return bytes(2, named(path, Buffer.concat([...operations, ...parameters])));
}

/** One entry of `definitions`. */
export function encodeDefinition(name: string, definition: Json): Buffer {
  return bytes(1, named(name, schema(definition)));
}

export function encodeDocument(
  info: { title: string; version: string },
  paths: readonly Buffer[],
  definitions: readonly Buffer[],
): Buffer {
  return Buffer.concat([
    text(1, "2.0"),
    bytes(2, Buffer.concat([text(1, info.title), text(2, info.version)])),
    bytes(8, Buffer.concat(paths)),
    bytes(9, Buffer.concat(definitions)),
  ]);
}
