import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { renderGeneratedFiles as crds } from "../../api/generated-files.ts";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { VERSION } from "../../api/tables/release.ts";
import { validateObject } from "../../api/validation/validate.ts";
import { imageFor } from "../render/image.ts";
import { manifestVariants } from "./manifest-variants.ts";
import { renderGeneratedFiles } from "./published-files.ts";

const files = renderGeneratedFiles();
const { manifests, ready } = vendorNames;

function fileText(path: string): string {
  const text = files[path];
  if (text === undefined) throw new Error(`nothing prints ${path}`);
  return text;
}

function documents(text: string): KubeObject[] {
  return parseAllDocuments(text)
    .map((document) => {
      expect(document.errors).toEqual([]);
      return document.toJS() as KubeObject | null;
    })
    .filter((object) => object !== null);
}

const manifest = (name: string) => documents(fileText(`manifests/${name}`));
const names = (objects: readonly KubeObject[]) => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);

interface Container {
  name: string;
  image: string;
  env?: { name: string; value?: string; valueFrom?: { configMapKeyRef?: { name: string; key: string } } }[];
  envFrom?: object[];
  readinessProbe?: { httpGet?: { path: string } };
}
type Workload = KubeObject & { spec: { template: { spec: { containers: Container[]; volumes?: object[] } } } };

describe("the custom resources", () => {
  const text = fileText(`manifests/${manifests.customResources}`);

  it("are an installation and the v3 API, and right as they are", () => {
    const objects = documents(text);
    expect(names(objects)).toEqual(["Installation default", "APIServer default"]);
    expect(objects.flatMap((object) => validateObject(object, {}))).toEqual([]);
  });

  it("run eBPF after adding the one line of installation step 5", () => {
    const edited = text.replace("  vendorNetwork:\n", "  vendorNetwork:\n    linuxDataplane: BPF\n");
    const [installation] = documents(edited);
    expect(installation).toMatchObject({ spec: { vendorNetwork: { linuxDataplane: "BPF" } } });
    expect(validateObject(installation as KubeObject, {})).toEqual([]);
  });

  it("bring flow logs and their page when those are uncommented", () => {
    const at = text.indexOf("# ---");
    const edited = text.slice(0, at) + text.slice(at).replace(/^# /gm, "");
    expect(names(documents(edited)).slice(2)).toEqual(["FlowLogs default", "FlowUI default"]);
  });

  it("come with eBPF and the service proxy looked after for kinds where eBPF is the default", () => {
    const [installation] = manifest("custom-resources-bpf.yaml");
    expect(installation).toMatchObject({
      spec: { vendorNetwork: { linuxDataplane: "BPF", hostPorts: null, serviceProxyManagement: "Enabled" } },
    });
    expect(validateObject(installation as KubeObject, {})).toEqual([]);
  });
});

describe("the operator's manifest", () => {
  const objects = manifest(manifests.operator);
  const deployment = objects.at(-1) as Workload;

  it("has its namespace first and its Deployment last", () => {
    expect(names(objects)[0]).toBe("Namespace vendor-operator");
    expect(names(objects).at(-1)).toBe("Deployment vendor-operator");
  });

  it("runs where there is no network yet, and reaches the API server by the map's address if there is one", () => {
    expect(deployment).toMatchObject({
      spec: {
        template: {
          spec: {
            hostNetwork: true,
            dnsPolicy: "Default",
            tolerations: [{ operator: "Exists" }],
            containers: [
              {
                image: imageFor({}, VERSION),
                envFrom: [{ configMapRef: { name: "orchestrator-services-endpoint", optional: true } }],
              },
            ],
          },
        },
      },
    });
  });
});

describe.each(manifestVariants(vendorNames))("$file", (variant) => {
  const objects = manifest(variant.file);
  const daemonSet = objects.find(({ kind }) => kind === "DaemonSet") as Workload;
  const { containers } = daemonSet.spec.template.spec;
  const isEtcd = variant.datastore === "etcd";

  it("puts everything into the orchestrator's system namespace", () => {
    const namespaces = new Set(objects.map(({ metadata }) => metadata.namespace).filter(Boolean));
    expect([...namespaces]).toEqual(["kube-system"]);
  });

  it(`runs ${variant.networking === "overlay" ? "vendor-overlay" : "vendor-node"} with as many containers as its READY column says`, () => {
    expect(daemonSet.metadata.name).toBe(variant.networking === "overlay" ? "vendor-overlay" : "vendor-node");
    const expected = isEtcd
      ? ready.etcdDatastore
      : variant.networking === "overlay"
        ? ready.overlay
        : ready.apiDatastore;
    expect(containers.length).toBe(Number(expected.split("/")[1]));
  });

  it("has a second container that is ready when the agent watches Services, or when the overlay is up", () => {
    const overlay = variant.networking === "overlay" && !isEtcd;
    expect(containers[1]?.readinessProbe?.httpGet?.path).toBe(overlay ? "/readyz" : "/readyz/services");
  });

  it(
    isEtcd ? "brings no CRDs, and an etcd to fill in" : "brings the stored kinds' CRDs, and none of the operator's",
    () => {
      const groups = new Set(
        objects
          .filter(({ kind }) => kind === "CustomResourceDefinition")
          .map(({ spec }) => (spec as { group: string }).group),
      );
      expect([...groups]).toEqual(isEtcd ? [] : ["crd.vendor.io"]);
      const settings = objects.find(
        ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === manifests.configMap,
      );
      expect(Object.keys(settings?.["data"] as object).includes("etcd_endpoints")).toBe(isEtcd);
      expect(names(objects).includes("Secret vendor-etcd-secrets")).toBe(isEtcd);
    },
  );

  it("tells its programs where objects are kept, and where the API server is if somebody wrote it down", () => {
    for (const workload of objects.filter(({ kind }) => kind === "DaemonSet" || kind === "Deployment") as Workload[]) {
      const [program] = workload.spec.template.spec.containers;
      expect(program?.env).toContainEqual({ name: "DATASTORE_TYPE", value: isEtcd ? "etcd" : "orchestrator" });
      expect(program?.envFrom).toEqual([{ configMapRef: { name: "orchestrator-services-endpoint", optional: true } }]);
    }
  });

  it("reads only settings that are there", () => {
    const settings = objects.find(({ metadata }) => metadata.name === manifests.configMap)?.["data"] as object;
    const read = containers.flatMap(({ env = [] }) =>
      env.flatMap(({ valueFrom }) => valueFrom?.configMapKeyRef?.key ?? []),
    );
    expect(read.filter((key) => !Object.hasOwn(settings, key))).toEqual([]);
  });
});

describe("the mesh's injector maps", () => {
  it.each(["1.1.0", "1.5", "1.10", "1.15"])("add the sidecar for version %s", (version) => {
    const [map] = manifest(manifests.sidecarInjector(version));
    const config = parse((map!["data"] as { config: string }).config) as {
      template?: string;
      templates?: { vendor: string };
    };
    const injected = parse(config.template ?? config.templates?.vendor ?? "") as { spec?: object };
    const { containers } = (injected.spec ?? injected) as { containers: object[] };
    expect(containers).toContainEqual(
      expect.objectContaining({ name: "vendor-policy-sidecar", image: imageFor({}, VERSION) }),
    );
  });
});

describe("every published file", () => {
  const published = Object.entries({ ...crds(), ...files }).filter(
    ([path]) => path.endsWith(".yaml") && !path.includes("/templates/"),
  );

  it.each(published)("%s reads the same in YAML 1.1, which kubectl and helm read, and in YAML 1.2", (_path, text) => {
    const read = (version: "1.1" | "1.2") => parseAllDocuments(text, { version }).map((each) => each.toJS() as unknown);
    expect(read("1.1")).toEqual(read("1.2"));
  });
});
