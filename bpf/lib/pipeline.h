/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * From a parsed packet to its verdict, the same at every hook; `hook` is a constant in each program, so only its part remains.
 *
 * At a hook where packets arrive the policy of that interface decides (stage in), and, when the packet goes straight into a pod,
 * that pod's too (stage out). At a hook where they leave, the policy of that interface decides (stage out).
 */
#ifndef LIB_PIPELINE_H
#define LIB_PIPELINE_H

#include "new_flow.h"
#include "icmp_error.h"
#include "neighbour.h"

INLINE int arrives(enum hook hook)
{
	return hook == HOOK_FROM_WORKLOAD || hook == HOOK_FROM_HOST;
}

INLINE int at_workload(enum hook hook)
{
	return hook == HOOK_FROM_WORKLOAD || hook == HOOK_TO_WORKLOAD;
}

INLINE int has_policy(const struct interface *interface)
{
	return interface->kind == INTERFACE_WORKLOAD || interface->policy_in || interface->policy_out;
}

/* Which of an interface's two policies applies to the connection: the packet's own direction, or, for a reply, the other. */
INLINE __u32 slot_of(const struct interface *interface, int arriving, const struct work *w)
{
	int reply = (w->flags & WORK_REPLY) != 0;
	return arriving != reply ? interface->policy_in : interface->policy_out;
}

INLINE enum reason policy_drop(enum hook hook, const struct work *w)
{
	int out = w->stage == STAGE_OUT;
	if (!at_workload(hook) && !(out && arrives(hook)))
		return DROP_POLICY_HOST;
	int egress = (w->flags & WORK_REPLY) ? out : !out;
	return egress ? DROP_POLICY_WORKLOAD_EGRESS : DROP_POLICY_WORKLOAD_INGRESS;
}

/* The overlay's own packets, between this node and others of the cluster. */
INLINE int is_overlay_packet(struct work *w, enum hook hook)
{
	if (!is_overlay_port(&w->packet))
		return 0;
	return route_kind_of(w, arrives(hook) ? &w->packet.src : &w->packet.dst) == ROUTE_REMOTE_HOST;
}

/*
 * Whether the packet is translated at this hook. What goes past the stack is where it arrives, in both directions. What goes through the stack is
 * where its flow's first packet arrived, and its answers where they leave by there, so that the stack sees one flow.
 */
INLINE int translates(const struct work *w, enum hook hook)
{
	if (!(w->flags & WORK_NAT))
		return 0;
	if (w->path != PATH_STACK)
		return arrives(hook) || (w->flags & WORK_HOST_NAT);
	int reply = (w->flags & WORK_REPLY) != 0;
	return arrives(hook) != reply;
}

/* The packet goes on, for this reason. */
INLINE int send_on(struct __sk_buff *skb, struct work *w, enum hook hook, enum reason reason, const struct interface *pod)
{
	int here = arrives(hook) || (hook == HOOK_TO_HOST && (w->flags & WORK_HOST_NAT));
	/* What comes to the node and is for others was translated by one of them. */
	int translated = (w->flags & WORK_NAT) || (hook == HOOK_FROM_HOST && w->path == PATH_ROUTE);
	if (RARE(here && (w->path == PATH_OVERLAY || (w->path != PATH_STACK && translated))))
		return forward_translated(skb, w, hook, reason, pod);
	if (RARE(translates(w, hook) && rewrite(skb, w)))
		return drop(w, hook, DROP_NAT_FAILED);
	if (!arrives(hook)) {
		count(w->frame, hook, reason);
		return NEXT;
	}
	if (RARE(w->flags & WORK_MASQUERADE))
		skb->mark = (skb->mark & ~MARK_MASK) | MARK_MASQUERADE;
	return forward(skb, w, hook, reason, pod);
}

/*
 * The first packet of a connection that policy allows. A pod has a share of the table: what it opens beyond that is dropped, so that no other
 * pod's entry is evicted for it.
 */
INLINE enum reason track(struct work *w, enum hook hook)
{
	struct workload_share *share = hook == HOOK_FROM_WORKLOAD && !(w->flags & WORK_REPLY) ? share_of(w->ifindex) : 0;
	if (share && share->entries >= share->limit)
		return DROP_WORKLOAD_LIMIT;
	return create_entries(w, share, !arrives(hook), bpf_ktime_get_ns()) ? DROP_FLOWS_FULL : REASON_NONE;
}

INLINE int finish(struct __sk_buff *skb, struct work *w, enum hook hook, enum reason reason)
{
	enum reason bad = REASON_NONE;
	if (w->flags & WORK_KNOWN)
		approve_entries(w, !arrives(hook));
	else if (!(w->flags & WORK_UNTRACKED))
		bad = track(w, hook);
	if (bad)
		return drop(w, hook, bad);
	emit_event(w, hook, reason);
	if (w->interval)
		remember_traces(w);
	return send_on(skb, w, hook, reason, 0);
}

INLINE __u32 step_of(enum hook hook)
{
	return hook == HOOK_FROM_WORKLOAD ? STEP_FROM_WORKLOAD
		: hook == HOOK_TO_WORKLOAD ? STEP_TO_WORKLOAD
		: hook == HOOK_FROM_HOST   ? STEP_FROM_HOST
					   : STEP_TO_HOST;
}

/* Goes on as if a policy program had allowed it, for this reason. Returns only where that step is missing. */
INLINE void allow(struct __sk_buff *skb, struct work *w, enum reason reason)
{
	w->stage = STAGE_OUT;
	w->verdict = VERDICT_ALLOW;
	w->pass_reason = reason;
	bpf_tail_call(skb, &steps, w->step);
}

/*
 * Whether a pod reaches itself: no policy forbids that. It is decided by interfaces alone, whose addresses come from IPAM, so a source that another
 * pod or machine forges makes nothing its own. Through the stack it may come back as the node: then the interface it came by says so.
 */
INLINE int is_to_itself(const struct work *w, enum hook hook)
{
	if (hook == HOOK_TO_WORKLOAD)
		return w->from == w->ifindex;
	return is_behind(&w->policy_tuple.src, w->ifindex) && is_behind(&w->policy_tuple.dst, w->ifindex);
}

/* The policy of one interface is asked next. A trace begins with its direction, so that one without rules is one too. */
INLINE void begin_stage(struct work *w, enum hook hook, enum stage stage)
{
	int egress = (hook == HOOK_FROM_WORKLOAD && stage == STAGE_IN) || hook == HOOK_TO_HOST;
	int reply = (w->flags & WORK_REPLY) != 0;
	w->stage = stage;
	w->direction = egress != reply ? TRACE_EGRESS : TRACE_INGRESS;
	w->trace = w->direction;
}

/* Evaluates the policies of this hook for `w->policy_tuple`, and continues at the hook's step: returns only to drop. */
INLINE int run_policy(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface)
{
	w->out_slot = 0;
	w->pass_reason = PASS_POLICY;
	if (arrives(hook) && w->path == PATH_LOCAL) {
		struct interface *out = bpf_map_lookup_elem(&interfaces, &w->out);
		if (!out)
			return drop(w, hook, DROP_INTERFACE_NOT_READY);
		w->epoch_out = out->epoch;
		w->out_slot = slot_of(out, 0, w);
		if (!w->out_slot)
			return drop(w, hook, DROP_POLICY_MISSING);
	}
	__u32 slot = slot_of(interface, arrives(hook), w);
	if (arrives(hook))
		w->epoch_in = interface->epoch;
	else
		w->epoch_out = interface->epoch;
	w->step = step_of(hook);
	/* A node always reaches its own pods: the orchestrator asks them for their health. */
	if (at_workload(hook) && (w->flags & WORK_FROM_HOST)) {
		allow(skb, w, PASS_FROM_HOST);
		return drop(w, hook, DROP_POLICY_MISSING);
	}
	if (at_workload(hook) && is_to_itself(w, hook)) {
		allow(skb, w, PASS_ITSELF);
		return drop(w, hook, DROP_POLICY_MISSING);
	}
	if (slot) {
		begin_stage(w, hook, arrives(hook) ? STAGE_IN : STAGE_OUT);
		bpf_tail_call(skb, &policies, slot);
	}
	if (at_workload(hook))
		return drop(w, hook, DROP_POLICY_MISSING);
	/* No program on a host's interface: its packets pass, but a pod's own policy still applies to what goes into it. */
	if (w->out_slot) {
		begin_stage(w, hook, STAGE_OUT);
		bpf_tail_call(skb, &policies, w->out_slot);
	} else {
		allow(skb, w, PASS_NO_POLICY);
	}
	return drop(w, hook, DROP_POLICY_MISSING);
}

/* A flow of the kernel's gets entries too: the kernel forgets it when its packets end here. */
INLINE void revoke(struct work *w, enum hook hook)
{
	if (w->flags & WORK_UNTRACKED)
		return;
	if ((w->flags & (WORK_KNOWN | WORK_NF_CONNTRACK)) == WORK_NF_CONNTRACK) {
		w->epoch_in = 0;
		w->epoch_out = 0;
		create_entries(w, 0, !arrives(hook), bpf_ktime_get_ns());
	}
	deny_entries(w);
}

/* Where a policy program comes back to. */
INLINE int after_policy(struct __sk_buff *skb, enum hook hook)
{
	struct work *w = work_of_cpu();
	if (!w)
		return DROP;
	if (w->verdict != VERDICT_ALLOW) {
		revoke(w, hook);
		return drop(w, hook, policy_drop(hook, w));
	}
	if (arrives(hook) && w->stage == STAGE_IN && w->path == PATH_LOCAL && w->out_slot) {
		w->trace_in = w->trace;
		w->direction_in = w->direction;
		w->rules_in = w->rules_hit;
		w->verdict = VERDICT_NONE;
		w->entry = 0;
		begin_stage(w, hook, STAGE_OUT);
		bpf_tail_call(skb, &policies, w->out_slot);
		return drop(w, hook, DROP_POLICY_MISSING);
	}
	return finish(skb, w, hook, w->pass_reason);
}

/* Whether the policies of this hook's interfaces are unchanged since they allowed the connection. Returns the pod it looked up. */
INLINE int is_approved(const struct conntrack_entry *entry, enum hook hook, const struct interface *interface, struct interface **pod)
{
	if (has_policy(interface) && (arrives(hook) ? entry->approved_in : entry->approved_out) != interface->epoch)
		return 0;
	if (!arrives(hook) || entry->path != PATH_LOCAL)
		return 1;
	__u32 ifindex = entry->out;
	*pod = bpf_map_lookup_elem(&interfaces, &ifindex);
	return *pod && (*pod)->epoch == entry->approved_out;
}

/* The error's flow is one policy approves of now: it goes that flow's way. Otherwise it is a packet like any other. */
INLINE enum reason related_verdict(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface, struct interface **pod)
{
	struct five_tuple *key = &w->scratch.error;
	__u32 inner = tuple_of_error(skb, w, key);
	if (!inner)
		return REASON_NONE;
	struct conntrack_entry *entry = bpf_map_lookup_elem(&flows, key);
	if (!entry || !is_approved(entry, hook, interface, pod))
		return REASON_NONE;
	apply_entry(w, entry);
	if (!translates(w, hook))
		copy_tuple(&w->to, &w->packet);
	else if (rewrite_error(skb, w, key, &entry->to, inner))
		return DROP_NAT_FAILED;
	/* It is translated: from here it only has to go that flow's way. */
	w->flags &= ~WORK_NAT;
	return PASS_RELATED;
}

/* A flow that policy must look at again: the question is about the flow as it was opened, whichever way this packet goes. */
INLINE void rerun_policy(struct work *w, const struct conntrack_entry *entry)
{
	int reply = (entry->flags & CT_REPLY) != 0;
	w->flags |= (entry->flags & CT_FROM_HOST ? WORK_FROM_HOST : 0) | (entry->flags & CT_TO_HOST ? WORK_TO_HOST : 0);
	if (reply)
		set_policy_tuple(w, &w->reply);
	/* The kernel translates it, and the result was looked up when it began. */
	if (!(entry->flags & CT_NAT) && entry->to.protocol)
		set_policy_destination(w, &entry->to.dst, entry->to.dport);
	else if (reply)
		set_policy_destination(w, &w->packet.src, w->packet.sport);
	else
		set_policy_destination(w, &w->to.dst, w->to.dport);
	if (!reply)
		return;
	/* The flow was opened by an echo request, not by this reply. */
	if (is_icmp(w->policy_tuple.protocol))
		w->icmp_type = w->ip_version == 4 ? ICMP_ECHO_REQUEST : ICMPV6_ECHO_REQUEST;
}

/* The first packet of a flow, where packets leave: it came through the stack, which knows best whether it answers another. */
INLINE enum reason new_flow_leaving(struct __sk_buff *skb, struct work *w, const struct interface *interface)
{
	if (w->mode == MODE_DRAIN)
		return PASS_DRAINING;
	copy_tuple(&w->to, &w->packet);
	w->path = PATH_STACK;
	w->reply_path = PATH_STACK;
	if (!w->from)
		w->flags |= WORK_FROM_HOST;
	if (w->flags & WORK_UNTRACKED)
		return REASON_NONE;
	/* That of another flow, which was passed over: it stays. */
	if (bpf_map_lookup_elem(&flows, &w->packet))
		w->flags |= WORK_UNTRACKED;
	struct conntrack_entry *other = bpf_map_lookup_elem(&flows, &w->reply);
	if (other && (other->flags & CT_NAT)) {
		/* Half of a translated flow, as it looks behind the translation: the entries are under what it looks like before. */
		w->flags |= WORK_UNTRACKED;
		if (other->flags & CT_REPLY)
			return REASON_NONE;
		if (other->approved_in == interface->epoch)
			return PASS_ESTABLISHED;
		w->flags |= WORK_REPLY;
		set_policy_tuple(w, &w->reply);
	} else if (!opens_tcp(w) && find_nf_conntrack(skb, w, &w->reply) && !w->scratch.kernel.reply) {
		w->flags |= WORK_REPLY | WORK_NF_CONNTRACK;
		set_policy_tuple(w, &w->reply);
		set_policy_destination(w, &w->scratch.kernel.dst, w->scratch.kernel.dport);
	} else if (may_be_migrating(w)) {
		return DROP_FLOWS_MOVING;
	}
	return REASON_NONE;
}

/* The first packet of a flow, where packets arrive. */
INLINE int new_flow(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface)
{
	int tracked = !(w->flags & WORK_UNTRACKED);
	enum reason bad = REASON_NONE;
	copy_tuple(&w->to, &w->packet);
	if (hook == HOOK_FROM_HOST && is_external(w))
		w->flags |= WORK_EXTERNAL;
	if (is_draining(w, hook, interface))
		return pass(w, hook, PASS_DRAINING);
	/* What the node itself was answered, or asks of itself, translated already. */
	if (tracked && hook == HOOK_FROM_HOST) {
		struct conntrack_entry *own = bpf_map_lookup_elem(&flows, &w->reply);
		if (own && (own->flags & (CT_NAT | CT_FROM_HOST)) == (CT_NAT | CT_FROM_HOST))
			return pass(w, hook, PASS_ESTABLISHED);
	}
	if (hook == HOOK_FROM_HOST && reverse_path && interface->kind == INTERFACE_HOST && has_no_way_back(skb, w))
		return drop(w, hook, DROP_REVERSE_PATH);
	struct frontend *frontend = tracked ? find_frontend(w, interface) : 0;
	if (!frontend) {
		choose_path(skb, w, hook, interface);
		if (tracked && w->path == PATH_STACK && is_loop(skb, w, hook, interface))
			return drop(w, hook, DROP_NO_LOCAL_BACKEND);
	}
	/* A new connection through the stack is only ours; any other packet may be a reply to, or part of, a connection that the kernel has. */
	if (tracked && (frontend || w->path != PATH_STACK || is_missing_port(w) || !opens_tcp(w)) && is_nf_conntrack_flow(skb, w)) {
		defer_to_nf_conntrack(w);
		if (is_for_host(skb, w))
			w->flags |= w->flags & WORK_REPLY ? WORK_FROM_HOST : WORK_TO_HOST;
	} else if (tracked && may_be_migrating(w)) {
		return drop(w, hook, DROP_FLOWS_MOVING);
	} else if (frontend) {
		if (w->packet.protocol == IPPROTO_TCP && !opens_tcp(w)) {
			if (has_ct_lookup)
				return reject(skb, w, hook, REJECT_UNKNOWN_FLOW);
			/* The kernel may know it though it was not imported; else the gate there resets it. */
			w->flags |= WORK_UNTRACKED;
			w->path = PATH_STACK;
		} else {
			bad = translate_service(skb, w, hook, interface, frontend);
			if (bad == REJECT_NO_BACKEND)
				return reject(skb, w, hook, bad);
		}
	} else if (tracked && is_missing_port(w)) {
		return reject(skb, w, hook, REJECT_NO_PORT);
	} else if (tracked && w->path != PATH_STACK) {
		bad = snat_on_collision(skb, w);
	}
	if (bad)
		return drop(w, hook, bad);
	if (w->path == PATH_STACK && !(w->flags & WORK_NF_CONNTRACK) && is_for_host(skb, w))
		w->flags |= WORK_TO_HOST;
	return run_policy(skb, w, hook, interface);
}

/* Whether the node itself connects to a service. TCP in the middle of a connection does not: its backend is unknown. */
INLINE int host_initiated_to_service(struct work *w, const struct interface *interface)
{
	if (w->from || interface->kind != INTERFACE_HOST || (w->packet.protocol == IPPROTO_TCP && !opens_tcp(w)))
		return 0;
	return find_frontend(w, interface) != 0 || is_missing_port(w);
}

/* The packet's flow is in the table, and what becomes of the packet with it; REASON_NONE: policy has to be asked. */
INLINE enum reason established_verdict(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface, struct interface **pod)
{
	__u64 now = bpf_ktime_get_ns();
	struct conntrack_entry *entry = find_entry(w, !arrives(hook), now);
	if (!entry)
		return REASON_NONE;
	/* Its ports may be another flow's since, which is on its way here. */
	if (RARE(entry->state == CT_CLOSING && may_be_migrating(w)))
		return DROP_FLOWS_MOVING;
	int draining = w->mode == MODE_DRAIN && entry->path != PATH_STACK;
	if (RARE(arrives(hook) && (draining || (entry->flags & CT_NF_CONNTRACK)))) {
		int found = find_nf_conntrack(skb, w, &w->packet);
		int given = draining && found && is_exported(w, entry);
		if (given || ((entry->flags & CT_NF_CONNTRACK) && !found && !entry->denied)) {
			end_connection(w, entry);
			return given ? PASS_GIVEN : REASON_NONE;
		}
	}
	refresh_entry(entry, w, now);
	apply_entry(w, entry);
	w->flags |= WORK_KNOWN;
	if (!RARE(!is_approved(entry, hook, interface, pod))) {
		count_packet(entry, w, !arrives(hook));
		return PASS_ESTABLISHED;
	}
	rerun_policy(w, entry);
	return REASON_NONE;
}

/* A parsed packet that policy applies to. */
INLINE int run_pipeline(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface)
{
	struct interface *pod = 0;
	enum reason reason = RARE(w->flags & WORK_ICMP_ERROR) ? related_verdict(skb, w, hook, interface, &pod) : REASON_NONE;
	if (!RARE(w->flags & WORK_UNTRACKED))
		reason = established_verdict(skb, w, hook, interface, &pod);
	if (RARE(!reason && !(w->flags & WORK_KNOWN))) {
		if (arrives(hook)) {
			bpf_tail_call(skb, &steps, hook == HOOK_FROM_WORKLOAD ? STEP_NEW_FLOW_WORKLOAD : STEP_NEW_FLOW_HOST);
			return drop(w, hook, DROP_POLICY_MISSING);
		}
		reason = new_flow_leaving(skb, w, interface);
		if (!reason && hook == HOOK_TO_HOST && host_initiated_to_service(w, interface))
			bpf_tail_call(skb, &steps, STEP_NEW_FLOW_LOCAL);
	}
	if (RARE(reason >= FIRST_DROP))
		return drop(w, hook, reason);
	if (RARE(reason == PASS_GIVEN || reason == PASS_DRAINING))
		return pass(w, hook, reason);
	if (!RARE(!reason))
		return send_on(skb, w, hook, reason, pod);
	return run_policy(skb, w, hook, interface);
}

/* A packet of the node itself for a service, where it leaves: its socket was not translated, and no router outside knows the address. */
INLINE int new_flow_from_host(struct __sk_buff *skb)
{
	struct work *w = work_of_cpu();
	if (!w)
		return DROP;
	__u32 ifindex = w->ifindex;
	struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	if (!interface)
		return pass(w, HOOK_TO_HOST, PASS_NOT_OURS);
	struct frontend *frontend = find_frontend(w, interface);
	w->service = frontend ? frontend->service : 0;
	enum reason bad = frontend ? choose_backend(w, frontend, 1, 0) : REJECT_NO_PORT;
	w->flags |= WORK_NAT | WORK_HOST_NAT;
	if (bad == REJECT_NO_BACKEND || !frontend)
		return reject(skb, w, HOOK_TO_HOST, bad);
	choose_host_path(w);
	if (!bad && !find_free_port(skb, w, w->path != PATH_HOST))
		bad = DROP_NO_FREE_PORT;
	if (bad)
		return drop(w, HOOK_TO_HOST, bad);
	set_policy_destination(w, &w->to.dst, w->to.dport);
	return run_policy(skb, w, HOOK_TO_HOST, interface);
}

INLINE int new_flow_step(struct __sk_buff *skb, enum hook hook)
{
	struct work *w = work_of_cpu();
	if (!w)
		return DROP;
	__u32 ifindex = w->ifindex;
	struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	if (!interface)
		return drop(w, hook, DROP_INTERFACE_NOT_READY);
	return new_flow(skb, w, hook, interface);
}

#endif
