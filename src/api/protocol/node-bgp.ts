import type { KubeObject } from "../object.ts";

/** Below the directory of the agent's sockets: the agent writes the configuration, BIRD listens at the socket, the kubelet's probes ask there. */
export const BIRD_FILES = { configuration: "bgp/bird.conf", control: "bgp/bird.ctl" } as const;

/** Among the problems that an agent reports: its BIRD does not answer. */
export const BIRD_DOWN = "bgp BGP_DAEMON_DOWN";

/** Of a Node, written by people: how this one node speaks BGP. */
export const NODE_BGP = {
  /** Its AS number, where it is not that of the BGPConfiguration. */
  asNumber: "vendor.io/bgp-as-number",
  /** It reflects routes, as a member of this cluster; an IPv4 address. Such a node is not part of the full mesh. */
  routeReflectorClusterId: "vendor.io/bgp-route-reflector-cluster-id",
} as const;

export type NodeBgp = Readonly<Record<keyof typeof NODE_BGP, string | undefined>>;

export function readNodeBgp({ metadata: { annotations = {} } }: KubeObject): NodeBgp {
  return {
    asNumber: annotations[NODE_BGP.asNumber],
    routeReflectorClusterId: annotations[NODE_BGP.routeReflectorClusterId],
  };
}
