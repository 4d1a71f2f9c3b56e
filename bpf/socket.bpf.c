// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * At the sockets of the node's own processes: a connection to a service is made to a backend from the start, and no packet
 * needs translating. Pods are translated packet by packet where they come in, so sockets of other network namespaces are left alone.
 *
 * A service without backends is left as it is: its packets are refused, or dropped, where all such packets are, and the application
 * sees what it would see anywhere else. So are load balancers that take only some clients: the hook does not know yet from which
 * address the packet will come, and where it leaves that is known.
 *
 * One place for both families: an IPv6 socket that speaks IPv4 has the addresses our maps have.
 */
#include "lib/address.h"
#include "lib/config.h"
#include "lib/maps.h"
#include "lib/nf_import.h"

static __u64 (*bpf_get_netns_cookie)(void *ctx) = (void *)BPF_FUNC_get_netns_cookie;
static __u64 (*bpf_get_socket_cookie)(void *ctx) = (void *)BPF_FUNC_get_socket_cookie;

/* The kernel takes the socket's call as it is now; 0 would refuse it. */
#define PROCEED 1

INLINE __u32 mode_of_node(void)
{
	__u32 word = NODE_MODE;
	__u32 *mode = bpf_map_lookup_elem(&node, &word);
	return mode ? *mode : MODE_OFF;
}

/* The mode as sockets of this node have it; for those of others we are never there. */
INLINE __u32 mode_for(struct bpf_sock_addr *ctx)
{
	__u32 mode = mode_of_node();
	if (mode == MODE_OFF)
		return MODE_OFF;
	__u64 ours = netns_cookie ? netns_cookie : bpf_get_netns_cookie(0);
	return bpf_get_netns_cookie(ctx) == ours ? mode : MODE_OFF;
}

INLINE void read_address(struct bpf_sock_addr *ctx, struct ip_address *to, int v6)
{
	if (v6) {
		to->word[0] = ctx->user_ip6[0];
		to->word[1] = ctx->user_ip6[1];
		to->word[2] = ctx->user_ip6[2];
		to->word[3] = ctx->user_ip6[3];
	} else {
		address_from_v4(to, ctx->user_ip4);
	}
}

INLINE void write_peer(struct bpf_sock_addr *ctx, const struct ip_address *address, __u16 port, int v6)
{
	if (v6) {
		ctx->user_ip6[0] = address->word[0];
		ctx->user_ip6[1] = address->word[1];
		ctx->user_ip6[2] = address->word[2];
		ctx->user_ip6[3] = address->word[3];
	} else {
		ctx->user_ip4 = address->word[3];
	}
	ctx->user_port = htons(port);
}

INLINE void key_of(struct bpf_sock_addr *ctx, struct socket_key *key, int v6)
{
	key->cookie = bpf_get_socket_cookie(ctx);
	read_address(ctx, &key->address, v6);
	key->port = ntohs((__u16)ctx->user_port);
	key->pad = 0;
	key->pad2 = 0;
}

INLINE int is_own_address(const struct ip_address *address)
{
	if (is_mapped_v4(address) && (address->word[3] & htonl(0xff000000)) == htonl(0x7f000000))
		return 1;
	if (!(address->word[0] | address->word[1] | address->word[2]) && address->word[3] == htonl(1))
		return 1;
	struct route_key key = { .prefix_length = 128, .address = *address };
	struct route *route = bpf_map_lookup_elem(&routes, &key);
	return route && route->kind == ROUTE_LOCAL_HOST;
}

/* By address, or, on an address of this node, by node port. */
INLINE struct frontend *find_frontend(const struct ip_address *address, __u16 port, __u8 protocol)
{
	struct frontend_key key = { .address = *address, .port = port, .protocol = protocol };
	struct frontend *found = bpf_map_lookup_elem(&frontends, &key);
	if (found)
		return found;
	int mapped = is_mapped_v4(address);
	key.address.word[0] = 0;
	key.address.word[1] = 0;
	key.address.word[2] = mapped ? htonl(0xffff) : 0;
	key.address.word[3] = 0;
	found = bpf_map_lookup_elem(&frontends, &key);
	/* Asked last: most connections are to no port of the node. */
	return found && is_own_address(address) ? found : 0;
}

/*
 * The node is not outside of itself: local rules for clients outside do not hold for it. All its processes are one client, which has no
 * address yet.
 */
INLINE int choose_backend(const struct frontend *frontend, struct backend *chosen)
{
	if (frontend->flags & FRONTEND_SOURCE_RANGES)
		return 0;
	int local = !(frontend->flags & FRONTEND_EXTERNAL) && (frontend->flags & FRONTEND_INTERNAL_LOCAL);
	__u32 count = local ? frontend->local_count : frontend->cluster_count;
	if (!count)
		return 0;
	struct affinity_key client = { .service = frontend->service, .local = local ? 1 : 0 };
	__u64 now = 0;
	if (frontend->affinity) {
		now = bpf_ktime_get_ns();
		struct affinity *last = bpf_map_lookup_elem(&affinities, &client);
		if (last && elapsed(now, last->last_used) < frontend->affinity * SECOND) {
			last->last_used = now;
			chosen->address = last->address;
			chosen->port = last->port;
			return 1;
		}
	}
	struct backend_key key = {
		.list = local ? frontend->local_list : frontend->cluster_list,
		/* The upper half of the product is evenly below `count`, without a division. */
		.index = ((__u64)bpf_get_prandom_u32() * count) >> 32,
	};
	struct backend *backend = bpf_map_lookup_elem(&backends, &key);
	if (!backend)
		return 0;
	chosen->address = backend->address;
	chosen->port = backend->port;
	if (frontend->affinity) {
		struct affinity kept = { .address = backend->address, .port = backend->port, .last_used = now };
		bpf_map_update_elem(&affinities, &client, &kept, BPF_ANY);
	}
	return 1;
}

/* So that the service's address is what the application sees in answers, and when it asks for its peer. */
INLINE void remember_peer(const struct socket_key *asked, const struct backend *backend, __u32 service, __u8 protocol,
			  __u8 flags)
{
	struct socket_key key = { .cookie = asked->cookie, .address = backend->address, .port = backend->port };
	struct socket_peer peer = {
		.address = asked->address,
		.port = asked->port,
		.protocol = protocol,
		.flags = flags,
		.service = service,
		.last_used = bpf_ktime_get_ns(),
	};
	bpf_map_update_elem(&socket_peers, &key, &peer, BPF_ANY);
}

INLINE int connecting(struct bpf_sock_addr *ctx, int v6)
{
	struct socket_key asked;
	struct backend backend = {};
	__u32 protocol = ctx->protocol;
	if (protocol != IPPROTO_TCP && !(connects_udp && protocol == IPPROTO_UDP))
		return PROCEED;
	if (mode_for(ctx) != MODE_EBPF)
		return PROCEED;
	key_of(ctx, &asked, v6);
	struct frontend *frontend = find_frontend(&asked.address, asked.port, protocol);
	if (!frontend || !choose_backend(frontend, &backend))
		return PROCEED;
	remember_peer(&asked, &backend, frontend->service, protocol, SOCKET_CONNECTED);
	write_peer(ctx, &backend.address, backend.port, v6);
	return PROCEED;
}

/* A socket that sent to this service before the node was handed over goes on by the kernel's translation. */
INLINE int is_imported(struct bpf_sock_addr *ctx, const struct socket_key *asked)
{
	struct bpf_sock *sk = ctx->sk;
	if (!sk)
		return 0;
	/* What address the socket will send from is not known here: the agent writes such flows without one. */
	struct five_tuple key = { .dst = asked->address, .dport = asked->port, .protocol = IPPROTO_UDP };
	key.sport = sk->src_port;
	return find_imported(&key, 1) != 0;
}

/* A socket that is not connected stays with its backend for one service while it uses it, as a connected one would. */
INLINE int sending(struct bpf_sock_addr *ctx, int v6)
{
	struct socket_key asked;
	struct backend backend = {};
	__u32 mode = mode_for(ctx);
	if (mode == MODE_OFF)
		return PROCEED;
	key_of(ctx, &asked, v6);
	__u64 now = bpf_ktime_get_ns();
	struct socket_peer *choice = bpf_map_lookup_elem(&socket_choices, &asked);
	if (choice && elapsed(now, choice->last_used) < timeout_udp) {
		choice->last_used = now;
		write_peer(ctx, &choice->address, choice->port, v6);
		return PROCEED;
	}
	if (mode != MODE_EBPF)
		return PROCEED;
	struct frontend *frontend = find_frontend(&asked.address, asked.port, IPPROTO_UDP);
	if (!frontend || is_imported(ctx, &asked) || !choose_backend(frontend, &backend))
		return PROCEED;
	struct socket_peer chosen = {
		.address = backend.address,
		.port = backend.port,
		.protocol = IPPROTO_UDP,
		.service = frontend->service,
		.last_used = now,
	};
	bpf_map_update_elem(&socket_choices, &asked, &chosen, BPF_ANY);
	remember_peer(&asked, &backend, frontend->service, IPPROTO_UDP, 0);
	write_peer(ctx, &backend.address, backend.port, v6);
	return PROCEED;
}

/* An answer's sender, or the socket's peer: a backend's address becomes the service's again. Also while draining: the question was ours. */
INLINE int naming_peer(struct bpf_sock_addr *ctx, int v6)
{
	struct socket_key key;
	if (mode_for(ctx) == MODE_OFF)
		return PROCEED;
	key_of(ctx, &key, v6);
	struct socket_peer *peer = bpf_map_lookup_elem(&socket_peers, &key);
	if (peer)
		write_peer(ctx, &peer->address, peer->port, v6);
	return PROCEED;
}

SEC("cgroup/connect4") int socket_connect4(struct bpf_sock_addr *ctx)
{
	return connecting(ctx, 0);
}

SEC("cgroup/connect6") int socket_connect6(struct bpf_sock_addr *ctx)
{
	return connecting(ctx, 1);
}

SEC("cgroup/sendmsg4") int socket_sendmsg4(struct bpf_sock_addr *ctx)
{
	return sending(ctx, 0);
}

SEC("cgroup/sendmsg6") int socket_sendmsg6(struct bpf_sock_addr *ctx)
{
	return sending(ctx, 1);
}

SEC("cgroup/recvmsg4") int socket_recvmsg4(struct bpf_sock_addr *ctx)
{
	return naming_peer(ctx, 0);
}

SEC("cgroup/recvmsg6") int socket_recvmsg6(struct bpf_sock_addr *ctx)
{
	return naming_peer(ctx, 1);
}

SEC("cgroup/getpeername4") int socket_getpeername4(struct bpf_sock_addr *ctx)
{
	return naming_peer(ctx, 0);
}

SEC("cgroup/getpeername6") int socket_getpeername6(struct bpf_sock_addr *ctx)
{
	return naming_peer(ctx, 1);
}

char license_of_programs[] SEC("license") = "GPL";
