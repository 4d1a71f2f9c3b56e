/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Connection tracking. A flow is two entries, one per direction, each found by the packet's own key. */
#ifndef LIB_FLOWS_H
#define LIB_FLOWS_H

#include "parse.h"

/* Writing a time into a shared line for every packet costs more than an eighth of a second is worth. */
#define SEEN_GRAIN (SECOND / 8)

INLINE __u64 timeout_of(__u8 protocol, __u8 state)
{
	if (protocol == IPPROTO_TCP) {
		if (state == FLOW_OPENING)
			return timeout_tcp_opening;
		return state == FLOW_ESTABLISHED ? timeout_tcp_established : timeout_tcp_closing;
	}
	if (protocol == IPPROTO_UDP)
		return timeout_udp;
	return is_icmp(protocol) ? timeout_icmp : timeout_other;
}

/* Whether an entry makes of its packets what the packet's answers look like. */
INLINE int leads_back(const struct flow *flow, const struct flow_key *packet)
{
	return same_address(&flow->to.src, &packet->dst) && same_address(&flow->to.dst, &packet->src) &&
	       flow->to.sport == packet->dport && flow->to.dport == packet->sport;
}

/*
 * The other direction's entry. Of a flow that the kernel translates, answers are under other addresses than its requests' reversed: what is
 * found there may be another flow, kept apart from it by a port of its own. So may what is found where the answers of a flow were that is over.
 */
INLINE struct flow *other_half(const struct work *w, const struct flow *flow)
{
	struct flow *other = bpf_map_lookup_elem(&flows, &w->reply);
	if (!other || ((other->flags ^ flow->flags) & (FLOW_KERNEL | FLOW_NAT)))
		return 0;
	return !(other->flags & FLOW_NAT) || leads_back(other, &w->packet) ? other : 0;
}

INLINE void forget(const struct work *w, const struct flow *flow)
{
	if (other_half(w, flow))
		bpf_map_delete_elem(&flows, &w->reply);
	bpf_map_delete_elem(&flows, &w->packet);
}

/* Whether packets of that entry are translated where they arrive and go past the stack: what looks so where it leaves is another flow's. */
INLINE int passes_stack_by(const struct flow *flow)
{
	return (flow->flags & FLOW_NAT) && flow->path != PATH_STACK && !(flow->flags & FLOW_FROM_HOST);
}

/*
 * A SYN opens a flow, whatever stood there; a SYN-ACK is no part of one that closes. A SYN sent again before its answer stays with the
 * backend the first was sent to. Where packets leave, a SYN of a flow that opens is the very one that opened it on its way in.
 */
INLINE int is_reused(const struct work *w, const struct flow *flow, int leaving)
{
	if (w->packet.protocol != IPPROTO_TCP || (w->flags & WORK_LATER_FRAGMENT) || !(w->tcp_flags & TCP_SYN))
		return 0;
	if (w->tcp_flags & TCP_ACK)
		return flow->state == FLOW_CLOSING;
	if (flow->state != FLOW_OPENING || (flow->flags & FLOW_REPLY))
		return 1;
	return !leaving && !(flow->flags & FLOW_NAT) && flow->path != PATH_OVERLAY;
}

/* The live entry of the packet's flow. One that is over, or whose addresses and ports begin a new flow, is removed. */
INLINE struct flow *find_flow(struct work *w, int leaving, __u64 now)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &w->packet);
	if (!flow || (leaving && passes_stack_by(flow)))
		return 0;
	if (flow->flags & FLOW_NAT)
		reverse(&w->reply, &flow->to);
	int lives = elapsed(now, flow->last_seen) <= timeout_of(w->packet.protocol, flow->state);
	if (lives && !is_reused(w, flow, leaving))
		return flow;
	/* Where its answers came from it may be remembered, and must not be met by others. */
	if (lives && flow->state == FLOW_CLOSING && (flow->flags & FLOW_NAT))
		bpf_map_delete_elem(&flows, &w->packet);
	else
		forget(w, flow);
	reverse(&w->reply, &w->packet);
	return 0;
}

/* What the entry says of its packets, for the rest of the way. */
INLINE void take(struct work *w, const struct flow *flow)
{
	w->path = flow->path;
	w->out = flow->out;
	w->to = w->packet;
	w->flags |= (flow->flags & FLOW_REPLY ? WORK_REPLY : 0) | (flow->flags & FLOW_MARK ? WORK_MARK : 0);
	if (!w->from && (flow->flags & (FLOW_NAT | FLOW_FROM_HOST)) == (FLOW_NAT | FLOW_FROM_HOST))
		w->flags |= WORK_OWN;
	if (flow->flags & FLOW_NAT) {
		w->flags |= WORK_NAT;
		w->to = flow->to;
	}
	if (flow->path == PATH_OVERLAY)
		__builtin_memcpy(w->mac, flow->mac, 6);
}

INLINE void advance(struct flow *flow, struct flow *answer, const struct work *w)
{
	__u8 state = flow->state;
	if (w->tcp_flags & TCP_RST)
		state = FLOW_CLOSING;
	else if (w->tcp_flags & TCP_FIN) {
		flow->flags |= FLOW_FIN;
		if (answer && (answer->flags & FLOW_FIN))
			state = FLOW_CLOSING;
	}
	/* Of a flow whose answers do not come by here, the client's acknowledgement says that it was answered. */
	if (state == FLOW_OPENING && (flow->flags & (FLOW_REPLY | FLOW_DIRECT)))
		state = FLOW_ESTABLISHED;
	flow->state = state;
	if (answer)
		answer->state = state;
}

/* Counts the packet, and moves the state when it says something new. The other direction is looked up only then. */
INLINE void refresh(struct flow *flow, const struct work *w, __u32 length, __u64 now)
{
	flow->packets++;
	flow->bytes += length;
	__u8 opening = flow->state == FLOW_OPENING && (flow->flags & (FLOW_REPLY | FLOW_DIRECT));
	__u8 ending = w->packet.protocol == IPPROTO_TCP && (w->tcp_flags & (TCP_FIN | TCP_RST));
	__u8 old = elapsed(now, flow->last_seen) > SEEN_GRAIN;
	if (!opening && !ending && !old)
		return;
	struct flow *answer = other_half(w, flow);
	flow->last_seen = now;
	/* Both directions live as long as one does: a one-way transfer must not lose its acknowledging half. */
	if (answer)
		answer->last_seen = now;
	if (opening || ending)
		advance(flow, answer, w);
}

/* Remembers what policy approved at this hook, in both directions: for the answer, in and out are exchanged. */
INLINE void approve_known(const struct work *w)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &w->packet);
	if (!flow)
		return;
	if (w->epoch_in)
		flow->approved_in = w->epoch_in;
	if (w->epoch_out)
		flow->approved_out = w->epoch_out;
	struct flow *answer = other_half(w, flow);
	if (!answer)
		return;
	if (w->epoch_in)
		answer->approved_out = w->epoch_in;
	if (w->epoch_out)
		answer->approved_in = w->epoch_out;
}

INLINE __u8 flow_flags_of(const struct work *w)
{
	return (w->flags & WORK_FROM_HOST ? FLOW_FROM_HOST : 0) | (w->flags & WORK_TO_HOST ? FLOW_TO_HOST : 0) |
	       (w->flags & WORK_NAT ? FLOW_NAT : 0) | (w->flags & WORK_MARK ? FLOW_MARK : 0) |
	       (w->flags & WORK_DIRECT ? FLOW_DIRECT : 0) | (w->flags & WORK_KERNEL ? FLOW_KERNEL : 0);
}

/* 0 when both directions are in the table, or the kernel has them. A translated flow of which only one were would be worse than none. */
INLINE long open_flow(struct work *w, __u32 in_ifindex, __u32 length, __u64 now)
{
	struct flow *flow = &w->scratch.flow;
	__u8 reply = w->flags & WORK_REPLY ? FLOW_REPLY : 0;
	__builtin_memset(flow, 0, sizeof(*flow));
	flow->last_seen = now;
	flow->packets = 1;
	flow->bytes = length;
	flow->approved_in = w->epoch_in;
	flow->approved_out = w->epoch_out;
	flow->out = w->out;
	flow->path = w->path;
	flow->flags = flow_flags_of(w) | reply;
	flow->service = w->service;
	flow->to = w->flags & WORK_NAT ? w->to : w->judged;
	__builtin_memcpy(flow->mac, w->mac, 6);
	/* Met in the middle: it was there before us. */
	if (w->packet.protocol == IPPROTO_TCP && !(w->tcp_flags & TCP_SYN))
		flow->state = FLOW_ESTABLISHED;
	if (bpf_map_update_elem(&flows, &w->packet, flow, BPF_ANY))
		return -1;
	flow->packets = 0;
	flow->bytes = 0;
	flow->approved_in = w->epoch_out;
	flow->approved_out = w->epoch_in;
	flow->out = w->reply_path == PATH_LOCAL || w->reply_path == PATH_HOST ? in_ifindex : 0;
	flow->path = w->reply_path;
	flow->flags ^= FLOW_REPLY;
	flow->flags &= ~FLOW_MARK;
	if (w->flags & WORK_NAT)
		reverse(&flow->to, &w->packet);
	__builtin_memcpy(flow->mac, w->reply_mac, 6);
	if (w->flags & WORK_KERNEL) {
		bpf_map_update_elem(&flows, &w->reply, flow, BPF_NOEXIST);
		return 0;
	}
	if (!bpf_map_update_elem(&flows, &w->reply, flow, BPF_ANY))
		return 0;
	bpf_map_delete_elem(&flows, &w->packet);
	return -1;
}

#endif
