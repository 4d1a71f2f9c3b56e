// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Programs at the node's own interfaces: uplinks and the overlay. They apply the policy of host endpoints, and handle
 * what comes from or goes to pods; all else they leave alone.
 */
#include "lib/pipeline.h"

/* Of the header behind UDP's, the second half begins with it. */
#define VXLAN_IDENTIFIER 12

/* The inner source address is trusted, so only nodes may send into the tunnel. The VNI distinguishes our tunnel from others on that port. */
INLINE int is_foreign_tunnel(struct __sk_buff *skb, struct work *w, enum hook hook)
{
	__u8 identifier[3];
	if (!arrives(hook) || !is_overlay_port(&w->packet) || (w->flags & WORK_LATER_FRAGMENT))
		return 0;
	if (!node_field(NODE_OVERLAY) || route_kind_of(w, &w->packet.dst) != ROUTE_LOCAL_HOST)
		return 0;
	if (bpf_skb_load_bytes(skb, w->transport + VXLAN_IDENTIFIER, identifier, sizeof(identifier)))
		return 0;
	return (identifier[0] << 16 | identifier[1] << 8 | identifier[2]) == (int)vxlan_vni;
}

/* Besides pods' packets: those of flows we translate, what may be about one, what asks a service, and tunnels. */
INLINE int needs_processing(struct work *w, enum hook hook, const struct interface *interface)
{
	if ((w->flags & WORK_ICMP_ERROR) || bpf_map_lookup_elem(&flows, &w->packet))
		return 1;
	/* It may answer for a service: sent on as it is, the client would refuse it, and its backend give up. */
	if (may_be_migrating(w) && route_kind_of(w, &w->packet.src) == ROUTE_REMOTE_WORKLOAD)
		return 1;
	if (!arrives(hook))
		return host_initiated_to_service(w, interface);
	if (is_overlay_port(&w->packet))
		return 1;
	return find_frontend(w, interface) || is_missing_port(w);
}

INLINE int at_host(struct __sk_buff *skb, enum hook hook)
{
	__u32 ifindex = skb->ifindex;
	__u16 type;
	__u32 mode = node_field(NODE_MODE);
	if (RARE(mode == MODE_OFF))
		return NEXT;
	struct work *w = work_of_cpu();
	if (RARE(!w))
		return NEXT;
	start(skb, w);
	w->mode = mode;
	struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	if (RARE(!interface))
		return pass(w, hook, PASS_NOT_OURS);

	if (RARE((skb->mark & MARK_MASK) == MARK_REJECT))
		return pass(w, hook, PASS_ANSWER);
	enum frame frame = frame_of(skb, w, &type);
	/* A tagged frame belongs to another interface of the node. */
	if (RARE(frame != FRAME_IP))
		return pass(w, hook, frame == FRAME_ARP ? PASS_ARP : PASS_OTHER_PROTOCOL);
	enum reason bad = parse(skb, w, type);
	if (!bad)
		save_first_fragment(w);
	struct workload *theirs = bpf_map_lookup_elem(&workloads, arrives(hook) ? &w->packet.dst : &w->packet.src);
	if (!theirs && !has_policy(interface) && (bad || !needs_processing(w, hook, interface))) {
		if (!bad && has_ports(w->packet.protocol) && is_loop(skb, w, hook, interface))
			return drop(w, hook, DROP_NO_LOCAL_BACKEND);
		return pass(w, hook, PASS_NOT_OURS);
	}
	if (RARE(bad))
		return drop(w, hook, bad);
	if (RARE(is_neighbour_discovery(skb, w) || is_listener_report(w)))
		return pass(w, hook, PASS_NEIGHBOUR_DISCOVERY);
	/* A pod of this node is never outside of it. */
	if (RARE(arrives(hook) && bpf_map_lookup_elem(&workloads, &w->packet.src)))
		return drop(w, hook, DROP_SPOOFED_SOURCE);
	if (RARE(is_overlay_packet(w, hook)))
		return pass(w, hook, PASS_OVERLAY);
	if (RARE(is_foreign_tunnel(skb, w, hook)))
		return drop(w, hook, DROP_TUNNEL_SOURCE);
	return run_pipeline(skb, w, hook, interface);
}

SEC("tc") int from_host(struct __sk_buff *skb)
{
	return leave(skb, at_host(skb, HOOK_FROM_HOST));
}

SEC("tc") int to_host(struct __sk_buff *skb)
{
	return leave(skb, at_host(skb, HOOK_TO_HOST));
}

SEC("tc") int new_flow_host(struct __sk_buff *skb)
{
	return leave(skb, new_flow_step(skb, HOOK_FROM_HOST));
}

SEC("tc") int new_flow_local(struct __sk_buff *skb)
{
	return leave(skb, new_flow_from_host(skb));
}

SEC("tc") int from_host_verdict(struct __sk_buff *skb)
{
	return leave(skb, after_policy(skb, HOOK_FROM_HOST));
}

SEC("tc") int to_host_verdict(struct __sk_buff *skb)
{
	return leave(skb, after_policy(skb, HOOK_TO_HOST));
}

char license_of_programs[] SEC("license") = "GPL";
