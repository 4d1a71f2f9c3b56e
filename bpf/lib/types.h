/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Everything the programs share with each other and with the agent. This file is the one source: the agent's codecs
 * are generated from it (npm run generate), by way of the types the compiler writes into the objects.
 */
#ifndef LIB_TYPES_H
#define LIB_TYPES_H

#include "kernel.h"

/* Both families in one type, in network order: an IPv4 address is ::ffff:a.b.c.d. */
struct ip_address {
	__be32 word[4];
};

/*
 * A packet's addresses and ports as they are at the hook; a reply has them exchanged. Ports are in host order. An ICMP
 * echo request has its id as source port and an echo reply as destination port, so that one is the other's reply and
 * neither is the other. Protocols whose ports we do not read have zeros.
 */
struct five_tuple {
	struct ip_address src;
	struct ip_address dst;
	__u16 sport;
	__u16 dport;
	__u8 protocol;
	__u8 pad[3];
};

enum conntrack_state {
	CT_OPENING = 0,     /* seen in one direction only */
	CT_ESTABLISHED = 1, /* answered */
	CT_CLOSING = 2,     /* TCP: FIN both ways, or RST */
};

/* How packets of a flow go on from a hook where they arrive. */
enum forward_path {
	PATH_STACK = 0, /* the kernel routes them: both directions then, its connection tracking must see both */
	PATH_LOCAL = 1, /* into the pod behind `out` */
	PATH_ROUTE = 2, /* where the kernel's routes say, without passing its hooks */
	PATH_HOST = 4,    /* to this node, as if it had come by `out` */
	PATH_OVERLAY = 3, /* through the overlay's device to the node whose VTEP has `mac` */
};

enum conntrack_flag {
	CT_REPLY = 1,     /* this entry is the answering direction */
	CT_FROM_HOST = 2, /* the flow was opened by this node itself */
	CT_TO_HOST = 4,   /* the flow was opened to this node itself */
	CT_FIN = 8,       /* TCP: FIN seen in this direction */
	CT_NAT = 16,      /* packets become `to` */
	CT_MASQUERADE = 32,     /* the kernel shall masquerade its packets: they get MARK_MASQUERADE */
	CT_DSR = 64,   /* answers do not come by here: the backend's node sends them straight to the client */
	CT_NF_CONNTRACK = 128,  /* the kernel's connection tracking had it before us; ends when it is gone there */
};

/* One direction of a tracked flow; its key is the packet's. A flow is two entries. */
struct conntrack_entry {
	__u64 last_seen; /* ns since boot */
	__u64 packets;
	__u64 bytes;
	/* Epochs of the interfaces the packets arrive and leave by when policy approved them there; 0 is never. */
	__u32 approved_in;
	__u32 approved_out;
	__u32 out; /* interface of the pod, for PATH_LOCAL */
	__u8 state;
	__u8 path;
	__u8 flags;
	__u8 denied; /* 1: policy allowed the flow and denies it now. Stays until policy allows it again, or nobody sends any more */
	/*
	 * With CT_NAT: what the packet becomes. The flow's other entry is under its reverse, and says how answers are turned back. Without: what
	 * policy was asked about, which is what others make of it.
	 */
	struct five_tuple to;
	__u32 service; /* number of the service that was asked; 0 is none */
	__u8 mac[6];   /* for PATH_OVERLAY: where in the overlay */
	/* Flow logs. Only what tells writes the first, and only what counts the second: neither may undo the other's. */
	__u8 told; /* enum told */
	__u8 counted_arriving; /* 1: packets are counted where they arrive, and not once more where they leave */
	__u32 pad2;
	/* What the sums have of `packets` and `bytes`, and what policy was asked where the flow arrives at the node and where it leaves: see `struct trace`. */
	__u64 told_packets;
	__u64 told_bytes;
	__u64 trace_in;
	__u64 trace_out;
};

/* Of a connection; its opening direction's entry knows. */
enum told {
	TOLD_STARTED = 1,
	TOLD_ENDED = 2,
};

/*
 * What a pod uses of the tables that all pods of the node share; the key is its interface. A connection is charged to the pod that opened it, and to
 * no pod when it was opened elsewhere. The agent counts the entries again whenever it expires them, so that no error stays. Signed: an entry that was
 * never counted may end.
 */
struct workload_share {
	__s32 entries; /* in `flows`; most connections have two */
	__s32 limit;
	__u64 fragment_second;
	__u32 fragments; /* first fragments in that second */
	__u32 pad;
};

/*
 * Who answers for an address and port. A node port has the address 0.0.0.0 (as IPv4: ::ffff:0.0.0.0) or ::, which is every address
 * of this node. Ports are in host order.
 */
struct frontend_key {
	struct ip_address address;
	__u16 port;
	__u8 protocol;
	__u8 pad;
};

enum frontend_flag {
	FRONTEND_EXTERNAL = 1,       /* no cluster address */
	FRONTEND_EXTERNAL_LOCAL = 2, /* clients outside of this node get backends of this node only */
	FRONTEND_INTERNAL_LOCAL = 4, /* the cluster IP: all clients get backends of this node only */
	FRONTEND_SOURCE_RANGES = 8,  /* only for clients in `source_ranges` */
	FRONTEND_ANY = 16,           /* there are endpoints somewhere: having none to choose is a drop, not a refusal */
	FRONTEND_NODE_PORT = 32,
};

/*
 * A list is never changed: a changed one gets a new number, then the frontends that number, and the old one goes after a grace. The local
 * list is there always, also where no policy asks for it: it then holds those of the cluster list that are on this node, for which
 * other nodes send us clients that we answer ourselves.
 */
struct frontend {
	__u32 service; /* stable while the service is there; never 0 */
	__u32 flags;
	__u32 affinity; /* seconds; 0 is none */
	__u32 cluster_list;
	__u32 cluster_count;
	__u32 local_list;
	__u32 local_count;
};

struct cluster_address {
	__u32 ports; /* how many the service has there */
};

struct backend_key {
	__u32 list;
	__u32 index;
};

enum backend_flag {
	BACKEND_LOCAL = 1, /* on this node */
};

struct backend {
	struct ip_address address;
	__u16 port;
	__u16 flags;
	__u32 pad;
};

/* Which backend a client had last. `local`: chosen from the local list. The agent removes those whose backend is gone. */
struct affinity_key {
	struct ip_address client;
	__u32 service;
	__u32 local;
};

struct affinity {
	struct ip_address address;
	__u16 port;
	__u16 pad;
	__u32 pad2;
	__u64 last_used; /* ns since boot */
};

/*
 * The prefix covers the service's number and then as much of the address as the range has; IPv4 has 96 bits before its own. Ranges of service
 * 0, which is none, are of clients that are never answered straight.
 */
struct source_range_key {
	__u32 prefix_length;
	__u32 service;
	struct ip_address address;
};

struct source_range {
	__u32 present;
};

/*
 * An address as one socket of this node knows it. Cookies are never given twice, so nothing here can mean another socket.
 */
struct socket_key {
	__u64 cookie;
	struct ip_address address;
	__u16 port;
	__u16 pad;
	__u32 pad2;
};

enum socket_flag {
	SOCKET_CONNECTED = 1,
};

/* What it stands for: a service's address for the backend that was chosen, a backend's for the service that was asked. */
struct socket_peer {
	struct ip_address address;
	__u16 port;
	__u8 protocol;
	__u8 flags;
	__u32 service;
	__u64 last_used; /* ns since boot */
};

/*
 * An nf_conntrack entry, imported by the agent during a switchover where programs cannot look it up themselves; the
 * key is a packet's, so a flow is two entries here too. `dst`, `dport`: what the kernel makes of the packet's destination.
 */
struct nf_conntrack_entry {
	__u64 until; /* ns since boot: then the kernel forgets it, unless a packet comes */
	struct ip_address dst;
	__u16 dport;
	__u16 mark; /* the generation it was given in, see NODE_GENERATION */
	__u8 reply; /* 1: the packet answers the flow */
	__u8 tcp_state; /* the kernel's number; 0 if unknown */
	__u8 pad[2];
};

enum interface_kind {
	INTERFACE_WORKLOAD = 1, /* the host's side of a pod's pair */
	INTERFACE_HOST = 2,     /* an uplink */
	INTERFACE_OVERLAY = 3,  /* the VXLAN device */
};

/*
 * The policy of an interface. `policy_in` and `policy_out` are slots of `policies`: what comes into the node by the
 * interface and what goes out by it. 0 is none: then a workload's packets are dropped and a host's pass. The epoch is
 * another number whenever anything that can decide differently changed; no two interfaces ever have the same.
 */
struct interface {
	__u32 kind;
	__u32 epoch;
	__u32 policy_in;
	__u32 policy_out;
	__u8 pod_mac[6];
	__u8 host_mac[6];
};

/* Whose address it is: the pod behind the interface. */
struct workload {
	__u32 ifindex;
};

struct route_key {
	__u32 prefix_length;
	struct ip_address address;
};

enum route_kind {
	ROUTE_REMOTE_WORKLOAD = 1,
	ROUTE_REMOTE_HOST = 2,
	ROUTE_LOCAL_HOST = 3, /* an address of this node */
	ROUTE_POOL = 4,       /* of the cluster's pods, node unknown */
};

enum route_flag {
	ROUTE_PEER_EBPF = 1, /* the node takes clients' own addresses out of the overlay */
	ROUTE_OVERLAY = 2,   /* `mac` is the node's in the overlay */
};

/* Of addresses behind another node, and of that node's own: how to reach it through the overlay. */
struct route {
	__u32 kind;
	__u32 flags;
	__u8 mac[6];
	__u16 pad;
};

/* A member of an IP set. Protocol and port are zero in sets of addresses; the prefix covers all before the address. */
struct set_key {
	__u32 prefix_length;
	__u32 set_high;
	__u32 set_low;
	__u16 port;
	__u8 protocol;
	__u8 pad;
	struct ip_address address;
};

struct set_member {
	__u32 present;
};

struct fragment_key {
	struct ip_address src;
	struct ip_address dst;
	__u32 id;
	__u32 protocol;
};

/* What the first fragment of a packet said that the later ones do not. */
struct fragment {
	__u64 seen;
	__u16 sport;
	__u16 dport;
	__u8 icmp_type;
	__u8 icmp_code;
	__u8 pad[2];
};

/* Words of the node: one write of one word is the switch. */
enum node_field {
	NODE_MODE = 0,
	NODE_EVENTS = 1, /* verdict events a second and processor; 0 is none */
	NODE_EPOCH = 2,  /* the last epoch given to an interface, by any life of the agent */
	NODE_GENERATION = 3, /* of this drain: upper half of the kernel's mark on flows it was given; never 0 while draining */
	NODE_OVERLAY = 4,     /* interface of the overlay; 0 is none */
	NODE_OVERLAY_MTU = 5,
	NODE_DSR = 6, /* 1: the backend's node answers clients straight */
	NODE_MIGRATING = 7, /* 2: programs of the layout before still stand at some interfaces; 1: only its flows are on their way here */
	NODE_INTERVAL = 8, /* of the flow logs, whose sums are added to; 0: they are off */
	NODE_SWEEP = 9,    /* number of the sweep that reads `flows` now, or of the last one */
	NODE_FIELDS = 10,
};

enum node_mode {
	MODE_OFF = 0,
	MODE_EBPF = 1,
	MODE_DRAIN = 2, /* known flows go on, new ones are the kernel's, and so are known ones it has been given */
};

enum mark {
	MARK_MASQUERADE = 0x200, /* translated here, to be masqueraded by the kernel */
	MARK_REJECT = 0x300,     /* our own answer to a packet: no policy is asked */
	MARK_MASK = 0xf00,
};

enum hook {
	HOOK_FROM_WORKLOAD = 0,
	HOOK_TO_WORKLOAD = 1,
	HOOK_FROM_HOST = 2,
	HOOK_TO_HOST = 3,
	HOOKS = 4,
};

/* Why a packet went on, or did not. Every verdict has one; the names are the metric's and the flow log's. */
enum reason {
	REASON_NONE = 0,
	PASS_ESTABLISHED = 1,
	PASS_RELATED = 2,
	PASS_POLICY = 3,
	PASS_NO_POLICY = 4,
	PASS_NOT_OURS = 5,
	PASS_ARP = 6,
	PASS_NEIGHBOUR_DISCOVERY = 7,
	PASS_OVERLAY = 8,
	PASS_OTHER_PROTOCOL = 9,
	PASS_FROM_HOST = 10,
	PASS_KERNEL_FLOW = 11,    /* the kernel's connection tracking has it */
	PASS_GIVEN = 12,          /* draining: the kernel was given the flow */
	PASS_DRAINING = 13,       /* draining: a new flow is the kernel's */
	PASS_ANSWER = 14,         /* made here in answer to a packet */
	PASS_ITSELF = 15,         /* a pod reaches itself, through a service */
	FIRST_DROP = 32,
	DROP_INTERFACE_NOT_READY = 32,
	DROP_POLICY_WORKLOAD_EGRESS = 33,
	DROP_POLICY_WORKLOAD_INGRESS = 34,
	DROP_POLICY_HOST = 35,
	DROP_POLICY_MISSING = 36,
	DROP_SPOOFED_SOURCE = 37,
	DROP_SPOOFED_ARP = 38,
	DROP_SPOOFED_NEIGHBOUR = 39,
	DROP_ROUTER_ADVERTISEMENT = 40,
	DROP_VLAN = 41,
	DROP_NOT_IP = 42,
	DROP_TRUNCATED = 43,
	DROP_MALFORMED = 44,
	DROP_EXTENSION_HEADERS = 45,
	DROP_SOURCE_ROUTE = 46,
	DROP_FRAGMENT_WITHOUT_FIRST = 47,
	DROP_NO_LOCAL_BACKEND = 48,
	DROP_SOURCE_RANGE = 49,
	DROP_TUNNEL_SOURCE = 50,
	DROP_FLOWS_FULL = 51,
	DROP_NO_FREE_PORT = 52,
	DROP_NO_ROUTE = 53,
	DROP_NAT_FAILED = 54,
	REJECT_NO_BACKEND = 55,
	REJECT_TOO_BIG = 56,
	REJECT_HOP_LIMIT = 57,
	REJECT_NO_PORT = 59,      /* a cluster address that has no such port */
	DROP_FLOWS_MOVING = 60,   /* TCP in the middle of a flow that may be on its way here: it is sent again */
	DROP_WORKLOAD_LIMIT = 61, /* the pod has its share of conntrack entries: it opens no more connections */
	DROP_FRAGMENT_LIMIT = 62, /* the pod sends more fragmented packets than its share */
	DROP_REVERSE_PATH = 63,   /* an uplink brought it, and the node's routes do not lead back to its sender */
	REJECT_UNKNOWN_FLOW = 58, /* TCP to a service, in the middle of a connection: its backend is unknown */
	REASONS = 64,
};

struct counter {
	__u64 packets;
	__u64 bytes;
};

enum verdict {
	VERDICT_NONE = 0,
	VERDICT_ALLOW = 1,
	VERDICT_DENY = 2,
};

/* Programs of ours that policy programs come back to. */
enum step {
	STEP_FROM_WORKLOAD = 0,
	STEP_TO_WORKLOAD = 1,
	STEP_FROM_HOST = 2,
	STEP_TO_HOST = 3,
	/* Where new flows begin: translation, and the question to policy. */
	STEP_NEW_FLOW_WORKLOAD = 4,
	STEP_NEW_FLOW_HOST = 5,
	/* Where a packet is answered instead of sent on. */
	STEP_REJECT = 6,
	/* Where flows of the node itself begin that no hook at a socket translated. */
	STEP_NEW_FLOW_LOCAL = 7,
	/* Where what was dropped, or answered, is added to the sums of the flow logs. */
	STEP_DROPPED = 8,
	STEPS = 9,
};

enum stage {
	STAGE_IN = 1,  /* the policy of the interface it came in by */
	STAGE_OUT = 2, /* the policy of the interface it goes out by */
};

enum work_flag {
	WORK_FROM_HOST = 1,
	WORK_TO_HOST = 2,
	WORK_REPLY = 4,           /* the packet is a reply of the evaluated connection */
	WORK_KNOWN = 8,           /* the flow is in the table */
	WORK_UNTRACKED = 16,      /* no conntrack entry: evaluate each packet */
	WORK_LATER_FRAGMENT = 32, /* no transport header in this one */
	WORK_OPTIONS = 64,        /* IP options or extension headers: the stack's business */
	WORK_ICMP_ERROR = 128,
	WORK_NAT = 256,    /* the packet becomes `to` */
	WORK_MASQUERADE = 512,   /* as CT_MASQUERADE */
	WORK_DSR = 1024, /* as CT_DSR */
	WORK_NF_CONNTRACK = 2048, /* as CT_NF_CONNTRACK */
	WORK_HOST_NAT = 8192,     /* of this node itself, translated where it leaves */
	WORK_EXTERNAL = 4096, /* from outside of the cluster */
	WORK_FIRST_FRAGMENT = 16384, /* others follow, which have no transport header */
	WORK_COUNTED = 32768, /* its entry has counted the packet, at this hook */
	WORK_SENT_AGAIN = 65536, /* the SYN of a connection that was counted as started already */
};

#define RULES_REMEMBERED 32

/*
 * What the flow logs add up by, within one interval. Addresses and port are of the side that began, after translation; without its own port:
 * connections are counted, not listed.
 */
struct sum_key {
	__u32 interval;
	__u32 service;
	struct ip_address src;
	struct ip_address dst;
	__u64 trace_in;
	__u64 trace_out;
	__u16 dport;
	__u8 protocol;
	__u8 reason; /* REASON_NONE: it went on */
	__u8 flags;
	__u8 pad[3];
};

enum sum_flag {
	SUM_MERGED = 1,   /* `sums` was full: of all addresses and ports that have the rest in common */
	SUM_INTERVAL = 2, /* no sum: says that there is such an interval. `live` is the sweep that ended it */
};

/* Bytes are of frames: with the header of the link. */
struct sum {
	__u64 packets;
	__u64 bytes;
	__u64 reply_packets;
	__u64 reply_bytes;
	__u64 last_seen;
	__u32 started;
	__u32 ended;
	__u32 live; /* that this sweep has met: what an earlier one said is no more */
	__u32 sweep;
	__u32 merged; /* with SUM_MERGED: how often something was added */
	__u32 pad;
};

/* What is needed to add to a sum, which the stack has no room for. */
struct telling {
	struct sum_key key;
	struct sum zero;
	__u64 told; /* packets, in all: see `counted` */
};

/*
 * What policy was asked in one place, and the rules that were hit there. Its number is made of them and of the direction; an entry has two, in the
 * order they were asked, and 0 for none.
 */
struct trace {
	__u64 rules[RULES_REMEMBERED];
	__u32 first; /* of `rules` */
	__u32 hits;
	__u32 direction;
	__u32 pad;
};

enum trace_direction {
	TRACE_EGRESS = 1,
	TRACE_INGRESS = 2,
};

/* What is known of the packet in hand; one per processor, kept from program to program. */
struct work {
	struct five_tuple packet;
	struct five_tuple reply; /* of what the packet becomes, exchanged: the flow's other entry */
	struct five_tuple to;    /* what the packet becomes; itself where nothing translates it */
	/* What policy is asked about: the packet, or, when it is a reply, the flow it answers. */
	struct five_tuple policy_tuple;
	struct ip_address original_dst;
	/* Ports as policy sees them: zero for protocols that have none. */
	__u16 sport;
	__u16 dport;
	__u16 original_dport;
	__u8 ip_version;
	__u8 icmp_type;
	__u8 icmp_code;
	__u8 tcp_flags;
	__u16 transport; /* offset of the transport header */
	__u32 flags;
	__u32 length; /* of the IP packet */
	/* Of the context, read once: compilers else keep pointers into it, which the verifier refuses. */
	__u32 frame; /* length of the frame */
	__u32 segment; /* what it will be cut into; 0 is not at all */
	__u32 ifindex;
	__u32 from; /* interface it came into the node by; 0 for the node's own */
	__u32 step;
	__u32 stage;
	__u32 verdict;
	__u32 entry; /* where a split policy program goes on */
	__u32 epoch_in;
	__u32 epoch_out;
	__u32 out;
	__u32 out_slot;
	__u32 path;
	__u32 reply_path;
	__u32 rules_hit;
	__u32 mode;
	__u32 service;
	__u32 hook;
	__u32 pass_reason;  /* reason it goes on for, once policy allowed it */
	__u32 reject_reason; /* reason the packet is answered for */
	__u32 mtu;     /* that it would have had to fit */
	__u32 fragment_id; /* with WORK_FIRST_FRAGMENT */
	__u8 mac[6];
	__u8 reply_mac[6];
	/* Where policy programs put together what they look up. */
	struct set_key member;
	/* Flow logs: of the rules hit in this stage, and in the one before, and how many those were; why it was dropped; what the program then returns. */
	__u64 trace;
	__u64 trace_in;
	__u32 rules_in;
	__u16 direction;
	__u16 direction_in;
	__u32 interval;
	__u32 dropped;
	__s32 left;
	__u32 pad;
	__u64 rules[RULES_REMEMBERED];
	/* Kept from packet to packet: how many verdict events this processor may still write in this second. */
	__u64 events_second;
	__u64 events_left;
	/* Likewise, for the flow logs: packets its entries counted, and how many of them it told the sums. */
	__u64 counted;
	__u64 told;
	/* Scratch space that the stack of a program, 512 bytes, does not have. Nothing here outlives the function that fills it. */
	struct {
		union {
			struct iphdr v4;
			struct ipv6hdr v6;
		} header;
		struct bpf_fib_lookup fib;
		struct fragment_key fragment_key;
		struct fragment fragment;
		struct route_key route_key;
		struct five_tuple error;
		struct five_tuple error_quoted;
		struct conntrack_entry entry;
		struct telling telling;
		struct trace trace;
		struct frontend_key frontend_key;
		struct backend_key backend_key;
		struct affinity_key affinity_key;
		struct affinity affinity;
		struct source_range_key source_range_key;
		struct five_tuple wanted;
		struct {
			__u32 found;
			__u8 reply;
			__u8 tcp_state;
			__u16 mark;
			struct ip_address dst;
			__u16 dport;
			__u16 pad;
		} kernel;
		/* As the kernel's functions want them. */
		struct bpf_sock_tuple tuple;
		struct {
			__s32 netns_id, error;
			__u8 l4proto, dir, reserved[2];
		} options;
		__be32 old_addresses[2], new_addresses[2];
		__be16 old_ports[2], new_ports[2];
		__u8 macs[12];
		/* A packet made here: a header of either family and what follows it. */
		__u8 answer[104];
		__u8 pseudo[40];
	} scratch;
};

struct event {
	__u64 time;
	struct five_tuple tuple;
	enum reason reason;
	__u32 ifindex;
	enum hook hook;
	__u32 length;
	__u32 rules_hit;
	__u32 pad;
	__u64 rules[RULES_REMEMBERED];
};

#endif
