import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { cniConfigList } from "../render/cni-config.ts";
import { type EnvVar, variable } from "../render/environment.ts";
import type { RenderInputs } from "../render/inputs.ts";
import type { ManifestVariant } from "./manifest-variants.ts";

const ETCD_SECRET = "vendor-etcd-secrets";
const ETCD_DIR = "/vendor-secrets";
const ETCD_FILES = { etcd_ca: "etcd-ca", etcd_cert: "etcd-cert", etcd_key: "etcd-key" } as const;

/**
 * Variables and the keys of the Secret that they come from, which a user adds where etcd has users. The file has no such keys: an upgrade
 * would add them to every installation's Secret, and its plan would have to hold what is in there.
 */
const ETCD_USER = { ETCD_USERNAME: "etcd-username", ETCD_PASSWORD: "etcd-password" } as const;

export const CNI_CONFIG_KEY = "cni_network_config";

/** The one ConfigMap that users edit, and with etcd the Secret. */
export function manifestSettings(inputs: RenderInputs, variant: ManifestVariant): KubeObject[] {
  const { names, installation } = inputs;
  const { manifests, namespaces } = names;
  const hostLocal = variant.networking !== "own";
  const config = hostLocal ? { ...installation, cni: { ipam: { type: "HostLocal" as const } } } : installation;
  const settings: KubeObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: manifests.configMap, namespace: namespaces.system },
    data: {
      ...(variant.datastore === "etcd" ? etcdSettings(names) : {}),
      // 0 finds it from the node's interfaces.
      veth_mtu: "0",
      ...(variant.networking === "own" ? { ipv4_pool_cidr: "192.168.0.0/16" } : {}),
      ...(variant.networking === "overlay" ? { masquerade: "true", [NET_CONF_KEY]: NET_CONF } : {}),
      [CNI_CONFIG_KEY]: cniConfigList({ installation: config }),
    },
  };
  return variant.datastore === "etcd" ? [etcdSecret(names), settings] : [settings];
}

export const NET_CONF_KEY = "net-conf.json";

/** Network is the cluster CIDR, from which kube-controller-manager gives each node its podCIDR. */
const NET_CONF = `${JSON.stringify({ Network: "10.244.0.0/16", Backend: { Type: "vxlan" } }, undefined, 2)}\n`;

function etcdSettings({ manifests }: Names): Record<string, string> {
  return {
    [manifests.etcdEndpointsKey]: "https://<ETCD_IP>:<ETCD_PORT>",
    ...Object.fromEntries(Object.entries(ETCD_FILES).map(([key, file]) => [key, `${ETCD_DIR}/${file}`])),
  };
}

/** Empty: the user fills in the base64 of what their etcd requires. */
function etcdSecret({ namespaces }: Names): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: ETCD_SECRET, namespace: namespaces.system },
    type: "Opaque",
    data: Object.fromEntries(Object.values(ETCD_FILES).map((file) => [file, ""])),
  };
}

/** Where objects are kept, and how to speak to it. */
export function datastoreEnv(names: Names, { datastore }: ManifestVariant): EnvVar[] {
  if (datastore === "api") return variable("DATASTORE_TYPE", "orchestrator");
  const keys = [names.manifests.etcdEndpointsKey, ...Object.keys(ETCD_FILES)];
  return [
    ...variable("DATASTORE_TYPE", "etcd"),
    ...keys.map((key) => fromSettings(names, envName(key), key)),
    ...Object.entries(ETCD_USER).map(([name, key]) => ({
      ...{ name, valueFrom: { secretKeyRef: { name: ETCD_SECRET, key, optional: true } } },
    })),
  ];
}

/** As vendorctl calls them too. */
function envName(key: string): string {
  if (key === "etcd_ca") return "ETCD_CA_CERT_FILE";
  return Object.hasOwn(ETCD_FILES, key) ? `${key.toUpperCase()}_FILE` : key.toUpperCase();
}

export function fromSettings({ manifests }: Names, name: string, key: string): EnvVar {
  return { name, valueFrom: { configMapKeyRef: { name: manifests.configMap, key } } };
}

/** How containers see the etcd Secret. */
export function datastoreVolumes({ datastore }: ManifestVariant): { volumes: object[]; mounts: object[] } {
  if (datastore === "api") return { volumes: [], mounts: [] };
  return {
    volumes: [{ name: "etcd-certs", secret: { secretName: ETCD_SECRET, defaultMode: 0o400 } }],
    mounts: [{ name: "etcd-certs", mountPath: ETCD_DIR, readOnly: true }],
  };
}
