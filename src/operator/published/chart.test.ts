import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { customResourceDefinitions } from "../../api/schema/crd.ts";
import type { Schema } from "../../api/schema/schema.ts";
import { VERSION } from "../../api/tables/release.ts";
import { imageFor } from "../render/image.ts";
import { renderGeneratedFiles } from "./published-files.ts";
import { type ChartValues, isHook, renderTemplate, withValues } from "./testing-chart.fixture.ts";
import { valuesSchema } from "./values-schema.ts";

const files = renderGeneratedFiles();
const { manifests } = vendorNames;
const CHART = "charts/vendor-operator/";

const chart = (path: string): string => {
  const text = files[CHART + path];
  if (text === undefined) throw new Error(`nothing prints ${path}`);
  return text;
};
const documents = (text: string, version: "1.1" | "1.2" = "1.1"): KubeObject[] =>
  parseAllDocuments(text, { version })
    .map((document) => {
      expect(document.errors).toEqual([]);
      return document.toJS() as KubeObject | null;
    })
    .filter((object) => object !== null);
const manifest = (name: string) => documents(files[`manifests/${name}`] ?? "");
const names = (objects: readonly KubeObject[]) => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);

const templates = Object.keys(files).filter((path) => path.startsWith(`${CHART}templates/`) && path.endsWith(".yaml"));

function byOurRenderer(values: ChartValues): string {
  return templates.map((path) => renderTemplate(files[path]!, values)).join("");
}

/** Helm itself, if it is here: its language is larger than what our renderer knows. */
const helm = (...args: string[]) => spawnSync("helm", args, { encoding: "utf8" });
const withHelm = helm("version", "--short").status === 0;
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "chart-"));
  for (const [path, text] of Object.entries(files).filter(([each]) => each.startsWith(CHART))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Without a cluster, helm takes the version it was built with. */
const helmTemplate = (...args: string[]) =>
  helm("template", "vendor", join(folder, CHART), "--kube-version", "1.31.0", ...args);

function byHelm(values: ChartValues): string {
  const file = join(folder, "values.json");
  writeFileSync(file, JSON.stringify(values));
  const made = helmTemplate("--namespace", "vendor-operator", "--values", file);
  if (made.status !== 0) throw new Error(made.stderr);
  return made.stdout;
}

const RENDERERS = [
  { by: "our renderer", render: byOurRenderer, skip: false },
  { by: `helm${withHelm ? "" : " (needs helm)"}`, render: byHelm, skip: !withHelm },
];

for (const { by, render, skip } of RENDERERS) {
  describe.skipIf(skip)(`the chart by ${by}`, () => {
    const rendered = (set: (values: ChartValues) => void = () => {}) =>
      documents(render(withValues(chart("values.yaml"), set)));
    const release = (set?: (values: ChartValues) => void) => rendered(set).filter((object) => !isHook(object));
    const deployment = (objects: KubeObject[]) =>
      objects.find(({ kind }) => kind === "Deployment") as unknown as {
        spec: { selector: object; template: { metadata: object; spec: Record<string, unknown> } };
      };

    it("installs with its own values what the manifest and the custom resources install", () => {
      const desired = [...manifest(manifests.operator), ...manifest(manifests.customResources)];
      const objects = release();
      expect(names(objects).sort()).toEqual(
        names(desired)
          .filter((name) => !name.startsWith("Namespace"))
          .sort(),
      );
      for (const object of objects) {
        const same = desired.find(
          (other) => names([other])[0] === names([object])[0] && other.metadata.namespace === object.metadata.namespace,
        )!;
        if (object.kind === "Deployment") {
          const { dnsConfig, imagePullSecrets, affinity, ...pod } = deployment([object]).spec.template.spec;
          expect([dnsConfig, imagePullSecrets, affinity]).toEqual([{}, [], {}]);
          expect(pod).toEqual(deployment([same]).spec.template.spec);
          expect(deployment([object]).spec.selector).toEqual(deployment([same]).spec.selector);
        } else {
          const { metadata: _own, ...content } = object;
          const { metadata: _same, ...sameContent } = same;
          expect(content).toEqual(sameContent);
        }
      }
    });

    it("labels every object with the release and the chart", () => {
      for (const { metadata } of rendered()) {
        expect(metadata.labels).toMatchObject({
          "app.kubernetes.io/name": "vendor-operator",
          "app.kubernetes.io/instance": "vendor",
          "app.kubernetes.io/version": VERSION,
          "app.kubernetes.io/managed-by": "Helm",
          "helm.sh/chart": `vendor-operator-${VERSION}`,
        });
      }
    });

    it("reads the same in YAML 1.1 and in YAML 1.2", () => {
      const set = withValues(chart("values.yaml"), (values) => {
        values.apiEndpoint = { host: "on", port: "0123" };
        values.podLabels = { "example.test/off": "yes" };
      });
      for (const values of [withValues(chart("values.yaml"), () => {}), set]) {
        const text = render(values);
        expect(documents(text, "1.1")).toEqual(documents(text, "1.2"));
      }
    });

    it("writes the endpoint map with a port that is text, whatever it is given as", () => {
      for (const port of ["6443", 6443]) {
        const objects = release((values) => {
          values.apiEndpoint = { host: "api.example.test", port };
        });
        expect(objects.find(({ metadata }) => metadata.name === "orchestrator-services-endpoint")).toMatchObject({
          metadata: { namespace: "vendor-operator" },
          data: { ORCHESTRATOR_SERVICE_HOST: "api.example.test", ORCHESTRATOR_SERVICE_PORT: "6443" },
        });
      }
    });

    it("sets the operator's pod by values", () => {
      const objects = release((values) => {
        values.dnsConfig = { nameservers: ["169.254.169.253"] };
        values.image.registry = "mirror.example.test";
        values.imagePullSecrets = [{ name: "pull" }];
        values.affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } };
        values.priorityClassName = "mine";
        values.podAnnotations = { "example.test/team": "network" };
        values.podLabels = { team: "network" };
        values.extraEnv = [{ name: "METRICS_PORT", value: "9441" }];
      });
      const { metadata, spec } = deployment(objects).spec.template;
      expect(metadata).toEqual({
        annotations: { "example.test/team": "network" },
        labels: {
          "k8s-app": "vendor-operator",
          "app.kubernetes.io/name": "vendor-operator",
          "app.kubernetes.io/instance": "vendor",
          team: "network",
        },
      });
      expect(spec).toMatchObject({
        dnsConfig: { nameservers: ["169.254.169.253"] },
        imagePullSecrets: [{ name: "pull" }],
        affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
        priorityClassName: "mine",
        containers: [{ image: imageFor({ registry: "mirror.example.test" }, VERSION) }],
      });
      const [container] = spec["containers"] as { env: object[] }[];
      expect(container?.env.at(-1)).toEqual({ name: "METRICS_PORT", value: "9441" });
    });

    it("creates the custom resources that are enabled, and keeps an Installation that is disabled later", () => {
      const kinds = (set: (values: ChartValues) => void) =>
        release(set)
          .filter(({ apiVersion }) => apiVersion === "operator.vendor.io/v1")
          .map(({ kind }) => kind);
      expect(kinds((values) => Object.assign(values.installation, { enabled: false }))).toEqual(["APIServer"]);
      expect(kinds((values) => Object.assign(values.flowLogs, { enabled: true }))).toContain("FlowLogs");
      const kept = release().filter(({ metadata }) => metadata.annotations?.["helm.sh/resource-policy"] === "keep");
      expect(names(kept)).toEqual(["Installation default"]);
    });

    it("creates what the Prometheus operator reads where that is asked for, as it is published", () => {
      const monitored = ({ apiVersion }: KubeObject) => apiVersion.startsWith("monitoring.coreos.com/");
      expect(release().filter(monitored)).toEqual([]);
      const created = release((values) => Object.assign(values.monitoring, { enabled: true })).filter(monitored);
      const published = manifest("monitoring.yaml");
      expect(names(created)).toEqual(names(published));
      for (const [at, { spec }] of published.entries()) expect(created[at]!.spec).toEqual(spec);
    });

    it("deletes the custom resources before the operator, in the node's network and with the rights for this alone", () => {
      const hooks = rendered().filter(isHook);
      expect(names(hooks).sort()).toEqual(
        ["ClusterRole", "ClusterRoleBinding", "Job", "Role", "RoleBinding", "ServiceAccount"].map(
          (kind) => `${kind} vendor-operator-pre-delete`,
        ),
      );
      const weight = ({ metadata }: KubeObject) => Number(metadata.annotations?.["helm.sh/hook-weight"]);
      const job = hooks.find(({ kind }) => kind === "Job")!;
      for (const other of hooks.filter((each) => each !== job)) expect(weight(other)).toBeLessThan(weight(job));
      expect(job).toMatchObject({
        metadata: { annotations: { "helm.sh/hook": "pre-delete" } },
        spec: {
          template: {
            spec: {
              hostNetwork: true,
              tolerations: [{ operator: "Exists" }],
              containers: [{ command: ["vendor", "pre-delete"], image: imageFor({}, VERSION) }],
            },
          },
        },
      });
      const { rules } = hooks.find(({ kind }) => kind === "ClusterRole") as unknown as { rules: { verbs: string[] }[] };
      expect(rules.map(({ verbs }) => verbs)).toEqual([["get", "delete"], ["list"]]);
      expect(rendered((values) => Object.assign(values.uninstall, { enabled: false })).filter(isHook)).toEqual([]);
    });
  });
}

describe("the chart", () => {
  it("has the version of the product, and the CRDs that are published", () => {
    expect(parse(chart("Chart.yaml"))).toMatchObject({
      name: "vendor-operator",
      version: VERSION,
      appVersion: VERSION,
    });
    expect(documents(chart("crds/operator-crds.yaml"))).toEqual(
      JSON.parse(JSON.stringify(customResourceDefinitions())) as unknown,
    );
  });

  it("refuses another namespace with a sentence", () => {
    const values = withValues(chart("values.yaml"), () => {});
    const check = () => renderTemplate(chart("templates/release-namespace.yaml"), values, { Namespace: "default" });
    expect(check).toThrow(/runs in the namespace vendor-operator only. Install with: helm install /);
  });

  it("names the next commands for the values it has", () => {
    const notes = (set: (values: ChartValues) => void) =>
      renderTemplate(chart("templates/NOTES.txt"), withValues(chart("values.yaml"), set));
    const usual = notes(() => {});
    expect(usual).toContain("kubectl wait --for=condition=Ready installation/default");
    expect(usual).toContain("pod-security.kubernetes.io/enforce=privileged");
    expect(usual).toContain("helm show crds CHART | kubectl apply --server-side");
    expect(usual).toContain("apiEndpoint.host is empty");
    expect(notes((values) => Object.assign(values.apiEndpoint, { host: "api" }))).not.toContain("is empty");
    expect(notes((values) => Object.assign(values.installation, { enabled: false }))).toContain(
      "kubectl create -f custom-resources.yaml",
    );
    expect(notes((values) => Object.assign(values.uninstall, { enabled: false }))).not.toContain("pre-delete");
  });
});

describe("the schema of the values", () => {
  interface Described {
    type?: string;
    properties?: Record<string, Described>;
    additionalProperties?: unknown;
  }
  const schema = JSON.parse(chart("values.schema.json")) as Described;

  it("describes every value of values.yaml, and no other", () => {
    const values = parse(chart("values.yaml")) as Record<string, unknown>;
    expect(Object.keys(schema.properties ?? {})).toEqual([...Object.keys(values), "global"]);
    expect(schema.additionalProperties).toBe(false);
    expect(schema.properties?.["apiEndpoint"]?.additionalProperties).toBe(false);
    const network = schema.properties?.["installation"]?.properties?.["spec"]?.properties?.["vendorNetwork"];
    expect(network?.additionalProperties).toBe(false);
  });

  it("translates the dialect of CRDs", () => {
    const jsonSchema = (schema: Schema) => (valuesSchema({ one: schema })["properties"] as { one: unknown }).one;
    expect(jsonSchema({ type: "string", enum: ["A"], nullable: true })).toEqual({
      type: ["string", "null"],
      enum: ["A", null],
    });
    expect(jsonSchema({ "x-kubernetes-int-or-string": true, pattern: "^1" })).toEqual({
      type: ["integer", "string"],
      pattern: "^1",
    });
    expect(jsonSchema({ type: "object", "x-kubernetes-preserve-unknown-fields": true })).toEqual({ type: "object" });
    expect(jsonSchema({ type: "object", properties: {} })).toEqual({
      type: "object",
      properties: {},
      additionalProperties: false,
    });
  });
});

describe.skipIf(!withHelm)(`helm with the chart${withHelm ? "" : " (needs helm)"}`, () => {
  it("finds no fault in it", () => {
    const { status, stdout } = helm("lint", "--strict", join(folder, CHART), "--namespace", "vendor-operator");
    expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringContaining("0 chart(s) failed") });
  });

  it.each([
    ["installation.spec.vendorNetwork.linuxDataplan=BPF", "linuxDataplan"],
    ["installation.spec.vendorNetwork.linuxDataplane=EBPF", "linuxDataplane"],
    ["apiEndpoint.prot=443", "prot"],
    ["tolerations[0].operator=Exist", "tolerations"],
    ["whisker.enabled=true", "whisker"],
    ["podLabels.k8s-app=other", "podLabels"],
  ])("refuses --set %s", (value, named) => {
    const { status, stderr } = helmTemplate("--namespace", "vendor-operator", "--set", value);
    expect(status).toBe(1);
    expect(stderr).toContain("values don't meet the specifications of the schema");
    expect(stderr).toContain(named);
  });

  it("refuses another namespace", () => {
    const { status, stderr } = helmTemplate("--namespace", "net");
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringContaining("runs in the namespace vendor-operator only"),
    });
  });
});
