import type { KubeObject } from "../../api/object.ts";
import type { ApiRequest, Transport } from "../../api/transport.ts";
import { kubernetesKinds } from "../../apiserver/kubernetes/kinds.ts";
import { type ApiServer, createApiServer } from "../../apiserver/server.ts";
import { type Client, createClient } from "../../cluster/client.ts";
import { CONFIG_MAPS, PRIORITY_CLASSES, SECRETS } from "../../cluster/kinds.ts";
import { systemClock } from "../../kit/clock.ts";
import { makePlan } from "../make-plan.ts";
import type { Plan, Step } from "../plan.ts";
import { applyObjectsStep, deleteObjectStep, mergePatchStep, type StepText, waitOutsideStep } from "../plans/steps.ts";
import type { Engine } from "../run/engine.ts";
import type { LocalCopy } from "../run/local-copy.ts";

/** An API server with nothing behind it, and what an engine needs beside it. */
export interface BareCluster {
  server: ApiServer;
  client: Client;
  engine(change?: Partial<Engine>): Engine;
  /** Every object of the kinds the plans are about but the journal, as people would write it. */
  objects(): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

const namespace = (name: string): KubeObject => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });

export async function bareCluster(): Promise<BareCluster> {
  const server = await createApiServer({ kinds: kubernetesKinds() });
  const client = createClient(server.transport(), { userAgent: "vendorctl" });
  for (const object of [namespace("default"), namespace("kube-system"), ...EARLIER]) {
    await client.create(await client.resourceFor(object), object);
  }
  return {
    server,
    client,
    engine: (change = {}) => ({
      client: createClient(server.transport(), { userAgent: "vendorctl" }),
      clock: systemClock,
      files: { from: "nowhere", read: async (name) => name },
      tools: { find: async () => undefined, run: async () => ({ exitCode: 0, stdout: "", stderr: "" }) },
      tool: "v3.31.3",
      local: memoryCopy(),
      signal: new AbortController().signal,
      ...change,
    }),
    objects: () => objectsOf(client),
    close: () => server.close(),
  };
}

/** A transport that is cut at the k-th request: before it is sent, or after it was done and before the answer is heard. */
export function cutTransport(
  inner: Transport,
  at: number,
  mode: "before" | "after",
  onCut: () => void,
): Transport & { count(): number } {
  let seen = 0;
  const cut = (): never => {
    onCut();
    throw new Error("killed");
  };
  return {
    async request(request: ApiRequest) {
      seen++;
      if (seen > at || (seen === at && mode === "before")) return cut();
      const answer = await inner.request(request);
      return seen >= at ? cut() : answer;
    },
    close: () => inner.close(),
    count: () => seen,
  };
}

export function memoryCopy(): LocalCopy & { files: Map<string, unknown> } {
  const files = new Map<string, unknown>();
  return {
    files,
    write: (run, name, value) => void files.set(`${run}/${name}`, value),
    read: () => undefined,
  };
}

/** The kinds the plans below are about. */
const KINDS = [CONFIG_MAPS, SECRETS, PRIORITY_CLASSES];

async function objectsOf(client: Client): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const kind of KINDS) {
    for (const { metadata, ...object } of (await client.list(kind)).items) {
      if (metadata.name.startsWith("vendorctl-run-")) continue;
      const { name, namespace: inside = "", labels, annotations } = metadata;
      found[`${object.kind} ${inside}/${name}`] = { ...object, labels, annotations };
    }
  }
  return found;
}

const config = (name: string, data: Record<string, string>): KubeObject => {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default" }, data };
};
const secret = (name: string): KubeObject => {
  const data = { password: Buffer.from("first").toString("base64") };
  return { apiVersion: "v1", kind: "Secret", metadata: { name, namespace: "default" }, type: "Opaque", data };
};

/** What is there before the plan below, and is changed by it. */
const EARLIER = [
  config("settings", { mode: "old", keep: "yes" }),
  config("leftover", { by: "somebody" }),
  secret("keys"),
];

export const logLine = (id: string, change: Partial<StepText> = {}): StepText => {
  return { id, title: `Do ${id}`, where: "default", because: "the story needs it", ...change };
};
const target = (kind: string, name: string) => ({ apiVersion: "v1", kind, namespace: "default", name });

/** One step of each general action that needs nobody else, in an order that depends on itself. */
export const STEPS: readonly Step[] = [
  applyObjectsStep(logLine("already"), { objects: [config("leftover", { by: "somebody" })] }),
  applyObjectsStep(logLine("create"), {
    objects: [
      { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name: "made" }, value: 7 },
      config("inside", { a: "1" }),
    ],
  }),
  applyObjectsStep(logLine("change"), {
    objects: [
      { ...secret("keys"), data: { password: Buffer.from("second").toString("base64") } },
      config("settings", { mode: "new" }),
    ],
  }),
  mergePatchStep(logLine("patch"), {
    target: target("ConfigMap", "settings"),
    patch: { metadata: { labels: { seen: "true" } }, data: { keep: null, added: "1" } },
  }),
  deleteObjectStep(logLine("delete"), { target: target("ConfigMap", "leftover") }),
  waitOutsideStep(logLine("look"), {
    tell: ["nothing to do"],
    until: [{ target: target("ConfigMap", "leftover"), exists: false }],
  }),
];

export function planOf(steps: readonly Step[] = STEPS): Plan {
  const decided = {
    procedure: "install",
    names: "vendor",
    title: "Do something",
    command: "vendorctl install",
  } as const;
  return makePlan({ ...decided, observed: {}, steps, notes: [] });
}
