/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Who answers for the address and port a packet is for. */
#ifndef LIB_LB_H
#define LIB_LB_H

#include "parse.h"

#define NO_SERVICE 0

INLINE struct route *find_route(struct work *w, const struct ip_address *address)
{
	struct route_key *key = &w->scratch.route_key;
	key->prefix_length = 128;
	key->address = *address;
	return bpf_map_lookup_elem(&routes, key);
}

INLINE __u32 route_kind_of(struct work *w, const struct ip_address *address)
{
	struct route *route = find_route(w, address);
	return route ? route->kind : 0;
}

/* Whether the client is neither a pod of the cluster nor a node of it. */
INLINE int is_external(struct work *w)
{
	return route_kind_of(w, &w->packet.src) == 0 && !bpf_map_lookup_elem(&workloads, &w->packet.src);
}

/*
 * Node ports are of every address of this node. Of another node's too in what comes through the overlay: that node left the packet as
 * it was, for us to answer. It may have addresses that are not in our routes: only a node that takes it for a service sends a client's packet here.
 */
INLINE int is_node_port_address(struct work *w, const struct interface *interface)
{
	__u32 kind = route_kind_of(w, &w->packet.dst);
	if (kind == ROUTE_LOCAL_HOST)
		return 1;
	return interface->kind == INTERFACE_OVERLAY && (kind == ROUTE_REMOTE_HOST || (!kind && is_external(w)));
}

INLINE struct frontend *find_frontend(struct work *w, const struct interface *interface)
{
	struct frontend_key *key = &w->scratch.frontend_key;
	if (!has_ports(w->packet.protocol))
		return 0;
	key->address = w->packet.dst;
	key->port = w->packet.dport;
	key->protocol = w->packet.protocol;
	key->pad = 0;
	struct frontend *frontend = bpf_map_lookup_elem(&frontends, key);
	if (frontend || !is_node_port_address(w, interface))
		return frontend;
	key->address.word[0] = 0;
	key->address.word[1] = 0;
	key->address.word[2] = w->ip_version == 4 ? htonl(0xffff) : 0;
	key->address.word[3] = 0;
	return bpf_map_lookup_elem(&frontends, key);
}

/* A service's own address, and a port without a frontend. */
INLINE int is_missing_port(const struct work *w)
{
	return has_ports(w->packet.protocol) && bpf_map_lookup_elem(&cluster_addresses, &w->packet.dst);
}

INLINE int is_in_source_ranges(struct work *w, __u32 service)
{
	struct source_range_key *key = &w->scratch.source_range_key;
	key->prefix_length = 32 + 128;
	key->service = service;
	key->address = w->packet.src;
	return bpf_map_lookup_elem(&source_ranges, key) != 0;
}

/* Whether the backend's node answers this client itself. */
INLINE int uses_dsr(struct work *w)
{
	return node_field(NODE_DSR) && !is_in_source_ranges(w, NO_SERVICE);
}

/*
 * Whether only backends of this node may answer. `from_here`: a pod of this node asks, or the node itself: neither policy of the service holds
 * for what they ask by its addresses outside. Others of the cluster are outside of this node, as kube-proxy sees it. `handed`: another node
 * chose this one.
 */
INLINE int uses_local_backends(const struct frontend *frontend, int from_here, int handed)
{
	/* One that has just lost its last backend sends on what the other did not know yet. */
	if (handed && frontend->local_count)
		return 1;
	if (!(frontend->flags & FRONTEND_EXTERNAL))
		return (frontend->flags & FRONTEND_INTERNAL_LOCAL) != 0;
	return (frontend->flags & FRONTEND_EXTERNAL_LOCAL) && !from_here;
}

/* The backend the client had before; renews it. */
INLINE int find_affinity(struct work *w, const struct frontend *frontend, __u32 local, __u64 now)
{
	struct affinity_key *key = &w->scratch.affinity_key;
	key->client = w->packet.src;
	key->service = frontend->service;
	key->local = local;
	struct affinity *had = bpf_map_lookup_elem(&affinities, key);
	if (!had || elapsed(now, had->last_used) > (__u64)frontend->affinity * SECOND)
		return 0;
	had->last_used = now;
	w->to.dst = had->address;
	w->to.dport = had->port;
	return 1;
}

INLINE void save_affinity(struct work *w, __u64 now)
{
	struct affinity *affinity = &w->scratch.affinity;
	__builtin_memset(affinity, 0, sizeof(*affinity));
	affinity->address = w->to.dst;
	affinity->port = w->to.dport;
	affinity->last_used = now;
	bpf_map_update_elem(&affinities, &w->scratch.affinity_key, affinity, BPF_ANY);
}

/* Writes who answers into `to`. */
INLINE enum reason choose_backend(struct work *w, const struct frontend *frontend, int from_here, int handed)
{
	if ((frontend->flags & FRONTEND_SOURCE_RANGES) && !is_in_source_ranges(w, frontend->service))
		return DROP_SOURCE_RANGE;
	__u32 local = uses_local_backends(frontend, from_here, handed);
	__u32 count = local ? frontend->local_count : frontend->cluster_count;
	__u64 now = bpf_ktime_get_ns();
	if (!count)
		return frontend->flags & FRONTEND_ANY ? DROP_NO_LOCAL_BACKEND : REJECT_NO_BACKEND;
	if (frontend->affinity && find_affinity(w, frontend, local, now))
		return REASON_NONE;
	struct backend_key *key = &w->scratch.backend_key;
	key->list = local ? frontend->local_list : frontend->cluster_list;
	key->index = bpf_get_prandom_u32() % count;
	struct backend *backend = bpf_map_lookup_elem(&backends, key);
	if (!backend)
		return DROP_NO_LOCAL_BACKEND;
	w->to.dst = backend->address;
	w->to.dport = backend->port;
	if (frontend->affinity)
		save_affinity(w, now);
	return REASON_NONE;
}

#endif
