/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* nf_conntrack entries that the agent imported, for programs that cannot look them up. */
#ifndef LIB_NF_IMPORT_H
#define LIB_NF_IMPORT_H

#include "config.h"
#include "maps.h"

/* The kernel remembers datagrams for half a minute at least. A little less: what is left to it, it must still have. */
#define NF_IMPORT_KEPT (28 * SECOND)

/* `used`: the packet that asks goes on in it, and so the kernel will keep it. */
INLINE struct nf_conntrack_entry *find_imported(const struct five_tuple *key, int used)
{
	struct nf_conntrack_entry *old = bpf_map_lookup_elem(&old_flows, key);
	__u64 now = bpf_ktime_get_ns();
	if (!old || now > old->until)
		return 0;
	if (used && old->until < now + NF_IMPORT_KEPT)
		old->until = now + NF_IMPORT_KEPT;
	return old;
}

#endif
