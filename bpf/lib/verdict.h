/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Every exit of a program goes through here: counted by reason, emitted as an event if a reader is attached. */
#ifndef LIB_VERDICT_H
#define LIB_VERDICT_H

#include "maps.h"

INLINE __u32 node_field(__u32 word)
{
	__u32 *value = bpf_map_lookup_elem(&node, &word);
	return value ? *value : 0;
}

INLINE struct work *work_of_cpu(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&works, &zero);
}

INLINE void count(__u32 length, enum hook hook, enum reason reason)
{
	__u32 index = hook * REASONS + reason;
	struct counter *counter = bpf_map_lookup_elem(&counters, &index);
	if (!counter)
		return;
	counter->packets++;
	counter->bytes += length;
}

/* Established packets emit no event: a connection emits one when policy is evaluated. */
INLINE void emit_event(struct work *w, enum hook hook, enum reason reason)
{
	__u32 rate = node_field(NODE_EVENTS);
	if (!rate)
		return;
	__u64 now = bpf_ktime_get_ns();
	__u64 second = now / 1000000000ull;
	if (second != w->events_second) {
		w->events_second = second;
		w->events_left = rate;
	}
	if (!w->events_left)
		return;
	w->events_left--;
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event)
		return;
	event->time = now;
	event->tuple = w->policy_tuple;
	event->reason = reason;
	event->ifindex = w->ifindex;
	event->hook = hook;
	event->length = w->frame;
	event->rules_hit = w->rules_hit;
	event->pad = 0;
	__builtin_memcpy(event->rules, w->rules, sizeof(event->rules));
	bpf_ringbuf_submit(event, 0);
}

INLINE int drop(struct work *w, enum hook hook, enum reason reason)
{
	count(w->frame, hook, reason);
	emit_event(w, hook, reason);
	w->dropped = reason;
	w->hook = hook;
	w->left = DROP;
	return DROP;
}

/* The last of every program: what is dropped is added to the flow logs in one place, not at each exit. */
INLINE int leave(struct __sk_buff *skb, int verdict)
{
	if (RARE(verdict == DROP) && node_field(NODE_INTERVAL))
		bpf_tail_call(skb, &steps, STEP_DROPPED);
	return verdict;
}

/* Policy does not apply: the packet passes, and is only counted. */
INLINE int pass(const struct work *w, enum hook hook, enum reason reason)
{
	count(w->frame, hook, reason);
	return NEXT;
}

#endif
