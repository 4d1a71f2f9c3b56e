/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Sending a packet on from a hook where it arrived, past the stack. Whatever is not plain is left to the stack. */
#ifndef LIB_FORWARD_H
#define LIB_FORWARD_H

#include "nat.h"
#include "neighbour.h"

#define FIB_SUCCESS 0
#define FIB_BLACKHOLE 1
#define FIB_NOT_FORWARDED 4
#define FIB_FORWARDING_DISABLED 5
#define FIB_NO_NEIGHBOUR 7
#define FIB_TOO_BIG 8
/* Asked about no length the kernel takes the packet's own. */
#define FITS_ANYWHERE 1
/* Of the TCP header, in words, is the upper half of this byte of it. */
#define TCP_LENGTH 12

/*
 * What a segment of this packet will be long on the wire: for offloaded ones not what the packet is long now. Exactly that: senders fill
 * the path MTU they know, and one byte too much would refuse what fits.
 */
INLINE __u32 wire_length(struct __sk_buff *skb, struct work *w)
{
	__u32 size = w->segment;
	__u8 words = 2 << 4;
	if (!size)
		return w->length;
	if (w->packet.protocol == IPPROTO_TCP)
		bpf_skb_load_bytes(skb, w->transport + TCP_LENGTH, &words, 1);
	return size + w->transport - ETHERNET + (words >> 4) * 4;
}

INLINE long route_from_to(struct __sk_buff *skb, struct work *w, const struct ip_address *from, const struct ip_address *to, __u32 length)
{
	struct bpf_fib_lookup *fib = &w->scratch.fib;
	__builtin_memset(fib, 0, sizeof(*fib));
	fib->ifindex = w->ifindex;
	fib->l4_protocol = w->packet.protocol;
	fib->tot_len = length > 0xffff ? 0 : length;
	if (w->ip_version == 4) {
		fib->family = FAMILY_V4;
		fib->ipv4_src = from->word[3];
		fib->ipv4_dst = to->word[3];
	} else {
		fib->family = FAMILY_V6;
		__builtin_memcpy(fib->ipv6_src, from, 16);
		__builtin_memcpy(fib->ipv6_dst, to, 16);
	}
	return bpf_fib_lookup(skb, fib, sizeof(*fib), 0);
}

INLINE long route_of(struct __sk_buff *skb, struct work *w, __u32 length)
{
	return route_from_to(skb, w, &w->to.src, &w->to.dst, length);
}

/*
 * Whether the node's routes do not lead back to the sender. What goes on past the stack is not seen by the kernel's own check. Senders that have no
 * route in any case are left to the stack. Without a neighbour, kernels before 5.10 do not say by which interface: then the route is enough.
 */
INLINE int has_no_way_back(struct __sk_buff *skb, struct work *w)
{
	if (is_unspecified(&w->packet.src) || is_link_local_v6(&w->packet.src) ||
	    (w->ip_version == 4 && !w->packet.src.word[3]))
		return 0;
	long found = route_from_to(skb, w, &w->packet.dst, &w->packet.src, 0);
	if (found >= FIB_BLACKHOLE && found <= FIB_NOT_FORWARDED)
		return 1;
	return reverse_path == REVERSE_PATH_STRICT && found >= 0 && w->scratch.fib.ifindex != w->ifindex;
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

/*
 * Lowers the hop limit, and gives the frame the link's addresses: to whom, and by whom. All lie within the first bytes of the frame, and are read
 * and written at once: each call costs what a lookup does. -1: nothing is changed, as `lower_hop_limit` has it.
 */
INLINE int address_frame(struct __sk_buff *skb, const struct work *w, const __u8 *to, const __u8 *by)
{
	struct {
		__u8 to[6], by[6];
		__be16 type;
		__u8 header[8];
		__u8 ttl;
		__u8 protocol;
		__be16 check;
	} start;
	const __u32 type_at = __builtin_offsetof(typeof(start), type);
	if (w->ip_version == 6) {
		const __u32 length = ETHERNET + __builtin_offsetof(struct ipv6hdr, hop_limit) + 1;
		/* Where IPv4 has the byte before its hop limit. */
		__u8 *hops = &start.header[__builtin_offsetof(struct ipv6hdr, hop_limit)];
		if (bpf_skb_load_bytes(skb, type_at, &start.type, length - type_at) || *hops <= 1)
			return -1;
		(*hops)--;
		__builtin_memcpy(start.to, to, 6);
		__builtin_memcpy(start.by, by, 6);
		return bpf_skb_store_bytes(skb, 0, &start, length, 0);
	}
	if (bpf_skb_load_bytes(skb, type_at, &start.type, sizeof(start) - type_at) || start.ttl <= 1)
		return -1;
	start.ttl--;
	__u32 check = (__u32)start.check + htons(0x0100);
	start.check = check + (check >= 0xffff);
	__builtin_memcpy(start.to, to, 6);
	__builtin_memcpy(start.by, by, 6);
	return bpf_skb_store_bytes(skb, 0, &start, sizeof(start), 0);
}

INLINE int is_last_hop(struct __sk_buff *skb, const struct work *w)
{
	__u8 hops = 0;
	__u32 at = w->ip_version == 4 ? __builtin_offsetof(struct iphdr, ttl) : __builtin_offsetof(struct ipv6hdr, hop_limit);
	return bpf_skb_load_bytes(skb, ETHERNET + at, &hops, 1) || hops <= 1;
}

/* Whether the sender gets "packet too big", rather than the packet being fragmented. */
INLINE int must_not_be_cut(struct __sk_buff *skb, const struct work *w)
{
	__be16 fragment = 0;
	if (w->ip_version == 6)
		return 1;
	bpf_skb_load_bytes(skb, ETHERNET + __builtin_offsetof(struct iphdr, frag_off), &fragment, 2);
	return (fragment & htons(0x4000)) != 0;
}

/*
 * By which route, and whether the packet fits it; `mtu` says what would. What may be cut is not cut here, but the overlay sends it in a
 * longer packet that is: if some fragments took another path, no host could reassemble them.
 */
INLINE long route_that_fits(struct __sk_buff *skb, struct work *w)
{
	__u32 length = wire_length(skb, w);
	long found = route_of(skb, w, length);
	if (found != FIB_TOO_BIG)
		return found;
	/* Kernels before 5.13 do not say what would fit: nor do we then. */
	w->mtu = w->scratch.fib.tot_len < length ? w->scratch.fib.tot_len : 0;
	if (must_not_be_cut(skb, w))
		return FIB_TOO_BIG;
	found = route_of(skb, w, FITS_ANYWHERE);
	return w->scratch.fib.ifindex == node_field(NODE_OVERLAY) ? found : FIB_TOO_BIG;
}

/* Answers the sender of the packet instead of sending it on; see lib/reject.h. Only before anything in the packet was changed. */
INLINE int reject(struct __sk_buff *skb, struct work *w, enum hook hook, enum reason reason)
{
	w->hook = hook;
	w->reject_reason = reason;
	bpf_tail_call(skb, &steps, STEP_REJECT);
	return drop(w, hook, reason);
}

INLINE int into_pod(struct __sk_buff *skb, struct work *w, const struct interface *pod, __u32 ifindex)
{
	/* Another CNI plugin made the interface: the kernel knows who is behind it, or asks. */
	if (RARE(is_zero_mac(pod->pod_mac))) {
		if (!has_redirect_neigh || lower_hop_limit(skb, w))
			return NEXT;
		return bpf_redirect_neigh(ifindex, 0, 0, 0);
	}
	if (address_frame(skb, w, pod->pod_mac, pod->host_mac))
		return NEXT;
	/* Only from where packets arrive. */
	if (has_redirect_peer && !(w->flags & WORK_HOST_NAT))
		return bpf_redirect_peer(ifindex, 0);
	return bpf_redirect(ifindex, 0);
}

/* An answer to the node itself: by the interface the node asked by, where its stack waits for it. */
INLINE int to_node(struct __sk_buff *skb, const struct interface *uplink, __u32 ifindex)
{
	bpf_skb_store_bytes(skb, 0, uplink->host_mac, 6, 0);
	return bpf_redirect(ifindex, BPF_F_INGRESS);
}

/* By what the lookup of the route found. */
INLINE int by_route(struct __sk_buff *skb, struct work *w, long found)
{
	if (found == FIB_NO_NEIGHBOUR && has_redirect_neigh) {
		if (lower_hop_limit(skb, w))
			return NEXT;
		return bpf_redirect_neigh(w->scratch.fib.ifindex, 0, 0, 0);
	}
	if (found != FIB_SUCCESS || address_frame(skb, w, w->scratch.fib.dmac, w->scratch.fib.smac))
		return NEXT;
	return bpf_redirect(w->scratch.fib.ifindex, 0);
}

INLINE int through_overlay(struct __sk_buff *skb, struct work *w, const struct interface *overlay, __u32 ifindex)
{
	if (address_frame(skb, w, w->mac, overlay->host_mac))
		return DROP;
	return bpf_redirect(ifindex, 0);
}

/*
 * A packet that is not translated: the stack can forward every special case as well, except for "packet too big": the stack
 * would not know the connection. `pod` is what `out` is, where that has been looked up already.
 */
INLINE int forward(struct __sk_buff *skb, struct work *w, enum hook hook, enum reason reason, const struct interface *pod)
{
	int plain = w->path != PATH_STACK && !(w->flags & WORK_OPTIONS);
	if (plain && w->path == PATH_ROUTE) {
		long found = route_that_fits(skb, w);
		if (found == FIB_TOO_BIG && must_not_be_cut(skb, w))
			return reject(skb, w, hook, REJECT_TOO_BIG);
		count(w->frame, hook, reason);
		return by_route(skb, w, found);
	}
	count(w->frame, hook, reason);
	if (RARE(!plain))
		return NEXT;
	__u32 out = w->out;
	if (RARE(!pod))
		pod = bpf_map_lookup_elem(&interfaces, &out);
	return pod ? into_pod(skb, w, pod, out) : NEXT;
}

/*
 * A packet that is translated here, or has to take the overlay: the stack would not find its way, since it comes from an address of this node
 * or from outside the cluster. Obstacles are found before anything is changed, so that the sender gets an ICMP error.
 */
INLINE int forward_translated(struct __sk_buff *skb, struct work *w, enum hook hook, enum reason reason, const struct interface *pod)
{
	__u32 out = w->path == PATH_OVERLAY ? node_field(NODE_OVERLAY) : w->out;
	long found = FIB_SUCCESS;
	if (is_last_hop(skb, w))
		return reject(skb, w, hook, REJECT_HOP_LIMIT);
	if (w->path == PATH_ROUTE) {
		found = route_that_fits(skb, w);
		if (found == FIB_TOO_BIG)
			return reject(skb, w, hook, REJECT_TOO_BIG);
		if (found != FIB_SUCCESS && !(found == FIB_NO_NEIGHBOUR && has_redirect_neigh))
			return drop(w, hook, DROP_NO_ROUTE);
	} else {
		if (w->path == PATH_OVERLAY) {
			w->mtu = node_field(NODE_OVERLAY_MTU);
			if (w->mtu && wire_length(skb, w) > w->mtu && must_not_be_cut(skb, w))
				return reject(skb, w, hook, REJECT_TOO_BIG);
		}
		if (!pod)
			pod = bpf_map_lookup_elem(&interfaces, &out);
		if (!pod)
			return drop(w, hook, DROP_NO_ROUTE);
	}
	if ((w->flags & WORK_NAT) && rewrite(skb, w))
		return drop(w, hook, DROP_NAT_FAILED);
	count(w->frame, hook, reason);
	/* The verifier does not see that the path is what it was. */
	if (w->path == PATH_ROUTE || !pod)
		return by_route(skb, w, found);
	if (w->path == PATH_HOST)
		return to_node(skb, pod, out);
	return w->path == PATH_OVERLAY ? through_overlay(skb, w, pod, out) : into_pod(skb, w, pod, out);
}

#endif
