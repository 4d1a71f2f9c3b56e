/* Asks the kernel's connection tracking about the packet it is given. */
#include "lib/kernel.h"

#define __ksym __attribute__((section(".ksyms")))

struct nf_conn {
	unsigned long hidden;
};

/* Twelve bytes: kernels before and after it grew accept that. */
struct bpf_ct_opts {
	__s32 netns_id, error;
	__u8 l4proto, dir, reserved[2];
};

extern struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *, struct bpf_sock_tuple *, __u32, struct bpf_ct_opts *,
					 __u32) __ksym;
extern void bpf_ct_release(struct nf_conn *) __ksym;

const volatile __u32 tcp_state_offset = 0;

SEC("tc") int lookup(struct __sk_buff *skb)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_ct_opts options = {.netns_id = -1, .l4proto = 6};
	struct nf_conn *found;
	__u8 state;

	/* 10.9.0.5:4000 to 10.96.0.10:80, in network order */
	tuple.ipv4.saddr = 0x0500090a;
	tuple.ipv4.daddr = 0x0a00600a;
	tuple.ipv4.sport = 0xa00f;
	tuple.ipv4.dport = 0x5000;
	found = bpf_skb_ct_lookup(skb, &tuple, sizeof(tuple.ipv4), &options, sizeof(options));
	if (!found)
		return 0;
	state = *(volatile __u8 *)((void *)found + tcp_state_offset);
	bpf_ct_release(found);
	return 100 + state;
}

char _license[] SEC("license") = "GPL";
