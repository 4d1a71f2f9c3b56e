/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Connection tracking. A flow is two entries, one per direction, each found by the packet's own key. */
#ifndef LIB_CONNTRACK_H
#define LIB_CONNTRACK_H

#include "flow_sums.h"

/* Writing a time into a shared line for every packet costs more than an eighth of a second is worth. */
#define SEEN_GRAIN (SECOND / 8)

INLINE __u64 timeout_of(__u8 protocol, __u8 state)
{
	if (protocol == IPPROTO_TCP) {
		if (state == CT_OPENING)
			return timeout_tcp_opening;
		return state == CT_ESTABLISHED ? timeout_tcp_established : timeout_tcp_closing;
	}
	if (protocol == IPPROTO_UDP)
		return timeout_udp;
	return is_icmp(protocol) ? timeout_icmp : timeout_other;
}

/* Whether an entry makes of its packets what the packet's answers look like. */
INLINE int is_reverse_of(const struct conntrack_entry *entry, const struct five_tuple *packet)
{
	return same_address(&entry->to.src, &packet->dst) && same_address(&entry->to.dst, &packet->src) &&
	       entry->to.sport == packet->dport && entry->to.dport == packet->sport;
}

/*
 * The other direction's entry. Of a flow that the kernel translates, answers are under other addresses than its requests' reversed: what is
 * found there may be another flow, kept apart from it by a port of its own. So may what is found where the answers of a flow were that is over.
 */
INLINE struct conntrack_entry *find_reverse_entry(const struct work *w, const struct conntrack_entry *entry)
{
	struct conntrack_entry *other = bpf_map_lookup_elem(&flows, &w->reply);
	/* Two that go the same way are two flows, each met in its middle: see is_met_midstream. */
	if (!other || ((other->flags ^ entry->flags) & (CT_NF_CONNTRACK | CT_NAT | CT_REPLY)) != CT_REPLY)
		return 0;
	return !(other->flags & CT_NAT) || is_reverse_of(other, &w->packet) ? other : 0;
}

INLINE struct workload_share *share_of(__u32 ifindex)
{
	return bpf_map_lookup_elem(&workload_shares, &ifindex);
}

/* Entries of a connection that the sender of the packet opened are gone, where it arrived. What others delete is counted by the agent. */
INLINE void release_share(const struct work *w, int opened, int entries)
{
	struct workload_share *share = opened ? share_of(w->ifindex) : 0;
	if (share)
		__sync_fetch_and_add(&share->entries, -entries);
}

/* Returns how many there were. `alone`: not the other direction; `ended`: as `tell_last` has it. */
INLINE int delete_entries(struct work *w, struct conntrack_entry *entry, int alone, int ended)
{
	int deleted = 0;
	struct conntrack_entry *other = alone ? 0 : find_reverse_entry(w, entry);
	tell_last(w, &w->packet, entry, other, ended);
	if (other) {
		bpf_map_delete_elem(&flows, &w->reply);
		deleted = 1;
	}
	return deleted + !bpf_map_delete_elem(&flows, &w->packet);
}

/* At a hook where packets arrive. */
INLINE void end_connection(struct work *w, struct conntrack_entry *entry)
{
	int opened = !(entry->flags & CT_REPLY);
	release_share(w, opened, delete_entries(w, entry, 0, 1));
}

/* Whether packets of that entry are translated where they arrive and go past the stack: what looks so where it leaves is another flow's. */
INLINE int bypasses_stack(const struct conntrack_entry *entry)
{
	return (entry->flags & CT_NAT) && entry->path != PATH_STACK && !(entry->flags & CT_FROM_HOST);
}

/*
 * A SYN opens a flow, whatever stood there; a SYN-ACK is no part of one that closes. A SYN sent again before its answer stays with the
 * backend the first was sent to. Where packets leave, a SYN of a flow that opens is the very one that opened it on its way in.
 */
INLINE int is_reused(const struct work *w, const struct conntrack_entry *entry, int leaving)
{
	if (w->packet.protocol != IPPROTO_TCP || (w->flags & WORK_LATER_FRAGMENT) || !(w->tcp_flags & TCP_SYN))
		return 0;
	if (w->tcp_flags & TCP_ACK)
		return entry->state == CT_CLOSING;
	if (entry->state != CT_OPENING || (entry->flags & CT_REPLY))
		return 1;
	return !leaving && !(entry->flags & CT_NAT) && entry->path != PATH_OVERLAY;
}

/* The live entry of the packet's flow. One that is over, or whose addresses and ports begin a new flow, is removed. */
INLINE struct conntrack_entry *find_entry(struct work *w, int leaving, __u64 now)
{
	struct conntrack_entry *entry = bpf_map_lookup_elem(&flows, &w->packet);
	if (RARE(!entry || (leaving && bypasses_stack(entry))))
		return 0;
	if (entry->flags & CT_NAT)
		reverse_tuple(&w->reply, &entry->to);
	int lives = elapsed(now, entry->last_seen) <= timeout_of(w->packet.protocol, entry->state);
	if (!RARE(!lives || is_reused(w, entry, leaving)))
		return entry;
	/* What policy ended makes room when policy allows what begins; a SYN that is denied leaves it. */
	int stays = lives && entry->denied && !leaving;
	int opened = !leaving && !(entry->flags & CT_REPLY);
	int deleted = 0;
	/* Where its answers came from it may be remembered, and must not be met by others. */
	int alone = lives && entry->state == CT_CLOSING && (entry->flags & CT_NAT);
	/* A SYN that was lost on its way, or its answer: the connection is the same. */
	int again = lives && opened && entry->state == CT_OPENING;
	if (!stays) {
		w->flags |= again ? WORK_SENT_AGAIN : 0;
		deleted = delete_entries(w, entry, alone, !again);
	}
	release_share(w, opened, deleted);
	reverse_tuple(&w->reply, &w->packet);
	return 0;
}

/* What the entry says of its packets, for the rest of the way. */
INLINE void apply_entry(struct work *w, const struct conntrack_entry *entry)
{
	w->path = entry->path;
	w->out = entry->out;
	w->flags |= (entry->flags & CT_REPLY ? WORK_REPLY : 0) | (entry->flags & CT_MASQUERADE ? WORK_MASQUERADE : 0);
	if (!w->from && (entry->flags & (CT_NAT | CT_FROM_HOST)) == (CT_NAT | CT_FROM_HOST))
		w->flags |= WORK_HOST_NAT;
	if (entry->flags & CT_NAT) {
		w->flags |= WORK_NAT;
		copy_tuple(&w->to, &entry->to);
	} else {
		copy_tuple(&w->to, &w->packet);
	}
	if (entry->path == PATH_OVERLAY)
		__builtin_memcpy(w->mac, entry->mac, 6);
}

INLINE void advance_state(struct conntrack_entry *entry, struct conntrack_entry *answer, const struct work *w)
{
	__u8 state = entry->state;
	if (w->tcp_flags & TCP_RST)
		state = CT_CLOSING;
	else if (w->tcp_flags & TCP_FIN) {
		entry->flags |= CT_FIN;
		if (answer && (answer->flags & CT_FIN))
			state = CT_CLOSING;
	}
	/* Of a flow whose answers do not come by here, the client's acknowledgement says that it was answered. */
	if (state == CT_OPENING && (entry->flags & (CT_REPLY | CT_DSR)))
		state = CT_ESTABLISHED;
	entry->state = state;
	if (answer)
		answer->state = state;
}

/* Moves the state when the packet says something new. The other direction is looked up only then. */
INLINE void refresh_entry(struct conntrack_entry *entry, const struct work *w, __u64 now)
{
	__u8 opening = entry->state == CT_OPENING && (entry->flags & (CT_REPLY | CT_DSR));
	__u8 ending = w->packet.protocol == IPPROTO_TCP && (w->tcp_flags & (TCP_FIN | TCP_RST));
	__u8 old = elapsed(now, entry->last_seen) > SEEN_GRAIN;
	if (!RARE(opening || ending || old))
		return;
	struct conntrack_entry *answer = find_reverse_entry(w, entry);
	entry->last_seen = now;
	/* Both directions live as long as one does: a one-way transfer must not lose its acknowledging half. */
	if (answer)
		answer->last_seen = now;
	if (opening || ending)
		advance_state(entry, answer, w);
}

/* Counts the packet, and remembers what policy approved at this hook, in both directions: for the answer, in and out are exchanged. */
INLINE void approve_entries(struct work *w, int leaving)
{
	struct conntrack_entry *entry = bpf_map_lookup_elem(&flows, &w->packet);
	if (!entry)
		return;
	if (w->epoch_in)
		entry->approved_in = w->epoch_in;
	if (w->epoch_out)
		entry->approved_out = w->epoch_out;
	entry->denied = 0;
	take_traces(entry, w);
	count_packet(entry, w, leaving);
	struct conntrack_entry *answer = find_reverse_entry(w, entry);
	if (!answer)
		return;
	if (w->epoch_in)
		answer->approved_out = w->epoch_in;
	if (w->epoch_out)
		answer->approved_in = w->epoch_out;
	answer->denied = 0;
	take_traces(answer, w);
}

/*
 * Policy denies the flow. What stands of it stays: without an entry the next packet of the other side would begin a flow of its own, whose
 * answers are what policy denies. Each packet asks policy again, as no epoch approves of it.
 */
INLINE void deny_entries(const struct work *w)
{
	struct conntrack_entry *entry = bpf_map_lookup_elem(&flows, &w->packet);
	if (!entry)
		return;
	entry->denied = 1;
	struct conntrack_entry *answer = find_reverse_entry(w, entry);
	if (answer)
		answer->denied = 1;
}

INLINE __u8 entry_flags_of(const struct work *w)
{
	return (w->flags & WORK_FROM_HOST ? CT_FROM_HOST : 0) | (w->flags & WORK_TO_HOST ? CT_TO_HOST : 0) |
	       (w->flags & WORK_NAT ? CT_NAT : 0) | (w->flags & WORK_MASQUERADE ? CT_MASQUERADE : 0) |
	       (w->flags & WORK_DSR ? CT_DSR : 0) | (w->flags & WORK_NF_CONNTRACK ? CT_NF_CONNTRACK : 0);
}

/*
 * A segment in the middle of a connection between pods that no entry knows: it does not say which of them opened it. Each direction is
 * judged by itself, and is a flow of its own. What goes through the stack the kernel knows, and a client outside has one way back.
 */
INLINE int is_met_midstream(const struct work *w)
{
	return w->packet.protocol == IPPROTO_TCP && (w->tcp_flags & (TCP_SYN | TCP_ACK)) != TCP_SYN && w->path != PATH_STACK &&
	       !(w->flags & (WORK_NAT | WORK_EXTERNAL | WORK_FROM_HOST));
}

/* One that is new is charged, one that is replaced was. */
INLINE long write_entry(const struct five_tuple *key, const struct conntrack_entry *entry, struct workload_share *share)
{
	if (bpf_map_update_elem(&flows, key, entry, BPF_NOEXIST))
		return bpf_map_update_elem(&flows, key, entry, BPF_ANY);
	if (share)
		__sync_fetch_and_add(&share->entries, 1);
	return 0;
}

/* What stands where an entry is to be written. That uses the scratch space of the entry. */
INLINE void tell_replaced(struct work *w, const struct five_tuple *key)
{
	struct conntrack_entry *old = w->interval ? bpf_map_lookup_elem(&flows, key) : 0;
	if (old)
		tell_last(w, key, old, 0, 1);
}

/*
 * 0 when both directions are in the table, or the kernel has them. A translated flow of which only one were would be worse than none.
 * `share`: of the pod that is charged; 0 is none.
 */
INLINE long create_entries(struct work *w, struct workload_share *share, int leaving, __u64 now)
{
	__u32 in_ifindex = w->ifindex;
	struct conntrack_entry *entry = &w->scratch.entry;
	__u8 reply = w->flags & WORK_REPLY ? CT_REPLY : 0;
	tell_replaced(w, &w->packet);
	if (!(w->flags & WORK_NF_CONNTRACK) && !is_met_midstream(w))
		tell_replaced(w, &w->reply);
	__builtin_memset(entry, 0, sizeof(*entry));
	entry->last_seen = now;
	entry->packets = 1;
	entry->bytes = w->frame;
	entry->approved_in = w->epoch_in;
	entry->approved_out = w->epoch_out;
	entry->out = w->out;
	entry->path = w->path;
	entry->flags = entry_flags_of(w) | reply;
	entry->service = w->service;
	copy_tuple(&entry->to, w->flags & WORK_NAT ? &w->to : &w->policy_tuple);
	__builtin_memcpy(entry->mac, w->mac, 6);
	take_traces(entry, w);
	entry->counted_arriving = !leaving;
	/* Met in the middle: it was there before us. */
	if (w->packet.protocol == IPPROTO_TCP && !(w->tcp_flags & TCP_SYN)) {
		entry->state = CT_ESTABLISHED;
		entry->told = TOLD_STARTED;
	}
	if (w->flags & (WORK_NF_CONNTRACK | WORK_SENT_AGAIN))
		entry->told = TOLD_STARTED;
	if (w->interval) {
		w->counted++;
		w->flags |= WORK_COUNTED;
	}
	if (write_entry(&w->packet, entry, share))
		return -1;
	if (is_met_midstream(w))
		return 0;
	entry->packets = 0;
	entry->bytes = 0;
	entry->counted_arriving = 0;
	entry->approved_in = w->epoch_out;
	entry->approved_out = w->epoch_in;
	entry->out = w->reply_path == PATH_LOCAL || w->reply_path == PATH_HOST ? in_ifindex : 0;
	entry->path = w->reply_path;
	entry->flags ^= CT_REPLY;
	entry->flags &= ~CT_MASQUERADE;
	if (w->flags & WORK_NAT)
		reverse_tuple(&entry->to, &w->packet);
	__builtin_memcpy(entry->mac, w->reply_mac, 6);
	if (w->flags & WORK_NF_CONNTRACK) {
		bpf_map_update_elem(&flows, &w->reply, entry, BPF_NOEXIST);
		return 0;
	}
	if (!write_entry(&w->reply, entry, share))
		return 0;
	bpf_map_delete_elem(&flows, &w->packet);
	return -1;
}

#endif
