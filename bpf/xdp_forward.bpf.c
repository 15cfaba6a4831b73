// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Forwards IPv4 and IPv6 between interfaces as the kernel's routes say: at once, or by way of AF_XDP sockets.
 *
 * What must hold:
 * - A frame is taken only when nothing is left to do but what any router does with any packet: it is for this router,
 *   its header is right, its TTL lasts, the kernel has a route and the neighbour's address, and it fits. All else goes
 *   to the kernel unchanged, which resolves, fragments, answers by ICMP or drops as it always does. Nothing is dropped
 *   here.
 * - Each frame is counted once, by what became of it. The order of the fates, and the names of maps, programs and
 *   constants are a contract with the loader in crates/engine.
 * - A checksum that the sender left to its card, as the kernel does on virtual links, is finished by the kernel alone:
 *   such a frame is the kernel's, or nobody would finish it. No other is: a frame of a flow that went another way than
 *   those before it would overtake them.
 * - The kernel's answer to a lookup serves the same question for the rest of the kernel's clock tick, 1 to 10 ms, and no
 *   longer: routes and neighbours are the kernel's, a tick old at most.
 * - A frame that goes to a socket carries what the kernel decided: who forwards it by a table of its own, which would be
 *   a little behind the kernel's, would have to drop what it cannot find there.
 */
#include "frame.h"

#define IPPROTO_HOP_BY_HOP 0

/* Interfaces that are forwarded between, at most. */
#define EXITS_MAX 64
/* Answers that each CPU remembers; a power of two. */
#define ANSWERS_BITS 11
/* Next hops that are remembered as in use. */
#define NEXT_HOPS_MAX 4096
/* 32-bit words of a datagram whose checksum is looked at: as many as a frame in one page has. */
#define WORDS_MAX 1024

/* What became of a frame. All but the first are left to the kernel. */
enum fate {
	FORWARDED,
	NOT_IP,         /* neither IPv4 nor IPv6: ARP, VLAN */
	NOT_FOR_ROUTER, /* its hardware address is not this interface's: broadcast, multicast, another host's */
	HEADER,         /* options, a wrong length or checksum, or a source that no router may forward */
	TTL,            /* it must not go further */
	CHECKSUM,       /* its checksum is not finished */
	NO_ROUTE,       /* for this host, or no route, or one that refuses */
	FORWARDING_OFF,
	TOO_LONG,     /* for the route: the kernel fragments it, or says so to the sender */
	NO_NEIGHBOUR, /* its hardware address is not known */
	OTHER_EXIT,   /* the route leads elsewhere than to the interfaces that are forwarded between, or back */
	WITHOUT_SOCKET,
	FATES,
};

#include "sockets.h"

/* What bpf_fib_lookup returns, of include/uapi/linux/bpf.h; the others are refusals. */
#define FIB_SUCCESS 0
#define FIB_FORWARDING_DISABLED 5
#define FIB_NO_NEIGHBOUR 7
#define FIB_FRAGMENTATION_NEEDED 8

struct fib_lookup {
	__u8 family;
	__u8 protocol;
	__u16 source_port;
	__u16 destination_port;
	__u16 length;
	__u32 ifindex;
	__u32 service_or_flow;
	__u32 source[4];
	__u32 destination[4];
	__u32 vlan;
	__u8 from[6];
	__u8 to[6];
};

/* What the kernel decided for a question, and the question. */
struct answer {
	__u64 tick; /* in which it was given */
	__u32 source[4];
	__u32 destination[4];
	__u32 service_or_flow;
	__u16 source_port;
	__u16 destination_port;
	__u8 family;
	__u8 protocol;
	__u16 longest;      /* packet that it is given for: the route's MTU, before Linux 5.13 that of the question */
	__u32 place;        /* of the exit */
	__u32 addresses[3]; /* of the next hop, and the exit's own */
};

/* Who gets frames, by the exit's interface index. */
struct next_hop {
	__u32 ifindex;
	__u32 family;
	__u32 address[4];
};

HELPER long (*bpf_fib_lookup)(void *ctx, struct fib_lookup *params, int params_bytes, __u32 flags) = (void *)69;
/* The kernel's clock ticks. */
HELPER __u64 (*bpf_jiffies64)(void) = (void *)118;

/* The interface's hardware address, as the first six bytes of a number; set by the loader. */
const volatile __u64 OWN_ADDRESS = 0;

/* The place of each exit among them, by interface index. One that takes no frames now has none. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EXITS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} PLACES SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, EXITS_MAX);
	__type(key, __u32);
	__uint(value_size, 8);
} EXITS SEC(".maps");

/* Where a question's answer is, a hash of its addresses and ports says. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << ANSWERS_BITS);
	__type(key, __u32);
	__type(value, struct answer);
} ANSWERS SEC(".maps");

/* The tick in which each was last an answer. The loader keeps those fresh that are in use. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, NEXT_HOPS_MAX);
	__type(key, struct next_hop);
	__type(value, __u64);
} NEXT_HOPS SEC(".maps");

/* A sum of 16-bit words as one of them. */
INLINE __u16 folded(__u64 sum)
{
	sum = (sum & 0xFFFFFFFF) + (sum >> 32);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return sum;
}

/* Whether the checksum of a datagram or segment of `bytes` is right: all of it adds up to -0 with the pseudo header,
 * whose sum is `sum`. */
INLINE int is_right(void *at, void *end, __u32 bytes, __u64 sum)
{
	int word;

#pragma clang loop unroll(disable)
	for (word = 0; word < WORDS_MAX; word++) {
		if (bytes < 4 || at + 4 > end)
			break;
		sum += *(__u32 *)at;
		at += 4;
		bytes -= 4;
	}
	if (bytes >= 2 && at + 2 <= end) {
		sum += *(__u16 *)at;
		at += 2;
		bytes -= 2;
	}
	if (bytes == 1 && at + 1 <= end) {
		sum += *(__u8 *)at;
		bytes = 0;
	}
	return !bytes && folded(sum) == 0xFFFF;
}

/* Notes the ports, by which rules may route. Returns whether the checksum is that of the addresses alone (`addresses`
 * is their sum), which the kernel writes where a card is to add the rest. One in 65,536 right ones looks the same. */
INLINE int is_unfinished(struct fib_lookup *fib, void *transport, void *end, __u16 bytes, __u64 addresses)
{
	__u64 pseudo = addresses + __builtin_bswap16(bytes) + (fib->protocol << 8);
	struct udp *udp = transport;
	__u16 *checksum;

	if ((void *)(udp + 1) > end || (fib->protocol != IPPROTO_UDP && fib->protocol != IPPROTO_TCP))
		return 0;
	fib->source_port = udp->source;
	fib->destination_port = udp->destination;
	checksum = &udp->checksum;
	if (fib->protocol == IPPROTO_TCP)
		checksum = transport + 16;
	if ((void *)(checksum + 1) > end)
		return 0;
	return *checksum == folded(pseudo) && !is_right(transport, end, bytes, pseudo);
}

INLINE enum fate look_at_ipv4(struct fib_lookup *fib, struct ipv4 *ip, void *end)
{
	__u32 *words = (__u32 *)ip;
	__u8 network;
	__u16 length;

	if ((void *)(ip + 1) > end || ip->version_and_length != IPV4_WITHOUT_OPTIONS)
		return HEADER;
	length = __builtin_bswap16(ip->length);
	network = ip->addresses[0];
	/* A source of networks 0 and 127, of a group, or broadcast. */
	if (length < sizeof(*ip) || (void *)ip + length > end || !network || network == 127 || network >= 224)
		return HEADER;
	if (folded((__u64)words[0] + words[1] + words[2] + words[3] + words[4]) != 0xFFFF)
		return HEADER;
	if (ip->ttl <= 1)
		return TTL;
	fib->family = AF_INET;
	fib->protocol = ip->protocol;
	fib->length = length;
	fib->service_or_flow = ip->service;
	fib->source[0] = ip->addresses[0];
	fib->destination[0] = ip->addresses[1];
	if (ip->fragment & IP_FRAGMENT)
		return FORWARDED;
	__u64 addresses = (__u64)ip->addresses[0] + ip->addresses[1];
	return is_unfinished(fib, ip + 1, end, length - sizeof(*ip), addresses) ? CHECKSUM : FORWARDED;
}

INLINE enum fate look_at_ipv6(struct fib_lookup *fib, struct ipv6 *ip, void *end)
{
	__u64 addresses = 0;
	__u16 bytes;
	int i;

	if ((void *)(ip + 1) > end || (ip->version_and_flow & 0xF0) != 0x60)
		return HEADER;
	bytes = __builtin_bswap16(ip->length);
	/* Every router has to look at options of hops; and no length is one of those. */
	if (ip->next_header == IPPROTO_HOP_BY_HOP || (void *)(ip + 1) + bytes > end)
		return HEADER;
	/* A source that is a group, the loopback, or none. */
	if ((ip->addresses[0] & 0xFF) == 0xFF ||
	    (!(ip->addresses[0] | ip->addresses[1] | ip->addresses[2]) && !(ip->addresses[3] & 0xFEFFFFFF)))
		return HEADER;
	if (ip->hop_limit <= 1)
		return TTL;
	fib->family = AF_INET6;
	fib->protocol = ip->next_header;
	fib->length = bytes + sizeof(*ip);
	fib->service_or_flow = ip->version_and_flow & 0xFFFFFF0F;
	for (i = 0; i < 4; i++) {
		fib->source[i] = ip->addresses[i];
		fib->destination[i] = ip->addresses[4 + i];
		addresses += (__u64)ip->addresses[i] + ip->addresses[4 + i];
	}
	return is_unfinished(fib, ip + 1, end, bytes, addresses) ? CHECKSUM : FORWARDED;
}

/* Where the answer to a question is remembered. */
INLINE struct answer *answer_to(const struct fib_lookup *fib)
{
	__u32 destination = fib->destination[0] ^ fib->destination[1] ^ fib->destination[2] ^ fib->destination[3];
	__u32 source = fib->source[0] ^ fib->source[1] ^ fib->source[2] ^ fib->source[3];
	__u32 ports = (__u32)fib->source_port << 16 | fib->destination_port;
	/* Odd numbers without a pattern spread each over all bits; the highest are the best. */
	__u32 hash = destination * 0x9E3779B1 ^ source * 0x85EBCA77 ^ ports * 0xC2B2AE3D;
	__u32 at = hash >> (32 - ANSWERS_BITS);

	return bpf_map_lookup_elem(&ANSWERS, &at);
}

/* Whether it answers this question, and the kernel's clock has not ticked since. */
INLINE int answers(const struct answer *answer, const struct fib_lookup *fib, __u64 tick)
{
	int i;

	if (answer->tick != tick || answer->family != fib->family || answer->protocol != fib->protocol ||
	    answer->source_port != fib->source_port || answer->destination_port != fib->destination_port ||
	    answer->service_or_flow != fib->service_or_flow || answer->longest < fib->length)
		return 0;
#pragma unroll
	for (i = 0; i < 4; i++)
		if (answer->destination[i] != fib->destination[i] || answer->source[i] != fib->source[i])
			return 0;
	return 1;
}

/* Notes that a neighbour gets frames. `fib` has it now where the destination was. */
INLINE void note_next_hop(const struct fib_lookup *fib, __u64 tick)
{
	struct next_hop hop = {.ifindex = fib->ifindex, .family = fib->family};
	__u64 *noted;

	hop.address[0] = fib->destination[0];
	if (fib->family == AF_INET6) {
		hop.address[1] = fib->destination[1];
		hop.address[2] = fib->destination[2];
		hop.address[3] = fib->destination[3];
	}
	noted = bpf_map_lookup_elem(&NEXT_HOPS, &hop);
	if (!noted)
		bpf_map_update_elem(&NEXT_HOPS, &hop, &tick, 0);
	else if (*noted != tick)
		*noted = tick;
}

/* Asks the kernel, and remembers what it says when that is a way out by an exit. */
INLINE enum fate ask(struct xdp_md *ctx, struct fib_lookup *fib, struct answer *answer, __u64 tick)
{
	__u32 *place;
	int i;

	/* Nobody's until it is whole. */
	answer->tick = 0;
	answer->family = fib->family;
	answer->protocol = fib->protocol;
	answer->source_port = fib->source_port;
	answer->destination_port = fib->destination_port;
	answer->service_or_flow = fib->service_or_flow;
#pragma unroll
	for (i = 0; i < 4; i++) {
		answer->source[i] = fib->source[i];
		answer->destination[i] = fib->destination[i];
	}
	fib->ifindex = ctx->ingress_ifindex;
	switch (bpf_fib_lookup(ctx, fib, sizeof(*fib), 0)) {
	case FIB_SUCCESS:
		break;
	case FIB_FORWARDING_DISABLED:
		return FORWARDING_OFF;
	case FIB_NO_NEIGHBOUR:
		return NO_NEIGHBOUR;
	case FIB_FRAGMENTATION_NEEDED:
		return TOO_LONG;
	default:
		return NO_ROUTE;
	}
	place = bpf_map_lookup_elem(&PLACES, &fib->ifindex);
	if (!place || fib->ifindex == ctx->ingress_ifindex)
		return OTHER_EXIT;
	note_next_hop(fib, tick);
	answer->longest = fib->length;
	answer->place = *place;
	__builtin_memcpy(answer->addresses, fib->to, 6);
	__builtin_memcpy((void *)answer->addresses + 6, fib->from, 6);
	answer->tick = tick;
	return FORWARDED;
}

/* What is to become of the frame, with what the kernel decided for it. */
INLINE enum fate classify(struct xdp_md *ctx, struct answer **answer)
{
	struct ethernet *ethernet = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u64 tick = bpf_jiffies64();
	struct fib_lookup fib = {};
	enum fate fate;

	if ((void *)(ethernet + 1) > end || (ethernet->type != ETH_P_IP && ethernet->type != ETH_P_IPV6))
		return NOT_IP;
	if (*(__u32 *)ethernet != (__u32)OWN_ADDRESS ||
	    *(__u16 *)(ethernet->addresses + 4) != (__u16)(OWN_ADDRESS >> 32))
		return NOT_FOR_ROUTER;
	fate = ethernet->type == ETH_P_IP ? look_at_ipv4(&fib, (void *)(ethernet + 1), end)
					   : look_at_ipv6(&fib, (void *)(ethernet + 1), end);
	if (fate != FORWARDED)
		return fate;
	*answer = answer_to(&fib);
	if (!*answer)
		return NO_ROUTE;
	return answers(*answer, &fib, tick) ? FORWARDED : ask(ctx, &fib, *answer, tick);
}

/* One hop less, and the checksum changed by as much: RFC 1624. The TTL is the high byte of its word. */
INLINE struct ethernet *hop(struct xdp_md *ctx, const struct answer *answer)
{
	struct ethernet *ethernet = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct ipv4 *ipv4 = (void *)(ethernet + 1);
	struct ipv6 *ipv6 = (void *)(ethernet + 1);
	__u32 *words;

	if ((void *)(ipv4 + 1) > end)
		return 0;
	if (answer->family == AF_INET) {
		__u32 checksum = ipv4->checksum + 1;

		ipv4->checksum = checksum + (checksum >= 0xFFFF);
		ipv4->ttl--;
	} else {
		ipv6->hop_limit--;
	}
	words = (__u32 *)ethernet;
	words[0] = answer->addresses[0];
	words[1] = answer->addresses[1];
	words[2] = answer->addresses[2];
	return ethernet;
}

/* The whole router: out through the other interface. */
SEC("xdp")
int forward_frames(struct xdp_md *ctx)
{
	struct answer *answer = 0;
	enum fate fate = classify(ctx, &answer);

	if (fate != FORWARDED || !answer)
		return counted(fate, XDP_PASS);
	/* The last argument is the verdict where the interface is gone. */
	if (bpf_redirect_map(&EXITS, answer->place, XDP_PASS) != XDP_REDIRECT)
		return counted(OTHER_EXIT, XDP_PASS);
	hop(ctx, answer);
	return counted(FORWARDED, XDP_REDIRECT);
}

/* The first half of a router in user space: what it can forward is given to its sockets, ready to be sent but for the
 * frame's type: in its stead is the place of the exit, and the packet itself says what type it is. */
SEC("xdp")
int take_frames_to_forward(struct xdp_md *ctx)
{
	struct answer *answer = 0;
	enum fate fate = classify(ctx, &answer);
	struct ethernet *ethernet;

	if (fate != FORWARDED || !answer)
		return counted(fate, XDP_PASS);
	if (bpf_redirect_map(&SOCKETS, ctx->rx_queue_index, XDP_PASS) != XDP_REDIRECT)
		return counted(WITHOUT_SOCKET, XDP_PASS);
	ethernet = hop(ctx, answer);
	if (ethernet)
		ethernet->type = answer->place;
	return counted(FORWARDED, XDP_REDIRECT);
}

char _license[] SEC("license") = "Dual MIT/GPL";
