/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What our programs take from the kernel: its ABI headers, the few helpers we call, and how maps are declared. */
#ifndef LIB_KERNEL_H
#define LIB_KERNEL_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* What a packet of a known connection does not meet is moved out of its way, so that what it does meet lies together in the processor's cache. */
#define RARE(condition) __builtin_expect(!!(condition), 0)

/* Declarations of BTF-defined maps: the loader reads numbers from array sizes and types from pointers. */
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define PIN_BY_NAME 1

#define htons(x) __builtin_bswap16(x)
#define ntohs(x) __builtin_bswap16(x)
#define htonl(x) __builtin_bswap32(x)
#define ntohl(x) __builtin_bswap32(x)

/* Let the next program at the hook, and then the stack, have the packet: the same number for TCX and for a clsact filter. */
#define NEXT (-1)
#define DROP 2

#define FAMILY_V4 2
#define FAMILY_V6 10

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   __u64 flags) = (void *)BPF_FUNC_map_update_elem;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_delete_elem;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*bpf_tail_call)(void *ctx, void *programs, __u32 index) = (void *)BPF_FUNC_tail_call;
static long (*bpf_skb_load_bytes)(const void *skb, __u32 offset, void *to, __u32 len) = (void *)BPF_FUNC_skb_load_bytes;
static long (*bpf_skb_store_bytes)(void *skb, __u32 offset, const void *from, __u32 len,
				   __u64 flags) = (void *)BPF_FUNC_skb_store_bytes;
static long (*bpf_l3_csum_replace)(void *skb, __u32 offset, __u64 from, __u64 to,
				   __u64 size) = (void *)BPF_FUNC_l3_csum_replace;
static long (*bpf_l4_csum_replace)(void *skb, __u32 offset, __u64 from, __u64 to,
				   __u64 flags) = (void *)BPF_FUNC_l4_csum_replace;
static __s64 (*bpf_csum_diff)(const void *from, __u32 from_size, const void *to, __u32 to_size,
			      __u32 seed) = (void *)BPF_FUNC_csum_diff;
static long (*bpf_skb_change_tail)(void *skb, __u32 len, __u64 flags) = (void *)BPF_FUNC_skb_change_tail;
static __u32 (*bpf_get_prandom_u32)(void) = (void *)BPF_FUNC_get_prandom_u32;
static long (*bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)BPF_FUNC_redirect;
static long (*bpf_redirect_peer)(__u32 ifindex, __u64 flags) = (void *)BPF_FUNC_redirect_peer;
static long (*bpf_redirect_neigh)(__u32 ifindex, void *params, int size,
				  __u64 flags) = (void *)BPF_FUNC_redirect_neigh;
static long (*bpf_fib_lookup)(void *ctx, struct bpf_fib_lookup *params, int size,
			      __u32 flags) = (void *)BPF_FUNC_fib_lookup;
static void *(*bpf_ringbuf_reserve)(void *ringbuf, __u64 size, __u64 flags) = (void *)BPF_FUNC_ringbuf_reserve;
static void (*bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)BPF_FUNC_ringbuf_submit;

/*
 * Nanoseconds since `then`. Another processor, or the agent, may have written a later time after `now` was read: none has passed, and the
 * difference must not wrap round to centuries.
 */
INLINE __u64 elapsed(__u64 now, __u64 then)
{
	return now > then ? now - then : 0;
}

#endif
