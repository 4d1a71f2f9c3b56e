import type { Schema } from "./schema.ts";

const text: Schema = { type: "string" };
const time: Schema = { type: "string", format: "date-time" };
const flag: Schema = { type: "boolean" };
const texts: Schema = { type: "object", additionalProperties: text };

/** `metadata` of every object. A CRD's schema may not describe it, so the caller of a walk adds this one. */
export const OBJECT_META: Schema = {
  type: "object",
  properties: {
    name: text,
    generateName: text,
    namespace: text,
    selfLink: text,
    uid: text,
    resourceVersion: text,
    generation: { type: "integer", format: "int64" },
    creationTimestamp: time,
    deletionTimestamp: time,
    deletionGracePeriodSeconds: { type: "integer", format: "int64" },
    labels: texts,
    annotations: texts,
    finalizers: {
      type: "array",
      items: text,
      "x-kubernetes-list-type": "set",
      "x-kubernetes-patch-strategy": "merge",
    },
    ownerReferences: {
      type: "array",
      items: {
        type: "object",
        required: ["apiVersion", "kind", "name", "uid"],
        properties: { apiVersion: text, kind: text, name: text, uid: text, controller: flag, blockOwnerDeletion: flag },
        "x-kubernetes-map-type": "atomic",
      },
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["uid"],
      "x-kubernetes-patch-merge-key": "uid",
      "x-kubernetes-patch-strategy": "merge",
    },
    managedFields: {
      type: "array",
      items: {
        type: "object",
        properties: {
          manager: text,
          operation: text,
          apiVersion: text,
          time,
          fieldsType: text,
          fieldsV1: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
          subresource: text,
        },
      },
      "x-kubernetes-list-type": "atomic",
    },
  },
};

const TYPE_META: Readonly<Record<string, Schema>> = { apiVersion: text, kind: text };

/** What is known at the root of any object, whether or not its schema says so. `metadata` of the schema is used when it says more than `type: object`. */
export function envelopeProperty(name: string, described: Schema | undefined): Schema | undefined {
  if (name === "metadata") return described?.$ref === undefined ? OBJECT_META : described;
  return described ?? TYPE_META[name];
}
