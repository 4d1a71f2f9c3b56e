import type { KubeObject } from "../api/object.ts";
import type { Client } from "../cluster/client.ts";
import { isAlreadyExists } from "../cluster/failures.ts";
import type { ClusterKeys } from "./certificates.ts";
import { STANDARD_STORAGE } from "./controllers/volumes/claim-binder.ts";
import { addressIn } from "./platform-profiles/server-names.ts";
import { systemNamespaces } from "./platform-profiles/system-namespaces.ts";
import { bootstrapRoles } from "./rbac-bootstrap.ts";

/** The initial objects of every cluster, in the order they must be created. */
export function bootstrapObjects(keys: ClusterKeys, apiPort: number, serviceCidr: string): KubeObject[] {
  return [
    ...systemNamespaces(),
    STANDARD_STORAGE,
    ...bootstrapRoles(),
    priorityClass("system-cluster-critical", 2_000_000_000),
    priorityClass("system-node-critical", 2_000_001_000),
    apiAuthentication(keys),
    kubernetesService(addressIn(serviceCidr, 1), apiPort),
  ];
}

function priorityClass(name: string, value: number): KubeObject {
  return { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name }, value };
}

/** Where aggregated API servers read whom to trust about who a user is. */
function apiAuthentication(keys: ClusterKeys): KubeObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "extension-apiserver-authentication", namespace: "kube-system" },
    data: {
      "client-ca-file": keys.authority.certificate,
      "requestheader-allowed-names": '["front-proxy-client"]',
      "requestheader-client-ca-file": keys.frontProxyAuthority.certificate,
      "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
      "requestheader-group-headers": '["X-Remote-Group"]',
      "requestheader-username-headers": '["X-Remote-User"]',
    },
  };
}

const KUBERNETES = {
  name: "kubernetes",
  namespace: "default",
  labels: { component: "apiserver", provider: "kubernetes" },
};

/** The API server's cluster IP: what a service proxy makes reachable, and what must not be needed once it is gone. */
function kubernetesService(clusterIP: string, targetPort: number): KubeObject {
  const ports = [{ name: "https", port: 443, protocol: "TCP", targetPort }];
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { ...KUBERNETES },
    spec: { type: "ClusterIP", clusterIP, ports },
  };
}

function kubernetesEndpoints({ host, port }: { host: string; port: number }): KubeObject[] {
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { ...KUBERNETES, labels: { "kubernetes.io/service-name": "kubernetes" } },
    addressType: host.includes(":") ? "IPv6" : "IPv4",
    endpoints: [{ addresses: [host], conditions: { ready: true } }],
    ports: [{ name: "https", port, protocol: "TCP" }],
  };
  const endpoints = {
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: { ...KUBERNETES },
    subsets: [{ addresses: [{ ip: host }], ports: [{ name: "https", port, protocol: "TCP" }] }],
  };
  return [endpoints, slice];
}

/** Where the API server really listens, which may be elsewhere than in a former life. */
export async function pointToServer(client: Client, api: { host: string; port: number }): Promise<void> {
  for (const object of kubernetesEndpoints(api)) {
    const kind = await client.resourceFor(object);
    await client.apply(kind, object, { fieldManager: "kube-apiserver", force: true });
  }
}

/** Creates what is not there yet: a cluster with a data directory finds most of it from its former life. */
export async function createMissing(client: Client, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const kind = await client.resourceFor(object);
    await client.create(kind, object).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
  }
}
