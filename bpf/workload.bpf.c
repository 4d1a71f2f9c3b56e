// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* Programs at the host's side of a pod's interface. */
#include "lib/reject.h"
#include "lib/pipeline.h"

/* Messages of the link end there: at its neighbours, its groups, or this node. To any other address they are packets for policy. */
INLINE int stays_on_link(struct work *w)
{
	const struct ip_address *dst = &w->packet.dst;
	return is_link_local_v6(dst) || is_link_multicast(dst) || route_kind_of(w, dst) == ROUTE_LOCAL_HOST;
}

/* A pod speaks with its own addresses only, and about its link only for itself. REASON_NONE: an ordinary packet of its own. */
INLINE enum reason check_source(struct __sk_buff *skb, struct work *w)
{
	if (RARE(is_neighbour_discovery(skb, w))) {
		enum reason reason = check_neighbour_discovery(skb, w);
		if (reason >= FIRST_DROP || stays_on_link(w))
			return reason;
	}
	if (!RARE(!is_behind(&w->packet.src, w->ifindex)))
		return REASON_NONE;
	if (w->ip_version == 6 && is_listener_report(w) && (is_link_local_v6(&w->packet.src) || is_unspecified(&w->packet.src)) &&
	    stays_on_link(w))
		return PASS_NEIGHBOUR_DISCOVERY;
	return DROP_SPOOFED_SOURCE;
}

/* Later fragments are looked up in one table of all pods: who floods it with first ones loses its own. */
INLINE enum reason accept_fragment(struct work *w)
{
	struct workload_share *share = w->flags & WORK_FIRST_FRAGMENT ? share_of(w->ifindex) : 0;
	if (share) {
		__u64 second = bpf_ktime_get_ns() / SECOND;
		if (share->fragment_second != second) {
			share->fragment_second = second;
			share->fragments = 0;
		}
		if (share->fragments >= fragments_per_second)
			return DROP_FRAGMENT_LIMIT;
		__sync_fetch_and_add(&share->fragments, 1);
	}
	save_first_fragment(w);
	return REASON_NONE;
}

INLINE int leave_pod(struct __sk_buff *skb)
{
	const enum hook hook = HOOK_FROM_WORKLOAD;
	__u32 ifindex = skb->ifindex;
	__u16 type;
	__u32 mode = node_field(NODE_MODE);
	if (RARE(mode == MODE_OFF))
		return NEXT;
	struct work *w = work_of_cpu();
	if (RARE(!w))
		return DROP;
	start(skb, w);
	w->mode = mode;
	struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	if (RARE(!interface))
		return drop(w, hook, DROP_INTERFACE_NOT_READY);

	enum frame frame = frame_of(skb, w, &type);
	/* Also a tag that only carries a priority: a pod has no use for one, and a redirect would carry it into the tunnel or another pod. */
	if (RARE(frame == FRAME_VLAN || skb->vlan_present))
		return drop(w, hook, DROP_VLAN);
	if (RARE(frame == FRAME_OTHER))
		return drop(w, hook, DROP_NOT_IP);
	enum reason reason = RARE(frame == FRAME_ARP) ? check_arp(skb, w, interface) : parse(skb, w, type);
	if (frame == FRAME_IP && !reason)
		reason = check_source(skb, w);
	/* In the tunnel it could claim any source, and behind a masquerade it would be a node's. */
	if (frame == FRAME_IP && !reason && is_overlay_port(&w->packet))
		reason = DROP_TUNNEL_SOURCE;
	if (frame == FRAME_IP && !reason)
		reason = accept_fragment(w);
	if (RARE(reason >= FIRST_DROP))
		return drop(w, hook, reason);
	if (RARE(reason))
		return pass(w, hook, reason);
	return run_pipeline(skb, w, hook, interface);
}

SEC("tc") int from_workload(struct __sk_buff *skb)
{
	return leave(skb, leave_pod(skb));
}

INLINE int enter_pod(struct __sk_buff *skb)
{
	const enum hook hook = HOOK_TO_WORKLOAD;
	__u32 ifindex = skb->ifindex;
	__u16 type;
	__u32 mode = node_field(NODE_MODE);
	if (RARE(mode == MODE_OFF))
		return NEXT;
	struct work *w = work_of_cpu();
	if (RARE(!w))
		return DROP;
	start(skb, w);
	w->mode = mode;
	struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	if (RARE(!interface))
		return drop(w, hook, DROP_INTERFACE_NOT_READY);

	if (RARE((skb->mark & MARK_MASK) == MARK_REJECT))
		return pass(w, hook, PASS_ANSWER);
	enum frame frame = frame_of(skb, w, &type);
	if (RARE(frame == FRAME_ARP))
		return pass(w, hook, PASS_ARP);
	if (RARE(frame == FRAME_VLAN))
		return drop(w, hook, DROP_VLAN);
	if (RARE(frame == FRAME_OTHER))
		return drop(w, hook, DROP_NOT_IP);
	enum reason bad = parse(skb, w, type);
	if (RARE(bad))
		return drop(w, hook, bad);
	save_first_fragment(w);
	/* Only this node itself can be the pod's neighbour. */
	if (RARE(is_neighbour_discovery(skb, w) && !w->from))
		return pass(w, hook, PASS_NEIGHBOUR_DISCOVERY);
	return run_pipeline(skb, w, hook, interface);
}

SEC("tc") int to_workload(struct __sk_buff *skb)
{
	return leave(skb, enter_pod(skb));
}

SEC("tc") int new_flow_workload(struct __sk_buff *skb)
{
	return leave(skb, new_flow_step(skb, HOOK_FROM_WORKLOAD));
}

/* Of every hook: what is answered is in `struct work`. */
SEC("tc") int reject_packet(struct __sk_buff *skb)
{
	struct work *w = work_of_cpu();
	if (!w)
		return DROP;
	w->left = send_reject(skb, w);
	w->dropped = w->reject_reason;
	if (w->interval)
		bpf_tail_call(skb, &steps, STEP_DROPPED);
	return w->left;
}

/* Of every hook: what was dropped, or answered, and why. */
SEC("tc") int dropped(struct __sk_buff *skb)
{
	struct work *w = work_of_cpu();
	(void)skb;
	if (!w || !w->dropped)
		return DROP;
	if (w->interval)
		tell_drop(w, bpf_ktime_get_ns());
	return w->left;
}

SEC("tc") int from_workload_verdict(struct __sk_buff *skb)
{
	return leave(skb, after_policy(skb, HOOK_FROM_WORKLOAD));
}

SEC("tc") int to_workload_verdict(struct __sk_buff *skb)
{
	return leave(skb, after_policy(skb, HOOK_TO_WORKLOAD));
}

char license_of_programs[] SEC("license") = "GPL";
