import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { ETCD_SECRET, POOL_CIDR_KEY } from "../../releases/manifest-settings.ts";
import type { Pool } from "./address-objects.ts";

const { manifests } = vendorNames;

/** What the user wrote into the manifest before applying it: etcd's endpoints and certificates, and the pods' addresses. */
export function installEdits(objects: readonly KubeObject[], pool: Pool | undefined): KubeObject[] {
  return objects.map((object) => {
    if (object.metadata.name === manifests.configMap) return withData(object, settings(object, pool));
    return object.metadata.name === ETCD_SECRET ? withData(object, CERTIFICATES) : object;
  });
}

const placeholder = (what: string) => Buffer.from(`the ${what} of an etcd that does not exist\n`).toString("base64");
const CERTIFICATES = {
  "etcd-ca": placeholder("authority"),
  "etcd-cert": placeholder("certificate"),
  "etcd-key": placeholder("key"),
};

function settings(object: KubeObject, pool: Pool | undefined): Record<string, string> {
  const has = (key: string) => Object.hasOwn(object["data"] as object, key);
  return {
    ...(has(manifests.etcdEndpointsKey) ? { [manifests.etcdEndpointsKey]: "https://etcd.internal:2379" } : {}),
    ...(has(POOL_CIDR_KEY) && pool ? { [POOL_CIDR_KEY]: pool.cidr } : {}),
  };
}

function withData(object: KubeObject, edits: Record<string, string>): KubeObject {
  return { ...object, data: { ...(object["data"] as object), ...edits } };
}
