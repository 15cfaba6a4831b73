// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Measures how long packets of the watched NAPI instances wait in this host until a program reads them, and the
 * round trips that TCP sees. Each kind of delay is a histogram in the kernel.
 *
 * What it is for: polling saves CPU time and costs delay, so one must not be told without the other. What a poll
 * adds before the driver hands a packet to the stack has no event: only the stamp of a card that stamps packets shows it.
 *
 * UDP: a packet is known by its address in memory. No event tells which packet a read returns, but both when a
 * datagram was queued and when one was read, the head of the socket's queue is what the next read returns.
 * TCP: the kernel joins segments, so a segment is known by its flow and the sequence number behind its last byte; it
 * has been read when the program's position has reached that. One segment a flow is followed at a time.
 *
 * Guarantees:
 * - The names of maps, programs and constants, the layout of `struct delays` and the order of the kinds are a contract
 *   with the loader in crates/observe.
 * - All tables are of fixed size and never searched: what finds its place taken replaces it or is not followed. Nothing
 *   is allocated.
 * - Memory is used again. The place of a packet is cleared when another packet arrives in the same memory, and a
 *   packet that did not come by a watched instance has another NAPI id or none.
 * - Packets are followed by chance, one in ONE_IN, whatever the setting: so both settings are sampled alike.
 */
#include "kernel.h"
#include "octaves.h"

#define MSG_PEEK 2

struct sk_buff {
	unsigned int len;
	unsigned int data_len;
	unsigned int napi_id;
	__u16 protocol;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
} CORE;

struct in6_addr {
	__u32 words[4];
};

struct sock_common {
	__u32 skc_daddr;
	__u32 skc_rcv_saddr;
	__u16 skc_dport;
	__u16 skc_num;
	__u16 skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} CORE;

struct sk_buff_head {
	struct sk_buff *next;
} CORE;

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	__u16 sk_protocol;
} CORE;

struct udp_sock {
	struct sk_buff_head reader_queue;
} CORE;

struct tcp_sock {
	__u32 copied_seq;
	__u32 snd_una;
	__u32 srtt_us; /* eight times the smoothed round trip */
} CORE;

enum {
	UDP_STACK_TO_READ,
	TCP_STACK_TO_READ,
	SMOOTHED_ROUND_TRIP,
	UDP_WIRE_TO_READ,
	TCP_WIRE_TO_READ,
	KINDS
};

struct delays {
	__u64 buckets[GAP_BUCKETS];
};

/* Powers of two. */
#define PACKETS 65536
#define SOCKETS 4096
#define FLOWS 16384
/* A segment that was not read for so long will not be: its flow is free for another. */
#define GIVEN_UP_NS 5000000000ULL

/* Set by the loader before the programs are verified: a power of two. */
const volatile __u32 ONE_IN = 1;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KINDS);
	__type(key, __u32);
	__type(value, struct delays);
} DELAYS SEC(".maps");

/* Watched NAPI instances, by id; ids are unique in the machine. The value is the clock of the card that stamps their
 * packets, 0 where none does. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, INSTANCES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} INSTANCES SEC(".maps");

struct packet {
	__u64 skb; /* 0: none is followed here */
	__u64 ns;
	__u64 came;
	__u64 napi_id;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PACKETS);
	__type(key, __u32);
	__type(value, struct packet);
} FOLLOWED SEC(".maps");

/* A socket whose next read returns a packet that is followed. */
struct next {
	__u64 sk;
	__u64 skb;
	__u64 ns;
	__u64 came;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SOCKETS);
	__type(key, __u32);
	__type(value, struct next);
} NEXT SEC(".maps");

/* A segment that is followed. */
struct segment {
	__u64 flow; /* 0: none */
	__u64 ns;
	__u64 came;
	__u32 end; /* the sequence number behind it */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct segment);
} SEGMENTS SEC(".maps");

INLINE void record(__u32 kind, __u64 ns)
{
	struct delays *delays = bpf_map_lookup_elem(&DELAYS, &kind);
	__u32 bucket = gap_bucket(ns);

	if (delays && bucket < GAP_BUCKETS)
		__sync_fetch_and_add(&delays->buckets[bucket], 1);
}

#include "card_clock.h"

INLINE int is_chosen(void)
{
	return ONE_IN <= 1 || !(bpf_get_prandom_u32() & (ONE_IN - 1));
}

INLINE __u32 *watched(__u32 napi_id)
{
	return bpf_map_lookup_elem(&INSTANCES, &napi_id);
}

/* Mixes a word into a hash: Fibonacci hashing, then the good high bits come down. */
INLINE __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
	return hash ^ hash >> 32;
}

/* The first argument of a tracepoint as a number: the verifier has no arithmetic on pointers. */
INLINE __u64 address_in(__u64 *ctx)
{
	__u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), ctx);
	return address;
}

INLINE struct packet *place_of(__u64 skb)
{
	__u32 place = mix(0, skb) & (PACKETS - 1);

	return bpf_map_lookup_elem(&FOLLOWED, &place);
}

INLINE struct next *next_of(__u64 sk)
{
	__u32 place = mix(0, sk) & (SOCKETS - 1);

	return bpf_map_lookup_elem(&NEXT, &place);
}

INLINE struct segment *segment_of(__u64 flow)
{
	__u32 place = flow & (FLOWS - 1);

	return bpf_map_lookup_elem(&SEGMENTS, &place);
}

/* A flow by what stands in its packets: the sender's address and port first. */
INLINE __u64 flow_v4(__u32 from, __u32 to, __u16 from_port, __u16 to_port)
{
	return mix(mix(1, (__u64)from << 32 | to), (__u32)from_port << 16 | to_port);
}

INLINE __u64 flow_v6(const __u32 *from, const __u32 *to, __u16 from_port, __u16 to_port)
{
	__u64 hash = mix(mix(1, (__u64)from[0] << 32 | from[1]), (__u64)from[2] << 32 | from[3]);

	hash = mix(mix(hash, (__u64)to[0] << 32 | to[1]), (__u64)to[2] << 32 | to[3]);
	return mix(hash, (__u32)from_port << 16 | to_port);
}

struct tcp_header {
	__u16 from_port, to_port;
	__u32 seq;
	__u32 ack_seq;
	__u8 offset; /* of the data, in the high four bits, in words of four bytes */
	__u8 flags;
};
#define TCP_HEADER 14

struct ipv4_header {
	__u8 length; /* of the header, in the low four bits, in words of four bytes */
	__u8 tos;
	__u16 total;
	__u32 id;
	__u8 ttl;
	__u8 protocol;
	__u16 sum;
	__u32 from;
	__u32 to;
};

struct ipv6_header {
	__u32 flow;
	__u16 payload;
	__u8 protocol;
	__u8 hops;
	__u32 from[4];
	__u32 to[4];
};

struct headers {
	union {
		struct ipv4_header v4;
		struct ipv6_header v6;
	};
	struct tcp_header tcp;
};

/* Follows a segment with data unless another one of its flow is followed already. `length` is that of TCP's header
 * and data. */
INLINE void follow(__u64 flow, const struct tcp_header *tcp, __u32 length, __u64 now, __u64 came)
{
	__u32 header = tcp->offset >> 4 << 2;
	struct segment *segment = segment_of(flow);

	if (!segment || length <= header)
		return;
	if (segment->flow && now - segment->ns < GIVEN_UP_NS)
		return;
	segment->flow = 0;
	segment->ns = now;
	segment->came = came;
	segment->end = __builtin_bswap32(tcp->seq) + length - header;
	segment->flow = flow;
}

/* Whether it is TCP's, which is followed by its flow then. */
INLINE int is_tcp(struct sk_buff *skb, __u64 now, __u64 came)
{
	struct headers headers = {};
	unsigned char *data = skb->data;
	__u32 linear = skb->len - skb->data_len;

	if (skb->protocol == ETH_P_IP && linear >= sizeof(headers.v4) + TCP_HEADER) {
		bpf_probe_read_kernel(&headers.v4, sizeof(headers.v4), data);
		if (headers.v4.protocol != IPPROTO_TCP)
			return 0;
		__u32 header = (headers.v4.length & 15) << 2;
		if (linear < header + TCP_HEADER)
			return 1;
		bpf_probe_read_kernel(&headers.tcp, TCP_HEADER, data + header);
		follow(flow_v4(headers.v4.from, headers.v4.to, headers.tcp.from_port, headers.tcp.to_port),
		       &headers.tcp, __builtin_bswap16(headers.v4.total) - header, now, came);
		return 1;
	}
	if (skb->protocol == ETH_P_IPV6 && linear >= sizeof(headers.v6) + TCP_HEADER) {
		bpf_probe_read_kernel(&headers.v6, sizeof(headers.v6), data);
		if (headers.v6.protocol != IPPROTO_TCP)
			return 0;
		bpf_probe_read_kernel(&headers.tcp, TCP_HEADER, data + sizeof(headers.v6));
		follow(flow_v6(headers.v6.from, headers.v6.to, headers.tcp.from_port, headers.tcp.to_port),
		       &headers.tcp, __builtin_bswap16(headers.v6.payload), now, came);
		return 1;
	}
	return 0;
}

INLINE int arrived(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];
	__u64 address = address_in(ctx);
	struct packet *packet = place_of(address);

	if (!packet)
		return 0;
	/* What was followed in this memory is no more. */
	if (packet->skb == address)
		packet->skb = 0;
	__u32 napi_id = skb->napi_id;
	if (!is_chosen())
		return 0;
	__u32 *clock = watched(napi_id);
	if (!clock)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	__u64 came = came_to_card(*clock, skb->head, skb->end, now);
	if (is_tcp(skb, now, came))
		return 0;
	packet->skb = 0;
	packet->ns = now;
	packet->came = came;
	packet->napi_id = napi_id;
	packet->skb = address;
	return 0;
}

/* The tracepoints' argument is: struct sk_buff *skb. */
SEC("tp_btf/napi_gro_receive_entry")
int on_arrival(__u64 *ctx)
{
	return arrived(ctx);
}

SEC("tp_btf/napi_gro_frags_entry")
int on_arrival_in_frags(__u64 *ctx)
{
	return arrived(ctx);
}

/* The packet that the next read of a UDP socket returns, or 0. Readers keep a queue of their own, and take the other
 * one over when it is empty. */
INLINE __u64 head_of(__u64 sk)
{
	__u64 queue = sk + OFFSET_OF(struct udp_sock, reader_queue);
	__u64 head = 0;

	bpf_probe_read_kernel(&head, sizeof(head), (void *)queue);
	if (head && head != queue)
		return head;
	queue = sk + OFFSET_OF(struct sock, sk_receive_queue);
	bpf_probe_read_kernel(&head, sizeof(head), (void *)queue);
	return head == queue ? 0 : head;
}

/* When the head of the queue is followed, the next read of the socket ends its way. */
INLINE void expect(__u64 sk, __u64 head)
{
	__u32 napi_id = 0;

	if (!head)
		return;
	struct packet *packet = place_of(head);
	if (!packet || packet->skb != head)
		return;
	packet->skb = 0;
	bpf_probe_read_kernel(&napi_id, sizeof(napi_id),
			      (void *)(head + OFFSET_OF(struct sk_buff, napi_id)));
	struct next *next = next_of(sk);
	if (!next || napi_id != packet->napi_id)
		return;
	next->skb = 0;
	next->sk = sk;
	next->ns = packet->ns;
	next->came = packet->came;
	next->skb = head;
}

/* The tracepoint's argument is: const struct sock *sk. */
SEC("tp_btf/sk_data_ready")
int on_datagram(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];

	if (sk->sk_protocol != IPPROTO_UDP)
		return 0;
	__u64 address = address_in(ctx);
	expect(address, head_of(address));
	return 0;
}

/* The tracepoint's arguments are: struct sock *sk, int ret, int flags. */
SEC("tp_btf/sock_recv_length")
int on_read(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	int result = (int)ctx[1];
	int flags = (int)ctx[2];

	if (sk->sk_protocol != IPPROTO_UDP || result < 0 || flags & MSG_PEEK)
		return 0;
	__u64 address = address_in(ctx);
	__u64 head = head_of(address);
	struct next *next = next_of(address);
	/* A datagram that is still the head came after this read. */
	if (next && next->sk == address && next->skb && next->skb != head) {
		__u64 now = bpf_ktime_get_ns();
		next->skb = 0;
		record(UDP_STACK_TO_READ, now - next->ns);
		record_since(next->came, UDP_WIRE_TO_READ, now);
	}
	expect(address, head);
	return 0;
}

/* The flow that a socket receives. */
INLINE __u64 received_flow(struct sock *sk)
{
	__u16 own_port = __builtin_bswap16(sk->__sk_common.skc_num);
	__u16 port = sk->__sk_common.skc_dport;

	if (HAS_FIELD(sk->__sk_common.skc_v6_daddr) && sk->__sk_common.skc_family == AF_INET6) {
		struct in6_addr from = {}, to = {};

		bpf_probe_read_kernel(&from, sizeof(from), &sk->__sk_common.skc_v6_daddr);
		bpf_probe_read_kernel(&to, sizeof(to), &sk->__sk_common.skc_v6_rcv_saddr);
		/* ::ffff:192.0.2.1 stands for IPv4. */
		if (from.words[0] || from.words[1] || from.words[2] != 0xFFFF0000)
			return flow_v6(from.words, to.words, port, own_port);
		return flow_v4(from.words[3], to.words[3], port, own_port);
	}
	return flow_v4(sk->__sk_common.skc_daddr, sk->__sk_common.skc_rcv_saddr, port, own_port);
}

/* Comes after each copy to the program. The tracepoint's argument is: struct sock *sk. */
SEC("tp_btf/tcp_rcv_space_adjust")
int on_tcp_read(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	__u64 flow = received_flow(sk);
	__u32 copied = 0;

	struct segment *segment = segment_of(flow);
	if (!segment || segment->flow != flow)
		return 0;
	bpf_probe_read_kernel(&copied, sizeof(copied),
			      (void *)((__u64)sk + OFFSET_OF(struct tcp_sock, copied_seq)));
	if ((int)(copied - segment->end) < 0)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	segment->flow = 0;
	record(TCP_STACK_TO_READ, now - segment->ns);
	record_since(segment->came, TCP_WIRE_TO_READ, now);
	return 0;
}

/* Comes before the segment is worked on. The tracepoint's arguments are: struct sock *sk, struct sk_buff *skb. */
SEC("tp_btf/tcp_probe")
int on_segment(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct sk_buff *skb = (struct sk_buff *)ctx[1];
	struct tcp_header tcp = {};
	__u32 first_unacknowledged = 0, srtt_us = 0;

	if (!is_chosen() || !watched(skb->napi_id))
		return 0;
	if (bpf_probe_read_kernel(&tcp, TCP_HEADER, skb->data))
		return 0;
	bpf_probe_read_kernel(&first_unacknowledged, 4,
			      (void *)((__u64)sk + OFFSET_OF(struct tcp_sock, snd_una)));
	/* Who only receives has the round trip of the handshake, for ever. */
	if ((int)(__builtin_bswap32(tcp.ack_seq) - first_unacknowledged) <= 0)
		return 0;
	bpf_probe_read_kernel(&srtt_us, 4,
			      (void *)((__u64)sk + OFFSET_OF(struct tcp_sock, srtt_us)));
	if (srtt_us >> 3)
		record(SMOOTHED_ROUND_TRIP, (__u64)(srtt_us >> 3) * 1000);
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
