import type { Action } from "../action.ts";
import { adoptFields } from "./adopt-fields.ts";
import { applyManifest } from "./apply-manifest.ts";
import { applyObjects } from "./apply-objects.ts";
import { deleteHostEndpoints } from "./delete-host-endpoints.ts";
import { deleteObject } from "./delete-object.ts";
import { deleteObjects } from "./delete-objects.ts";
import { enableAutoHostEndpoints } from "./enable-auto-host-endpoints.ts";
import { forgetOwnerReferences } from "./forget-owner-references.ts";
import { holdNodes } from "./hold-nodes.ts";
import { labelNodes } from "./label-nodes.ts";
import { mergePatch } from "./merge-patch.ts";
import { migrateStoredVersions } from "./migrate-stored-versions.ts";
import { proveDataplane } from "./prove-dataplane.ts";
import { proveOwnedObjects } from "./prove-owned-objects.ts";
import { proveRemoved } from "./prove-removed.ts";
import { releaseNodes } from "./release-nodes.ts";
import { removeCustomResource } from "./remove-custom-resource.ts";
import { restoreOwnerReferences } from "./restore-owner-references.ts";
import { runTool } from "./run-tool.ts";
import { saveOwnerReferences } from "./save-owner-references.ts";
import { saveService } from "./save-service.ts";
import { selectDataplane } from "./select-dataplane.ts";
import { setProxyMode } from "./set-proxy-mode.ts";
import { startCanary } from "./start-canary.ts";
import { stopCanary } from "./stop-canary.ts";
import { stripOwnerReferences } from "./strip-owner-references.ts";
import { verifyVersion } from "./verify-version.ts";
import { waitForRollout } from "./wait-for-rollout.ts";
import { waitForStatus } from "./wait-for-status.ts";
import { waitOutside } from "./wait-outside.ts";

/** Every action a step can name. A name is kept for good: journals and saved plans have it. */
export const ACTIONS: Readonly<Record<string, Action>> = {
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
  "start-canary": startCanary,
  "stop-canary": stopCanary,
};
