// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Writes one frame of UDP after another and sends each at an interface: with its number, its flow and the time.
 *
 * It is run by BPF_PROG_TEST_RUN with live frames, and never attached. The kernel brings memory that holds the longest
 * frame and was filled with one once. Memory comes back from receivers, which may have changed what is in it.
 *
 * Guarantees: headers and mark are written again each time; behind the mark nothing is, as no router changes that.
 * A frame is counted when it is handed over, and what is not handed over leaves no number out.
 */
#include "frame.h"

HELPER long (*bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)23;
HELPER long (*bpf_xdp_adjust_tail)(struct xdp_md *ctx, int bytes) = (void *)65;

#define XDP_ABORTED 0

/* Ethernet, IPv4 or IPv6, UDP. */
#define IPV4_HEADER_BYTES 42
#define IPV6_HEADER_BYTES 62
/* Frames of different lengths that follow on each other, at most. */
#define TEMPLATES_MAX 64

/* A frame without port, checksum and mark. */
struct template {
	__u8 head[64];
	/* Of pseudo header and datagram, as a little-endian CPU adds up 16-bit words. */
	__u32 sum;
	__u32 bytes;
};

/* How far it is. */
struct blasted {
	__u64 frames;
	__u64 bytes;
	__u64 sequence;
	__u32 flow;
	__u32 template_index;
	__u32 template_of_first_flow;
	__u32 reserved;
};

/* As crates/wire/src/frame/mark.rs has it. */
struct mark {
	__u32 sequence_low;
	__u32 sequence_high;
	__u64 time_ns;
	__u16 flow;
} __attribute__((packed, aligned(2)));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TEMPLATES_MAX);
	__type(key, __u32);
	__type(value, struct template);
} TEMPLATES SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct blasted);
} BLASTED SEC(".maps");

const volatile __u64 INTERFACE = 0;
const volatile __u64 HEADER_BYTES = IPV4_HEADER_BYTES;
const volatile __u64 TEMPLATES_USED = 1;
/* What the memory holds. */
const volatile __u64 LONGEST_BYTES = 0;
const volatile __u64 FLOWS = 1;
const volatile __u64 FIRST_FLOW = 0;
const volatile __u64 FIRST_PORT = 0;

INLINE __u16 checksum_of(__u64 sum)
{
	sum = (sum & 0xFFFFFFFF) + (sum >> 32);
	sum = (sum & 0xFFFFFFFF) + (sum >> 32);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	/* 0 would say that there is none. */
	return sum == 0xFFFF ? 0xFFFF : ~sum;
}

/* Headers are copied by words: what they are aligned to does not matter to these CPUs. */
INLINE void copy_head(void *to, const void *from, int bytes)
{
	int at = 0;

#pragma unroll
	for (; at + 8 <= bytes; at += 8)
		*(__u64 *)(to + at) = *(const __u64 *)(from + at);
#pragma unroll
	for (; at < bytes; at += 2)
		*(__u16 *)(to + at) = *(const __u16 *)(from + at);
}

INLINE int write_frame(struct xdp_md *ctx, const struct template *template, const struct blasted *now,
		       int header_bytes)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u64 time_ns = __builtin_bswap64(bpf_ktime_get_ns());
	__u32 low = __builtin_bswap32((__u32)now->sequence);
	__u32 high = __builtin_bswap32(now->sequence >> 32);
	__u16 flow = __builtin_bswap16((__u32)FIRST_FLOW + now->flow);
	__u16 port = __builtin_bswap16((__u32)FIRST_PORT + now->flow);
	__u64 sum = template->sum;
	struct udp *udp;
	__u32 *mark;

	if (data + header_bytes + sizeof(struct mark) > end)
		return 0;
	copy_head(data, template->head, header_bytes);
	sum += port;
	sum += low;
	sum += high;
	sum += (__u32)time_ns;
	sum += time_ns >> 32;
	sum += flow;
	udp = data + header_bytes - sizeof(*udp);
	udp->source = port;
	udp->checksum = checksum_of(sum);
	mark = data + header_bytes;
	mark[0] = low;
	mark[1] = high;
	*(__u64 *)(mark + 2) = time_ns;
	*(__u16 *)(mark + 4) = flow;
	return 1;
}

/* Flows take turns, and each has all lengths in turn. */
INLINE void count(struct blasted *now, __u32 bytes)
{
	now->frames += 1;
	now->bytes += bytes;
	now->flow += 1;
	now->template_index += 1;
	if (now->flow >= FLOWS) {
		now->flow = 0;
		now->sequence += 1;
		now->template_of_first_flow += 1;
		if (now->template_of_first_flow >= TEMPLATES_USED)
			now->template_of_first_flow = 0;
		now->template_index = now->template_of_first_flow;
	}
	if (now->template_index >= TEMPLATES_USED)
		now->template_index = 0;
}

SEC("xdp")
int blast_frame(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct blasted *now = bpf_map_lookup_elem(&BLASTED, &zero);
	struct template *template;
	int shorter;
	__u32 at;

	if (!now)
		return XDP_ABORTED;
	at = now->template_index;
	template = bpf_map_lookup_elem(&TEMPLATES, &at);
	if (!template)
		return XDP_ABORTED;
	shorter = template->bytes - (__u32)LONGEST_BYTES;
	if (shorter && bpf_xdp_adjust_tail(ctx, shorter))
		return XDP_ABORTED;
	if (!(HEADER_BYTES == IPV6_HEADER_BYTES
		      ? write_frame(ctx, template, now, IPV6_HEADER_BYTES)
		      : write_frame(ctx, template, now, IPV4_HEADER_BYTES)))
		return XDP_ABORTED;
	count(now, template->bytes);
	return bpf_redirect(INTERFACE, 0);
}

char _license[] SEC("license") = "Dual MIT/GPL";
