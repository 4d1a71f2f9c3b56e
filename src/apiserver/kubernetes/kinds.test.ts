import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { applyDefaults, pruneUnknown, validateAgainst } from "../../api/schema/schema-walk.ts";
import type { ServedKind } from "../resource.ts";
import { kubernetesKinds } from "./kinds.ts";

const kinds = kubernetesKinds();
const kindOf = (name: string): ServedKind => kinds.find((kind) => kind.kind === name)!;

describe("Kubernetes' own kinds", () => {
  it("are each served once, by one name", () => {
    const names = kinds.map((kind) => `${kind.group}/${kind.version}/${kind.plural}`);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain("/v1/endpoints");
    expect(names).toContain("networking.k8s.io/v1/networkpolicies");
    expect(kindOf("Deployment")).toMatchObject({ plural: "deployments", shortNames: ["deploy"], categories: ["all"] });
  });

  it("only ever refer to types that are there", () => {
    const { definitions } = kinds[0]!;
    const missing = [...JSON.stringify(definitions).matchAll(/"#\/definitions\/([^"]+)"/g)]
      .map((match) => match[1]!)
      .filter((name) => definitions[name] === undefined);
    expect(missing).toEqual([]);
  });

  it("know which lists are maps, and by which keys: server-side apply and strategic merge depend on it", () => {
    const type = (name: string) => kindOf("Pod").definitions[name]!.properties!;
    expect(type("io.k8s.api.core.v1.Container")["ports"]).toMatchObject({
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
      "x-kubernetes-patch-merge-key": "containerPort",
    });
    expect(type("io.k8s.api.core.v1.ContainerPort")["protocol"]!.default).toBe("TCP");
    expect(type("io.k8s.api.core.v1.Container")["env"]!["x-kubernetes-list-map-keys"]).toEqual(["name"]);
    expect(type("io.k8s.api.core.v1.PodStatus")["conditions"]!["x-kubernetes-list-map-keys"]).toEqual(["type"]);
    expect(type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")["ownerReferences"]).toMatchObject({
      "x-kubernetes-list-map-keys": ["uid"],
    });
    expect(type("io.k8s.api.core.v1.PodSpec")["volumes"]!["x-kubernetes-patch-strategy"]).toBe("merge,retainKeys");
  });

  it("let clients select by what Kubernetes lets them", () => {
    const pod = { spec: { nodeName: "n1" }, status: { phase: "Running" } } as unknown as KubeObject;
    const read = kindOf("Pod").selectable;
    expect(read["spec.nodeName"]!(pod)).toBe("n1");
    expect(read["status.phase"]!(pod)).toBe("Running");
    expect(kindOf("Node").selectable["spec.unschedulable"]!({ spec: {} } as unknown as KubeObject)).toBe("false");
  });

  it("describe their objects well enough to refuse what Kubernetes refuses", () => {
    const { schema, definitions } = kindOf("Deployment");
    const deployment = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", creationTimestamp: null },
      spec: {
        replicas: "three",
        colour: "red",
        strategy: { type: "Rolling" },
        template: { spec: { containers: [{ image: "web", resources: { limits: { cpu: 2 } } }] } },
      },
    };
    expect(pruneUnknown(schema, definitions, deployment)).toEqual(["spec.colour"]);
    applyDefaults(schema, definitions, deployment);
    expect(validateAgainst(schema, definitions, deployment).map((p) => `${p.path}: ${p.message}`)).toEqual([
      'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
      'spec.strategy.type: Unsupported value: "Rolling": supported values: "Recreate", "RollingUpdate"',
      "spec.template.spec.containers[0].name: Required value",
    ]);
  });

  it("accept schemas within schemas: a custom resource definition", () => {
    const { schema, definitions } = kindOf("CustomResourceDefinition");
    const crd = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "gates.example.io" },
      spec: {
        group: "example.io",
        scope: "Cluster",
        names: { plural: "gates", kind: "Gate" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            subresources: { status: {} },
            schema: {
              openAPIV3Schema: {
                type: "object",
                properties: { spec: { type: "object", additionalProperties: { type: "string" }, default: { a: "b" } } },
              },
            },
          },
        ],
      },
    };
    const before = structuredClone(crd);
    expect(pruneUnknown(schema, definitions, crd)).toEqual([]);
    applyDefaults(schema, definitions, crd);
    expect(validateAgainst(schema, definitions, crd)).toEqual([]);
    expect(crd).toEqual(before);
  });
});
