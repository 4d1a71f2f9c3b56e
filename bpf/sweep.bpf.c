// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Flow logs: what the entries of `flows` have counted since the last time is added to the sums of this interval. While they are off, it counts as
 * told: a connection that was there before is not new.
 */
#include "lib/conntrack.h"

struct bpf_iter_meta;
struct bpf_map;

/* As the kernel gives them: pointers of eight bytes each. */
struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	void *key;
	void *value;
};

INLINE void sweep_entry(const struct five_tuple *packet, struct conntrack_entry *entry)
{
	__u32 zero = 0;
	__u32 interval = node_field(NODE_INTERVAL);
	__u32 sweep = node_field(NODE_SWEEP);
	struct telling *t = bpf_map_lookup_elem(&tellings, &zero);
	if (!t)
		return;
	int opens = !(entry->flags & CT_REPLY);
	int ended = opens && (entry->denied || entry->state == CT_CLOSING ||
			      elapsed(bpf_ktime_get_ns(), entry->last_seen) > timeout_of(packet->protocol, entry->state));
	if (!interval) {
		entry->told_packets = entry->packets;
		entry->told_bytes = entry->bytes;
		entry->told = TOLD_STARTED | (ended ? TOLD_ENDED : 0);
		return;
	}
	if (!(opens && !ended) && !has_news(entry, ended))
		return;
	set_sum_key(&t->key, interval, packet, entry);
	struct sum *sum = find_sum(t);
	if (!sum)
		return;
	t->told += tell(sum, entry, ended);
	if (!opens || ended)
		return;
	/* One sweep at a time writes these. */
	if (sum->sweep != sweep) {
		sum->sweep = sweep;
		sum->live = 0;
	}
	sum->live++;
}

/* Of every entry, where the kernel has iterators. */
SEC("iter/bpf_map_elem") int sweep_flows(struct bpf_iter__bpf_map_elem *ctx)
{
	const struct five_tuple *packet = ctx->key;
	struct conntrack_entry *entry = ctx->value;
	if (packet && entry)
		sweep_entry(packet, entry);
	return 0;
}

/* Where it has none, of those a list has: run once for each. The frame is an Ethernet header, how many were swept, and their keys. */
SEC("tc") int sweep_listed(struct __sk_buff *skb)
{
	struct work *w = work_of_cpu();
	__u32 done;
	if (!w || bpf_skb_load_bytes(skb, ETHERNET, &done, sizeof(done)))
		return DROP;
	struct five_tuple *packet = &w->scratch.wanted;
	if (bpf_skb_load_bytes(skb, ETHERNET + sizeof(done) + done * sizeof(*packet), packet, sizeof(*packet)))
		return DROP;
	done++;
	bpf_skb_store_bytes(skb, ETHERNET, &done, sizeof(done), 0);
	struct conntrack_entry *entry = bpf_map_lookup_elem(&flows, packet);
	if (entry)
		sweep_entry(packet, entry);
	return NEXT;
}

char license_of_programs[] SEC("license") = "GPL";
