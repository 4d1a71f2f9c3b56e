/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* An ICMP error belongs to the flow whose packet it carries: it goes where that flow's packets towards its sender go. */
#ifndef LIB_ICMP_ERROR_H
#define LIB_ICMP_ERROR_H

#include "parse.h"

/* Fills `key` with the direction the error travels in: the reverse of the packet inside it. Gives where the transport header inside begins; 0 where that cannot be read. */
INLINE __u32 tuple_of_error(struct __sk_buff *skb, struct work *w, struct five_tuple *key)
{
	__u32 at = w->transport + 8;
	/* What follows in the frame is no part of the packet: the stack cuts it off, and the receiver would not see what was quoted. */
	__u32 end = ETHERNET + w->length;
	__builtin_memset(key, 0, sizeof(*key));
	__u8 ports[8];
	__u8 protocol;
	if (w->ip_version == 4) {
		struct iphdr *ip = &w->scratch.header.v4;
		if (at + sizeof(*ip) > end || bpf_skb_load_bytes(skb, at, ip, sizeof(*ip)) || ip->version != 4 || ip->ihl < 5 ||
		    (ip->frag_off & htons(0x1fff)))
			return 0;
		address_from_v4(&key->dst, ip->saddr);
		address_from_v4(&key->src, ip->daddr);
		protocol = ip->protocol;
		at += ip->ihl * 4;
	} else {
		struct ipv6hdr *ip = &w->scratch.header.v6;
		if (at + sizeof(*ip) > end || bpf_skb_load_bytes(skb, at, ip, sizeof(*ip)) || ip->version != 6)
			return 0;
		address_from_v6(&key->dst, &ip->saddr);
		address_from_v6(&key->src, &ip->daddr);
		protocol = ip->nexthdr;
		at += sizeof(*ip);
		/* About the first of several fragments: only that one has ports. */
		if (protocol == NEXT_FRAGMENT) {
			if (bpf_skb_load_bytes(skb, at, ports, FRAGMENT_HEADER) || ports[2] || (ports[3] & 0xf8))
				return 0;
			protocol = ports[0];
			at += FRAGMENT_HEADER;
		}
	}
	/* The error must go to whom the packet came from. */
	if (!same_address(&key->dst, &w->packet.dst))
		return 0;
	key->protocol = protocol;
	if (!has_policy_ports(protocol) && !is_icmp(protocol))
		return at;
	if (at + sizeof(ports) > end || bpf_skb_load_bytes(skb, at, ports, sizeof(ports)))
		return 0;
	if (has_policy_ports(protocol)) {
		key->dport = ports[0] << 8 | ports[1];
		key->sport = ports[2] << 8 | ports[3];
		return at;
	}
	__u16 id = ports[4] << 8 | ports[5];
	__u8 type = ports[0];
	if (type == (protocol == IPPROTO_ICMPV6 ? ICMPV6_ECHO_REQUEST : ICMP_ECHO_REQUEST))
		key->dport = id;
	else if (type == (protocol == IPPROTO_ICMPV6 ? ICMPV6_ECHO_REPLY : ICMP_ECHO_REPLY))
		key->sport = id;
	else
		return 0;
	return at;
}

#endif
