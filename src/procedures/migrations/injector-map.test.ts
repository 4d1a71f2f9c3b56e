import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { inject } from "../../../test/sidecar/inject.ts";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { injectedByMap, keepMeshTemplates } from "./injector-map.ts";

const POD = { apiVersion: "v1", kind: "Pod", metadata: { name: "cart" }, spec: { containers: [{ name: "main" }] } };
const PROXY = { name: "mesh-proxy", image: "mesh/proxy:1", volumeMounts: [{ name: "certs", mountPath: "/certs" }] };
const CERTS = { name: "certs", secret: { secretName: "certs" } };

const fileOf = (version: string) =>
  parse(readFileSync(`manifests/alp/mesh-inject-configmap-${version}.yaml`, "utf8")) as KubeObject;

function meshMap(config: object): KubeObject {
  return { ...fileOf("1.15"), data: { config: JSON.stringify(config), values: "{}" } } as KubeObject;
}

const TEMPLATE = `initContainers:
- name: mesh-init
containers:
- name: mesh-proxy
  image: mesh/proxy:1
  volumeMounts:
  - name: certs
    mountPath: /certs
volumes:
- name: certs
  secret:
    secretName: certs
`;
const LIVE = {
  template: meshMap({ policy: "enabled", template: TEMPLATE }),
  templates: meshMap({
    policy: "disabled",
    defaultTemplates: ["sidecar"],
    templates: { sidecar: JSON.stringify({ spec: { containers: [PROXY], volumes: [CERTS] } }), gateway: "spec: {}" },
  }),
};

interface Spec {
  containers: { name: string; volumeMounts?: { name: string; mountPath: string }[] }[];
  volumes: { name: string; csi?: object }[];
}

describe("the injector's map of each mesh version", () => {
  it.each([
    ["1.1.0", LIVE.template],
    ["1.5", LIVE.template],
    ["1.10", LIVE.templates],
    ["1.15", LIVE.templates],
  ])("%s adds the sidecar to what the mesh injects, and the proxy can reach it", (version, live) => {
    const map = keepMeshTemplates(fileOf(version), live, vendorNames);
    const { containers, volumes } = inject(map, POD)["spec"] as Spec;
    expect(containers.map(({ name }) => name).sort()).toEqual(["main", "mesh-proxy", "vendor-policy-sidecar"]);
    expect(volumes.map(({ name }) => name).sort()).toEqual(["certs", "vendor-nodeagent", "vendor-policy"]);
    expect(volumes.find(({ name }) => name === "vendor-nodeagent")?.csi).toEqual({
      driver: "csi.vendor.io",
      readOnly: true,
    });
    const [proxy, sidecar] = ["mesh-proxy", "vendor-policy-sidecar"].map((name) =>
      containers.find((one) => one.name === name),
    );
    const shared = { name: "vendor-policy", mountPath: "/var/run/vendor-policy" };
    expect(proxy?.volumeMounts).toContainEqual(shared);
    expect(proxy?.volumeMounts).toContainEqual(PROXY.volumeMounts[0]);
    expect(sidecar?.volumeMounts).toContainEqual(shared);
    // A second time, and over what an earlier release of ours had added, nothing is there twice.
    expect(keepMeshTemplates(fileOf(version), map, vendorNames)).toEqual(map);
  });

  it("keeps what else the mesh's map says", () => {
    const { data } = keepMeshTemplates(fileOf("1.15"), LIVE.templates, vendorNames) as unknown as {
      data: { config: string };
    };
    expect(parse(data.config)).toMatchObject({ policy: "disabled", templates: { gateway: "spec: {}" } });
  });

  it("a template that it cannot be added to is refused before anything is changed", () => {
    const foreign = meshMap({ template: "containers:\n- name: other\n" });
    expect(() => keepMeshTemplates(fileOf("1.5"), foreign, vendorNames)).toThrow("no container mesh-proxy");
  });

  it("where there is no map of a mesh, the release's file is applied as it is", () => {
    for (const version of ["1.1.0", "1.15"]) {
      expect(keepMeshTemplates(fileOf(version), undefined, vendorNames)).toEqual(fileOf(version));
      expect(injectedByMap(fileOf(version), vendorNames)?.containers?.at(-1)?.name).toBe("vendor-policy-sidecar");
    }
  });
});
