/** Of a packet that no policy denied. */
export interface DropReason {
  /** Goes on a sentence that begins with "Dropped: ". */
  what: string;
  /** What to do about it, in the imperative. */
  fix: string;
}

const NODE_STATUS = "look at the node with vendorctl node NAME";
const SEND_OTHERWISE = "send packets that have an IP header, whole and in the usual form";
const SPOOFED = "send from the address that the pod was given: see kubectl get pod -o wide";

/** By the data planes' own words: `enum reason` of the eBPF programs in lower case, without DROP_ and REJECT_. Policy has reasons too. */
export const DROP_REASONS: Readonly<Record<string, DropReason>> = {
  interface_not_ready: {
    what: "the node has not yet programmed the pod's interface",
    fix: `wait; if it stays, ${NODE_STATUS}`,
  },
  policy_workload_egress: { what: "policy does not let it leave", fix: "allow it where it leaves" },
  policy_workload_ingress: { what: "policy does not let it arrive", fix: "allow it where it arrives" },
  policy_host: { what: "policy of a host endpoint denies it", fix: "allow it in the policy of the host endpoint" },
  policy_missing: {
    what: "the node has not yet programmed the policy of this interface",
    fix: `wait; if it stays, ${NODE_STATUS}`,
  },
  spoofed_source: { what: "its source address is not one of the pod that sent it", fix: SPOOFED },
  spoofed_arp: { what: "the pod answered ARP for an address that is not its own", fix: SPOOFED },
  spoofed_neighbour: { what: "the pod announced an IPv6 neighbour address that is not its own", fix: SPOOFED },
  router_advertisement: {
    what: "a pod announced itself as an IPv6 router",
    fix: "turn off router advertisements in the pod",
  },
  vlan: { what: "it has a VLAN tag, which pods may not send", fix: "send without a VLAN tag" },
  not_ip: { what: "it is neither IP nor ARP", fix: SEND_OTHERWISE },
  truncated: { what: "it ends before its header does", fix: SEND_OTHERWISE },
  malformed: { what: "its header is malformed", fix: SEND_OTHERWISE },
  extension_headers: { what: "it has more IPv6 extension headers than are read", fix: SEND_OTHERWISE },
  source_route: { what: "it has a source route", fix: "send without a source route" },
  fragment_without_first: {
    what: "it is a fragment whose first one was not seen",
    fix: "avoid fragments: lower the MTU of the sender to that of its interface",
  },
  no_local_backend: {
    what: "the Service has no ready backend on this node, and its traffic policy is Local",
    fix: "set externalTrafficPolicy or internalTrafficPolicy of the Service to Cluster, or run a backend on the node",
  },
  source_range: {
    what: "the client is in none of loadBalancerSourceRanges of the Service",
    fix: "add the client's prefix to loadBalancerSourceRanges",
  },
  tunnel_source: {
    what: "it came through the overlay from an address that is no node of the cluster",
    fix: "add the machine to externalNodesList of the DataplaneConfiguration, if it may send",
  },
  flows_full: {
    what: "the node's conntrack table is full",
    fix: "raise bpfMapSizeConntrack, or find who opens so many connections: vendorctl flows top --by from --measure connections",
  },
  no_free_port: {
    what: "no port was free for the translated source address",
    fix: "spread the clients over more nodes, or use more destinations",
  },
  no_route: {
    what: "the node has no route to the destination",
    fix: "check the address, and the node's routes with ip route get",
  },
  nat_failed: { what: "its addresses could not be translated", fix: `try again; if it stays, ${NODE_STATUS}` },
  no_backend: {
    what: "the Service has no ready backend",
    fix: "make a pod of the Service ready: kubectl get endpointslices",
  },
  too_big: {
    what: "it is larger than the MTU on its way, and may not be fragmented",
    fix: "let ICMP pass to the sender, or lower its MTU",
  },
  hop_limit: { what: "its hop limit (TTL) ended here", fix: "look for a loop of routes, or send with a larger TTL" },
  no_port: { what: "the Service has no such port", fix: "use a port of the Service: kubectl get service" },
  unknown_flow: { what: "it is in the middle of a TCP connection that the node does not know", fix: "connect again" },
  flows_moving: { what: "its connection was moving to another data plane", fix: "nothing: TCP sends it again" },
  workload_limit: {
    what: "the pod has its share of the node's conntrack entries",
    fix: "close idle connections, or raise workloadConntrackPercent of the DataplaneConfiguration",
  },
  fragment_limit: { what: "the pod sends more fragmented packets than its share", fix: "lower the MTU of the sender" },
  reverse_path: {
    what: "the node's routes reach its sender by another interface than it came from",
    fix: "correct the routes of the node, or the sender's address",
  },
};

export function isPolicyReason(reason: string | undefined): boolean {
  return reason === undefined || /^policy_(?!missing$)/.test(reason);
}
