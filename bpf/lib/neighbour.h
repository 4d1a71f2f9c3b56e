/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* ARP and neighbour discovery: what a pod may say about addresses on its link. */
#ifndef LIB_NEIGHBOUR_H
#define LIB_NEIGHBOUR_H

#include "parse.h"

#define ROUTER_SOLICITATION 133
#define ROUTER_ADVERTISEMENT 134
#define NEIGHBOUR_SOLICITATION 135
#define NEIGHBOUR_ADVERTISEMENT 136
#define REDIRECT 137

struct arp_v4 {
	__be16 hardware, protocol;
	__u8 hardware_length, protocol_length;
	__be16 operation;
	__u8 sender_mac[6];
	__u8 sender[4];
	__u8 target_mac[6];
	__u8 target[4];
};

INLINE int is_behind(const struct ip_address *address, __u32 ifindex)
{
	struct workload *workload = bpf_map_lookup_elem(&workloads, address);
	return workload && workload->ifindex == ifindex;
}

INLINE int same_mac(const __u8 *a, const __u8 *b)
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3] && a[4] == b[4] && a[5] == b[5];
}

INLINE int is_zero_mac(const __u8 *mac)
{
	return !(mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]);
}

INLINE enum reason check_arp(struct __sk_buff *skb, const struct work *w, const struct interface *interface)
{
	struct arp_v4 arp;
	struct ip_address sender;
	__be32 word;
	if (bpf_skb_load_bytes(skb, ETHERNET, &arp, sizeof(arp)))
		return DROP_TRUNCATED;
	if (arp.hardware != htons(1) || arp.protocol != htons(ETH_P_IP) || arp.hardware_length != 6 || arp.protocol_length != 4)
		return DROP_MALFORMED;
	if (!is_zero_mac(interface->pod_mac) && !same_mac(arp.sender_mac, interface->pod_mac))
		return DROP_SPOOFED_ARP;
	__builtin_memcpy(&word, arp.sender, sizeof(word));
	/* 0.0.0.0 probes whether the address is in use, and claims none. */
	if (!word)
		return PASS_ARP;
	address_from_v4(&sender, word);
	return is_behind(&sender, w->ifindex) ? PASS_ARP : DROP_SPOOFED_ARP;
}

/* Messages of the link itself never come from further away: a router would have lowered their hop limit. */
INLINE int is_neighbour_discovery(struct __sk_buff *skb, const struct work *w)
{
	__u8 hops = 0;
	if (w->ip_version != 6 || w->packet.protocol != IPPROTO_ICMPV6 || (w->flags & WORK_LATER_FRAGMENT))
		return 0;
	if (w->icmp_type < ROUTER_SOLICITATION || w->icmp_type > REDIRECT)
		return 0;
	bpf_skb_load_bytes(skb, ETHERNET + __builtin_offsetof(struct ipv6hdr, hop_limit), &hops, 1);
	return hops == 255;
}

/* Multicast listener reports: sent by every IPv6 host from its link-local address, read on the link only. */
INLINE int is_listener_report(const struct work *w)
{
	return w->packet.protocol == IPPROTO_ICMPV6 && ((w->icmp_type >= 130 && w->icmp_type <= 132) || w->icmp_type == 143);
}

INLINE int may_speak_on_link(const struct ip_address *address, __u32 ifindex)
{
	return is_link_local_v6(address) || is_behind(address, ifindex);
}

INLINE enum reason check_neighbour_discovery(struct __sk_buff *skb, const struct work *w)
{
	struct ip_address target;
	if (w->icmp_type == ROUTER_ADVERTISEMENT || w->icmp_type == REDIRECT)
		return DROP_ROUTER_ADVERTISEMENT;
	if (!is_unspecified(&w->packet.src) && !may_speak_on_link(&w->packet.src, w->ifindex))
		return DROP_SPOOFED_NEIGHBOUR;
	if (w->icmp_type != NEIGHBOUR_ADVERTISEMENT)
		return PASS_NEIGHBOUR_DISCOVERY;
	if (bpf_skb_load_bytes(skb, w->transport + 8, &target, sizeof(target)))
		return DROP_TRUNCATED;
	return may_speak_on_link(&target, w->ifindex) ? PASS_NEIGHBOUR_DISCOVERY : DROP_SPOOFED_NEIGHBOUR;
}

#endif
