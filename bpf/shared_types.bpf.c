// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Names every type the agent has a codec for. The compiler leaves out of an object's types what nothing refers to, and
 * enumerations are such; so this file is compiled for its types alone, and never loaded.
 */
#include "lib/types.h"
#include "lib/config.h"

#define EXPORT(type, name) type export_##name

EXPORT(struct five_tuple, five_tuple);
EXPORT(struct conntrack_entry, entry);
EXPORT(struct workload_share, workload_share);
EXPORT(struct interface, interface);
EXPORT(struct workload, workload);
EXPORT(struct route_key, route_key);
EXPORT(struct route, route);
EXPORT(struct set_key, set_key);
EXPORT(struct set_member, set_member);
EXPORT(struct counter, counter);
EXPORT(struct work, work);
EXPORT(struct event, event);
EXPORT(struct sum_key, sum_key);
EXPORT(struct sum, sum);
EXPORT(struct telling, telling);
EXPORT(struct trace, trace);
EXPORT(enum told, told);
EXPORT(enum sum_flag, sum_flag);
EXPORT(enum trace_direction, trace_direction);
EXPORT(struct frontend_key, frontend_key);
EXPORT(struct frontend, frontend);
EXPORT(struct cluster_address, cluster_address);
EXPORT(struct backend_key, backend_key);
EXPORT(struct backend, backend);
EXPORT(struct affinity_key, affinity_key);
EXPORT(struct affinity, affinity);
EXPORT(struct source_range_key, source_range_key);
EXPORT(struct source_range, source_range);
EXPORT(struct socket_key, socket_key);
EXPORT(struct socket_peer, socket_peer);
EXPORT(enum socket_flag, socket_flag);
EXPORT(struct nf_conntrack_entry, nf_conntrack_entry);
EXPORT(enum frontend_flag, frontend_flag);
EXPORT(enum backend_flag, backend_flag);
EXPORT(enum route_flag, route_flag);
EXPORT(enum mark, mark);
EXPORT(enum conntrack_state, conntrack_state);
EXPORT(enum forward_path, forward_path);
EXPORT(enum conntrack_flag, conntrack_flag);
EXPORT(enum interface_kind, interface_kind);
EXPORT(enum route_kind, route_kind);
EXPORT(enum node_field, node_field);
EXPORT(enum node_mode, node_mode);
EXPORT(enum hook, hook);
EXPORT(enum reason, reason);
EXPORT(enum verdict, verdict);
EXPORT(enum step, step);
EXPORT(enum work_flag, work_flag);
