import type { KubeObject, ManagedFieldsEntry } from "../../api/object.ts";
import type { Schema } from "../../api/schema/schema.ts";
import { StatusError } from "../../api/status.ts";
import { fieldOwnership, type Who } from "./managed-fields.ts";

export const text: Schema = { type: "string" };
const number: Schema = { type: "integer" };

/** A Deployment, as far as these stories need one. */
export const deployments = fieldOwnership({
  status: true,
  definitions: {
    "k8s.Container": {
      type: "object",
      properties: {
        name: text,
        image: text,
        args: { type: "array", items: text },
        ports: {
          type: "array",
          items: {
            type: "object",
            properties: { containerPort: number, protocol: { ...text, default: "TCP" }, name: text },
          },
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        },
      },
    },
  },
  schema: {
    type: "object",
    properties: {
      spec: {
        type: "object",
        properties: {
          replicas: number,
          paused: { type: "boolean" },
          selector: { type: "object", additionalProperties: text, "x-kubernetes-map-type": "atomic" },
          containers: {
            type: "array",
            items: { $ref: "#/definitions/k8s.Container" },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
          },
        },
      },
      status: { type: "object", properties: { readyReplicas: number } },
    },
  },
});

/** A custom resource: one set, one atomic list, one part without a schema. */
export const pools = fieldOwnership({
  custom: true,
  status: false,
  definitions: {},
  schema: {
    type: "object",
    properties: {
      spec: {
        type: "object",
        properties: {
          cidr: text,
          zones: { type: "array", items: text, "x-kubernetes-list-type": "set" },
          order: { type: "array", items: text },
          extra: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        },
      },
    },
  },
});

export const at = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, "0")}:00Z`;
export const who = (manager: string, minute = 0, more: Partial<Who> = {}): Who => ({
  manager,
  apiVersion: "apps/v1",
  time: at(minute),
  ...more,
});

export function deployment(spec: Record<string, unknown>, metadata: Partial<KubeObject["metadata"]> = {}): KubeObject {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "default", ...metadata },
    spec,
  };
}

export function pool(spec: Record<string, unknown>): KubeObject {
  return { apiVersion: "vendor.io/v3", kind: "IPPool", metadata: { name: "main" }, spec };
}

/** The object as a store keeps it: nothing of the writer's memory survives. */
export const stored = (object: KubeObject): KubeObject => JSON.parse(JSON.stringify(object)) as KubeObject;

/** One line per entry: `kubectl Apply .spec.replicas`. */
export function owners(object: KubeObject): string[] {
  return (object.metadata.managedFields ?? []).map((entry) => {
    const through = entry.subresource ? `/${entry.subresource}` : "";
    return `${entry.manager} ${entry.operation}${through} ${JSON.stringify(entry.fieldsV1)}`;
  });
}

export const times = (object: KubeObject) => Object.fromEntries(entries(object).map((e) => [e.manager, e.time]));
export const entries = (object: KubeObject): ManagedFieldsEntry[] => object.metadata.managedFields ?? [];

export function refusal(attempt: () => unknown): StatusError {
  try {
    attempt();
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error("was not refused");
}

export const created = (spec: Record<string, unknown>, manager = "kubectl-create") =>
  stored(deployments.update(undefined, deployment(spec), who(manager)));
