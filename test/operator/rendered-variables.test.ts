import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { readBgpProgramConfig } from "../../src/agent/bgp/config.ts";
import { AGENT_VARIABLES, INIT_VARIABLES, readAgentConfig, readInitConfig } from "../../src/agent/config.ts";
import { OVERLAY_VARIABLES, readOverlayConfig } from "../../src/agent/separate-overlay/config.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../../src/api/tables/cluster-kinds.ts";
import { runningVersion } from "../../src/api/tables/release.ts";
import { clusterEnv } from "../../src/cluster/config.ts";
import { programTls } from "../../src/cluster/program-tls.ts";
import { logLevelOf } from "../../src/cluster/run-program.ts";
import { INSTALL_VARIABLES, readInstallConfig } from "../../src/cni/config.ts";
import { readControllersConfig } from "../../src/controllers/config.ts";
import { readFlowLogsConfig, readFlowUIConfig } from "../../src/flows/config.ts";
import { NODE_PROGRAMS, PROGRAMS } from "../../src/local/programs/program-table.ts";
import { readOperatorConfig, readPreDeleteConfig } from "../../src/operator/config.ts";
import { renderGeneratedFiles } from "../../src/operator/published/published-files.ts";
import { ordinaryInputs } from "../../src/operator/published/rendered-names.ts";
import { renderTemplate } from "../../src/operator/published/testing-chart.fixture.ts";
import type { Component } from "../../src/operator/render/inputs.ts";
import { renderComponent } from "../../src/operator/render/render-component.ts";
import { readSidecarConfig } from "../../src/sidecar/config.ts";
import { readV3ApiConfig } from "../../src/v3api/config.ts";

type Env = Readonly<Record<string, string | undefined>>;
type Reader = (env: Env) => unknown;

/** What each program reads its environment with. */
const READERS: Readonly<Record<string, readonly Reader[]>> = {
  node: [readAgentConfig],
  bgp: [readBgpProgramConfig],
  "node-init": [readInitConfig],
  "cni-install": [readInstallConfig],
  overlay: [readOverlayConfig],
  "policy-sidecar": [readSidecarConfig],
  controllers: [readControllersConfig],
  operator: [readOperatorConfig],
  "pre-delete": [readPreDeleteConfig],
  apiserver: [readV3ApiConfig, programTls, runningVersion],
  "flow-logs": [readFlowLogsConfig, programTls],
  "flow-ui": [readFlowUIConfig],
};
/** Every program: where the API server is, and how much to log. */
const COMMON: readonly Reader[] = [(env) => clusterEnv(env, false), logLevelOf];

const REQUIRED: Env = {
  NODENAME: "n",
  NET_CONF: '{"Network":"10.244.0.0/16"}',
  POLICY_SOCKET: "/policy",
  LISTEN_SOCKET: "/listen",
};

/** Values without which reading ends early, in as many environments as it takes to read everything. */
const SAMPLES: readonly Env[] = [
  { ...REQUIRED, CNI_CONF_DIR: "/conf" },
  { ...REQUIRED, VENDOR_TLS_CERT: "c", VENDOR_TLS_KEY: "k" },
  { ...REQUIRED, DATASTORE_TYPE: "etcd", ETCD_ENDPOINTS: "http://127.0.0.1:2379" },
];

/** The names a reader asks for, found by giving it an environment that keeps a record. */
function namesRead(readers: readonly Reader[]): Set<string> {
  const names = new Set<string>();
  for (const sample of SAMPLES) {
    const env = new Proxy(sample, {
      get(target, name) {
        if (typeof name === "string") names.add(name);
        return Reflect.get(target, name);
      },
    });
    for (const read of readers) read(env);
  }
  return names;
}

/** What is rendered for a program that is not in this release, or not whole. A row that is no longer needed fails. */
const NOT_READ: readonly { program: string; variables: readonly string[]; why: string }[] = [
  {
    program: "node",
    variables: ["TLS_CERT_FILE", "TLS_KEY_FILE", "CA_FILE"],
    why: "no server asks for the agent's certificate",
  },
  {
    program: "controllers",
    variables: ["TLS_CERT_FILE", "TLS_KEY_FILE", "CA_FILE"],
    why: "nothing asks for their certificate",
  },
];

interface Container {
  name: string;
  /** None: a part of the mesh's own container, to which the injector's templates add. */
  image?: string;
  command?: string[];
  args?: string[];
  env?: { name: string; valueFrom?: { configMapKeyRef?: { name: string; key: string } } }[];
  envFrom?: { configMapRef?: { name: string } }[];
  volumeMounts?: { name: string }[];
}

interface PodSpec {
  containers: Container[];
  initContainers?: Container[];
  volumes?: { name: string; configMap?: { name: string } }[];
}

const COMPONENTS: readonly Component[] = ["network", "ippools", "apiserver", "flow-logs", "flow-ui"];

/** Everything that can be installed, by the file or component that has it. */
function everything(): [string, KubeObject[]][] {
  const files = Object.entries(renderGeneratedFiles());
  const values = parse(files.find(([path]) => path.endsWith("/values.yaml"))?.[1] ?? "") as object;
  const plain = files
    .filter(([path]) => path.endsWith(".yaml") && path.startsWith("manifests/"))
    .map(([path, text]) => [path, objectsOf(text)] as [string, KubeObject[]]);
  const chart = files
    .filter(([path]) => path.includes("/templates/") && path.endsWith(".yaml"))
    .map(([path, text]) => [path, objectsOf(renderTemplate(text, values))] as [string, KubeObject[]]);
  const rendered = (Object.keys(CLUSTER_KINDS) as ClusterKind[]).flatMap((kind) =>
    [false, true].flatMap((bpf) =>
      COMPONENTS.map((component): [string, KubeObject[]] => {
        const inputs = ordinaryInputs(vendorNames, { kind, bpf });
        const installation = { ...inputs.installation, nodeMetricsPort: 9091 };
        return [`${component} on ${kind}`, renderComponent(component, { ...inputs, installation })];
      }),
    ),
  );
  return [...plain, ...chart, ...rendered];
}

function objectsOf(text: string): KubeObject[] {
  return parseAllDocuments(text)
    .map((each) => each.toJS() as KubeObject | null)
    .filter((object) => object !== null);
}

/** Of workloads, and of the pods that a mesh's injector is configured with. */
function podsOf({ kind, spec, data }: KubeObject): PodSpec[] {
  const template = (spec as { template?: { spec?: PodSpec } } | undefined)?.template?.spec;
  if (template?.containers) return [template];
  const config = kind === "ConfigMap" ? (data as Record<string, string> | undefined)?.["config"] : undefined;
  if (!config?.includes("containers:")) return [];
  const injector = parse(config) as { template?: string; templates?: Record<string, string> };
  return [injector.template, ...Object.values(injector.templates ?? {})].flatMap((text) => {
    const found = parse(text ?? "") as (PodSpec & { spec?: PodSpec }) | null;
    return found ? [found.spec ?? found] : [];
  });
}

function containersOf(objects: readonly KubeObject[]): Container[] {
  return objects.flatMap(podsOf).flatMap(({ containers, initContainers = [] }) => [...initContainers, ...containers]);
}

const ALL = everything();
const read = new Map(
  Object.entries(READERS).map(([program, readers]) => [program, namesRead([...readers, ...COMMON])]),
);

/** Variables that the program of a container does not read. */
function unread({ command = [], env = [] }: Container): string[] {
  const [executable, program = ""] = command;
  if (executable !== "vendor") return env.map(({ name }) => name);
  const known = read.get(program) ?? new Set();
  const excused = new Set(NOT_READ.filter((row) => row.program === program).flatMap(({ variables }) => variables));
  return env.map(({ name }) => name).filter((name) => !known.has(name) && !excused.has(name));
}

describe("what is published", () => {
  it("knows how every program reads its environment", () => {
    expect(Object.keys(READERS).sort()).toEqual([...Object.keys(PROGRAMS), ...Object.keys(NODE_PROGRAMS)].sort());
  });

  it.each([
    ["node", AGENT_VARIABLES, readAgentConfig],
    ["node-init", INIT_VARIABLES, readInitConfig],
    ["cni-install", INSTALL_VARIABLES, readInstallConfig],
    ["overlay", OVERLAY_VARIABLES, readOverlayConfig],
  ] as const)("declares every variable of %s, and none that is not read", (_, table, reader) => {
    expect([...namesRead([reader as Reader])].sort()).toEqual(Object.keys(table).sort());
  });

  it("renders no variable that the program does not read", () => {
    const found = ALL.flatMap(([file, objects]) =>
      containersOf(objects).flatMap((container) =>
        unread(container).map((name) => `${file}: ${container.name} ${name}`),
      ),
    );
    expect([...new Set(found)]).toEqual([]);
  });

  it("fails for a variable that is planted", () => {
    expect(
      unread({ name: "agent", command: ["vendor", "node"], env: [{ name: "NODENAME" }, { name: "PLANTED" }] }),
    ).toEqual(["PLANTED"]);
  });

  it("excuses only what is not read", () => {
    const needless = NOT_READ.flatMap(({ program, variables }) =>
      variables.filter((name) => read.get(program)?.has(name)),
    );
    expect(needless).toEqual([]);
  });

  it("starts programs that exist, with words they know", () => {
    const sentences = new Set(
      ALL.flatMap(([, objects]) => containersOf(objects))
        .filter(({ image }) => image !== undefined)
        .map(({ command = [], args = [] }) => [...command, ...args].join(" ")),
    );
    const known = new Set([...Object.keys(READERS).map((program) => `vendor ${program}`), ...COMMANDS]);
    expect([...sentences].filter((sentence) => !known.has(sentence))).toEqual([]);
  });

  it("has no key in a ConfigMap that no container takes, and no volume that none mounts", () => {
    const idle = ALL.flatMap(([file, objects]) =>
      [...idleKeys(objects), ...idleVolumes(objects)].map((what) => `${file}: ${what}`),
    );
    expect([...new Set(idle)]).toEqual([]);
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data: { planted: "1" } };
    expect(idleKeys([map])).toEqual(["settings planted"]);
  });
});

/** Of people; each has a test of its own. */
const COMMANDS = ["vendor node remove --yes --wait 60", "sleep infinity"];
/** Read by the mesh's injector. */
const READ_BY_OTHERS = ["mesh-sidecar-injector"];

function idleKeys(objects: readonly KubeObject[]): string[] {
  const pods = objects.flatMap(podsOf);
  const whole = new Set(pods.flatMap(({ volumes = [] }) => volumes.flatMap(({ configMap }) => configMap?.name ?? [])));
  const taken = new Set(
    containersOf(objects).flatMap(({ env = [] }) =>
      env.flatMap(({ valueFrom }) => {
        const ref = valueFrom?.configMapKeyRef;
        return ref ? [`${ref.name} ${ref.key}`] : [];
      }),
    ),
  );
  return objects
    .filter(
      ({ kind, metadata }) =>
        kind === "ConfigMap" && !READ_BY_OTHERS.includes(metadata.name) && !whole.has(metadata.name),
    )
    .flatMap(({ metadata, data = {} }) => Object.keys(data as object).map((key) => `${metadata.name} ${key}`))
    .filter((key) => !taken.has(key));
}

function idleVolumes(objects: readonly KubeObject[]): string[] {
  return objects.flatMap(podsOf).flatMap(({ volumes = [], containers, initContainers = [] }) => {
    const mounted = new Set(
      [...containers, ...initContainers].flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name)),
    );
    return volumes.map(({ name }) => name).filter((name) => !mounted.has(name));
  });
}
