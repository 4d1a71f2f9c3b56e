/* One of everything the object loader must understand. Compiled by the stories that load it. */
#include "lib/kernel.h"

#define __array(name, value) typeof(value) *name[]

struct event {
	__u32 length;
	__u32 mark;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, VALUE);
	__uint(pinning, PIN_BY_NAME);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__uint(key_size, 4);
	__uint(value_size, 4);
} jumps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} events SEC(".maps");

/* A key that is no structure: the kernel refuses its type, and the map must be made without. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u32);
} prefixes SEC(".maps");

struct inner {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u32);
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 4);
	__type(key, __u32);
	__array(values, struct inner);
} outer SEC(".maps");

const volatile __u32 verdict = 1;
const volatile __u64 addend = 2;
const volatile __u8 flag = 0;
__u32 started_at = 40;
__u64 seen;

static __attribute__((noinline)) int count(__u32 key)
{
	VALUE one = 1, *value = bpf_map_lookup_elem(&counts, &key);

	if (value)
		__sync_fetch_and_add(value, 1);
	else
		bpf_map_update_elem(&counts, &key, &one, BPF_ANY);
	return 0;
}

__attribute__((noinline)) int sum(struct __sk_buff *skb)
{
	return skb->len + (__u32)addend + started_at;
}

SEC("tc") int answer(struct __sk_buff *skb)
{
	__sync_fetch_and_add(&seen, 1);
	count(skb->mark);
	if (flag) {
		struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

		if (event) {
			event->length = skb->len;
			event->mark = skb->mark;
			bpf_ringbuf_submit(event, 0);
		}
	}
	bpf_tail_call(skb, &jumps, 0);
	return verdict ? (int)verdict : sum(skb);
}

SEC("tc/inner") int look_inside(struct __sk_buff *skb)
{
	__u32 key = 1, *value;
	void *map = bpf_map_lookup_elem(&outer, &key);

	if (!map)
		return -1;
	value = bpf_map_lookup_elem(map, &key);
	return value ? (int)*value : -2;
}

SEC("cgroup/connect4") int on_connect(struct bpf_sock_addr *ctx)
{
	if (ctx->user_ip4 == 0x0a00600a) /* 10.96.0.10 */
		ctx->user_ip4 = 0x0100007f;
	return 1;
}

char _license[] SEC("license") = "GPL";
