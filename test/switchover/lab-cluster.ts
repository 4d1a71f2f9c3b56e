/** What is around the agents of a lab: their pods, services, the orchestrator's proxy. */
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { ENDPOINT_SLICES, SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { silentLog } from "../../src/kit/log.ts";
import { NodeProxy } from "../../src/local/runtime/netns/kube-proxy/service-node-proxy.ts";
import { runCommand } from "../../src/local/runtime/netns/run-command.ts";
import type { LabNode, NodeLab } from "../agent/node-lab.ts";

export type ProxyMode = "iptables" | "nftables";

export interface Exposed {
  /** One of each family it has. */
  ips: string[];
  port: number;
  nodePort?: number;
  targetPort: number;
  /** How long a client stays with its backend. */
  affinitySeconds?: number;
}

export interface Backend {
  addresses: string[];
  node?: string;
}

const kernel = realKernel();
const SYSTEM = vendorNames.namespaces.system;

export function agentPod(node: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `agent-of-${node}`, namespace: SYSTEM },
    spec: { nodeName: node, hostNetwork: true, containers: [{ name: "agent", image: "vendor" }] },
  } as KubeObject;
}

export async function expose(
  client: NodeLab["client"],
  name: string,
  { ips, port, nodePort, targetPort, affinitySeconds }: Exposed,
  backends: readonly Backend[],
): Promise<void> {
  const protocols = nodePort === undefined ? (["TCP"] as const) : (["TCP", "UDP"] as const);
  const metadata = { name, namespace: "default" };
  const families = ips.map(familyOf);
  await client.create(SERVICES, {
    ...{ apiVersion: "v1", kind: "Service", metadata },
    spec: {
      type: nodePort === undefined ? "ClusterIP" : "NodePort",
      ...{ clusterIP: ips[0], clusterIPs: ips, ipFamilies: families },
      ipFamilyPolicy: ips.length > 1 ? "RequireDualStack" : "SingleStack",
      ...(affinitySeconds === undefined
        ? {}
        : {
            sessionAffinity: "ClientIP",
            sessionAffinityConfig: { clientIP: { timeoutSeconds: affinitySeconds } },
          }),
      ports: protocols.map((protocol) => ({
        ...{ name: protocol.toLowerCase(), port, protocol },
        ...(nodePort ? { nodePort } : {}),
      })),
    },
  } as KubeObject);
  for (const family of families) {
    await client.create(ENDPOINT_SLICES, {
      ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: family },
      metadata: {
        ...metadata,
        name: `${name}-${family.toLowerCase()}`,
        labels: { "kubernetes.io/service-name": name },
      },
      ports: protocols.map((protocol) => ({ name: protocol.toLowerCase(), port: targetPort, protocol })),
      endpoints: backends.map(({ addresses, node }) => ({
        addresses: addresses.filter((address) => familyOf(address) === family),
        conditions: { ready: true, serving: true, terminating: false },
        ...(node ? { nodeName: node } : {}),
      })),
    } as KubeObject);
  }
}

function familyOf(address: string): "IPv4" | "IPv6" {
  return address.includes(":") ? "IPv6" : "IPv4";
}

/** Packets to a service's address must leave the routing table alive, as on any real node. */
export function defaultRoutes(node: LabNode, gateway: { v4: string; v6: string }): void {
  const netlink = kernel.netlink(node.netns);
  const way = { type: "unicast", table: 254, protocol: 3, device: netlink.link("eth0")!.index } as const;
  netlink.replaceRoute({ ...way, destination: "0.0.0.0/0", gateway: gateway.v4 });
  netlink.replaceRoute({ ...way, destination: "::/0", gateway: gateway.v6 });
  netlink.close();
}

export function nodeProxy(node: LabNode, mode: ProxyMode, clusterCidrs: readonly string[]): NodeProxy {
  return new NodeProxy({
    kernel,
    machine: {
      spec: { name: node.name, internalIPs: [node.addresses.v4, node.addresses.v6] } as never,
      netns: node.netns,
      run: (command, options) => runCommand([...insideOf(node), ...command], options),
    },
    clock: systemClock,
    log: silentLog,
    mode,
    clusterCidrs,
    isNodeEligible: () => true,
  });
}

export async function hasProxyRules(node: LabNode, mode: ProxyMode): Promise<boolean> {
  const command = mode === "nftables" ? ["nft", "list", "tables"] : ["iptables-save", "-t", "nat"];
  const { out } = await runCommand([...insideOf(node), ...command]);
  return mode === "nftables" ? out.includes("kube-proxy") : out.includes("KUBE-SVC");
}

/** What is forwarded must be allowed by somebody. */
export async function dropForwarded(node: LabNode): Promise<void> {
  for (const command of ["iptables", "ip6tables"]) {
    await runCommand([...insideOf(node), command, "-P", "FORWARD", "DROP"]);
  }
}

function insideOf(node: LabNode): string[] {
  return ["nsenter", `--net=/run/netns/${node.netns.name}`];
}
