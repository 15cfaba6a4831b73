// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Gives the frames that a program asked for to its AF_XDP sockets; all others go on to the kernel.
 *
 * Guarantees: ARP, neighbour discovery, TCP, fragments, VLAN frames and whatever is not understood pass. So does a
 * frame of a queue that has no socket, or one that is longer than a socket's memory: it is never dropped here. Each
 * frame is counted once, by what became of it.
 */
#include "frame.h"

/* One bit for each UDP port. */
#define PORT_WORDS 1024

/* What became of a frame. */
#define TAKEN 0
#define PASSED 1
/* It was asked for, but its queue has no socket. */
#define WITHOUT_SOCKET 2
/* It was asked for, but no socket has memory for it. */
#define TOO_LONG 3
#define FATES 4

/* The longest frame that a socket has memory for. */
const volatile __u64 FRAME_BYTES_MAX = 0xffff;

#include "sockets.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORT_WORDS);
	__type(key, __u32);
	__type(value, __u64);
} PORTS SEC(".maps");

INLINE int is_wanted(__u16 port_big_endian)
{
	__u16 port = __builtin_bswap16(port_big_endian);
	__u32 word = port >> 6;
	__u64 *ports = bpf_map_lookup_elem(&PORTS, &word);

	return ports && (*ports >> (port & 63) & 1);
}

/* Where the UDP header begins; null when there is none that can be trusted to hold the ports. */
INLINE void *udp_header(void *data, void *end)
{
	struct ethernet *ethernet = data;
	void *network = ethernet + 1;

	if (network > end)
		return 0;
	if (ethernet->type == ETH_P_IP) {
		struct ipv4 *ip = network;

		if ((void *)(ip + 1) > end || ip->protocol != IPPROTO_UDP || ip->fragment & IP_FRAGMENT)
			return 0;
		/* Options are rare, and the kernel's. */
		return ip->version_and_length == IPV4_WITHOUT_OPTIONS ? (void *)(ip + 1) : 0;
	}
	if (ethernet->type == ETH_P_IPV6) {
		struct ipv6 *ip = network;

		if ((void *)(ip + 1) > end || ip->next_header != IPPROTO_UDP)
			return 0;
		return ip + 1;
	}
	return 0;
}

INLINE int is_asked_for(void *data, void *end)
{
	struct udp *udp = udp_header(data, end);

	return udp && (void *)(udp + 1) <= end && is_wanted(udp->destination);
}

INLINE int give(struct xdp_md *ctx)
{
	long verdict;

	/* The last argument is the verdict for a queue without a socket. */
	verdict = bpf_redirect_map(&SOCKETS, ctx->rx_queue_index, XDP_PASS);
	return counted(verdict == XDP_REDIRECT ? TAKEN : WITHOUT_SOCKET, verdict);
}

SEC("xdp")
int take_frames(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	if (!is_asked_for(data, end))
		return counted(PASSED, XDP_PASS);
	/* The verifier wants to see that the sum stays small. */
	if (data + (FRAME_BYTES_MAX & 0xffff) < end)
		return counted(TOO_LONG, XDP_PASS);
	return give(ctx);
}

/* The same for frames that lie in several pieces of memory, of which `data` to `data_end` is the first: Linux 5.18. */
SEC("xdp.frags")
int take_long_frames(struct xdp_md *ctx)
{
	if (!is_asked_for((void *)(long)ctx->data, (void *)(long)ctx->data_end))
		return counted(PASSED, XDP_PASS);
	if (bpf_xdp_get_buff_len(ctx) > FRAME_BYTES_MAX)
		return counted(TOO_LONG, XDP_PASS);
	return give(ctx);
}

char _license[] SEC("license") = "Dual MIT/GPL";
