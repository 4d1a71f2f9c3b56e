import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { DAEMON_SETS } from "../../src/cluster/kinds.ts";
import { bareServer } from "../../src/local/testing/bare-server.ts";
import { findRelease } from "../../src/releases/old-release.ts";
import { MANIFEST_LAYOUTS, type ManifestFile, publishedObjects } from "../../src/releases/published.ts";
import { applyAll, documents, manifest } from "../support/operator-manifests.ts";
import { type UpgradeScenario, upgradeScenario } from "../support/upgrade-scenario.ts";

const FILES = Object.keys(MANIFEST_LAYOUTS) as ManifestFile[];
/** Lines from the oldest that may be upgraded to the newest before this one. */
const LINES = Array.from({ length: 16 }, (_, at) => `v3.${15 + at}`);

const released = (line: string) => {
  const found = findRelease(line);
  if (found.is !== "known") throw new Error(`${line} is not known`);
  return found.release;
};
const isWorkload = ({ kind }: KubeObject) => kind === "DaemonSet" || kind === "Deployment";

/** `kubectl apply --server-side --force-conflicts -f FILE`, as the specification upgrades manifests. */
describe.each(FILES)("the new %s applied over every older one", (file) => {
  it.each(["kubectl-client-side-apply", "kubectl"] as const)("that %s wrote", async (manager) => {
    const { client, close } = await bareServer();
    try {
      const system = vendorNames.namespaces.orchestratorSystem;
      await applyAll(client, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: system } }]);
      const news = documents(manifest(vendorNames.manifests[file])).filter(isWorkload);
      for (const line of LINES) {
        for (const object of publishedObjects(file, released(line)).filter(isWorkload)) {
          const kind = await client.resourceFor(object);
          if (manager === "kubectl") await client.apply(kind, object, { fieldManager: manager, force: true });
          else await client.create(kind, object, { fieldManager: manager });
        }
        await applyAll(client, news);
        for (const object of news) {
          const kind = await client.resourceFor(object);
          const { name, namespace } = object.metadata;
          const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
          expect(refusedByKubernetes(await client.get<KubeObject>(kind, ref))).toEqual([]);
          await client.delete(kind, ref, { propagationPolicy: "Background" });
        }
      }
    } finally {
      await close();
    }
  });
});

interface AppliedContainer {
  name: string;
  env?: { name: string; value?: string; valueFrom?: object }[];
  [field: string]: unknown;
}

const PROBES = ["startupProbe", "livenessProbe", "readinessProbe"];
const HANDLERS = ["exec", "httpGet", "tcpSocket", "grpc"];

/** What two managers make of a field together, and Kubernetes refuses: a probe with two handlers, a variable with two sources. */
function refusedByKubernetes({ spec }: KubeObject): string[] {
  const { containers } = (spec as { template: { spec: { containers: AppliedContainer[] } } }).template.spec;
  return containers.flatMap(({ name, env = [], ...container }) => [
    ...PROBES.filter(
      (probe) => HANDLERS.filter((handler) => Object.hasOwn(container[probe] ?? {}, handler)).length > 1,
    ),
    ...env.filter(({ value, valueFrom }) => value && valueFrom).map((variable) => `${name} ${variable.name}`),
  ]);
}

/** Where an apply of the manifests before this one ended: at a DaemonSet that was refused. */
describe("somebody whose kubectl apply left the agents as they were", () => {
  let story: UpgradeScenario;
  beforeAll(async () => {
    story = await upgradeScenario("v3.27", "manifest");
  });
  afterAll(() => story.close());

  it("goes on with vendorctl upgrade: what the new release wrote is no edit", async () => {
    const { client } = story.cluster;
    await applyAll(
      client,
      documents(manifest("vendor.yaml")).filter(({ kind }) => kind !== "DaemonSet"),
    );
    const out = await story.ok("upgrade", "-y", "--accept-loss", "IPPool.spec.ipipMode");
    expect(out).not.toContain("conflict with the new version");
    const agents = await client.get<KubeObject>(DAEMON_SETS, { name: "vendor-node", namespace: "kube-system" });
    expect(JSON.stringify(agents["spec"])).toContain("v3.31.3");
  });
});
