import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect } from "vitest";
import type { Cluster } from "./cluster.ts";
import type { MethodName, Settings } from "./config.ts";

export type Plane = "standard" | "bpf";

/** One of the ways that the guides describe. Each returns when the change is carried out. */
export interface Method {
  install(plane: Plane): Promise<void>;
  switchTo(plane: Plane): Promise<void>;
  uninstall(): Promise<void>;
}

export function methodOf(name: MethodName, cluster: Cluster, settings: Settings): Method {
  return { vendorctl: byVendorctl, kubectl: byKubectl, chart: byChart }[name](cluster, settings);
}

function byVendorctl(cluster: Cluster, { apiServer }: Settings): Method {
  const address = apiServer === undefined ? [] : ["--api-server", apiServer];
  return {
    install: async (plane) => {
      await cluster.vendorctl("install", "-y", "--dataplane", plane, ...address);
    },
    switchTo: async (plane) => {
      await cluster.vendorctl("switch", "-y", "--to", plane, ...(plane === "bpf" ? address : []));
    },
    uninstall: async () => {
      await cluster.vendorctl("uninstall", "-y", "--remove-crds");
    },
  };
}

/** docs/guide/operator.md, command by command. */
function byKubectl(cluster: Cluster, settings: Settings): Method {
  return {
    async install(plane) {
      await endpointMap(cluster, settings);
      await cluster.kubectl("apply", "--server-side", "-f", manifest("operator-crds.yaml"));
      await cluster.kubectl("apply", "--server-side", "-f", manifest("vendor-operator.yaml"));
      await createCustomResources(cluster, plane);
      await installationReady(cluster);
    },
    switchTo: (plane) => patchDataplane(cluster, plane),
    async uninstall() {
      await cluster.kubectl("delete", "apiservers.operator.vendor.io", "default");
      await cluster.kubectl("delete", "installation", "default");
      await cluster.kubectl("delete", "--ignore-not-found", "-f", manifest("vendor-operator.yaml"));
      await cluster.vendorctl("uninstall", "-y", "--remove-crds");
    },
  };
}

function byChart(cluster: Cluster, { apiServer }: Settings): Method {
  const release = ["vendor", resolve("charts/vendor-operator"), "--namespace", "vendor-operator"];
  const [host, port] = hostAndPort(apiServer);
  const address = host === undefined ? [] : ["--set", `apiEndpoint.host=${host}`, "--set", `apiEndpoint.port=${port}`];
  const dataplane = (plane: Plane) => ["--set", `installation.spec.vendorNetwork.linuxDataplane=${fieldOf(plane)}`];
  return {
    async install(plane) {
      await cluster.helm("install", ...release, "--create-namespace", ...address, ...dataplane(plane));
      await installationReady(cluster);
    },
    async switchTo(plane) {
      await cluster.helm("upgrade", ...release, "--reuse-values", ...dataplane(plane));
      await installationReady(cluster);
    },
    async uninstall() {
      await cluster.helm("uninstall", "vendor", "--namespace", "vendor-operator");
      await cluster.vendorctl("uninstall", "-y", "--remove-crds");
    },
  };
}

function manifest(name: string): string {
  return resolve("manifests", name);
}

function fieldOf(plane: Plane): string {
  return plane === "bpf" ? "BPF" : "Nftables";
}

/** What the guide says to edit, edited: the published file asks for no data plane. */
async function createCustomResources(cluster: Cluster, plane: Plane): Promise<void> {
  if (plane === "bpf") {
    await cluster.kubectl("create", "-f", manifest("custom-resources-bpf.yaml"));
    return;
  }
  const published = readFileSync(manifest("custom-resources.yaml"), "utf8");
  const edited = published.replace("serviceProxyManagement:", "linuxDataplane: Nftables\n    serviceProxyManagement:");
  expect(edited).not.toBe(published);
  const folder = mkdtempSync(join(tmpdir(), "vendor-e2e-"));
  try {
    writeFileSync(join(folder, "custom-resources.yaml"), edited);
    await cluster.kubectl("create", "-f", join(folder, "custom-resources.yaml"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function endpointMap(cluster: Cluster, { apiServer }: Settings): Promise<void> {
  const [host, port] = hostAndPort(apiServer);
  if (host === undefined) return;
  const namespace = "vendor-operator";
  await cluster.apply(
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "orchestrator-services-endpoint", namespace },
      data: { ORCHESTRATOR_SERVICE_HOST: host, ORCHESTRATOR_SERVICE_PORT: port },
    },
  );
}

function hostAndPort(apiServer: string | undefined): [string | undefined, string] {
  const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(apiServer ?? "") ?? [];
  return [host, port ?? ""];
}

async function patchDataplane(cluster: Cluster, plane: Plane): Promise<void> {
  const network = { linuxDataplane: fieldOf(plane), ...(plane === "bpf" ? { hostPorts: null } : {}) };
  const patch = JSON.stringify({ spec: { vendorNetwork: network } });
  await cluster.kubectl("patch", "installation", "default", "--type", "merge", "-p", patch);
  await installationReady(cluster);
}

async function installationReady(cluster: Cluster): Promise<void> {
  await cluster.kubectl("wait", "--for=condition=Ready", "installation/default", "--timeout=10m");
}
