// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Counts the packets that the kernel drops, by the reason that it gives for each.
 *
 * What it is for: many a loss is in no counter (a rule of nftables without a counter, a drop policy,
 * a generic XDP program, a reverse path filter). The tracepoint kfree_skb has every packet that is
 * freed before its time, with the kernel's reason.
 *
 * Guarantees:
 * - The names of the maps and of count_drops and the layouts of `struct drop`, `struct dropped` and
 *   `struct uncounted` are a contract with the loader in crates/observe.
 * - Every packet of a watched namespace is in one entry of DROPS, or in UNCOUNTED. Nothing is lost
 *   silently: the kernel itself counts the events during which the program was running already.
 * - A batch (a packet that will be cut into many) counts as the datagrams or segments that it holds.
 * - A packet that was consumed is no loss. The kernel has another tracepoint for those, and the
 *   reason is looked at all the same.
 * - The namespace is that of the receiving socket, else of the packet's device, else of the sending
 *   socket. A queued datagram keeps other data where its device was, so the socket comes first.
 */
#include "kernel.h"

struct net_device {
	possible_net_t nd_net;
	int ifindex;
} CORE;

struct sock_common {
	possible_net_t skc_net;
} CORE;

struct sock {
	struct sock_common __sk_common;
} CORE;

struct skb_shared_info {
	unsigned short gso_size;
	unsigned short gso_segs;
} CORE;

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned int len;
	__u16 protocol;
	__u16 network_header;
	int skb_iif;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
} CORE;

/* What the tracepoint records, which shows what it is given: rx_sk since Linux 6.11. */
struct trace_event_raw_kfree_skb {
	void *rx_sk;
} CORE;

enum skb_drop_reason {
	SKB_CONSUMED = 1,
	SKB_DROP_REASON_NOT_SPECIFIED = 2,
};
#define REASON(name) __builtin_preserve_enum_value(*(enum skb_drop_reason *)name, 1)
/* Not every kernel has it. */
#define HAS_REASON(name) __builtin_preserve_enum_value(*(enum skb_drop_reason *)name, 0)

/* What drops are told apart by. */
struct drop {
	__u64 location; /* the instruction that dropped it; 0 where the reason says enough */
	__u32 netns;    /* inode number */
	__u32 ifindex;  /* 0: no device yet, or no longer */
	__u32 reason;
	__u16 ethertype; /* of network byte order */
	__u8 ip_protocol;
	__u8 reserved;
};

struct dropped {
	__u64 packets;
	__u64 bytes; /* from the header of IP on */
};

struct uncounted {
	__u64 overflow_packets;     /* DROPS was full */
	__u64 unattributed_packets; /* neither a device nor a socket told the namespace; of the machine */
};

/* Namespaces that are watched, by inode number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} WATCHED SEC(".maps");

/* The loader says how many there may be. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct drop);
	__type(value, struct dropped);
} DROPS SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct uncounted);
} UNCOUNTED SEC(".maps");

/* Fills in namespace and interface. A pointer that is none reads as 0, which no namespace has. */
INLINE void locate(struct drop *drop, struct sk_buff *skb, struct sock *rx_sk)
{
	struct net_device *dev;
	struct sock *sk;

	if (rx_sk) {
		drop->netns = rx_sk->__sk_common.skc_net.net->ns.inum;
		drop->ifindex = skb->skb_iif;
		return;
	}
	dev = skb->dev;
	if (dev)
		drop->netns = dev->nd_net.net->ns.inum;
	if (drop->netns) {
		drop->ifindex = dev->ifindex;
		return;
	}
	sk = skb->sk;
	if (sk)
		drop->netns = sk->__sk_common.skc_net.net->ns.inum;
}

/* Where the packet's IP header begins; 0 when no layer has said so yet. */
INLINE unsigned char *network_header(struct sk_buff *skb)
{
	__u16 offset = skb->network_header;

	return offset && offset != 0xFFFF ? skb->head + offset : 0;
}

INLINE __u8 ip_protocol(__u16 ethertype, unsigned char *header)
{
	__u8 protocol = 0;

	if (!header)
		return 0;
	if (ethertype == ETH_P_IP)
		bpf_probe_read_kernel(&protocol, 1, header + 9);
	if (ethertype == ETH_P_IPV6)
		bpf_probe_read_kernel(&protocol, 1, header + 6);
	return protocol;
}

/* Datagrams or segments of a batch, 1 for any other packet. */
INLINE __u32 packets_in(struct sk_buff *skb)
{
	struct skb_shared_info *shared = (struct skb_shared_info *)(skb->head + skb->end);
	__u16 size = 0, segments = 0;

	bpf_probe_read_kernel(&size, sizeof(size), &shared->gso_size);
	bpf_probe_read_kernel(&segments, sizeof(segments), &shared->gso_segs);
	return size && segments ? segments : 1;
}

INLINE struct uncounted *uncounted(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&UNCOUNTED, &only);
}

INLINE void count(const struct drop *drop, __u32 packets, __u32 bytes)
{
	struct dropped first = {packets, bytes};
	struct dropped *dropped = bpf_map_lookup_elem(&DROPS, drop);

	if (!dropped) {
		if (!bpf_map_update_elem(&DROPS, drop, &first, BPF_NOEXIST))
			return;
		/* Full, or another CPU has just made the entry. */
		dropped = bpf_map_lookup_elem(&DROPS, drop);
	}
	if (dropped) {
		dropped->packets += packets;
		dropped->bytes += bytes;
		return;
	}
	struct uncounted *lost = uncounted();
	if (lost)
		lost->overflow_packets += packets;
}

/* Arguments: struct sk_buff *skb, void *location, enum skb_drop_reason reason, struct sock *rx_sk. */
SEC("tp_btf/kfree_skb")
int count_drops(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];
	struct sock *rx_sk = 0;
	struct drop drop = {};

	drop.reason = ctx[2];
	if (HAS_REASON(SKB_CONSUMED) && drop.reason == REASON(SKB_CONSUMED))
		return 0;
	if (HAS_FIELD(((struct trace_event_raw_kfree_skb *)0)->rx_sk))
		rx_sk = (struct sock *)ctx[3];
	locate(&drop, skb, rx_sk);
	if (!drop.netns) {
		struct uncounted *lost = uncounted();
		if (lost)
			lost->unattributed_packets += packets_in(skb);
		return 0;
	}
	if (!bpf_map_lookup_elem(&WATCHED, &drop.netns))
		return 0;
	unsigned char *header = network_header(skb);
	drop.ethertype = skb->protocol;
	drop.ip_protocol = ip_protocol(drop.ethertype, header);
	if (drop.reason == REASON(SKB_DROP_REASON_NOT_SPECIFIED))
		drop.location = ctx[1];
	/* Each layer takes its header off the packet's length. */
	__u32 taken_off = header ? skb->data - header : 0;
	count(&drop, packets_in(skb), skb->len + taken_off);
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
