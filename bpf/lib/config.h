/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Configuration that is fixed when the programs are loaded. It is read-only data the verifier knows the values of, so a
 * branch that is off costs nothing, and may call what this kernel does not have.
 */
#ifndef LIB_CONFIG_H
#define LIB_CONFIG_H

#include "kernel.h"

#define CONFIG(type, name) const volatile type name SEC(".rodata")

#define SECOND 1000000000ull

/* After how many nanoseconds without a packet a flow is over. */
CONFIG(__u64, timeout_tcp_opening) = 60 * SECOND;
CONFIG(__u64, timeout_tcp_established) = 3600 * SECOND;
/* Linux remembers for a minute at its ends what it has closed, and its clocks for that are not exact. */
CONFIG(__u64, timeout_tcp_closing) = 66 * SECOND;
CONFIG(__u64, timeout_udp) = 120 * SECOND;
CONFIG(__u64, timeout_icmp) = 10 * SECOND;
CONFIG(__u64, timeout_other) = 600 * SECOND;
CONFIG(__u64, timeout_fragment) = 30 * SECOND;
/* First fragments of one pod in a second. A quarter of `fragments`, so that one pod alone evicts no entry that is younger than four seconds. */
CONFIG(__u32, fragments_per_second) = 16384;
/* Whether the kernel can put a packet straight into a pod (5.10), and send one on that still needs a neighbour (5.10). */
CONFIG(__u8, has_redirect_peer) = 1;
CONFIG(__u8, has_redirect_neigh) = 1;
/* Whether programs can ask the kernel's connection tracking (5.18, and only where it is no module); else `old_flows` is asked. */
CONFIG(__u8, has_ct_lookup) = 0;
/* Where in the kernel's record of a flow these are. */
CONFIG(__u32, ct_tuples_offset) = 0;
CONFIG(__u32, ct_mark_offset) = 0;
CONFIG(__u32, ct_tcp_state_offset) = 0;
/* Number of the overlay's network. */
CONFIG(__u32, vxlan_vni) = 4096;
/* The network namespace whose sockets are translated when they connect; 0 is the machine's first one. */
CONFIG(__u64, netns_cookie) = 0;
/* UDP port of the overlay, which nodes always accept from each other. */
CONFIG(__u16, vxlan_port) = 4789;
/* Whether the sender of a new flow that an uplink brings must be one that the node has a route to, or has it by that uplink. */
#define REVERSE_PATH_LOOSE 1
#define REVERSE_PATH_STRICT 2
CONFIG(__u8, reverse_path) = REVERSE_PATH_LOOSE;
/* Whether connected UDP sockets of the node are given a backend too, as those of TCP are. */
CONFIG(__u8, connects_udp) = 1;

#endif
