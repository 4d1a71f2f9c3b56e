/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#ifndef LIB_ADDRESS_H
#define LIB_ADDRESS_H

#include "types.h"

INLINE void address_from_v4(struct ip_address *to, __be32 from)
{
	to->word[0] = 0;
	to->word[1] = 0;
	to->word[2] = htonl(0xffff);
	to->word[3] = from;
}

INLINE void address_from_v6(struct ip_address *to, const struct in6_addr *from)
{
	__builtin_memcpy(to, from, sizeof(*to));
}

INLINE int same_address(const struct ip_address *a, const struct ip_address *b)
{
	return a->word[0] == b->word[0] && a->word[1] == b->word[1] && a->word[2] == b->word[2] && a->word[3] == b->word[3];
}

INLINE int is_mapped_v4(const struct ip_address *a)
{
	return !a->word[0] && !a->word[1] && a->word[2] == htonl(0xffff);
}

INLINE int is_unspecified(const struct ip_address *a)
{
	return !(a->word[0] | a->word[1] | a->word[2] | a->word[3]);
}

INLINE int is_link_local_v6(const struct ip_address *a)
{
	return (a->word[0] & htonl(0xffc00000)) == htonl(0xfe800000);
}

/* ff02::/16: no router sends it on. */
INLINE int is_link_multicast(const struct ip_address *a)
{
	return (a->word[0] & htonl(0xffff0000)) == htonl(0xff020000);
}

INLINE void reverse(struct five_tuple *to, const struct five_tuple *from)
{
	to->src = from->dst;
	to->dst = from->src;
	to->sport = from->dport;
	to->dport = from->sport;
	to->protocol = from->protocol;
	to->pad[0] = to->pad[1] = to->pad[2] = 0;
}

#endif
