/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Lookup of a packet in the kernel's nf_conntrack. During a switchover both data planes have connections, and neither may take the other's
 * nor use addresses and ports the other uses. Programs look it up if the kernel can; else the agent imported it beforehand, into `old_flows`.
 */
#ifndef LIB_NF_CONNTRACK_H
#define LIB_NF_CONNTRACK_H

#include "nf_import.h"
#include "parse.h"

#define KERNEL_SYMBOL __attribute__((section(".ksyms")))
#define NF_SYN_SENT 1
#define NF_SYN_RECEIVED 2
#define NF_TIME_WAIT 7
/* A record holds its flow twice, once per direction: behind a list's two pointers the source, then the destination. */
#define RECORD_SIZE 56
#define RECORD_SOURCE 16
#define RECORD_SOURCE_PORT 32
#define GENERATION_SHIFT 16

struct nf_conn {
	unsigned long hidden;
};

/* Twelve bytes: kernels before and after it grew accept that. */
struct bpf_ct_opts;

extern struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *, struct bpf_sock_tuple *, __u32, struct bpf_ct_opts *,
					 __u32) KERNEL_SYMBOL;
extern void bpf_ct_release(struct nf_conn *) KERNEL_SYMBOL;

/* The address one direction comes from is what the other's packets are sent to in the end. */
INLINE void read_destination(struct work *w, const void *record)
{
	if (w->ip_version == 4) {
		address_from_v4(&w->scratch.kernel.dst, *(volatile __u32 *)(record + RECORD_SOURCE));
	} else {
		w->scratch.kernel.dst.word[0] = *(volatile __u32 *)(record + RECORD_SOURCE);
		w->scratch.kernel.dst.word[1] = *(volatile __u32 *)(record + RECORD_SOURCE + 4);
		w->scratch.kernel.dst.word[2] = *(volatile __u32 *)(record + RECORD_SOURCE + 8);
		w->scratch.kernel.dst.word[3] = *(volatile __u32 *)(record + RECORD_SOURCE + 12);
	}
	w->scratch.kernel.dport = ntohs(*(volatile __u16 *)(record + RECORD_SOURCE_PORT));
}

INLINE int lookup_nf_conntrack(struct __sk_buff *skb, struct work *w, const struct five_tuple *key)
{
	struct bpf_sock_tuple *tuple = &w->scratch.tuple;
	struct bpf_ct_opts *options = (void *)&w->scratch.options;
	__builtin_memset(options, 0, sizeof(w->scratch.options));
	w->scratch.options.netns_id = -1;
	w->scratch.options.l4proto = key->protocol;
	struct nf_conn *found;
	if (w->ip_version == 4) {
		tuple->ipv4.saddr = key->src.word[3];
		tuple->ipv4.daddr = key->dst.word[3];
		tuple->ipv4.sport = htons(key->sport);
		tuple->ipv4.dport = htons(key->dport);
		found = bpf_skb_ct_lookup(skb, tuple, sizeof(tuple->ipv4), options, sizeof(w->scratch.options));
	} else {
		__builtin_memcpy(tuple->ipv6.saddr, &key->src, 16);
		__builtin_memcpy(tuple->ipv6.daddr, &key->dst, 16);
		tuple->ipv6.sport = htons(key->sport);
		tuple->ipv6.dport = htons(key->dport);
		found = bpf_skb_ct_lookup(skb, tuple, sizeof(tuple->ipv6), options, sizeof(w->scratch.options));
	}
	if (!found)
		return 0;
	w->scratch.kernel.mark = *(volatile __u32 *)((void *)found + ct_mark_offset) >> GENERATION_SHIFT;
	w->scratch.kernel.tcp_state =
		key->protocol == IPPROTO_TCP ? *(volatile __u8 *)((void *)found + ct_tcp_state_offset) : 0;
	w->scratch.kernel.reply = w->scratch.options.dir != 0;
	if (w->scratch.options.dir)
		read_destination(w, (void *)found + ct_tuples_offset);
	else
		read_destination(w, (void *)found + ct_tuples_offset + RECORD_SIZE);
	bpf_ct_release(found);
	return 1;
}

/* Fills w->scratch.kernel; 0 where the kernel does not know the packet's flow. */
INLINE int find_nf_conntrack(struct __sk_buff *skb, struct work *w, const struct five_tuple *key)
{
	if (!has_ports(key->protocol))
		return 0;
	if (has_ct_lookup)
		return lookup_nf_conntrack(skb, w, key);
	struct nf_conntrack_entry *old = find_imported(key, key == &w->packet);
	if (!old)
		return 0;
	w->scratch.kernel.mark = old->mark;
	w->scratch.kernel.tcp_state = old->tcp_state;
	w->scratch.kernel.reply = old->reply;
	w->scratch.kernel.dst = old->dst;
	w->scratch.kernel.dport = old->dport;
	return 1;
}

INLINE int opens_tcp(const struct work *w)
{
	return w->packet.protocol == IPPROTO_TCP && !(w->flags & WORK_LATER_FRAGMENT) &&
	       (w->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

/*
 * Whether the packet may be of a flow that programs of the layout before know, and we do not yet. While they stand at other interfaces no flow
 * begins here: they would not know its answers.
 */
INLINE int may_be_migrating(const struct work *w)
{
	__u32 moving = node_field(NODE_MIGRATING);
	return moving == 2 || (moving && w->packet.protocol == IPPROTO_TCP && !opens_tcp(w));
}

/* Whether the packet goes on in the kernel's flow. A SYN does only while the kernel waits for its answer: sent again, it must not find another backend. */
INLINE int is_nf_conntrack_flow(struct __sk_buff *skb, struct work *w)
{
	if (!find_nf_conntrack(skb, w, &w->packet))
		return 0;
	__u8 state = w->scratch.kernel.tcp_state;
	return !opens_tcp(w) || state == NF_SYN_SENT || state == NF_SYN_RECEIVED;
}

/* Draining: whether the kernel was given the flow, or has one of its own by now that answers have to go to. */
INLINE int is_exported(const struct work *w, const struct conntrack_entry *entry)
{
	__u32 mark = w->scratch.kernel.mark;
	if (mark && mark == node_field(NODE_GENERATION))
		return 1;
	return !mark && w->packet.protocol == IPPROTO_UDP && (entry->flags & CT_REPLY);
}

#endif
