import { calicoNames } from "../../../../api/names.ts";
import { groupVersion, type KubeObject, type ObjectMeta, type OwnerReference } from "../../../../api/object.ts";
import { servedPolicyName } from "../../../../api/resources/policy-names.ts";
import { v3Uid } from "../../../../api/resources/v3-uid.ts";
import { VERSION } from "../../../../api/tables/release.ts";

const { annotations, groups } = calicoNames;
const METADATA = annotations.storedMetadata;
const [STORED, SERVED] = [groupVersion(groups.stored), groupVersion(groups.served)];
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/**
 * The public system keeps users' metadata of an object as JSON in one annotation; the CRD's own metadata has only its name and what
 * is the system's own. Owners there are named as they are stored, and for users as they are served, with another UID.
 */
export function packed(object: KubeObject, tiered: boolean): KubeObject {
  const {
    name,
    namespace,
    labels,
    annotations: given,
    finalizers,
    ownerReferences,
    creationTimestamp,
  } = object.metadata;
  const { [METADATA]: kept, ...others } = given ?? {};
  const users = {
    ...(tiered && { name: nameIn(kept) ?? servedPolicyName(name) }),
    creationTimestamp: creationTimestamp ?? null,
    ...(hasAny(labels) && { labels }),
    ...(hasAny(others) && { annotations: others }),
    ...(ownerReferences && { ownerReferences: ownerReferences.map((owner) => renamed(owner, SERVED, STORED)) }),
    ...(finalizers && { finalizers }),
  };
  const own = ownOnly(labels);
  const metadata = {
    ...{ name, ...(namespace !== undefined && { namespace }), ...(hasAny(own) && { labels: own }) },
    annotations: { ...ownOnly(others), [METADATA]: JSON.stringify(users) },
  };
  return { ...object, metadata };
}

/** As etcd has it, but for the name of its tier, which is always written out. */
export function unpacked(object: KubeObject, tiered: boolean): KubeObject {
  const { name, namespace, uid, resourceVersion, labels, annotations: given, ...own } = object.metadata;
  const { [METADATA]: kept, ...others } = given ?? {};
  const users = metadataIn(kept);
  const owners = users?.ownerReferences?.map((owner) => renamed(owner, STORED, SERVED)) ?? own.ownerReferences;
  const allLabels = { ...labels, ...users?.labels };
  const allAnnotations = {
    ...others,
    ...users?.annotations,
    ...(tiered && { [METADATA]: JSON.stringify({ name: users?.name ?? servedPolicyName(name) }) }),
  };
  const finalizers = users?.finalizers ?? own.finalizers;
  const created = users?.creationTimestamp ?? own.creationTimestamp;
  const metadata: ObjectMeta = {
    ...{ name, ...(namespace !== undefined && { namespace }) },
    ...(uid !== undefined && { uid: otherUid(uid) }),
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(created && { creationTimestamp: created }),
    ...(hasAny(allLabels) && { labels: allLabels }),
    ...(hasAny(allAnnotations) && { annotations: allAnnotations }),
    ...(owners && { ownerReferences: owners }),
    ...(finalizers && { finalizers }),
  };
  return { ...object, metadata };
}

/** Metadata of a policy in etcd: it has its users' name in the same annotation since v3.30, and before by the tier in its name. */
export function withUsersName({ metadata, ...object }: KubeObject): KubeObject {
  const { [METADATA]: kept, ...others } = metadata.annotations ?? {};
  const name = JSON.stringify({ name: nameIn(kept) ?? servedPolicyName(metadata.name) });
  return { ...object, metadata: { ...metadata, annotations: { ...others, [METADATA]: name } } } as KubeObject;
}

const nameIn = (kept: string | undefined): string | undefined => metadataIn(kept)?.name;

function metadataIn(text: string | undefined): Partial<ObjectMeta> | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Partial<ObjectMeta>);
  } catch {
    return undefined;
  }
}

function renamed(owner: OwnerReference, from: string, to: string): OwnerReference {
  return owner.apiVersion === from ? { ...owner, apiVersion: to, uid: otherUid(owner.uid) } : owner;
}

/** Its own inverse. */
const otherUid = (uid: string): string => (UUID.test(uid) ? v3Uid(uid, VERSION) : uid);

const hasAny = (fields: object | undefined): boolean => Object.keys(fields ?? {}).length > 0;

/** What the system itself looks for in the CRD's metadata. */
function ownOnly(fields: Readonly<Record<string, string>> = {}): Record<string, string> {
  const prefixes = [`${groups.served.group}/`, `${groups.operator.group}/`];
  return Object.fromEntries(Object.entries(fields).filter(([key]) => prefixes.some((prefix) => key.includes(prefix))));
}
