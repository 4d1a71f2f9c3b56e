/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * From a parsed packet to its verdict, the same at every hook; `hook` is a constant in each program, so only its part remains.
 *
 * At a hook where packets arrive the policy of that interface decides (stage in), and, when the packet goes straight into a pod,
 * that pod's too (stage out). At a hook where they leave, the policy of that interface decides (stage out).
 */
#ifndef LIB_JUDGE_H
#define LIB_JUDGE_H

#include "flows.h"
#include "icmp_error.h"
#include "neighbour.h"
#include "forward.h"

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
	return interface->kind == INTERFACE_WORKLOAD || interface->arrive || interface->leave;
}

/* Which of an interface's two policies judges the flow: the packet's own direction, or, for a reply, the other. */
INLINE __u32 slot_of(const struct interface *interface, int arriving, const struct work *w)
{
	int reply = (w->flags & WORK_REPLY) != 0;
	return arriving != reply ? interface->arrive : interface->leave;
}

INLINE enum reason policy_drop(enum hook hook, const struct work *w)
{
	int out = w->stage == STAGE_OUT;
	if (!at_workload(hook) && !(out && arrives(hook)))
		return DROP_POLICY_HOST;
	int egress = (w->flags & WORK_REPLY) ? out : !out;
	return egress ? DROP_POLICY_WORKLOAD_EGRESS : DROP_POLICY_WORKLOAD_INGRESS;
}

INLINE __u32 route_kind_of(struct work *w, const struct ip_address *address)
{
	struct route_key *key = &w->scratch.route_key;
	key->prefix_length = 128;
	key->address = *address;
	struct route *route = bpf_map_lookup_elem(&routes, key);
	return route ? route->kind : 0;
}

/* Where the first packet of a flow goes on, and how the answers will. Only flows between pods of the cluster pass the stack by. */
INLINE void choose_path(struct work *w, enum hook hook)
{
	w->path = PATH_STACK;
	w->reply_path = PATH_STACK;
	if (!arrives(hook))
		return;
	struct workload *workload = bpf_map_lookup_elem(&workloads, &w->packet.dst);
	if (workload && workload->ifindex != w->ifindex) {
		w->path = PATH_LOCAL;
		w->out = workload->ifindex;
		w->reply_path = hook == HOOK_FROM_WORKLOAD ? PATH_LOCAL : PATH_ROUTE;
		return;
	}
	if (hook != HOOK_FROM_WORKLOAD || workload)
		return;
	if (route_kind_of(w, &w->packet.dst) != ROUTE_REMOTE_WORKLOAD)
		return;
	w->path = PATH_ROUTE;
	w->reply_path = PATH_LOCAL;
}

/* The overlay's own packets, between this node and others of the cluster. */
INLINE int is_overlay_packet(struct work *w, enum hook hook)
{
	if (w->packet.protocol != IPPROTO_UDP || w->packet.dport != vxlan_port)
		return 0;
	return route_kind_of(w, arrives(hook) ? &w->packet.src : &w->packet.dst) == ROUTE_REMOTE_HOST;
}

INLINE int finish(struct __sk_buff *skb, struct work *w, enum hook hook, enum reason reason)
{
	__u32 length = w->frame;
	if (w->flags & WORK_KNOWN)
		approve_known(w);
	else if (!(w->flags & WORK_UNTRACKED))
		open_flow(w, w->ifindex, length, bpf_ktime_get_ns());
	count(length, hook, reason);
	tell(w, hook, reason);
	return arrives(hook) ? forward(skb, w, w->path, w->out, 0) : NEXT;
}

/* Runs the policy of stage out, if there is one to run here. Returns only when there is none. */
INLINE int judge_out(struct __sk_buff *skb, struct work *w, enum hook hook)
{
	if (w->path != PATH_LOCAL || !w->out_slot)
		return finish(skb, w, hook, PASS_POLICY);
	w->stage = STAGE_OUT;
	w->verdict = VERDICT_NONE;
	w->entry = 0;
	bpf_tail_call(skb, &policies, w->out_slot);
	return drop(w, hook, DROP_POLICY_MISSING);
}

/* Asks the policies of this hook about `w->judged`. Does not return where there is a policy program: that goes on at the hook's step. */
INLINE int judge(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface)
{
	w->out_slot = 0;
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
	w->step = hook == HOOK_FROM_WORKLOAD ? STEP_FROM_WORKLOAD
		: hook == HOOK_TO_WORKLOAD   ? STEP_TO_WORKLOAD
		: hook == HOOK_FROM_HOST     ? STEP_FROM_HOST
					     : STEP_TO_HOST;
	/* A node always reaches its own pods: the orchestrator asks them for their health. */
	if (at_workload(hook) && (w->flags & WORK_FROM_HOST))
		return finish(skb, w, hook, PASS_FROM_HOST);
	if (slot) {
		w->stage = arrives(hook) ? STAGE_IN : STAGE_OUT;
		bpf_tail_call(skb, &policies, slot);
	}
	if (at_workload(hook))
		return drop(w, hook, DROP_POLICY_MISSING);
	/* No program on a host's interface: its packets pass, but a pod's own policy still judges what goes into it. */
	if (w->out_slot)
		return judge_out(skb, w, hook);
	return finish(skb, w, hook, PASS_NO_POLICY);
}

/* Where a policy program comes back to. */
INLINE int after_policy(struct __sk_buff *skb, enum hook hook)
{
	struct work *w = work_of_cpu();
	if (!w)
		return DROP;
	if (w->verdict != VERDICT_ALLOW) {
		if (w->flags & WORK_KNOWN)
			forget(w);
		return drop(w, hook, policy_drop(hook, w));
	}
	if (arrives(hook) && w->stage == STAGE_IN)
		return judge_out(skb, w, hook);
	return finish(skb, w, hook, PASS_POLICY);
}

/* Whether what policy said when the flow was last judged is what it says now, at the interfaces of this hook. Tells the pod it looked up. */
INLINE int is_approved(const struct flow *flow, enum hook hook, const struct interface *interface, struct interface **pod)
{
	if (has_policy(interface) && (arrives(hook) ? flow->approved_in : flow->approved_out) != interface->epoch)
		return 0;
	if (!arrives(hook) || flow->path != PATH_LOCAL)
		return 1;
	__u32 ifindex = flow->out;
	*pod = bpf_map_lookup_elem(&interfaces, &ifindex);
	return *pod && (*pod)->epoch == flow->approved_out;
}

/* The error's flow is one policy approves of now: it goes that flow's way. Otherwise it is a packet like any other. */
INLINE int related(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface, int *verdict)
{
	struct flow_key *key = &w->scratch.error;
	if (!flow_of_error(skb, w, key))
		return 0;
	struct flow *flow = bpf_map_lookup_elem(&flows, key);
	struct interface *pod = 0;
	if (!flow || !is_approved(flow, hook, interface, &pod))
		return 0;
	count(w->frame, hook, PASS_RELATED);
	*verdict = arrives(hook) ? forward(skb, w, flow->path, flow->out, pod) : NEXT;
	return 1;
}

/* A flow that policy must look at again: the question is about the flow as it was opened, whichever way this packet goes. */
INLINE void judge_again(struct work *w, const struct flow *flow)
{
	w->flags |= WORK_KNOWN;
	w->path = flow->path;
	w->out = flow->out;
	w->flags |= (flow->flags & FLOW_FROM_HOST ? WORK_FROM_HOST : 0) | (flow->flags & FLOW_TO_HOST ? WORK_TO_HOST : 0);
	if (!(flow->flags & FLOW_REPLY))
		return;
	w->flags |= WORK_REPLY;
	ask_about(w, &w->reply);
	/* The flow was opened by an echo request, not by this reply. */
	if (is_icmp(w->judged.protocol))
		w->icmp_type = w->ip_version == 4 ? ICMP_ECHO_REQUEST : ICMPV6_ECHO_REQUEST;
}

/* A parsed packet that is ours to judge. */
INLINE int decide(struct __sk_buff *skb, struct work *w, enum hook hook, const struct interface *interface)
{
	int verdict;
	if ((w->flags & WORK_ICMP_ERROR) && related(skb, w, hook, interface, &verdict))
		return verdict;
	if (!(w->flags & WORK_UNTRACKED)) {
		__u64 now = bpf_ktime_get_ns();
		struct flow *flow = find_flow(w, now);
		if (flow) {
			__u32 path = flow->path, out = flow->out;
			struct interface *pod = 0;
			refresh(flow, w, w->frame, now);
			if (is_approved(flow, hook, interface, &pod)) {
				count(w->frame, hook, PASS_ESTABLISHED);
				return arrives(hook) ? forward(skb, w, path, out, pod) : NEXT;
			}
			judge_again(w, flow);
			return judge(skb, w, hook, interface);
		}
	}
	choose_path(w, hook);
	if (arrives(hook)) {
		if (w->path == PATH_STACK && is_for_host(skb, w))
			w->flags |= WORK_TO_HOST;
	} else if (!w->from) {
		w->flags |= WORK_FROM_HOST;
	}
	return judge(skb, w, hook, interface);
}

#endif
