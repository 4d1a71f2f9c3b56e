import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../../api/object.ts";
import type { StatusCause } from "../../../api/status.ts";
import type { Strategy } from "../../resource.ts";
import { causes, forbidden, immutable, invalid, required } from "./rules.ts";

type Entries = Record<string, string>;

const KEY_RULE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const MOST_BYTES = 1024 * 1024;

const entries = (object: KubeObject, field: string): Entries => (object[field] ?? {}) as Entries;

function keyProblems(object: KubeObject, field: string): StatusCause[] {
  return Object.keys(entries(object, field)).flatMap((key) =>
    key.length <= 253 && /^[-._a-zA-Z0-9]+$/.test(key) ? [] : [invalid(`${field}[${key}]`, key, KEY_RULE)],
  );
}

function sizeProblems(object: KubeObject, fields: readonly string[]): StatusCause[] {
  const bytes = fields.flatMap((field) => Object.values(entries(object, field))).reduce((sum, v) => sum + v.length, 0);
  if (bytes <= MOST_BYTES) return [];
  return [
    { field: "data", reason: "FieldValueTooLong", message: `Too long: may not be more than ${MOST_BYTES} bytes` },
  ];
}

function frozen(next: KubeObject, old: KubeObject, fields: readonly string[]): StatusCause[] {
  if (old["immutable"] !== true) return [];
  const rule = "field is immutable when `immutable` is set";
  return causes(
    next["immutable"] !== true && forbidden("immutable", rule),
    fields.filter((field) => !isDeepStrictEqual(next[field], old[field])).map((field) => forbidden(field, rule)),
  );
}

export const configMapStrategy: Strategy = {
  validate(map) {
    const both = Object.keys(entries(map, "data")).filter((key) => Object.hasOwn(entries(map, "binaryData"), key));
    return causes(
      keyProblems(map, "data"),
      keyProblems(map, "binaryData"),
      both.map((key) => invalid(`data[${key}]`, key, "duplicate of key present in binaryData")),
      sizeProblems(map, ["data", "binaryData"]),
    );
  },
  validateUpdate: (next, old) => frozen(next, old, ["data", "binaryData"]),
};

/** What a secret of a type must hold. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/dockercfg": [".dockercfg"],
  "kubernetes.io/ssh-auth": ["ssh-privatekey"],
};
const ACCOUNT = "kubernetes.io/service-account.name";

export const secretStrategy: Strategy = {
  setDefaults(secret) {
    secret["type"] ||= "Opaque";
    const plain = secret["stringData"] as Entries | undefined;
    if (!plain) return;
    const encoded = Object.entries(plain).map(([key, value]) => [key, Buffer.from(String(value)).toString("base64")]);
    secret["data"] = { ...entries(secret, "data"), ...Object.fromEntries(encoded) };
    delete secret["stringData"];
  },
  validate(secret) {
    const type = String(secret["type"]);
    const missing = (NEEDED[type] ?? []).filter((key) => entries(secret, "data")[key] === undefined);
    const nameless = type === "kubernetes.io/service-account-token" && !secret.metadata.annotations?.[ACCOUNT];
    return causes(
      keyProblems(secret, "data"),
      missing.map((key) => required(`data[${key}]`)),
      nameless && required(`metadata.annotations[${ACCOUNT}]`),
      sizeProblems(secret, ["data"]),
    );
  },
  validateUpdate: (next, old) => [...immutable("type", next["type"], old["type"]), ...frozen(next, old, ["data"])],
};
