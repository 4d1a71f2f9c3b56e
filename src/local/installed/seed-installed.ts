import { vendorNames } from "../../api/names.ts";
import type { KubeObject, OwnerReference } from "../../api/object.ts";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import type { Client } from "../../cluster/client.ts";
import { isConflict, isNotFound } from "../../cluster/failures.ts";
import { CONFIG_MAPS } from "../../cluster/kinds.ts";
import { createAuthority, issue, type KeyPair } from "../../kit/x509.ts";
import { nodeAgentObjects } from "../../releases/node-agent-objects.ts";
import type { OldRelease } from "../../releases/old-release.ts";
import { kubeControllersObjects, namespaceObject, operatorObjects } from "../../releases/program-objects.ts";
import { MANIFEST_LAYOUTS, type ManifestFile, publishedObjects } from "../../releases/published.ts";
import { timestamp } from "../controllers/timestamp.ts";
import { platformProfile } from "../platform-profile.ts";
import type { Pool } from "./address-objects.ts";
import { errors } from "./errors.ts";
import { HELM_ANNOTATIONS, HELM_LABELS, helmRelease } from "./helm-release.ts";
import { installEdits } from "./install-edits.ts";
import { INSTALL_METHODS, type InstallMethod } from "./install-method.ts";
import { readNodes } from "./installed-node.ts";
import { oldRelease } from "./old-release.ts";
import { customResources, hasForeignCni, reportedStatus, statusResources } from "./operator-resources.ts";
import { ownedObjects } from "./owned-objects.ts";
import { apiServerObjects, flowLogsObjects } from "./program-objects.ts";
import { createSeeder, OPERATOR, type Seeder } from "./seeder.ts";
import { type UserEdit, userEdits } from "./user-edits.ts";
import { TEAM_NAMESPACE, v3Objects } from "./v3-objects.ts";

export interface InstalledOptions {
  /** Such as `v3.27`: the newest release of that line, or a release by its full name. */
  version: string;
  method: InstallMethod;
  kind: ClusterKind;
  /** Names of the cluster's nodes. */
  nodes: readonly string[];
  /** Whether the controllers created host endpoints (default: yes). */
  autoHostEndpoints?: boolean;
  /** Whether the cluster was once older than v3.14, and still has the temporary policy of that upgrade. */
  cameFromBeforeV314?: boolean;
  /** Whether objects were edited by hand after the installation. */
  userEdits?: boolean;
}

const { namespaces } = vendorNames;
/** Says what was seeded, once all of it was: a cluster that has been upgraded since must not be made old again. */
const MARKER = { name: "local-installed", namespace: namespaces.orchestratorSystem } as const;

/**
 * Makes a cluster one that an older version was installed in and has run in for a while. What is there already stays as it is,
 * so that a seeding that was cut short is completed by doing it again.
 */
export async function seedInstalled(client: Client, options: InstalledOptions): Promise<void> {
  const release = oldRelease(options.version);
  if (await alreadySeeded(client, options, release)) return;
  const method = INSTALL_METHODS[options.method];
  const seeder = createSeeder(client, method.manager);
  const pool = poolOf(options);
  if (method.by === "operator") {
    await seeder.putAll(publishedObjects("operatorCrds", release));
    await seedOperator(client, seeder, options, release, pool);
  } else await seeder.putAll(installEdits(publishedObjects(manifestOf(options.method), release), pool));
  if (method.datastore === "api") await seedResources(client, seeder, options, release, pool);
  if (options.userEdits) {
    for (const edit of userEdits(method, namespaceOf(options))) await editByHand(client, edit);
  }
  await createSeeder(client, "vendorctl").put(marker(options, release));
}

/** Controllers write to the same objects at the same time; a person would save again. */
async function editByHand(client: Client, { kind, ref, patch }: UserEdit): Promise<void> {
  for (;;) {
    try {
      await client.patch(kind, ref, patch, { fieldManager: "kubectl-edit" });
      return;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
}

/** On etcd none of this is in the API: it is in a datastore the cluster knows nothing of. */
async function seedResources(
  client: Client,
  seeder: Seeder,
  options: InstalledOptions,
  release: OldRelease,
  pool: Pool | undefined,
): Promise<void> {
  const { kind, autoHostEndpoints = true, cameFromBeforeV314 = false } = options;
  const { by } = INSTALL_METHODS[options.method];
  const nodes = await readNodes(client, options.nodes);
  await seeder.put(namespaceObject(TEAM_NAMESPACE));
  const stored = await seeder.putAll(
    v3Objects({ release, kind, nodes, pool, by, autoHostEndpoints, cameFromBeforeV314 }),
    "vendor-node",
  );
  const find = (objectKind: string, name: string) =>
    stored.find((object) => object.kind === objectKind && object.metadata.name === name)!;
  await seeder.putAll(ownedObjects(release, find), "kubectl-create");
}

/** The file that lays the service out as the method does. */
function manifestOf(method: InstallMethod): ManifestFile {
  const { datastore, networking } = INSTALL_METHODS[method];
  const files = Object.keys(MANIFEST_LAYOUTS) as ManifestFile[];
  return files.find((file) => {
    const layout = MANIFEST_LAYOUTS[file];
    return layout.datastore === datastore && layout.networking === networking;
  })!;
}

/** The installer brought the operator and its resources; everything else the operator made, and owns. */
async function seedOperator(
  client: Client,
  seeder: Seeder,
  options: InstalledOptions,
  release: OldRelease,
  pool: Pool | undefined,
): Promise<void> {
  const method = INSTALL_METHODS[options.method];
  const byChart = options.method === "chart";
  const at = timestamp(Date.now());
  await seeder.putAll(byChart ? operatorObjects(release, HELM_LABELS).map(asReleased) : operatorObjects(release));
  if (byChart) await seeder.put(helmRelease(release, at));
  const asked = customResources(release, options.kind, pool);
  const resources = await seeder.putAll(byChart ? asked.map(asReleased) : asked);
  const statuses = await seeder.putAll(statusResources(release), OPERATOR);
  for (const object of [...resources, ...statuses]) {
    await report(client, object, reportedStatus(object, release, at));
  }
  const ownedBy = (noun: "installation" | "apiServer" | "flowLogs", objects: KubeObject[]) => {
    const owner = resources.find(({ kind }) => kind === vendorNames.kinds[noun].kind);
    return owner ? objects.map((object) => withController(object, owner)) : [];
  };
  const system = namespaceOf(options);
  await seeder.putAll(
    [
      ...ownedBy("installation", [
        namespaceObject(system),
        ...nodeAgentObjects(release, method, system),
        ...kubeControllersObjects(release, system, method.datastore),
      ]),
      ...ownedBy("apiServer", [
        namespaceObject(namespaces.apiServerBeforeV331),
        ...apiServerObjects(release, apiServerPair()),
      ]),
      ...ownedBy("flowLogs", flowLogsObjects(release)),
    ],
    OPERATOR,
  );
}

/** Not verified: the operator of that time registered its API with insecureSkipTLSVerify. */
function apiServerPair(): KeyPair {
  const now = new Date();
  const subject = { commonName: vendorNames.workloads.apiServer };
  const names = [`vendor-api.${namespaces.apiServerBeforeV331}.svc`];
  return issue(createAuthority(subject, now, 825), { subject, usage: "server", names, notBefore: now, days: 825 });
}

function asReleased(object: KubeObject): KubeObject {
  const annotations = { ...object.metadata.annotations, ...HELM_ANNOTATIONS };
  return {
    ...object,
    metadata: { ...object.metadata, labels: { ...object.metadata.labels, ...HELM_LABELS }, annotations },
  };
}

function withController(object: KubeObject, { apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { name, uid = "" } = metadata;
  const owner: OwnerReference = { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
  return { ...object, metadata: { ...object.metadata, ownerReferences: [owner] } };
}

async function report(client: Client, object: KubeObject, status: object): Promise<void> {
  if (object["status"] !== undefined) return;
  const kind = await client.resourceFor(object);
  const options = { subresource: "status", fieldManager: OPERATOR } as const;
  await client.patch(kind, object.metadata, { type: "merge", patch: { status } }, options);
}

function namespaceOf({ method }: InstalledOptions): string {
  return INSTALL_METHODS[method].by === "operator" ? namespaces.system : namespaces.orchestratorSystem;
}

/** Pods get their addresses from us only where we connect them. */
function poolOf({ kind, method }: InstalledOptions): Pool | undefined {
  const { by, networking } = INSTALL_METHODS[method];
  if (networking !== "own" || (by === "operator" && hasForeignCni(kind))) return undefined;
  const cidr = platformProfile(kind).podCidrs[0] as string;
  return { cidr, encapsulation: by === "operator" ? "vxlan" : "ipip" };
}

function marker({ method }: InstalledOptions, { tag }: OldRelease): KubeObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: MARKER, data: { version: tag, method } };
}

async function alreadySeeded(client: Client, options: InstalledOptions, { tag }: OldRelease): Promise<boolean> {
  const found = await client.get<KubeObject>(CONFIG_MAPS, MARKER).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
    return undefined;
  });
  if (!found) return false;
  const { version, method } = found["data"] as { version: string; method: string };
  if (version === tag && method === options.method) return true;
  throw errors.INSTALLED_DIFFERENTLY(`${tag} by ${options.method}`, `${version} by ${method}`);
}
