import { expect } from "vitest";
import type { Cluster, KubeObject } from "./cluster.ts";

export const NAMESPACE = "vendor-e2e";
const SERVICE = "server";
const PORT = 8080;
const HOST_PORT = 18_080;
const NODE_PORT = 30_180;

const SERVE = `require("http").createServer((_, answer) => answer.end(process.env.NODE)).listen(${PORT}, "::")`;
const STAY = "setInterval(() => {}, 1 << 30)";

/** Every node has one pod of each: a server; a client that the policy names, and one that it does not; and one in the node's network. */
export const WORKLOADS = ["server", "client", "stranger", "host"] as const;
export type Workload = (typeof WORKLOADS)[number];

export function workloadObjects(image: string): object[] {
  return [
    {
      apiVersion: "v1",
      kind: "Namespace",
      // The pod in the node's network reads the node's files, to find what is left there.
      metadata: { name: NAMESPACE, labels: { "pod-security.kubernetes.io/enforce": "privileged" } },
    },
    daemonSet("server", image, SERVE, { ports: [{ containerPort: PORT, hostPort: HOST_PORT }] }),
    daemonSet("client", image, STAY),
    daemonSet("stranger", image, STAY),
    daemonSet(
      "host",
      image,
      STAY,
      {
        securityContext: { privileged: true, runAsUser: 0 },
        volumeMounts: [{ name: "node", mountPath: "/node", mountPropagation: "HostToContainer" }],
      },
      { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet", volumes: [{ name: "node", hostPath: { path: "/" } }] },
    ),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: SERVICE, namespace: NAMESPACE },
      spec: {
        type: "NodePort",
        selector: { app: "server" },
        ports: [{ port: 80, targetPort: PORT, nodePort: NODE_PORT }],
      },
    },
  ];
}

function daemonSet(name: Workload, image: string, script: string, container = {}, pod = {}): object {
  const labels = { app: name };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name, namespace: NAMESPACE },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          tolerations: [{ operator: "Exists" }],
          terminationGracePeriodSeconds: 0,
          containers: [
            {
              name: "main",
              image,
              command: ["node", "-e", script],
              env: [{ name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
              ...container,
            },
          ],
          ...pod,
        },
      },
    },
  };
}

/** Only the client reaches the server, and only on its port. */
export const POLICY = {
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name: "only-client", namespace: NAMESPACE },
  spec: {
    podSelector: { matchLabels: { app: "server" } },
    policyTypes: ["Ingress"],
    ingress: [
      { from: [{ podSelector: { matchLabels: { app: "client" } } }], ports: [{ protocol: "TCP", port: PORT }] },
    ],
  },
};

/** Waits until every node runs one ready pod of each. */
export async function workloadsReady(cluster: Cluster, names: readonly Workload[] = WORKLOADS): Promise<void> {
  const waiting = async () => {
    const sets = await cluster.list("daemonsets", "-n", NAMESPACE).catch(() => []);
    return names.filter((name) => !rolledOut(sets.find(({ metadata }) => metadata.name === name)));
  };
  await expect.poll(waiting, { message: "pods that are not ready" }).toEqual([]);
}

function rolledOut(set: KubeObject | undefined): boolean {
  const { observedGeneration, desiredNumberScheduled = 0, updatedNumberScheduled, numberReady } = set?.status ?? {};
  const seen = observedGeneration === set?.metadata.generation && desiredNumberScheduled > 0;
  return seen && updatedNumberScheduled === desiredNumberScheduled && numberReady === desiredNumberScheduled;
}

export async function podsOf(cluster: Cluster, name: Workload): Promise<KubeObject[]> {
  return cluster.list("pods", "-n", NAMESPACE, "-l", `app=${name}`);
}

/** Addresses that more than one running pod has. */
export async function duplicateAddresses(cluster: Cluster): Promise<string[]> {
  const owners = new Map<string, string[]>();
  for (const { metadata, spec, status } of await cluster.list("pods", "-A")) {
    if (spec.hostNetwork || status.phase === "Succeeded" || status.phase === "Failed") continue;
    for (const { ip } of status.podIPs ?? []) {
      owners.set(ip, [...(owners.get(ip) ?? []), `${metadata.namespace}/${metadata.name}`]);
    }
  }
  return [...owners].filter(([, pods]) => pods.length > 1).map(([ip, pods]) => `${ip}: ${pods.join(", ")}`);
}

/** Every way to the server: each pod, the Service by address and name, the node port and the host port of each node. */
export async function serverUrls(cluster: Cluster): Promise<string[]> {
  const service = JSON.parse(
    await cluster.kubectl("get", "service", "-n", NAMESPACE, SERVICE, "-o", "json"),
  ) as KubeObject;
  const pods = await podsOf(cluster, "server");
  const nodes = await cluster.list("nodes");
  const dns =
    (await cluster.list("endpointslices", "-n", "kube-system", "-l", "kubernetes.io/service-name=kube-dns")).length > 0;
  return [
    ...pods.flatMap(({ status }) => (status.podIPs ?? []).map(({ ip }) => url(ip, PORT))),
    url(service.spec.clusterIP ?? "", 80),
    ...(dns ? [url(`${SERVICE}.${NAMESPACE}`, 80)] : []),
    ...nodes.flatMap(({ status }) => {
      const internal = (status.addresses ?? []).filter(({ type }) => type === "InternalIP");
      return internal.flatMap(({ address }) => [url(address, NODE_PORT), url(address, HOST_PORT)]);
    }),
  ];
}

export function podUrls(urls: readonly string[]): string[] {
  return urls.filter((url) => url.endsWith(`:${PORT}/`));
}

function url(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}/`;
}
