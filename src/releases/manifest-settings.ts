import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { Layout } from "./layout.ts";

const { manifests } = vendorNames;

export const ETCD_SECRET = "vendor-etcd-secrets";
/** Of the config map: which pods of the first pool get their addresses from. */
export const POOL_CIDR_KEY = "ipv4_pool_cidr";

/** The settings the plain manifests kept in one config map; with etcd also where it is and how to speak to it. */
export function manifestSettings(layout: Layout, namespace: string): KubeObject[] {
  const etcd = {
    [manifests.etcdEndpointsKey]: "https://<ETCD_IP>:<ETCD_PORT>",
    etcd_ca: "/vendor-secrets/etcd-ca",
    etcd_cert: "/vendor-secrets/etcd-cert",
    etcd_key: "/vendor-secrets/etcd-key",
  };
  const network = {
    name: "vendor",
    cniVersion: "0.3.1",
    plugins: [{ type: layout.networking === "foreign" ? "host-local" : "vendor", log_level: "info", mtu: 0 }],
  };
  const settings: KubeObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: manifests.configMap, namespace },
    data: {
      vendor_backend: layout.networking === "own" ? "vxlan" : "none",
      veth_mtu: "0",
      ...(layout.networking === "own" && layout.datastore === "api" ? { [POOL_CIDR_KEY]: "192.168.0.0/16" } : {}),
      cni_network_config: `${JSON.stringify(network, undefined, 2)}\n`,
      ...(layout.datastore === "etcd" ? etcd : {}),
    },
  };
  return layout.datastore === "etcd" ? [etcdSecret(namespace), settings] : [settings];
}

/** Empty: the user filled in what their etcd required. */
function etcdSecret(namespace: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: ETCD_SECRET, namespace },
    type: "Opaque",
    data: { "etcd-ca": "", "etcd-cert": "", "etcd-key": "" },
  };
}
