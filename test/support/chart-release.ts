import { execFile, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { vendorNames } from "../../src/api/names.ts";
import type { Condition, KubeObject } from "../../src/api/object.ts";
import type { Client } from "../../src/cluster/client.ts";
import { findCondition } from "../../src/cluster/conditions.ts";
import { isNotFound } from "../../src/cluster/failures.ts";
import { JOBS } from "../../src/cluster/kinds.ts";
import { isHook, renderTemplate, withValues } from "../../src/operator/published/testing-chart.fixture.ts";
import { applyAll, documents } from "./operator-manifests.ts";

/** The chart as a release on a cluster: installed, and uninstalled with its hook. Rejects when the tool refuses or the hook fails. */
export interface ChartRelease {
  install(): Promise<void>;
  uninstall(): Promise<void>;
}

export const hasHelm = spawnSync("helm", ["version", "--short"]).status === 0;

const CHART = resolve("charts", vendorNames.chart.name);
const IN_NAMESPACE = ["--namespace", vendorNames.namespaces.operator];

export function helmRelease(kubeconfig: string): ChartRelease {
  const helm = async (...args: string[]) => {
    await promisify(execFile)("helm", [...args, ...IN_NAMESPACE, "--kubeconfig", kubeconfig]);
  };
  return {
    install: () => helm("install", "vendor", CHART, "--create-namespace"),
    uninstall: () => helm("uninstall", "vendor", "--timeout", "2m"),
  };
}

/** What helm does, for machines without it: CRDs, the release; then the hook by weight, and the release without what is to be kept. */
export function releaseWithoutHelm(client: Client): ChartRelease {
  const rendered = () => {
    const values = withValues(readFileSync(`${CHART}/values.yaml`, "utf8"), () => {});
    return readdirSync(`${CHART}/templates`)
      .filter((name) => name.endsWith(".yaml"))
      .flatMap((name) => documents(renderTemplate(readFileSync(`${CHART}/templates/${name}`, "utf8"), values)));
  };
  const remove = async (object: KubeObject) => {
    const { name, namespace } = object.metadata;
    const ref = { name, ...(namespace !== undefined && { namespace }) };
    await client
      .delete(await client.resourceFor(object), ref, { propagationPolicy: "Background" })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
  };
  return {
    async install() {
      const crds = readdirSync(`${CHART}/crds`).map((name) => readFileSync(`${CHART}/crds/${name}`, "utf8"));
      const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: vendorNames.namespaces.operator } };
      await applyAll(client, [...crds.flatMap(documents), namespace]);
      await applyAll(
        client,
        rendered().filter((object) => !isHook(object)),
      );
    },
    async uninstall() {
      const weight = ({ metadata }: KubeObject) => Number(metadata.annotations?.["helm.sh/hook-weight"]);
      const hooks = rendered()
        .filter(isHook)
        .sort((a, b) => weight(a) - weight(b));
      for (const hook of hooks) await remove(hook);
      await untilGone(client, hooks);
      await applyAll(client, hooks);
      for (const { metadata } of hooks.filter(({ kind }) => kind === "Job")) await untilComplete(client, metadata);
      for (const hook of hooks) await remove(hook);
      const kept = ({ metadata }: KubeObject) => metadata.annotations?.["helm.sh/resource-policy"] === "keep";
      for (const object of rendered().filter((each) => !isHook(each) && !kept(each))) await remove(object);
    },
  };
}

async function untilGone(client: Client, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const kind = await client.resourceFor(object);
    const { name, namespace } = object.metadata;
    const ref = { name, ...(namespace !== undefined && { namespace }) };
    while (await client.get(kind, ref).then(() => true, isStillThere)) await tick();
  }
}

function isStillThere(error: unknown): false {
  if (isNotFound(error)) return false;
  throw error;
}

async function untilComplete(client: Client, { name, namespace }: KubeObject["metadata"]): Promise<void> {
  for (;;) {
    const job = await client.get<KubeObject>(JOBS, { name, ...(namespace !== undefined && { namespace }) });
    const { conditions } = (job["status"] ?? {}) as { conditions?: Condition[] };
    if (findCondition(conditions, "Complete")?.status === "True") return;
    const failed = findCondition(conditions, "Failed");
    if (failed?.status === "True") throw new Error(`job ${name} failed: ${failed.reason}`);
    await tick();
  }
}

const tick = () => new Promise((resolve) => setTimeout(resolve, 50));
