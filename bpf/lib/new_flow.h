/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The first packet of a flow, at a hook where it arrives: whose flow it is, who answers for its address, which way it goes and how answers
 * come back. Both directions take the same way, so that a translation is undone where it was done.
 */
#ifndef LIB_NEW_FLOW_H
#define LIB_NEW_FLOW_H

#include "nf_conntrack.h"
#include "conntrack.h"
#include "forward.h"
#include "lb.h"

/* A client that has closed half of all ports to a backend within a minute finds none this often: once in 60,000 times. */
#define PORT_TRIES 16
#define FIRST_PORT 32768
#define PORTS 28232
/*
 * Of flows that the node itself opens to a service. What the kernel masquerades keeps the port that a pod or a client chose, below these, and the
 * kernel does not know which ports of the node we took: two flows to one backend would be one on the wire.
 */
#define FIRST_HOST_PORT 61000
#define HOST_PORTS 4536
#define HOST_PORT_TRIES 12

/* Packets with a client's own address come out of the overlay only from nodes that want the answer there. */
INLINE void reply_through_overlay(struct __sk_buff *skb, struct work *w)
{
	w->reply_path = PATH_OVERLAY;
	bpf_skb_load_bytes(skb, 6, w->reply_mac, 6);
}

/* Where the first packet of a flow goes on, and how the answers will. Pods reach each other past the stack, and the outside through it. */
INLINE void choose_path(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface)
{
	w->path = PATH_STACK;
	w->reply_path = PATH_STACK;
	struct workload *workload = bpf_map_lookup_elem(&workloads, &w->to.dst);
	int from_overlay = hook == HOOK_FROM_HOST && interface->kind == INTERFACE_OVERLAY;
	if (workload && (workload->ifindex != w->ifindex || (w->flags & WORK_NAT))) {
		w->path = PATH_LOCAL;
		w->out = workload->ifindex;
		w->reply_path = hook == HOOK_FROM_WORKLOAD ? PATH_LOCAL : PATH_ROUTE;
		/* Unless the node before left the answer to us too. */
		if (from_overlay && (w->flags & WORK_EXTERNAL) && !((w->flags & WORK_NAT) && uses_dsr(w)))
			reply_through_overlay(skb, w);
		return;
	}
	struct route *route = find_route(w, &w->to.dst);
	__u32 kind = route ? route->kind : 0;
	if (workload || (hook == HOOK_FROM_HOST && !(w->flags & WORK_NAT)))
		return;
	if (hook == HOOK_FROM_WORKLOAD) {
		if (kind != ROUTE_REMOTE_WORKLOAD)
			return;
		w->path = PATH_ROUTE;
		w->reply_path = PATH_LOCAL;
		return;
	}
	/* A backend on this node sees the client, and the stack delivers. */
	if (kind == ROUTE_LOCAL_HOST)
		return;
	if (kind == ROUTE_REMOTE_WORKLOAD && route && (w->flags & WORK_EXTERNAL) && (route->flags & ROUTE_PEER_EBPF) &&
	    (route->flags & ROUTE_OVERLAY)) {
		w->path = PATH_OVERLAY;
		__builtin_memcpy(w->mac, route->mac, 6);
		w->reply_path = PATH_ROUTE;
		if (from_overlay)
			reply_through_overlay(skb, w);
		return;
	}
	/*
	 * The backend's node would not send the answer back to us, because it does not know how or because it reaches a client of the cluster
	 * straight: the kernel takes this node's address for the client's.
	 */
	w->flags |= WORK_MASQUERADE;
}

/* The same for a packet of the node itself, where it leaves: pods of this node are reached from there, and others by its routes. */
INLINE void choose_host_path(struct work *w)
{
	struct workload *workload = bpf_map_lookup_elem(&workloads, &w->to.dst);
	w->reply_path = PATH_HOST;
	w->path = PATH_ROUTE;
	if (workload) {
		w->path = PATH_LOCAL;
		w->out = workload->ifindex;
	} else if (route_kind_of(w, &w->to.dst) == ROUTE_LOCAL_HOST) {
		/* Back in where it would have left. As a pod does not, the node does not take packets from itself by there. */
		w->path = PATH_HOST;
		w->out = w->ifindex;
		w->to.src = w->packet.dst;
	}
}

/* Of an answer's addresses and ports. What is over is remembered by its ends for a while: they may wait for what is late. */
enum use { UNUSED, OVER, IN_USE };

/* Whether an answer of that key would be taken for another flow's, of ours or of the kernel's. */
INLINE enum use use_of(struct __sk_buff *skb, struct work *w, const struct five_tuple *reply, __u64 now)
{
	enum use use = UNUSED;
	struct conntrack_entry *entry = bpf_map_lookup_elem(&flows, reply);
	if (entry && elapsed(now, entry->last_seen) <= timeout_of(reply->protocol, entry->state)) {
		/* Left over from this very flow. */
		int own = (entry->flags & CT_NAT) && is_reverse_of(entry, &w->packet);
		if (!own && entry->state != CT_CLOSING)
			return IN_USE;
		use = own ? UNUSED : OVER;
	}
	if (!find_nf_conntrack(skb, w, reply))
		return use;
	return w->scratch.kernel.tcp_state >= NF_TIME_WAIT ? OVER : IN_USE;
}

/*
 * One pod may ask two services that have the same backend, from the same port: behind the translation those would be one flow. Where most
 * ports are used up, one that is over has to do: its ends may ask for a second try.
 */
INLINE int find_free_port(struct __sk_buff *skb, struct work *w, int of_host)
{
	__u64 now = bpf_ktime_get_ns();
	__u16 over = 0;
	if (of_host)
		w->to.sport = FIRST_HOST_PORT + bpf_get_prandom_u32() % HOST_PORTS;
#pragma clang loop unroll(full)
	for (int i = 0; i < PORT_TRIES; i++) {
		reverse_tuple(&w->reply, &w->to);
		enum use use = use_of(skb, w, &w->reply, now);
		if (use == UNUSED)
			return 1;
		if (use == OVER && !over)
			over = w->to.sport;
		if (of_host && i < HOST_PORT_TRIES)
			w->to.sport = FIRST_HOST_PORT + bpf_get_prandom_u32() % HOST_PORTS;
		else
			w->to.sport = FIRST_PORT + bpf_get_prandom_u32() % PORTS;
	}
	w->to.sport = over;
	reverse_tuple(&w->reply, &w->to);
	return over != 0;
}

/* Whether another node handed us a client's packet for a service we have not heard of: by our routes it would come back there. */
INLINE int is_loop(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface)
{
	return hook == HOOK_FROM_HOST && interface->kind == INTERFACE_OVERLAY && is_external(w) && !is_for_host(skb, w);
}

/* What policy is evaluated for: the packet as it will be, but with its original source. */
INLINE void set_policy_destination(struct work *w, const struct ip_address *dst, __u16 dport)
{
	w->policy_tuple.dst = *dst;
	w->policy_tuple.dport = dport;
	w->dport = dport;
}

/* A flow the kernel had before us, maybe with a translation of its own: it goes on there, once policy is asked about what the kernel makes of it. */
INLINE void defer_to_nf_conntrack(struct work *w)
{
	w->flags |= WORK_NF_CONNTRACK;
	w->path = PATH_STACK;
	w->reply_path = PATH_STACK;
	if (w->scratch.kernel.reply) {
		w->flags |= WORK_REPLY;
		set_policy_tuple(w, &w->reply);
		return;
	}
	set_policy_destination(w, &w->scratch.kernel.dst, w->scratch.kernel.dport);
}

/* The packet is for a service. 0: `to` says who answers. */
INLINE enum reason translate_service(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface,
			     const struct frontend *frontend)
{
	int outside = (w->flags & WORK_EXTERNAL) != 0;
	int handed = outside && hook == HOOK_FROM_HOST && interface->kind == INTERFACE_OVERLAY;
	w->service = frontend->service;
	enum reason bad = choose_backend(w, frontend, hook == HOOK_FROM_WORKLOAD, handed);
	if (bad)
		return bad;
	/* Whoever may write a Service chooses its backends: none of them is the overlay of a node. */
	if (is_overlay_port(&w->to))
		return DROP_TUNNEL_SOURCE;
	w->flags |= WORK_NAT;
	choose_path(skb, w, hook, interface);
	/*
	 * Hairpin: a pod does not accept a packet from itself, so it comes from the service's address. That exists in every family, and no other
	 * connection has it. A node that asked through this one gets this one's address from the kernel.
	 */
	if (!(w->flags & WORK_MASQUERADE) && same_address(&w->to.src, &w->to.dst))
		w->to.src = w->packet.dst;
	set_policy_destination(w, &w->to.dst, w->to.dport);
	/*
	 * The backend's node translates: it alone sees all that its backends are asked, and a client may have one port through two nodes. Here
	 * only the node is chosen.
	 */
	int straight = uses_dsr(w);
	if (w->path == PATH_OVERLAY && outside && !handed && (straight || (frontend->flags & FRONTEND_EXTERNAL))) {
		copy_tuple(&w->to, &w->packet);
		w->flags = (w->flags & ~WORK_NAT) | (straight ? WORK_DSR : 0);
		return REASON_NONE;
	}
	if (!find_free_port(skb, w, 0))
		return DROP_NO_FREE_PORT;
	return REASON_NONE;
}

/* A packet to a pod straight whose answers would be taken for a translated flow's gets another port too. */
INLINE enum reason snat_on_collision(struct __sk_buff *skb, struct work *w)
{
	if (!has_ports(w->packet.protocol))
		return REASON_NONE;
	struct conntrack_entry *other = bpf_map_lookup_elem(&flows, &w->reply);
	/* The kernel does not have this flow, so what it has under its answers is one that it translates. */
	if (!(other && (other->flags & CT_NAT)) && !find_nf_conntrack(skb, w, &w->reply))
		return REASON_NONE;
	if (!find_free_port(skb, w, 0))
		return DROP_NO_FREE_PORT;
	if (w->to.sport != w->packet.sport)
		w->flags |= WORK_NAT;
	return REASON_NONE;
}

/* Draining, new flows are the kernel's, but for those it could not answer, or would mix up with one of ours. */
INLINE int is_draining(struct work *w, enum hook hook, const struct interface *interface)
{
	if (w->mode != MODE_DRAIN)
		return 0;
	if (w->packet.protocol == IPPROTO_TCP && !opens_tcp(w))
		return 1;
	if (hook == HOOK_FROM_HOST)
		return interface->kind != INTERFACE_OVERLAY || !(w->flags & WORK_EXTERNAL);
	struct conntrack_entry *other = bpf_map_lookup_elem(&flows, &w->reply);
	return !other || !(other->flags & CT_NAT) || other->state == CT_CLOSING;
}

#endif
