import { vendorNames } from "../../api/names.ts";
import { groupVersion, type KubeObject, type OwnerReference } from "../../api/object.ts";
import { v3Uid } from "../../api/resources/v3-uid.ts";
import type { OldRelease } from "../../releases/old-release.ts";
import { storedPolicyName, v3Object } from "./v3-object.ts";
import { GLOBAL_POLICY, TEAM_NAMESPACE, TEAM_POLICY } from "./v3-objects.ts";

/** Finds the stored object of a v3 resource, as the cluster has it. */
export type FindStored = (kind: string, name: string) => KubeObject;

/**
 * What a team hung on v3 resources, so that it goes when they go. An upgrade across v3.28 gives the owners other UIDs, and the
 * garbage collector takes all of it unless the references were removed first. As long as nothing serves the v3 group, the
 * collector cannot ask whether an owner is there, and keeps what it cannot ask about.
 */
export function ownedObjects(release: OldRelease, find: FindStored): KubeObject[] {
  const team = find(vendorNames.kinds.networkPolicy.kind, storedPolicyName(TEAM_POLICY));
  const global = find(vendorNames.kinds.globalNetworkPolicy.kind, storedPolicyName(GLOBAL_POLICY));
  const namespace = TEAM_NAMESPACE;
  const notes = (name: string, owner: KubeObject, text: string): KubeObject => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace, ownerReferences: [servedReference(owner, release)] },
    data: { "notes.md": text },
  });
  return [
    notes("allow-web-notes", asServed(team, TEAM_POLICY), "Why the web pods may be reached, and who asked for it.\n"),
    notes(
      "metadata-review",
      asServed(global, GLOBAL_POLICY),
      "Reviewed: no pod of ours needs the instance metadata.\n",
    ),
    v3Object(
      "networkSet",
      "partners",
      { nets: ["192.0.2.0/24", "198.51.100.0/24"] },
      { namespace, labels: { partners: "true" }, ownerReferences: [storedReference(team, TEAM_POLICY, release)] },
    ),
  ];
}

function asServed(stored: KubeObject, name: string): KubeObject {
  return { ...stored, metadata: { ...stored.metadata, name } };
}

/** To the owner as people see it: a v3 resource, under the UID that version showed. */
function servedReference({ kind, metadata }: KubeObject, release: OldRelease): OwnerReference {
  const uid = v3Uid(metadata.uid ?? "", release.tag);
  return { apiVersion: groupVersion(vendorNames.groups.served), kind, name: metadata.name, uid };
}

/** On a v3 resource itself: from v3.28 on references were kept as references to what is stored. */
function storedReference(owner: KubeObject, servedName: string, release: OldRelease): OwnerReference {
  if (!release.hasSince("v3.28")) return servedReference(asServed(owner, servedName), release);
  const { apiVersion, kind, metadata } = owner;
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid ?? "" };
}
