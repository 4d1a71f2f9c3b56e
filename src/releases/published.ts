import { type Names, vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { Layout } from "./layout.ts";
import { manifestSettings } from "./manifest-settings.ts";
import { nodeAgentObjects } from "./node-agent-objects.ts";
import { oldDefinitions } from "./old-definitions.ts";
import type { OldRelease } from "./old-release.ts";
import { kubeControllersObjects, operatorObjects } from "./program-objects.ts";

const manifest = { by: "manifest" } as const;

/** The plain manifests, by what they are for, and how each lays the service out. */
export const MANIFEST_LAYOUTS = {
  policyAndNetworking: { ...manifest, datastore: "api", networking: "own" },
  policyAndOverlay: { ...manifest, datastore: "api", networking: "overlay" },
  policyOnly: { ...manifest, datastore: "api", networking: "foreign" },
  policyAndNetworkingEtcd: { ...manifest, datastore: "etcd", networking: "own" },
  policyAndOverlayEtcd: { ...manifest, datastore: "etcd", networking: "overlay" },
} as const satisfies Partial<Record<keyof Names["manifests"], Layout>>;

export type ManifestFile = keyof typeof MANIFEST_LAYOUTS;
export type PublishedFile = ManifestFile | "operator" | "operatorCrds";

/** What a file of an older release held, in its order. The embedded cluster is seeded with these very objects. */
export function publishedObjects(file: PublishedFile, release: OldRelease): KubeObject[] {
  if (file === "operatorCrds") return oldDefinitions(release);
  if (file === "operator") return operatorObjects(release);
  return manifestObjects(MANIFEST_LAYOUTS[file], release);
}

function manifestObjects(layout: Layout, release: OldRelease): KubeObject[] {
  const namespace = vendorNames.namespaces.orchestratorSystem;
  return [
    ...(layout.datastore === "api" ? storedDefinitions(release) : []),
    ...manifestSettings(layout, namespace),
    ...nodeAgentObjects(release, layout, namespace),
    ...kubeControllersObjects(release, namespace, layout.datastore),
  ];
}

/** Without an operator there is nothing to ask it for. */
function storedDefinitions(release: OldRelease): KubeObject[] {
  return oldDefinitions(release).filter(({ spec }) => spec.group !== vendorNames.groups.operator.group);
}
