/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Flows of the kernel that the agent told of, for programs that cannot ask for them. */
#ifndef LIB_OLD_FLOW_H
#define LIB_OLD_FLOW_H

#include "config.h"
#include "maps.h"

/* The kernel remembers datagrams for half a minute at least. A little less: what is left to it, it must still have. */
#define OLD_FLOW_KEPT (28 * SECOND)

/* `used`: the packet that asks goes on in it, and so the kernel will keep it. */
INLINE struct old_flow *find_old_flow(const struct flow_key *key, int used)
{
	struct old_flow *old = bpf_map_lookup_elem(&old_flows, key);
	__u64 now = bpf_ktime_get_ns();
	if (!old || now > old->until)
		return 0;
	if (used && old->until < now + OLD_FLOW_KEPT)
		old->until = now + OLD_FLOW_KEPT;
	return old;
}

#endif
