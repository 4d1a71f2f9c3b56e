import { describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { differences, whoChanged } from "./field-diff.ts";

const wanted: KubeObject = {
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name: "agent", labels: { app: "agent" } },
  spec: {
    template: {
      spec: {
        tolerations: [{ operator: "Exists" }],
        containers: [{ name: "a", image: "x:1", env: [{ name: "E", value: "1" }] }],
      },
    },
  },
};

/** As a server keeps it after we applied it. */
const owned = {
  "f:metadata": { "f:labels": { "f:app": {} } },
  "f:spec": {
    "f:template": {
      "f:spec": {
        "f:tolerations": {},
        "f:containers": {
          'k:{"name":"a"}': {
            ".": {},
            "f:name": {},
            "f:image": {},
            "f:env": { 'k:{"name":"E"}': { ".": {}, "f:name": {}, "f:value": {} } },
          },
        },
      },
    },
  },
};

function live(
  change: (spec: Record<string, unknown>) => void = () => {},
  fieldsV1: Record<string, unknown> = owned,
): KubeObject {
  const copy = structuredClone(wanted);
  const spec = (copy["spec"] as { template: { spec: Record<string, unknown> } }).template.spec;
  change(spec);
  const ours = { manager: "us", operation: "Apply" as const, fieldsV1 };
  const theirs = {
    manager: "kubectl-edit",
    operation: "Update" as const,
    time: "2030-01-01T00:00:00Z",
    fieldsV1: { "f:spec": { "f:template": { "f:spec": { "f:containers": { 'k:{"name":"a"}': { "f:image": {} } } } } } },
  };
  return { ...copy, metadata: { ...copy.metadata, managedFields: [ours, theirs] } };
}

const paths = (object: KubeObject, want = wanted) => differences(want, object, "us").map(({ path }) => path);

describe("where a live object differs", () => {
  it("nowhere, when it is as applied, with what the server and others added", () => {
    expect(paths(live())).toEqual([]);
    expect(
      paths(
        live((spec) =>
          Object.assign(spec, {
            dnsPolicy: "ClusterFirst",
            containers: [
              {
                name: "a",
                image: "x:1",
                imagePullPolicy: "Always",
                env: [
                  { name: "E", value: "1" },
                  { name: "THEIRS", value: "2" },
                ],
              },
              { name: "sidecar" },
            ],
          }),
        ),
      ),
    ).toEqual([]);
  });

  it("at a field with another value, at one that is gone, and at a list owned whole with more in it", () => {
    const change = (spec: Record<string, unknown>) =>
      Object.assign(spec, {
        tolerations: [{ operator: "Exists" }, { key: "x" }],
        containers: [{ name: "a", image: "y:2", env: [] }],
      });
    expect(paths(live(change))).toEqual([
      "spec.template.spec.tolerations",
      "spec.template.spec.containers[name=a].image",
      "spec.template.spec.containers[name=a].env[name=E]",
    ]);
  });

  it("at what we own and no longer want", () => {
    const less = structuredClone(wanted);
    (less["spec"] as { template: { spec: { containers: { env?: unknown }[] } } }).template.spec.containers = [
      { name: "a", image: "x:1" },
    ] as never;
    expect(paths(live(), less)).toEqual(["spec.template.spec.containers[name=a].env"]);
  });

  it("at what somebody took from us, and says who", () => {
    const taken = structuredClone(owned) as typeof owned;
    delete (taken["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"a"}'] as Record<string, unknown>)[
      "f:image"
    ];
    const object = live(
      (spec) => Object.assign(spec, { containers: [{ name: "a", image: "mine", env: [{ name: "E", value: "1" }] }] }),
      taken,
    );
    const [difference] = differences(wanted, object, "us");
    expect(difference?.path).toBe("spec.template.spec.containers[name=a].image");
    expect(difference && whoChanged(object, difference, "us")).toEqual({
      manager: "kubectl-edit",
      time: "2030-01-01T00:00:00Z",
    });
  });

  it("everywhere, when we never applied it", () => {
    expect(paths({ ...wanted, metadata: { name: "agent" } })).toEqual([""]);
  });
});
