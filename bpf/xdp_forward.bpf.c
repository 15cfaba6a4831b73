// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Forwards IPv4 and IPv6 between interfaces as the kernel's routes say: at once, or by way of AF_XDP sockets.
 *
 * Guarantees:
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

/* What few packets need is not among what all of them go through. */
#define SELDOM static __attribute__((noinline))

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

/* What the kernel is asked about a packet: numbers as they are in it, 0 where it has none. */
struct question {
	__u64 addresses[4]; /* source, destination; both of IPv4 are in the first */
	__u32 ports;        /* source, destination: rules may route by them */
	__u32 service_or_flow;
	__u32 family;
	__u32 protocol;
};

/* What the kernel decided for a question. */
struct answer {
	__u64 tick; /* in which it was given */
	struct question question;
	__u32 longest;      /* packet that it is given for: the route's MTU, before Linux 5.13 that of the question */
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

/* Whether 16-bit words add up to -0 in ones' complement, as what a right checksum covers does together with it: their
 * plain sum, which is not 0, is a multiple of 65535. The factor is the inverse of 65535 modulo 2^64, by which multiples
 * alone get no larger than the greatest of them divided by 65535. */
INLINE int adds_up(__u64 sum)
{
	return sum * 0xFFFEFFFEFFFEFFFF <= 0x0001000100010001;
}

/* Whether the checksum of a datagram or segment of `bytes`, which begins at `offset` of the frame, is right. The sum of
 * its pseudo header is `sum`. Not static: the kernel then verifies its loop once, not for each way to it, which took half
 * a second a program. */
__attribute__((noinline)) int is_right(struct xdp_md *ctx, __u32 offset, __u32 bytes, __u64 sum)
{
	void *at = (void *)(long)ctx->data + (offset & 0x3F);
	void *end = (void *)(long)ctx->data_end;
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
	return !bytes && adds_up(sum);
}

/* Notes the ports. Returns whether the checksum is that of the addresses alone (`addresses` is their sum), which the
 * kernel writes where a card is to add the rest. One in 65,536 right ones looks the same. */
INLINE int is_unfinished(struct xdp_md *ctx, struct question *question, void *transport, __u16 bytes, __u64 addresses)
{
	__u32 offset = sizeof(struct ethernet) +
		       (question->family == AF_INET ? sizeof(struct ipv4) : sizeof(struct ipv6));
	void *end = (void *)(long)ctx->data_end;
	__u64 pseudo = addresses + __builtin_bswap16(bytes) + (question->protocol << 8);
	struct udp *udp = transport;
	__u16 *checksum;

	if ((void *)(udp + 1) > end || (question->protocol != IPPROTO_UDP && question->protocol != IPPROTO_TCP))
		return 0;
	question->ports = *(__u32 *)udp;
	checksum = &udp->checksum;
	if (question->protocol == IPPROTO_TCP)
		checksum = transport + 16;
	if ((void *)(checksum + 1) > end || !*checksum)
		return 0;
	return adds_up(pseudo + 0xFFFF - *checksum) && !is_right(ctx, offset, bytes, pseudo);
}

/* Where the answer to a question is remembered. */
INLINE struct answer *answer_to(const struct question *question)
{
	const __u64 *addresses = question->addresses;
	/* Odd numbers without a pattern spread each over all bits; the highest are the best. */
	__u64 hash = (addresses[0] ^ addresses[1]) * 0x9E3779B97F4A7C15 ^
		     (addresses[2] ^ addresses[3]) * 0xC2B2AE3D27D4EB4F ^ question->ports * 0x85EBCA77C2B2AE63;
	__u32 at = hash >> (64 - ANSWERS_BITS);

	return bpf_map_lookup_elem(&ANSWERS, &at);
}

/* Whether it answers this question, and the kernel's clock has not ticked since. */
INLINE int answers(const struct answer *answer, const struct question *question, __u32 packet_bytes, __u64 tick)
{
	const struct question *other = &answer->question;
	__u64 differences = answer->tick ^ tick;
	int i;

	differences |= (other->family ^ question->family) | (other->protocol ^ question->protocol);
	differences |= (other->ports ^ question->ports) | (other->service_or_flow ^ question->service_or_flow);
#pragma unroll
	for (i = 0; i < (question->family == AF_INET ? 1 : 4); i++)
		differences |= other->addresses[i] ^ question->addresses[i];
	return !differences && packet_bytes <= answer->longest;
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
SELDOM enum fate ask(struct xdp_md *ctx, const struct question *question, __u32 packet_bytes, struct answer *answer,
		     __u64 tick)
{
	const __u64 *addresses = question->addresses;
	struct fib_lookup fib = {};
	__u32 *place;

	/* Nobody's until it is whole. */
	answer->tick = 0;
	answer->question = *question;
	fib.family = question->family;
	fib.protocol = question->protocol;
	fib.source_port = question->ports;
	fib.destination_port = question->ports >> 16;
	fib.length = packet_bytes;
	fib.ifindex = ctx->ingress_ifindex;
	fib.service_or_flow = question->service_or_flow;
	if (question->family == AF_INET) {
		fib.source[0] = addresses[0];
		fib.destination[0] = addresses[0] >> 32;
	} else {
		__builtin_memcpy(fib.source, addresses, sizeof(fib.source));
		__builtin_memcpy(fib.destination, addresses + 2, sizeof(fib.destination));
	}
	switch (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0)) {
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
	place = bpf_map_lookup_elem(&PLACES, &fib.ifindex);
	if (!place || fib.ifindex == ctx->ingress_ifindex)
		return OTHER_EXIT;
	note_next_hop(&fib, tick);
	answer->longest = fib.length;
	answer->place = *place;
	__builtin_memcpy(answer->addresses, fib.to, 6);
	__builtin_memcpy((void *)answer->addresses + 6, fib.from, 6);
	answer->tick = tick;
	return FORWARDED;
}

/* What the kernel decides for a packet that may be forwarded. */
INLINE enum fate decide(struct xdp_md *ctx, const struct question *question, __u32 packet_bytes,
			struct answer **answer)
{
	__u64 tick = bpf_jiffies64();
	struct question asked;

	*answer = answer_to(question);
	if (!*answer)
		return NO_ROUTE;
	if (answers(*answer, question, packet_bytes, tick))
		return FORWARDED;
	/* A copy: what has no address in memory stays in registers. */
	asked = *question;
	return ask(ctx, &asked, packet_bytes, *answer, tick);
}

INLINE enum fate classify_ipv4(struct xdp_md *ctx, struct ipv4 *ip, void *end, struct answer **answer)
{
	struct question question = {.family = AF_INET};
	__u32 *words = (__u32 *)ip;
	__u8 network;
	__u64 length;

	if ((void *)(ip + 1) > end || ip->version_and_length != IPV4_WITHOUT_OPTIONS)
		return HEADER;
	length = number(ip->length);
	network = ip->addresses[0];
	/* A source of networks 0 and 127, of a group, or broadcast. */
	if (length < sizeof(*ip) || (void *)ip + length > end || !network || network == 127 || network >= 224)
		return HEADER;
	if (!adds_up((__u64)words[0] + words[1] + words[2] + words[3] + words[4]))
		return HEADER;
	if (ip->ttl <= 1)
		return TTL;
	question.protocol = ip->protocol;
	question.service_or_flow = ip->service;
	question.addresses[0] = ip->addresses[0] | (__u64)ip->addresses[1] << 32;
	if (!(ip->fragment & IP_FRAGMENT) &&
	    is_unfinished(ctx, &question, ip + 1, length - sizeof(*ip), (__u64)ip->addresses[0] + ip->addresses[1]))
		return CHECKSUM;
	return decide(ctx, &question, length, answer);
}

INLINE enum fate classify_ipv6(struct xdp_md *ctx, struct ipv6 *ip, void *end, struct answer **answer)
{
	struct question question = {.family = AF_INET6};
	__u64 sum = 0;
	__u64 bytes;
	int i;

	if ((void *)(ip + 1) > end || (ip->version_and_flow & 0xF0) != 0x60)
		return HEADER;
	bytes = number(ip->length);
	/* Every router has to look at options of hops; and no length is one of those. */
	if (ip->next_header == IPPROTO_HOP_BY_HOP || (void *)(ip + 1) + bytes > end)
		return HEADER;
	/* A source that is a group, the loopback, or none. */
	if ((ip->addresses[0] & 0xFF) == 0xFF ||
	    (!(ip->addresses[0] | ip->addresses[1] | ip->addresses[2]) && !(ip->addresses[3] & 0xFEFFFFFF)))
		return HEADER;
	if (ip->hop_limit <= 1)
		return TTL;
	question.protocol = ip->next_header;
	question.service_or_flow = ip->version_and_flow & 0xFFFFFF0F;
#pragma unroll
	for (i = 0; i < 4; i++) {
		question.addresses[i] = ip->addresses[2 * i] | (__u64)ip->addresses[2 * i + 1] << 32;
		sum += (__u64)ip->addresses[2 * i] + ip->addresses[2 * i + 1];
	}
	if (is_unfinished(ctx, &question, ip + 1, bytes, sum))
		return CHECKSUM;
	return decide(ctx, &question, bytes + sizeof(*ip), answer);
}

/* What is to become of the frame, with what the kernel decided for it. */
INLINE enum fate classify(struct xdp_md *ctx, struct answer **answer)
{
	struct ethernet *ethernet = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	if ((void *)(ethernet + 1) > end || (ethernet->type != ETH_P_IP && ethernet->type != ETH_P_IPV6))
		return NOT_IP;
	if (*(__u32 *)ethernet != (__u32)OWN_ADDRESS ||
	    *(__u16 *)(ethernet->addresses + 4) != (__u16)(OWN_ADDRESS >> 32))
		return NOT_FOR_ROUTER;
	return ethernet->type == ETH_P_IP ? classify_ipv4(ctx, (void *)(ethernet + 1), end, answer)
					  : classify_ipv6(ctx, (void *)(ethernet + 1), end, answer);
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
	if (answer->question.family == AF_INET) {
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
