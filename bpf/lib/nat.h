/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Makes the packet what `to` says, with every checksum that covers what changes. */
#ifndef LIB_NAT_H
#define LIB_NAT_H

#include "parse.h"

#define UDP_CHECKSUM 6
#define TCP_CHECKSUM 16
#define ICMP_CHECKSUM 2
#define V4_CHECKSUM 10
#define V4_SOURCE 12
#define V6_SOURCE 8

/* Addresses of the IP header at `at`, and its checksum. Gives the difference that checksums over a pseudo header must take in. */
INLINE long write_addresses(struct __sk_buff *skb, struct work *w, __u32 at, const struct five_tuple *from, const struct five_tuple *to,
			    __u32 *difference)
{
	if (w->ip_version == 4) {
		__be32 *old = w->scratch.old_addresses, *new = w->scratch.new_addresses;
		old[0] = from->src.word[3];
		old[1] = from->dst.word[3];
		new[0] = to->src.word[3];
		new[1] = to->dst.word[3];
		*difference = bpf_csum_diff(old, 8, new, 8, 0);
		if (bpf_l3_csum_replace(skb, at + V4_CHECKSUM, 0, *difference, 0))
			return -1;
		return bpf_skb_store_bytes(skb, at + V4_SOURCE, new, 8, 0);
	}
	/* Source and destination lie side by side in a key as in the header. */
	*difference = bpf_csum_diff((void *)&from->src, 32, (void *)&to->src, 32, 0);
	/*
	 * Of the packet's own header: the change of a checksum over a pseudo header, which comes next, is taken out of the sum the device made
	 * over the whole packet, as if a header checksum had balanced this one. There is none here, so it is put in.
	 */
	return bpf_skb_store_bytes(skb, at + V6_SOURCE, &to->src, 32, at == ETHERNET ? BPF_F_RECOMPUTE_CSUM : 0);
}

/* The two ports at `at`, and the checksum at `sum_at` that covers them. */
INLINE long write_ports(struct __sk_buff *skb, struct work *w, __u32 at, __u32 sum_at, const struct five_tuple *from, const struct five_tuple *to,
			__u64 flags)
{
	__be16 *old = w->scratch.old_ports, *new = w->scratch.new_ports;
	old[0] = htons(from->sport);
	old[1] = htons(from->dport);
	new[0] = htons(to->sport);
	new[1] = htons(to->dport);
	__u32 difference = bpf_csum_diff((void *)old, 4, (void *)new, 4, 0);
	if (bpf_l4_csum_replace(skb, sum_at, 0, difference, flags))
		return -1;
	return bpf_skb_store_bytes(skb, at, new, 4, 0);
}

/* 0 when the packet is translated. Later fragments have no ports, and no checksum of their own. */
INLINE long rewrite(struct __sk_buff *skb, struct work *w)
{
	const struct five_tuple *from = &w->packet, *to = &w->to;
	__u32 difference = 0;
	if (write_addresses(skb, w, ETHERNET, from, to, &difference))
		return -1;
	if (w->flags & WORK_LATER_FRAGMENT)
		return 0;
	int is_tcp = from->protocol == IPPROTO_TCP;
	__u32 at = w->transport + (is_tcp ? TCP_CHECKSUM : UDP_CHECKSUM);
	/* UDP without a checksum stays without. */
	__u64 flags = is_tcp ? 0 : BPF_F_MARK_MANGLED_0;
	if (bpf_l4_csum_replace(skb, at, 0, difference, flags | BPF_F_PSEUDO_HDR))
		return -1;
	if (from->sport == to->sport && from->dport == to->dport)
		return 0;
	return write_ports(skb, w, w->transport, at, from, to, flags);
}

/*
 * An ICMP error that travels in the direction of `key`, whose packets become `to`: what it quotes goes the other way. Its sender stays who
 * it is, unless that is the one who is translated. `inner` is where the quoted transport header begins. The quoted transport checksum
 * stays as it was: no receiver can verify it in a truncated packet.
 */
INLINE long rewrite_error(struct __sk_buff *skb, struct work *w, const struct five_tuple *key, const struct five_tuple *to, __u32 inner)
{
	struct five_tuple *quoted = &w->scratch.wanted;
	__u32 quoted_at = w->transport + 8;
	__u32 sum_at = w->transport + ICMP_CHECKSUM;
	__u32 difference = 0;
	copy_tuple(&w->to, &w->packet);
	w->to.dst = to->dst;
	if (same_address(&w->packet.src, &key->src))
		w->to.src = to->src;
	if (write_addresses(skb, w, ETHERNET, &w->packet, &w->to, &difference))
		return -1;
	/* ICMPv6 sums up its addresses too. */
	if (w->ip_version == 6 && bpf_l4_csum_replace(skb, sum_at, 0, difference, BPF_F_PSEUDO_HDR))
		return -1;
	reverse(&w->scratch.error_quoted, key);
	reverse(quoted, to);
	if (write_addresses(skb, w, quoted_at, &w->scratch.error_quoted, quoted, &difference))
		return -1;
	/* For IPv4 the quoted header's own checksum has balanced the change already. */
	if (w->ip_version == 6 && bpf_l4_csum_replace(skb, sum_at, 0, difference, 0))
		return -1;
	return write_ports(skb, w, inner, sum_at, &w->scratch.error_quoted, quoted, 0);
}

#endif
