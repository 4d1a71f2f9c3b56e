// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Programs at the node's own interfaces: uplinks and the overlay. They judge what a host endpoint's policy is for, and
 * what comes from or goes to pods; all else they leave alone.
 */
#include "lib/judge.h"

INLINE int at_host(struct __sk_buff *skb, enum hook hook)
{
	__u32 ifindex = skb->ifindex;
	__u16 type;
	if (node_word(NODE_MODE) == MODE_OFF)
		return NEXT;
	struct work *w = work_of_cpu();
	if (!w)
		return NEXT;
	start(skb, w);
	struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	if (!interface)
		return pass(w, hook, PASS_NOT_OURS);

	enum frame frame = frame_of(skb, w, &type);
	/* A tagged frame belongs to another interface of the node. */
	if (frame != FRAME_IP)
		return pass(w, hook, frame == FRAME_ARP ? PASS_ARP : PASS_OTHER_PROTOCOL);
	enum reason bad = parse(skb, w, type);
	struct workload *theirs = bpf_map_lookup_elem(&workloads, arrives(hook) ? &w->packet.dst : &w->packet.src);
	if (!theirs && !has_policy(interface))
		return pass(w, hook, PASS_NOT_OURS);
	if (bad)
		return drop(w, hook, bad);
	if (is_neighbour_discovery(skb, w) || is_listener_report(w))
		return pass(w, hook, PASS_NEIGHBOUR_DISCOVERY);
	/* A pod of this node is never outside of it. */
	if (arrives(hook) && bpf_map_lookup_elem(&workloads, &w->packet.src))
		return drop(w, hook, DROP_SPOOFED_SOURCE);
	if (is_overlay_packet(w, hook))
		return pass(w, hook, PASS_OVERLAY);
	return decide(skb, w, hook, interface);
}

SEC("tc") int from_host(struct __sk_buff *skb)
{
	return at_host(skb, HOOK_FROM_HOST);
}

SEC("tc") int to_host(struct __sk_buff *skb)
{
	return at_host(skb, HOOK_TO_HOST);
}

SEC("tc") int from_host_judged(struct __sk_buff *skb)
{
	return after_policy(skb, HOOK_FROM_HOST);
}

SEC("tc") int to_host_judged(struct __sk_buff *skb)
{
	return after_policy(skb, HOOK_TO_HOST);
}

char license_of_programs[] SEC("license") = "GPL";
