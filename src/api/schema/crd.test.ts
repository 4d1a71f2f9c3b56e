import { describe, expect, it } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { renderGeneratedFiles } from "../generated-files.ts";
import { calicoNames } from "../names.ts";
import { customResourceDefinitions } from "./crd.ts";
import type { Schema } from "./schema.ts";
import { structuralProblems } from "./schema-structural.ts";

const crds = customResourceDefinitions();

/** Every schema in a schema, with the path that leads to it. */
function* parts(schema: Schema, path = ""): Generator<[string, Schema]> {
  yield [path, schema];
  for (const [name, inner] of Object.entries(schema.properties ?? {})) yield* parts(inner, `${path}.${name}`);
  if (schema.items) yield* parts(schema.items, `${path}[]`);
  if (typeof schema.additionalProperties === "object") yield* parts(schema.additionalProperties, `${path}.*`);
}

describe.each(crds.map((crd) => [crd.metadata.name, crd] as const))("%s", (_name, crd) => {
  const version = crd.spec.versions[0]!;
  const schema = version.schema.openAPIV3Schema;

  it("has a structural schema", () => expect(structuralProblems(schema)).toEqual([]));

  it("explains every field in a sentence", () => {
    const silent = [...parts(schema)].filter(
      ([path, part]) => path !== ".metadata" && !/^[A-Z*].*[.]$/.test(part.description ?? ""),
    );
    expect(silent.map(([path]) => path)).toEqual([]);
  });

  it("has keys that every item of a keyed list has", () => {
    for (const [path, { items, "x-kubernetes-list-map-keys": keys = [] }] of parts(schema)) {
      for (const key of keys) expect(items?.required, path).toContain(key);
    }
  });

  it("leaves defaults to the version that runs", () => {
    expect([...parts(schema)].filter(([, part]) => part.default !== undefined)).toEqual([]);
  });

  it("shows columns of fields it has", () => {
    for (const { jsonPath } of version.additionalPrinterColumns) {
      const [root, ...rest] = jsonPath
        .replace(/\[\?.*?\]/, "")
        .slice(1)
        .split(".");
      if (root === "metadata" || rest[0] === "computed") continue;
      let here = schema.properties?.[root!];
      for (const step of rest) here = (here?.items ?? here)?.properties?.[step];
      expect(here, jsonPath).toBeDefined();
    }
  });
});

describe("all definitions together", () => {
  it("cover the nouns of the design, operator kinds first", () => {
    expect(crds.map((crd) => `${crd.spec.names.kind}.${crd.spec.group}`)).toEqual([
      "Installation.operator.vendor.io",
      "APIServer.operator.vendor.io",
      "FlowLogs.operator.vendor.io",
      "FlowUI.operator.vendor.io",
      "VendorStatus.operator.vendor.io",
      ...[
        "DataplaneConfiguration",
        "KubeControllersConfiguration",
        "ClusterInformation",
        "Tier",
        "NetworkPolicy",
        "GlobalNetworkPolicy",
        "StagedNetworkPolicy",
        "StagedGlobalNetworkPolicy",
        "StagedKubernetesNetworkPolicy",
        "NetworkSet",
        "GlobalNetworkSet",
        "Profile",
        "HostEndpoint",
        "IPPool",
        "IPReservation",
        "BGPConfiguration",
        "BGPPeer",
        "BGPFilter",
        "NodeStatus",
        "IPAMConfiguration",
        "IPAMBlock",
        "BlockAffinity",
        "IPAMHandle",
      ].map((kind) => `${kind}.crd.vendor.io`),
    ]);
  });

  it("can be printed for the public system, with its fields left open", () => {
    const felix = customResourceDefinitions(calicoNames).find((crd) => crd.spec.names.kind === "FelixConfiguration")!;
    expect(felix.metadata.name).toBe("felixconfigurations.crd.projectcalico.org");
    const spec = felix.spec.versions[0]!.schema.openAPIV3Schema.properties?.["spec"];
    expect(spec).toEqual({ type: "object", "x-kubernetes-preserve-unknown-fields": true });
  });

  it("make one manifest without aliases, one document each", () => {
    const manifest = renderGeneratedFiles()["manifests/operator-crds.yaml"]!;
    expect(manifest).not.toMatch(/[&*]a\d/);
    expect(parseAllDocuments(manifest).map((document) => document.toJS())).toEqual(JSON.parse(JSON.stringify(crds)));
  });
});

it("a definition as it is printed", () => {
  const tier = crds.find((crd) => crd.spec.names.kind === "Tier");
  expect(stringify(tier, { lineWidth: 0 })).toMatchInlineSnapshot(`
    "apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata:
      name: tiers.crd.vendor.io
    spec:
      group: crd.vendor.io
      names:
        kind: Tier
        listKind: TierList
        plural: tiers
        singular: tier
        categories:
          - vendor
      scope: Cluster
      versions:
        - name: v1
          served: true
          storage: true
          schema:
            openAPIV3Schema:
              type: object
              description: A group of policies; tiers are asked in order, and each decides or passes on.
              properties:
                apiVersion:
                  type: string
                  description: The API group and version this object is written in.
                kind:
                  type: string
                  description: The kind of this object.
                metadata:
                  type: object
                spec:
                  type: object
                  description: The tier.
                  properties:
                    order:
                      type: number
                      description: Place among the tiers, lowest first; 1000000 where it is left out.
                    defaultAction:
                      type: string
                      description: What happens to traffic a policy of the tier selects and no rule matches.
                      enum:
                        - Deny
                        - Pass
          additionalPrinterColumns:
            - name: Order
              type: number
              jsonPath: .spec.order
              description: Place among the tiers
            - name: DefaultAction
              type: string
              jsonPath: .spec.defaultAction
              description: What happens at its end
            - name: Age
              type: date
              jsonPath: .metadata.creationTimestamp
              description: Time since the object was created
    "
  `);
});
