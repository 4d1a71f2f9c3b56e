/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Flow logs: what conntrack entries count, and what is dropped, added up by interval. Nobody is told packet by packet. An entry knows how much of
 * its count the sums have already (`told`), so that whoever looks next adds the rest: a sweep, or whoever removes the entry.
 *
 * Two who look at one entry in the same moment would add the same packets twice. For an entry that stays the next look makes up for it: it
 * adds nothing until the count is past what was told.
 */
#ifndef LIB_FLOW_SUMS_H
#define LIB_FLOW_SUMS_H

#include "parse.h"

/* The sum of a key: of a coarser one where there is no room. 0: nowhere. */
INLINE struct sum *find_sum(struct telling *t)
{
	struct sum *sum = bpf_map_lookup_elem(&sums, &t->key);
	if (sum)
		return sum;
	__builtin_memset(&t->zero, 0, sizeof(t->zero));
	bpf_map_update_elem(&sums, &t->key, &t->zero, BPF_NOEXIST);
	sum = bpf_map_lookup_elem(&sums, &t->key);
	if (sum)
		return sum;
	__builtin_memset(&t->key.src, 0, 2 * sizeof(struct ip_address));
	t->key.dport = 0;
	t->key.flags |= SUM_MERGED;
	bpf_map_update_elem(&merged_sums, &t->key, &t->zero, BPF_NOEXIST);
	sum = bpf_map_lookup_elem(&merged_sums, &t->key);
	if (sum)
		__sync_fetch_and_add(&sum->merged, 1);
	return sum;
}

/* The same for both directions. Without translation `to` is what policy was asked about; entries of an older layout have none. */
INLINE void set_sum_key(struct sum_key *key, __u32 interval, const struct five_tuple *packet, const struct conntrack_entry *entry)
{
	int reply = (entry->flags & CT_REPLY) != 0;
	int translated = (entry->flags & CT_NAT) != 0;
	__builtin_memset(key, 0, sizeof(*key));
	key->interval = interval;
	key->service = entry->service;
	key->trace_in = entry->trace_in;
	key->trace_out = entry->trace_out;
	key->protocol = packet->protocol;
	__u16 dport;
	if (!translated && entry->to.protocol) {
		key->src = entry->to.src;
		key->dst = entry->to.dst;
		dport = entry->to.dport;
	} else if (reply) {
		key->dst = packet->src;
		dport = packet->sport;
		if (translated)
			key->src = entry->to.dst;
		else
			key->src = packet->dst;
	} else {
		key->src = packet->src;
		if (translated) {
			key->dst = entry->to.dst;
			dport = entry->to.dport;
		} else {
			key->dst = packet->dst;
			dport = packet->dport;
		}
	}
	if (has_ports(packet->protocol))
		key->dport = dport;
}

INLINE int has_news(const struct conntrack_entry *entry, int ended)
{
	if (entry->packets != entry->told_packets || entry->bytes != entry->told_bytes)
		return 1;
	return !(entry->flags & CT_REPLY) && (!(entry->told & TOLD_STARTED) || (ended && !(entry->told & TOLD_ENDED)));
}

/* Adds what is new in one entry; how many packets those were. */
INLINE __u64 tell(struct sum *sum, struct conntrack_entry *entry, int ended)
{
	__s64 packets = entry->packets - entry->told_packets;
	__s64 bytes = entry->bytes - entry->told_bytes;
	int reply = (entry->flags & CT_REPLY) != 0;
	if (packets < 0 || bytes < 0) {
		packets = 0;
		bytes = 0;
	}
	if (bytes) {
		__sync_fetch_and_add(&entry->told_packets, packets);
		__sync_fetch_and_add(&entry->told_bytes, bytes);
		if (reply) {
			__sync_fetch_and_add(&sum->reply_packets, packets);
			__sync_fetch_and_add(&sum->reply_bytes, bytes);
		} else {
			__sync_fetch_and_add(&sum->packets, packets);
			__sync_fetch_and_add(&sum->bytes, bytes);
		}
		sum->last_seen = entry->last_seen;
	}
	if (reply)
		return packets;
	if (!(entry->told & TOLD_STARTED)) {
		entry->told |= TOLD_STARTED;
		__sync_fetch_and_add(&sum->started, 1);
		sum->last_seen = entry->last_seen;
	}
	if (ended && !(entry->told & TOLD_ENDED)) {
		entry->told |= TOLD_ENDED;
		__sync_fetch_and_add(&sum->ended, 1);
	}
	return packets;
}

/* An entry goes, and its other half where that goes too. `ended`: the connection with it, and nobody begins it again. */
INLINE void tell_last(struct work *w, const struct five_tuple *packet, struct conntrack_entry *entry, struct conntrack_entry *other, int ended)
{
	struct telling *t = &w->scratch.telling;
	if (!w->interval || !(has_news(entry, ended) || (other && has_news(other, ended))))
		return;
	set_sum_key(&t->key, w->interval, packet, entry);
	struct sum *sum = find_sum(t);
	if (!sum)
		return;
	w->told += tell(sum, entry, ended);
	if (other)
		w->told += tell(sum, other, ended);
}

/* Two processors may count in one entry; while nobody asks, one that is lost is worth less than what exactness costs. */
INLINE void count_packet(struct conntrack_entry *entry, struct work *w, int leaving)
{
	if (leaving && entry->counted_arriving)
		return;
	if (!leaving && !entry->counted_arriving)
		entry->counted_arriving = 1;
	if (!w->interval) {
		entry->packets++;
		entry->bytes += w->frame;
		return;
	}
	__sync_fetch_and_add(&entry->packets, 1);
	__sync_fetch_and_add(&entry->bytes, w->frame);
	w->counted++;
	w->flags |= WORK_COUNTED;
}

/* The rules of a stage, once for each number. */
INLINE void remember_trace(struct work *w, __u64 number, __u32 direction, __u32 first, __u32 after)
{
	if (!number || bpf_map_lookup_elem(&traces, &number))
		return;
	struct trace *trace = &w->scratch.trace;
	__builtin_memcpy(trace->rules, w->rules, sizeof(trace->rules));
	trace->first = first;
	trace->hits = after - first;
	trace->direction = direction;
	trace->pad = 0;
	bpf_map_update_elem(&traces, &number, trace, BPF_NOEXIST);
}

INLINE void remember_traces(struct work *w)
{
	remember_trace(w, w->trace_in, w->direction_in, 0, w->rules_in);
	remember_trace(w, w->trace, w->direction, w->rules_in, w->rules_hit);
}

/* Of what was asked now, in the order a packet that opens the flow is: its answers are asked about in the other. 0: not asked there. */
INLINE __u64 first_trace(const struct work *w)
{
	__u64 in = w->stage == STAGE_OUT ? w->trace_in : w->trace;
	__u64 out = w->stage == STAGE_OUT ? w->trace : 0;
	return w->flags & WORK_REPLY ? out : in;
}

INLINE __u64 second_trace(const struct work *w)
{
	__u64 in = w->stage == STAGE_OUT ? w->trace_in : w->trace;
	__u64 out = w->stage == STAGE_OUT ? w->trace : 0;
	return w->flags & WORK_REPLY ? in : out;
}

INLINE void take_traces(struct conntrack_entry *entry, const struct work *w)
{
	__u64 first = first_trace(w), second = second_trace(w);
	if (first)
		entry->trace_in = first;
	if (second)
		entry->trace_out = second;
}

/* An entry that has counted what is dropped after all: here, or where the packet came in. */
INLINE void take_back(struct work *w, struct conntrack_entry *entry, int leaving)
{
	int counted_before = leaving && w->from && (w->flags & WORK_KNOWN) && entry->counted_arriving;
	if (!(w->flags & WORK_COUNTED) && !counted_before)
		return;
	__sync_fetch_and_add(&entry->packets, -1);
	__sync_fetch_and_add(&entry->bytes, -(__u64)w->frame);
	w->counted--;
}

/* What `drop` noted, or what was answered, as a sum of its own. */
INLINE void tell_drop(struct work *w, __u64 now)
{
	struct telling *t = &w->scratch.telling;
	int leaving = w->hook == HOOK_TO_WORKLOAD || w->hook == HOOK_TO_HOST;
	__u32 service = w->service;
	remember_traces(w);
	struct conntrack_entry *entry = w->flags & (WORK_KNOWN | WORK_COUNTED) ? bpf_map_lookup_elem(&flows, &w->packet) : 0;
	if (entry) {
		take_back(w, entry, leaving);
		set_sum_key(&t->key, w->interval, &w->packet, entry);
	} else {
		__builtin_memset(&t->key, 0, sizeof(t->key));
		t->key.interval = w->interval;
		t->key.service = service;
		t->key.src = w->policy_tuple.src;
		t->key.dst = w->policy_tuple.dst;
		t->key.protocol = w->policy_tuple.protocol;
		if (has_ports(w->policy_tuple.protocol))
			t->key.dport = w->policy_tuple.dport;
	}
	/* What was asked for this packet decided, not what was asked when it was allowed; where it leaves, it was asked about before. */
	if (w->trace && (first_trace(w) || !leaving))
		t->key.trace_in = first_trace(w);
	if (w->trace && (second_trace(w) || !leaving))
		t->key.trace_out = second_trace(w);
	t->key.reason = w->dropped;
	struct sum *sum = find_sum(t);
	if (!sum)
		return;
	if (w->flags & WORK_REPLY) {
		__sync_fetch_and_add(&sum->reply_packets, 1);
		__sync_fetch_and_add(&sum->reply_bytes, w->frame);
	} else {
		__sync_fetch_and_add(&sum->packets, 1);
		__sync_fetch_and_add(&sum->bytes, w->frame);
	}
	sum->last_seen = now;
}

#endif
