/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Sending a packet on from a hook where it arrived, past the stack. Whatever is not plain is left to the stack. */
#ifndef LIB_FORWARD_H
#define LIB_FORWARD_H

#include "parse.h"

#define FIB_SUCCESS 0
#define FIB_NOT_FORWARDED 4
#define FIB_FORWARDING_DISABLED 5
#define FIB_NO_NEIGHBOUR 7

/* What a segment of this packet will be long on the wire: for offloaded ones not what the packet is long now. */
INLINE __u32 wire_length(struct work *w)
{
	__u32 size = w->segment;
	/* TCP options are at most 40 bytes; too much is only the slower path. */
	return size ? size + w->transport - ETHERNET + 60 : w->length;
}

INLINE long route_of(struct __sk_buff *skb, struct work *w, __u32 length)
{
	struct bpf_fib_lookup *fib = &w->scratch.fib;
	__builtin_memset(fib, 0, sizeof(*fib));
	fib->ifindex = w->ifindex;
	fib->l4_protocol = w->packet.protocol;
	fib->tot_len = length > 0xffff ? 0 : length;
	if (w->ip_version == 4) {
		fib->family = FAMILY_V4;
		fib->ipv4_src = w->packet.src.word[3];
		fib->ipv4_dst = w->packet.dst.word[3];
	} else {
		fib->family = FAMILY_V6;
		__builtin_memcpy(fib->ipv6_src, &w->packet.src, 16);
		__builtin_memcpy(fib->ipv6_dst, &w->packet.dst, 16);
	}
	return bpf_fib_lookup(skb, fib, sizeof(*fib), 0);
}

/* Whether the packet is for this node itself, as its own routes see it. */
INLINE int is_for_host(struct __sk_buff *skb, struct work *w)
{
	long found = route_of(skb, w, 0);
	return found == FIB_NOT_FORWARDED || found == FIB_FORWARDING_DISABLED;
}

/* 0: lowered. A packet at its last hop is the stack's, which answers its sender. */
INLINE int lower_hop_limit(struct __sk_buff *skb, struct work *w)
{
	if (w->ip_version == 6) {
		__u32 at = ETHERNET + __builtin_offsetof(struct ipv6hdr, hop_limit);
		__u8 hops;
		if (bpf_skb_load_bytes(skb, at, &hops, 1) || hops <= 1)
			return -1;
		hops--;
		return bpf_skb_store_bytes(skb, at, &hops, 1, 0);
	}
	/* Hop limit, protocol and checksum lie side by side: read and written at once, which is half the calls. */
	struct {
		__u8 ttl;
		__u8 protocol;
		__be16 check;
	} hop;
	__u32 at = ETHERNET + __builtin_offsetof(struct iphdr, ttl);
	if (bpf_skb_load_bytes(skb, at, &hop, sizeof(hop)) || hop.ttl <= 1)
		return -1;
	hop.ttl--;
	__u32 check = (__u32)hop.check + htons(0x0100);
	hop.check = check + (check >= 0xffff);
	return bpf_skb_store_bytes(skb, at, &hop, sizeof(hop), 0);
}

INLINE int into_pod(struct __sk_buff *skb, struct work *w, const struct interface *pod, __u32 ifindex)
{
	__u8 macs[12];
	if (is_zero_mac(pod->pod_mac) || lower_hop_limit(skb, w))
		return NEXT;
	__builtin_memcpy(macs, pod->pod_mac, 6);
	__builtin_memcpy(macs + 6, pod->host_mac, 6);
	bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0);
	if (has_redirect_peer)
		return bpf_redirect_peer(ifindex, 0);
	return bpf_redirect(ifindex, 0);
}

INLINE int by_route(struct __sk_buff *skb, struct work *w)
{
	long found = route_of(skb, w, wire_length(w));
	if (found == FIB_NO_NEIGHBOUR && has_redirect_neigh) {
		if (lower_hop_limit(skb, w))
			return NEXT;
		return bpf_redirect_neigh(w->scratch.fib.ifindex, 0, 0, 0);
	}
	if (found != FIB_SUCCESS || lower_hop_limit(skb, w))
		return NEXT;
	bpf_skb_store_bytes(skb, 0, w->scratch.fib.dmac, 6, 0);
	bpf_skb_store_bytes(skb, 6, w->scratch.fib.smac, 6, 0);
	return bpf_redirect(w->scratch.fib.ifindex, 0);
}

/* `pod` is what `out` is, where that has been looked up already. */
INLINE int forward(struct __sk_buff *skb, struct work *w, __u32 path, __u32 out, const struct interface *pod)
{
	if (path == PATH_STACK || (w->flags & WORK_OPTIONS))
		return NEXT;
	if (path == PATH_ROUTE)
		return by_route(skb, w);
	if (!pod)
		pod = bpf_map_lookup_elem(&interfaces, &out);
	return pod ? into_pod(skb, w, pod, out) : NEXT;
}

#endif
