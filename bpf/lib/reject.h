/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Packets made here in answer to one that does not go on: a TCP reset, or an ICMP error. They come from the address that was asked, and leave
 * by the interface the packet came by, to the MAC it came from; the mark spares them policy there, which only knows who may begin. The node's own
 * packets are answered where they would have left: as if it had come in there.
 */
#ifndef LIB_REJECT_H
#define LIB_REJECT_H

#include "parse.h"

#define REPLY_HOPS 64
#define MIN_MTU_V6 1280
#define QUOTED_TRANSPORT 8

struct tcp_header {
	__be16 sport, dport;
	__be32 seq, ack;
	__u8 offset, flags;
	__be16 window, check, urgent;
};

struct icmp_header {
	__u8 type, code;
	__be16 check;
	__be32 rest;
};

struct reset_v4 {
	struct iphdr ip;
	struct tcp_header tcp;
};

struct reset_v6 {
	struct ipv6hdr ip;
	struct tcp_header tcp;
};

struct error_v4 {
	struct iphdr ip;
	struct icmp_header icmp;
	__u8 quoted[sizeof(struct iphdr) + QUOTED_TRANSPORT];
};

struct error_v6 {
	struct ipv6hdr ip;
	struct icmp_header icmp;
	__u8 quoted[sizeof(struct ipv6hdr) + FRAGMENT_HEADER + QUOTED_TRANSPORT];
};

INLINE __be16 fold(__s64 sum)
{
	__u64 folded = (__u64)sum & 0xffffffff;
	folded = (folded & 0xffff) + (folded >> 16);
	folded = (folded & 0xffff) + (folded >> 16);
	return ~folded & 0xffff;
}

/* The sum of what is not in the packet but in its transport checksum: addresses, length, protocol. */
INLINE __u32 pseudo_sum(struct work *w, __u32 length, __u8 protocol)
{
	__be32 *words = (__be32 *)w->scratch.pseudo;
	if (w->ip_version == 4) {
		words[0] = w->packet.dst.word[3];
		words[1] = w->packet.src.word[3];
		words[2] = htonl((__u32)protocol << 16 | length);
		return bpf_csum_diff(0, 0, words, 12, 0);
	}
	__builtin_memcpy(words, &w->packet.dst, 16);
	__builtin_memcpy(words + 4, &w->packet.src, 16);
	words[8] = htonl(length);
	words[9] = htonl(protocol);
	return bpf_csum_diff(0, 0, words, 40, 0);
}

INLINE void head_v4(struct work *w, struct iphdr *ip, __u32 length, __u8 protocol)
{
	__builtin_memset(ip, 0, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = htons(length);
	ip->frag_off = htons(0x4000);
	ip->ttl = REPLY_HOPS;
	ip->protocol = protocol;
	ip->saddr = w->packet.dst.word[3];
	ip->daddr = w->packet.src.word[3];
	ip->check = fold(bpf_csum_diff(0, 0, (void *)ip, sizeof(*ip), 0));
}

INLINE void head_v6(struct work *w, struct ipv6hdr *ip, __u32 length, __u8 protocol)
{
	__builtin_memset(ip, 0, sizeof(*ip));
	ip->version = 6;
	ip->payload_len = htons(length);
	ip->nexthdr = protocol;
	ip->hop_limit = REPLY_HOPS;
	__builtin_memcpy(&ip->saddr, &w->packet.dst, 16);
	__builtin_memcpy(&ip->daddr, &w->packet.src, 16);
}

/* As a host does that knows of no such connection. */
INLINE int make_reset(struct __sk_buff *skb, struct work *w, struct tcp_header *tcp)
{
	if (bpf_skb_load_bytes(skb, w->transport, tcp, sizeof(*tcp)))
		return -1;
	__be16 port = tcp->sport;
	tcp->sport = tcp->dport;
	tcp->dport = port;
	__u8 flags = tcp->flags;
	if (flags & TCP_ACK) {
		tcp->seq = tcp->ack;
		tcp->ack = 0;
		tcp->flags = TCP_RST;
	} else {
		__u32 data = ETHERNET + w->length - w->transport - (tcp->offset >> 4) * 4;
		data += (flags & TCP_SYN ? 1 : 0) + (flags & TCP_FIN ? 1 : 0);
		tcp->ack = htonl(ntohl(tcp->seq) + data);
		tcp->seq = 0;
		tcp->flags = TCP_RST | TCP_ACK;
	}
	tcp->offset = (sizeof(*tcp) / 4) << 4;
	tcp->window = 0;
	tcp->urgent = 0;
	tcp->check = 0;
	tcp->check = fold(bpf_csum_diff(0, 0, (void *)tcp, sizeof(*tcp), pseudo_sum(w, sizeof(*tcp), IPPROTO_TCP)));
	return 0;
}

INLINE void make_error(struct work *w, struct icmp_header *icmp)
{
	int v4 = w->ip_version == 4;
	icmp->check = 0;
	icmp->rest = 0;
	if (w->reject_reason == REJECT_TOO_BIG) {
		icmp->type = v4 ? 3 : 2;
		icmp->code = v4 ? 4 : 0;
		icmp->rest = htonl(v4 || w->mtu > MIN_MTU_V6 ? w->mtu : MIN_MTU_V6);
	} else if (w->reject_reason == REJECT_HOP_LIMIT) {
		icmp->type = v4 ? 11 : 3;
		icmp->code = 0;
	} else {
		/* Port unreachable. */
		icmp->type = v4 ? 3 : 1;
		icmp->code = v4 ? 3 : 4;
	}
}

INLINE int send_reply(struct __sk_buff *skb, struct work *w, const void *packet, __u32 length)
{
	__u8 macs[6], exchanged[6];
	if (bpf_skb_load_bytes(skb, 0, macs, 6) || bpf_skb_load_bytes(skb, 6, exchanged, 6) ||
	    bpf_skb_change_tail(skb, ETHERNET + length, 0))
		return DROP;
	if (bpf_skb_store_bytes(skb, 0, exchanged, 6, 0) || bpf_skb_store_bytes(skb, 6, macs, 6, 0) ||
	    bpf_skb_store_bytes(skb, ETHERNET, packet, length, BPF_F_RECOMPUTE_CSUM | BPF_F_INVALIDATE_HASH))
		return DROP;
	skb->mark = (skb->mark & ~MARK_MASK) | MARK_REJECT;
	return bpf_redirect(w->ifindex, w->flags & WORK_HOST_NAT ? BPF_F_INGRESS : 0);
}

INLINE int is_reset(const struct work *w)
{
	return w->packet.protocol == IPPROTO_TCP && w->reject_reason != REJECT_TOO_BIG && w->reject_reason != REJECT_HOP_LIMIT;
}

INLINE int reject_v4(struct __sk_buff *skb, struct work *w)
{
	if (is_reset(w)) {
		struct reset_v4 *reset = (void *)w->scratch.answer;
		if (make_reset(skb, w, &reset->tcp))
			return DROP;
		head_v4(w, &reset->ip, sizeof(*reset), IPPROTO_TCP);
		return send_reply(skb, w, reset, sizeof(*reset));
	}
	struct error_v4 *error = (void *)w->scratch.answer;
	if (bpf_skb_load_bytes(skb, ETHERNET, error->quoted, sizeof(error->quoted)))
		return DROP;
	make_error(w, &error->icmp);
	__u32 size = sizeof(error->icmp) + sizeof(error->quoted);
	error->icmp.check = fold(bpf_csum_diff(0, 0, (void *)&error->icmp, size, 0));
	head_v4(w, &error->ip, sizeof(*error), IPPROTO_ICMP);
	return send_reply(skb, w, error, sizeof(*error));
}

/* `behind`: how much is quoted behind the IP header; a constant, for the verifier. */
INLINE int error_v6(struct __sk_buff *skb, struct work *w, const __u32 behind)
{
	struct error_v6 *error = (void *)w->scratch.answer;
	const __u32 quoted = sizeof(struct ipv6hdr) + behind;
	const __u32 size = sizeof(error->icmp) + quoted;
	if (bpf_skb_load_bytes(skb, ETHERNET, error->quoted, quoted))
		return DROP;
	make_error(w, &error->icmp);
	__u32 pseudo = pseudo_sum(w, size, IPPROTO_ICMPV6);
	error->icmp.check = fold(bpf_csum_diff(0, 0, (void *)&error->icmp, size, pseudo));
	head_v6(w, &error->ip, size, IPPROTO_ICMPV6);
	return send_reply(skb, w, error, sizeof(error->ip) + size);
}

INLINE int reject_v6(struct __sk_buff *skb, struct work *w)
{
	if (is_reset(w)) {
		struct reset_v6 *reset = (void *)w->scratch.answer;
		if (make_reset(skb, w, &reset->tcp))
			return DROP;
		head_v6(w, &reset->ip, sizeof(reset->tcp), IPPROTO_TCP);
		return send_reply(skb, w, reset, sizeof(*reset));
	}
	if (w->transport > ETHERNET + sizeof(struct ipv6hdr))
		return error_v6(skb, w, FRAGMENT_HEADER + QUOTED_TRANSPORT);
	return error_v6(skb, w, QUOTED_TRANSPORT);
}

/* A reset is never answered, nor what cannot be quoted plainly: a later fragment, options before the ports. */
INLINE int send_reject(struct __sk_buff *skb, struct work *w)
{
	enum hook hook = w->hook & 3;
	enum reason reason = w->reject_reason;
	count(w->frame, hook, reason);
	emit_event(w, hook, reason);
	if (w->flags & (WORK_LATER_FRAGMENT | WORK_OPTIONS | WORK_ICMP_ERROR))
		return DROP;
	if (w->packet.protocol == IPPROTO_TCP && (w->tcp_flags & TCP_RST))
		return DROP;
	return w->ip_version == 4 ? reject_v4(skb, w) : reject_v6(skb, w);
}

#endif
