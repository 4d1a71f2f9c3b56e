import type { KubeObject } from "../../api/object.ts";
import type { CanaryInputs } from "./canary-plan.ts";

export const CANARY_NAMESPACE = "vendor-canary";
/** Which start made it: another start does not count what this one lost. */
export const CANARY_ID = "procedures.vendor.io/canary";
export const MANAGED_BY = { key: "app.kubernetes.io/managed-by", value: "vendorctl" } as const;
/** The figures before anything changed. */
export const BASELINE_ANNOTATION = "procedures.vendor.io/canary-baseline";

const PORT = 8080;
const SERVER = "procedures.vendor.io/canary-server";

/** The names of the clients on so many nodes. */
export function clientNames(nodes: number): string[] {
  return Array.from({ length: nodes }, (_, at) => [`pod-client-${at}`, `host-client-${at}`]).flat();
}

export const serverName = (at: number): string => `server-${at}`;

export function namespaceObject(id: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name: CANARY_NAMESPACE,
      labels: {
        [MANAGED_BY.key]: MANAGED_BY.value,
        [CANARY_ID]: id,
        // One client of each node is in the node's own network.
        "pod-security.kubernetes.io/enforce": "privileged",
      },
    },
  };
}

/** On each node a server, and a service of its own in front of it: so each client knows where its packets end. */
export function serverObjects({ nodes, image }: CanaryInputs): KubeObject[] {
  return nodes.flatMap(({ name: node }, at) => {
    const name = serverName(at);
    const ports = ["TCP", "UDP"].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: PORT }));
    const service: KubeObject = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace: CANARY_NAMESPACE },
      spec: { type: "NodePort", selector: { [SERVER]: name }, ports },
    };
    const args = ["vendor", "probe", "serve", "--tcp", String(PORT), "--udp", String(PORT)];
    return [service, pod({ name, node, image, command: args, labels: { [SERVER]: name } })];
  });
}

/** How servers are reached, as the cluster decided it. */
export interface ServerAddresses {
  podIP: string;
  clusterIP: string;
  tcpNodePort: number;
  udpNodePort: number;
}

/** Each client knows a server on its own node and one on the next; where there is one node only, all ways end there. */
export function clientObjects({ nodes, image }: CanaryInputs, servers: readonly ServerAddresses[]): KubeObject[] {
  return nodes.flatMap(({ name: node }, at) => {
    const ways = pathsFrom(at, nodes, servers);
    const measure = (which: string[]) => ["vendor", "probe", "measure", ...which];
    return [
      pod({ name: `pod-client-${at}`, node, image, command: measure(ways.ofPods) }),
      pod({ name: `host-client-${at}`, node, image, command: measure(ways.ofHosts), hostNetwork: true }),
    ];
  });
}

function pathsFrom(at: number, nodes: CanaryInputs["nodes"], servers: readonly ServerAddresses[]) {
  const own = servers[at] as ServerAddresses;
  const next = (at + 1) % nodes.length;
  const other = servers[next] as ServerAddresses;
  const way = (name: string, host: string, tcp: number, udp: number) =>
    `${name}=${host.includes(":") ? `[${host}]` : host}:${tcp}/${udp}`;
  const pod = (name: string, { podIP }: ServerAddresses) => way(name, podIP, PORT, PORT);
  const service = (name: string, { clusterIP }: ServerAddresses) => way(name, clusterIP, PORT, PORT);
  const alone = nodes.length === 1;
  // Asked of the next node: for what it has itself, and for what it has to pass on to a third, or back where there is none.
  const door = (nodes[next] as CanaryInputs["nodes"][number]).address;
  const behind = servers[(at + 2) % nodes.length] as ServerAddresses;
  const nodePort = (name: string, { tcpNodePort, udpNodePort }: ServerAddresses) =>
    way(name, door, tcpNodePort, udpNodePort);
  return {
    ofPods: [
      pod("pod-same-node", own),
      service("service-local", own),
      nodePort("node-port-local", other),
      ...(alone
        ? []
        : [pod("pod-other-node", other), service("service-remote", other), nodePort("node-port-remote", behind)]),
    ],
    ofHosts: [service("host-to-service", other)],
  };
}

interface PodParts {
  name: string;
  node: string;
  image: string;
  command: string[];
  labels?: Record<string, string>;
  hostNetwork?: true;
}

/** Put on its node by name and tolerating everything: a canary goes wherever the data plane does. */
function pod({ name, node, image, command, labels = {}, hostNetwork }: PodParts): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: CANARY_NAMESPACE, labels },
    spec: {
      nodeName: node,
      ...(hostNetwork && { hostNetwork }),
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      tolerations: [{ operator: "Exists" }],
      containers: [
        {
          name: "probe",
          image,
          imagePullPolicy: "IfNotPresent",
          command,
          resources: { requests: { cpu: "20m", memory: "48Mi" }, limits: { memory: "192Mi" } },
        },
      ],
    },
  };
}
