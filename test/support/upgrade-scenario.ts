import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseAllDocuments } from "yaml";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { readCliConfig } from "../../src/cli/config.ts";
import { runVendorctl } from "../../src/cli/vendorctl.ts";
import { API_SERVICES } from "../../src/cluster/kinds.ts";
import { type ClusterOptions, type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import type { InstallMethod } from "../../src/local/installed/install-method.ts";
import type { InstalledOptions } from "../../src/local/installed/seed-installed.ts";
import { renderTemplate, withValues } from "../../src/operator/published/testing-chart.fixture.ts";
import { inProcessVendorctl } from "./in-process-vendorctl.ts";

export interface Ran {
  exit: number;
  out: string;
  err: string;
}

/** A cluster as an older version left it, and somebody who upgrades it. */
export interface UpgradeScenario {
  cluster: LocalCluster;
  run(...args: string[]): Promise<Ran>;
  ok(...args: string[]): Promise<string>;
  file(name: string, text: string): string;
  close(): Promise<void>;
}

const TIMEOUT = "60s";

/** The plain manifest with networking of its own came with IPIP, which is lost unless somebody says that it may be. */
export function acceptedLosses(method: InstallMethod): string[] {
  return method === "manifest" ? ["--accept-loss", "IPPool.spec.ipipMode"] : [];
}

export async function upgradeScenario(
  version: string,
  method: InstallMethod,
  options: Partial<ClusterOptions> & { seed?: Partial<InstalledOptions> } = {},
): Promise<UpgradeScenario> {
  const { seed, ...rest } = options;
  const installed = { version, method, ...seed };
  const cluster = await startCluster({ name: "old", kind: "generic", nodes: 2, ...rest, installed });
  await aggregatedApiAnswers(cluster);
  const here = inProcessVendorctl(cluster.kubeconfig);
  const kubeconfig = here.file("kubeconfig", cluster.kubeconfig);
  const run = async (...args: string[]): Promise<Ran> => {
    const ran: Ran = { exit: -1, out: "", err: "" };
    const doing: Promise<void>[] = [];
    const hear = (text: string) => {
      if (/helm upgrade/.test(text) && /run these|values\.yaml/.test(text)) doing.push(applyChart(cluster));
    };
    ran.exit = await runVendorctl(["--kubeconfig", kubeconfig, "--timeout", TIMEOUT, ...args], {
      config: readCliConfig({}, {}),
      out: (text) => {
        ran.out += text;
      },
      err: (text) => {
        ran.err += text;
        // A plan that is only shown asks nobody to run anything.
        if (args.includes("-y")) hear(String(text));
      },
      signal: new AbortController().signal,
      loadClusterCommands: () => import("../../src/local/commands.ts"),
    });
    await Promise.all(doing);
    return ran;
  };
  return {
    cluster,
    run,
    async ok(...args) {
      const { exit, out, err } = await run(...args);
      if (exit !== 0) throw new Error(`vendorctl ${args.join(" ")} exited with ${exit}:\n${err}${out}`);
      return err + out;
    },
    file: here.file,
    async close() {
      await cluster.close();
      here.close();
    },
  };
}

/** The aggregated API of the old version takes a moment after its pods run; what it makes belongs to the initial state. */
export async function aggregatedApiAnswers({ client }: LocalCluster): Promise<void> {
  const { group, version } = vendorNames.groups.served;
  const { items } = await client.list<KubeObject>(API_SERVICES);
  if (!items.some(({ metadata }) => metadata.name === `${version}.${group}`)) return;
  while (!(await client.resources()).some((one) => one.group === group)) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What the chart tool would do: the templates with values, applied under its name. Custom resources are as they are in the cluster. */
export async function applyChart({ client }: LocalCluster): Promise<void> {
  const folder = resolve("charts", vendorNames.chart.name);
  const values = withValues(readFileSync(`${folder}/values.yaml`, "utf8"), () => {});
  for (const template of ["rights", "operator"]) {
    const text = renderTemplate(readFileSync(`${folder}/templates/${template}.yaml`, "utf8"), values);
    for (const document of parseAllDocuments(text)) {
      const object = (document as { toJS(): unknown }).toJS() as KubeObject | null;
      if (!object) continue;
      await client.apply(await client.resourceFor(object), object, { fieldManager: "helm", force: true });
    }
  }
}
