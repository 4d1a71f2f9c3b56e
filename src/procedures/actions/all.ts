import type { Action } from "../action.ts";
import { startCanary } from "./canary/start-canary.ts";
import { stopCanary } from "./canary/stop-canary.ts";
import { dropOldData } from "./datastore/drop-old-data.ts";
import { importDatastore } from "./datastore/import-datastore.ts";
import { keepOldData } from "./datastore/keep-old-data.ts";
import { lockDatastore } from "./datastore/lock-datastore.ts";
import { openDatastore } from "./datastore/open-datastore.ts";
import { deleteHostEndpoints } from "./migrations/delete-host-endpoints.ts";
import { enableAutoHostEndpoints } from "./migrations/enable-auto-host-endpoints.ts";
import { forgetOwnerReferences } from "./migrations/forget-owner-references.ts";
import { migrateByOperator } from "./migrations/migrate-by-operator.ts";
import { proveOwnedObjects } from "./migrations/prove-owned-objects.ts";
import { restoreOwnerReferences } from "./migrations/restore-owner-references.ts";
import { saveOwnerReferences } from "./migrations/save-owner-references.ts";
import { stripOwnerReferences } from "./migrations/strip-owner-references.ts";
import { cleanNodes } from "./nodes/clean-nodes.ts";
import { forgetLostPods } from "./nodes/forget-lost-pods.ts";
import { holdAgents } from "./nodes/hold-agents.ts";
import { holdNodes } from "./nodes/hold-nodes.ts";
import { labelNodes } from "./nodes/label-nodes.ts";
import { moveAgents } from "./nodes/move-agents.ts";
import { proveDataplane } from "./nodes/prove-dataplane.ts";
import { releaseNodes } from "./nodes/release-nodes.ts";
import { selectDataplane } from "./nodes/select-dataplane.ts";
import { setProxyMode } from "./nodes/set-proxy-mode.ts";
import { updateAgents } from "./nodes/update-agents.ts";
import { waitForRollout } from "./nodes/wait-for-rollout.ts";
import { waitForStatus } from "./nodes/wait-for-status.ts";
import { waitOutside } from "./nodes/wait-outside.ts";
import { adoptFields } from "./objects/adopt-fields.ts";
import { applyManifest } from "./objects/apply-manifest.ts";
import { applyObjects } from "./objects/apply-objects.ts";
import { copySecrets } from "./objects/copy-secrets.ts";
import { deleteObject } from "./objects/delete-object.ts";
import { deleteObjects } from "./objects/delete-objects.ts";
import { mergePatch } from "./objects/merge-patch.ts";
import { migrateStoredVersions } from "./objects/migrate-stored-versions.ts";
import { removeCustomResource } from "./objects/remove-custom-resource.ts";
import { removeOrphans } from "./objects/remove-orphans.ts";
import { proveRemoved } from "./prove-removed.ts";
import { runTool } from "./run-tool.ts";
import { saveService } from "./save-service.ts";
import { verifyVersion } from "./verify-version.ts";

/** Every action a step can name. A name is kept for good: journals and saved plans have it. */
const all = {
  "apply-objects": applyObjects,
  "delete-object": deleteObject,
  "merge-patch": mergePatch,
  "run-tool": runTool,
  "wait-for-rollout": waitForRollout,
  "wait-for-status": waitForStatus,
  "wait-outside": waitOutside,
  "forget-owner-references": forgetOwnerReferences,
  "prove-owned-objects": proveOwnedObjects,
  "restore-owner-references": restoreOwnerReferences,
  "save-owner-references": saveOwnerReferences,
  "strip-owner-references": stripOwnerReferences,
  "apply-manifest": applyManifest,
  "delete-objects": deleteObjects,
  "prove-dataplane": proveDataplane,
  "prove-removed": proveRemoved,
  "remove-custom-resource": removeCustomResource,
  "clean-nodes": cleanNodes,
  "forget-lost-pods": forgetLostPods,
  "remove-orphans": removeOrphans,
  "select-dataplane": selectDataplane,
  "set-proxy-mode": setProxyMode,
  "adopt-fields": adoptFields,
  "migrate-stored-versions": migrateStoredVersions,
  "save-service": saveService,
  "verify-version": verifyVersion,
  "delete-host-endpoints": deleteHostEndpoints,
  "enable-auto-host-endpoints": enableAutoHostEndpoints,
  "label-nodes": labelNodes,
  "hold-nodes": holdNodes,
  "release-nodes": releaseNodes,
  "update-agents": updateAgents,
  "move-agents": moveAgents,
  "migrate-by-operator": migrateByOperator,
  "copy-secrets": copySecrets,
  "hold-agents": holdAgents,
  "lock-datastore": lockDatastore,
  "import-datastore": importDatastore,
  "open-datastore": openDatastore,
  "keep-old-data": keepOldData,
  "drop-old-data": dropOldData,
  "start-canary": startCanary,
  "stop-canary": stopCanary,
} satisfies Readonly<Record<string, Action>>;

export type ActionName = keyof typeof all;

/** By any text: a journal or a saved plan may name an action of a newer release. */
export const ACTIONS: Readonly<Record<string, Action>> = all;
