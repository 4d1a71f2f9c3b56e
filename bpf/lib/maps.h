/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The maps, all shared by name between the objects and across restarts of the agent. Each is written by the agent unless said. */
#ifndef LIB_MAPS_H
#define LIB_MAPS_H

#include "types.h"

#define MAP(name_, type_, key_, value_, entries_, flags_) \
	struct {                                          \
		__uint(type, type_);                      \
		__uint(max_entries, entries_);            \
		__uint(map_flags, flags_);                \
		__uint(pinning, PIN_BY_NAME);             \
		__type(key, key_);                        \
		__type(value, value_);                    \
	} name_ SEC(".maps")

MAP(node, BPF_MAP_TYPE_ARRAY, __u32, __u32, NODE_FIELDS, 0);
MAP(interfaces, BPF_MAP_TYPE_HASH, __u32, struct interface, 4096, 0);
MAP(workloads, BPF_MAP_TYPE_HASH, struct ip_address, struct workload, 8192, 0);
MAP(routes, BPF_MAP_TYPE_LPM_TRIE, struct route_key, struct route, 262144, BPF_F_NO_PREALLOC);
MAP(ip_sets, BPF_MAP_TYPE_LPM_TRIE, struct set_key, struct set_member, 1048576, BPF_F_NO_PREALLOC);
/* Written by the programs; the agent removes what is over. */
MAP(flows, BPF_MAP_TYPE_LRU_HASH, struct five_tuple, struct conntrack_entry, 1000000, 0);
MAP(fragments, BPF_MAP_TYPE_LRU_HASH, struct fragment_key, struct fragment, 65536, 0);
/* Of this node's pods: limits by the agent, counts by the programs. Not carried over to another layout: the agent counts again. */
MAP(workload_shares, BPF_MAP_TYPE_HASH, __u32, struct workload_share, 4096, 0);
MAP(frontends, BPF_MAP_TYPE_HASH, struct frontend_key, struct frontend, 262144, BPF_F_NO_PREALLOC);
/* Cluster addresses of services: a port they do not have is refused. */
MAP(cluster_addresses, BPF_MAP_TYPE_HASH, struct ip_address, struct cluster_address, 262144, BPF_F_NO_PREALLOC);
MAP(backends, BPF_MAP_TYPE_HASH, struct backend_key, struct backend, 1048576, BPF_F_NO_PREALLOC);
MAP(source_ranges, BPF_MAP_TYPE_LPM_TRIE, struct source_range_key, struct source_range, 65536, BPF_F_NO_PREALLOC);
/* Written by the programs; the agent removes those whose backend is gone. */
MAP(affinities, BPF_MAP_TYPE_LRU_HASH, struct affinity_key, struct affinity, 65536, 0);
/* Written by the hooks at sockets: backends chosen for sockets that are not connected, and what services backends answer for. */
MAP(socket_choices, BPF_MAP_TYPE_LRU_HASH, struct socket_key, struct socket_peer, 65536, 0);
MAP(socket_peers, BPF_MAP_TYPE_LRU_HASH, struct socket_key, struct socket_peer, 131072, 0);
MAP(old_flows, BPF_MAP_TYPE_LRU_HASH, struct five_tuple, struct nf_conntrack_entry, 262144, 0);
/* Flow logs: written by the programs; the agent reads and removes what is of intervals that have ended. Empty, and without memory, while they are off. */
MAP(sums, BPF_MAP_TYPE_HASH, struct sum_key, struct sum, 131072, BPF_F_NO_PREALLOC);
MAP(merged_sums, BPF_MAP_TYPE_HASH, struct sum_key, struct sum, 16384, BPF_F_NO_PREALLOC);
MAP(traces, BPF_MAP_TYPE_HASH, __u64, struct trace, 65536, BPF_F_NO_PREALLOC);
MAP(tellings, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct telling, 1, 0);
/* Written by the programs. */
MAP(counters, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct counter, HOOKS * REASONS, 0);
MAP(works, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct work, 1, 0);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
	__uint(pinning, PIN_BY_NAME);
} events SEC(".maps");

/* Policy programs, assembled by the agent. Slot 0 stays empty: it is "none". */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 32768);
	__uint(pinning, PIN_BY_NAME);
	__uint(key_size, 4);
	__uint(value_size, 4);
} policies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, STEPS);
	__uint(pinning, PIN_BY_NAME);
	__uint(key_size, 4);
	__uint(value_size, 4);
} steps SEC(".maps");

#endif
