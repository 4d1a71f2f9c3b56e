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

/*
 * Of `struct work` and of conntrack entries, where tuples begin at multiples of eight bytes. Their type does not say so, and in words of four
 * every packet takes twice as many instructions for them.
 */
#define AT_EIGHT(pointer) __builtin_assume_aligned(pointer, 8)
#define BEGINS_AT_EIGHT(type, field) _Static_assert(__builtin_offsetof(type, field) % 8 == 0, "copied in words of eight bytes")
BEGINS_AT_EIGHT(struct work, packet);
BEGINS_AT_EIGHT(struct work, reply);
BEGINS_AT_EIGHT(struct work, to);
BEGINS_AT_EIGHT(struct work, policy_tuple);
BEGINS_AT_EIGHT(struct work, original_dst);
BEGINS_AT_EIGHT(struct work, scratch.entry);
BEGINS_AT_EIGHT(struct conntrack_entry, to);

INLINE void copy_address(struct ip_address *to, const struct ip_address *from)
{
	__builtin_memcpy(AT_EIGHT(to), AT_EIGHT(from), sizeof(*to));
}

INLINE void copy_tuple(struct five_tuple *to, const struct five_tuple *from)
{
	__builtin_memcpy(AT_EIGHT(to), AT_EIGHT(from), sizeof(*to));
}

INLINE void reverse_tuple(struct five_tuple *to, const struct five_tuple *from)
{
	copy_address(&to->src, &from->dst);
	copy_address(&to->dst, &from->src);
	to->sport = from->dport;
	to->dport = from->sport;
	*(__u32 *)&to->protocol = from->protocol;
}

#endif
