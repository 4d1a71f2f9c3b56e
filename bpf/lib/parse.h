/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* From bytes to `struct work`. The only place, with lib/icmp_error.h, that knows how the two families look on the wire. */
#ifndef LIB_PARSE_H
#define LIB_PARSE_H

#include "address.h"
#include "config.h"
#include "verdict.h"

#define ETHERNET 14
#define FRAGMENT_HEADER 8
#define MORE_EXTENSION_HEADERS 6
#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10
#define ICMP_ECHO_REPLY 0
#define ICMP_ECHO_REQUEST 8
#define ICMPV6_ECHO_REQUEST 128
#define ICMPV6_ECHO_REPLY 129
#define NEXT_HOP_BY_HOP 0
#define NEXT_ROUTING 43
#define NEXT_FRAGMENT 44
#define NEXT_AUTHENTICATION 51
#define NEXT_DESTINATION 60

struct fragment_info {
	__u32 id;
	__u8 first;
	__u8 later;
};

/* Protocols of services, which NAT translates and the kernel is asked about. */
INLINE int has_ports(__u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
}

/* Protocols whose ports policy is asked about: SCTP has them where the others do. */
INLINE int has_policy_ports(__u8 protocol)
{
	return has_ports(protocol) || protocol == IPPROTO_SCTP;
}

INLINE int is_overlay_port(const struct five_tuple *packet)
{
	return packet->protocol == IPPROTO_UDP && packet->dport == vxlan_port;
}

INLINE int is_icmp(__u8 protocol)
{
	return protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6;
}

INLINE int is_icmp_error(__u8 protocol, __u8 type)
{
	if (protocol == IPPROTO_ICMPV6)
		return type >= 1 && type <= 4;
	return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

/* ICMP echo as if it had ports, see struct five_tuple; other messages belong to no flow. */
INLINE void icmp_ports(struct work *w, __u8 type, __u16 id)
{
	__u8 v6 = w->packet.protocol == IPPROTO_ICMPV6;
	if (type == (v6 ? ICMPV6_ECHO_REQUEST : ICMP_ECHO_REQUEST))
		w->packet.sport = id;
	else if (type == (v6 ? ICMPV6_ECHO_REPLY : ICMP_ECHO_REPLY))
		w->packet.dport = id;
	else
		w->flags |= WORK_UNTRACKED;
	if (is_icmp_error(w->packet.protocol, type))
		w->flags |= WORK_ICMP_ERROR;
}

INLINE enum reason parse_transport(struct __sk_buff *skb, struct work *w)
{
	/* Enough of each: ports and flags of TCP, ports of UDP and SCTP, type, code and id of ICMP. */
	__u8 header[14] = {};
	__u8 protocol = w->packet.protocol;
	__u32 end = ETHERNET + w->length;
	__u32 need = protocol == IPPROTO_TCP ? 20 : protocol == IPPROTO_SCTP ? 12 : 8;
	if (!has_policy_ports(protocol) && !is_icmp(protocol))
		return REASON_NONE;
	if (RARE(w->transport + need > end))
		return DROP_TRUNCATED;
	if (protocol == IPPROTO_TCP) {
		if (RARE(bpf_skb_load_bytes(skb, w->transport, header, 14)))
			return DROP_TRUNCATED;
		w->tcp_flags = header[13];
	} else if (RARE(bpf_skb_load_bytes(skb, w->transport, header, 8))) {
		return DROP_TRUNCATED;
	}
	if (has_policy_ports(protocol)) {
		w->packet.sport = header[0] << 8 | header[1];
		w->packet.dport = header[2] << 8 | header[3];
		return REASON_NONE;
	}
	w->icmp_type = header[0];
	w->icmp_code = header[1];
	icmp_ports(w, header[0], header[4] << 8 | header[5]);
	return REASON_NONE;
}

INLINE void fragment_key_of(struct fragment_key *key, const struct work *w, __u32 id)
{
	key->src = w->packet.src;
	key->dst = w->packet.dst;
	key->id = id;
	key->protocol = w->packet.protocol;
}

INLINE enum reason find_first_fragment(struct work *w, __u32 id)
{
	struct fragment_key *key = &w->scratch.fragment_key;
	w->flags |= WORK_LATER_FRAGMENT;
	if (!has_policy_ports(w->packet.protocol) && !is_icmp(w->packet.protocol))
		return REASON_NONE;
	fragment_key_of(key, w, id);
	struct fragment *first = bpf_map_lookup_elem(&fragments, key);
	if (!first || elapsed(bpf_ktime_get_ns(), first->seen) > timeout_fragment)
		return DROP_FRAGMENT_WITHOUT_FIRST;
	w->packet.sport = first->sport;
	w->packet.dport = first->dport;
	w->icmp_type = first->icmp_type;
	w->icmp_code = first->icmp_code;
	if (is_icmp(w->packet.protocol) && !first->sport && !first->dport)
		w->flags |= WORK_UNTRACKED;
	return REASON_NONE;
}

INLINE enum reason parse_transport_or_fragment(struct __sk_buff *skb, struct work *w, const struct fragment_info *info)
{
	if (RARE(info->later))
		return find_first_fragment(w, info->id);
	enum reason bad = parse_transport(skb, w);
	if (!RARE(!bad && info->first))
		return bad;
	w->flags |= WORK_FIRST_FRAGMENT;
	w->fragment_id = info->id;
	return REASON_NONE;
}

/* For the fragments that follow. Only once the sender is known to be who it says: else a pod would write the ports of another's packets. */
INLINE void save_first_fragment(struct work *w)
{
	struct fragment *value = &w->scratch.fragment;
	if (!RARE(w->flags & WORK_FIRST_FRAGMENT))
		return;
	__builtin_memset(value, 0, sizeof(*value));
	value->seen = bpf_ktime_get_ns();
	value->sport = w->packet.sport;
	value->dport = w->packet.dport;
	value->icmp_type = w->icmp_type;
	value->icmp_code = w->icmp_code;
	fragment_key_of(&w->scratch.fragment_key, w, w->fragment_id);
	bpf_map_update_elem(&fragments, &w->scratch.fragment_key, value, BPF_ANY);
}

/* What the header says must be there must be there. Packets above 64 KiB, which only offloading makes, say 0. */
INLINE enum reason accept_length(struct work *w, __u32 said, __u32 least)
{
	__u32 there = w->frame - ETHERNET;
	if (RARE(!said && w->segment))
		said = there;
	if (RARE(said < least))
		return DROP_MALFORMED;
	if (RARE(said > there))
		return DROP_TRUNCATED;
	w->length = said;
	return REASON_NONE;
}

INLINE enum reason parse_v4(struct __sk_buff *skb, struct work *w)
{
	struct iphdr *ip = &w->scratch.header.v4;
	struct fragment_info info = {};
	if (RARE(w->frame < ETHERNET + sizeof(*ip) || bpf_skb_load_bytes(skb, ETHERNET, ip, sizeof(*ip))))
		return DROP_TRUNCATED;
	__u32 header = ip->ihl * 4;
	if (RARE(ip->version != 4 || header < sizeof(*ip)))
		return DROP_MALFORMED;
	enum reason bad = accept_length(w, ntohs(ip->tot_len), header);
	if (RARE(bad))
		return bad;
	if (RARE(header > sizeof(*ip)))
		w->flags |= WORK_OPTIONS;
	w->ip_version = 4;
	w->packet.protocol = ip->protocol;
	w->transport = ETHERNET + header;
	address_from_v4(&w->packet.src, ip->saddr);
	address_from_v4(&w->packet.dst, ip->daddr);
	__u16 fragment = ntohs(ip->frag_off);
	info.id = ip->id;
	info.later = (fragment & 0x1fff) != 0;
	info.first = !info.later && (fragment & 0x2000);
	return parse_transport_or_fragment(skb, w, &info);
}

/* Steps over extension headers to the transport's; a chain longer than anyone needs is refused, not guessed about. */
INLINE enum reason parse_extensions(struct __sk_buff *skb, struct work *w, struct fragment_info *info, __u8 next)
{
	__u32 at = ETHERNET + sizeof(struct ipv6hdr);
	__u32 end = ETHERNET + w->length;
	/* As loops go, 5.10 only takes those that end in a jump, and the compiler does not promise one. */
#pragma clang loop unroll(full)
	for (int i = 0; i <= MORE_EXTENSION_HEADERS; i++) {
		__u8 header[8];
		if (!RARE(next == NEXT_HOP_BY_HOP || next == NEXT_ROUTING || next == NEXT_FRAGMENT || next == NEXT_DESTINATION ||
			  next == NEXT_AUTHENTICATION)) {
			w->packet.protocol = next;
			w->transport = at;
			return REASON_NONE;
		}
		if (i == MORE_EXTENSION_HEADERS)
			break;
		if (at + sizeof(header) > end || bpf_skb_load_bytes(skb, at, header, sizeof(header)))
			return DROP_TRUNCATED;
		if (next == NEXT_ROUTING && header[2] == 0)
			return DROP_SOURCE_ROUTE;
		if (next == NEXT_FRAGMENT) {
			__u16 where = header[2] << 8 | header[3];
			info->id = header[4] << 24 | header[5] << 16 | header[6] << 8 | header[7];
			info->later = (where & 0xfff8) != 0;
			info->first = !info->later && (where & 1);
			at += FRAGMENT_HEADER;
		} else {
			w->flags |= WORK_OPTIONS;
			at += next == NEXT_AUTHENTICATION ? (header[1] + 2) * 4 : (header[1] + 1) * 8;
		}
		next = header[0];
		/* Behind a later fragment's header there is no other: what looks like one is payload. */
		if (info->later) {
			w->packet.protocol = next;
			w->transport = at;
			return REASON_NONE;
		}
	}
	return DROP_EXTENSION_HEADERS;
}

INLINE enum reason parse_v6(struct __sk_buff *skb, struct work *w)
{
	struct ipv6hdr *ip = &w->scratch.header.v6;
	struct fragment_info info = {};
	if (RARE(w->frame < ETHERNET + sizeof(*ip) || bpf_skb_load_bytes(skb, ETHERNET, ip, sizeof(*ip))))
		return DROP_TRUNCATED;
	if (RARE(ip->version != 6))
		return DROP_MALFORMED;
	__u32 payload = ntohs(ip->payload_len);
	enum reason bad = accept_length(w, payload || !w->segment ? payload + sizeof(*ip) : 0, sizeof(*ip));
	if (RARE(bad))
		return bad;
	w->ip_version = 6;
	address_from_v6(&w->packet.src, &ip->saddr);
	address_from_v6(&w->packet.dst, &ip->daddr);
	/* On the wire these addresses are invalid; in our maps they would be IPv4's. */
	if (RARE(is_mapped_v4(&w->packet.src) || is_mapped_v4(&w->packet.dst)))
		return DROP_MALFORMED;
	bad = parse_extensions(skb, w, &info, ip->nexthdr);
	if (RARE(bad))
		return bad;
	return parse_transport_or_fragment(skb, w, &info);
}

/* One value for each thing a frame can be, so that each program says itself what becomes of what is not IP. */
enum frame {
	FRAME_IP,
	FRAME_ARP,
	FRAME_VLAN,
	FRAME_OTHER,
};

INLINE enum frame frame_of(struct __sk_buff *skb, const struct work *w, __u16 *type)
{
	*type = 0;
	if (RARE(w->frame < ETHERNET || bpf_skb_load_bytes(skb, 12, type, sizeof(*type))))
		return FRAME_OTHER;
	/* A tag that only carries a priority is no other network: the stack takes it off and goes on, so do we. */
	if (RARE(*type == htons(0x8100) || *type == htons(0x88a8) || (skb->vlan_present && (skb->vlan_tci & 0xfff))))
		return FRAME_VLAN;
	if (RARE(*type == htons(ETH_P_ARP)))
		return FRAME_ARP;
	return *type == htons(ETH_P_IP) || *type == htons(ETH_P_IPV6) ? FRAME_IP : FRAME_OTHER;
}

/*
 * Everything that is not kept from packet to packet, made empty. The rules hit are counted, so those need not be; nor need what replies look
 * like, which parsing writes before anything reads it.
 */
INLINE void start(struct __sk_buff *skb, struct work *w)
{
	__builtin_memset(&w->packet, 0, sizeof(w->packet));
	__builtin_memset(&w->to, 0, __builtin_offsetof(struct work, rules) - __builtin_offsetof(struct work, to));
	w->frame = skb->len;
	w->segment = skb->gso_size;
	w->ifindex = skb->ifindex;
	w->from = skb->ingress_ifindex;
	w->interval = node_field(NODE_INTERVAL);
}

/* What policy will be asked about. The original destination is the one before translation. */
INLINE void set_policy_tuple(struct work *w, const struct five_tuple *tuple)
{
	int ports = has_policy_ports(tuple->protocol);
	copy_tuple(&w->policy_tuple, tuple);
	w->sport = ports ? tuple->sport : 0;
	w->dport = ports ? tuple->dport : 0;
	copy_address(&w->original_dst, &tuple->dst);
	w->original_dport = w->dport;
}

INLINE enum reason parse(struct __sk_buff *skb, struct work *w, __u16 type)
{
	enum reason bad = type == htons(ETH_P_IP) ? parse_v4(skb, w) : parse_v6(skb, w);
	if (RARE(bad))
		return bad;
	reverse_tuple(&w->reply, &w->packet);
	set_policy_tuple(w, &w->packet);
	return REASON_NONE;
}

#endif
