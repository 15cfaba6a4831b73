// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Counts what became of frames that XDP programs redirected from one interface to another: sent, or lost at the exit.
 *
 * What it is for: an XDP program learns nothing of a frame once it has redirected it. An exit that is down, too slow,
 * or a veth whose other end has no NAPI loses frames without a word; the kernel's tracepoints have them all.
 *
 * Guarantees: the names of the map and the programs and the layouts of `struct way` and `struct passage` are a
 * contract with the loader in crates/engine. Only ways that the loader has put into WAYS are counted, of one network
 * namespace: elsewhere an interface may have the same index.
 */
#include "kernel.h"

struct net_device {
	possible_net_t nd_net;
	int ifindex;
} CORE;

/* From an interface to another; to 0: it was refused before it came to one. */
struct way {
	__u32 from;
	__u32 to;
};

struct passage {
	__u64 sent_frames;
	__u64 lost_frames;
};

/* Inode number of the network namespace; set by the loader. */
const volatile __u32 NETNS = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct way);
	__type(value, struct passage);
} WAYS SEC(".maps");

INLINE struct passage *passage(struct net_device *from, __u32 to)
{
	struct way way = {from->ifindex, to};

	if (from->nd_net.net->ns.inum != NETNS)
		return 0;
	return bpf_map_lookup_elem(&WAYS, &way);
}

/* Arguments: from_dev, to_dev, int sent, int drops, int err. */
SEC("tp_btf/xdp_devmap_xmit")
int count_sent(__u64 *ctx)
{
	struct net_device *to = (struct net_device *)ctx[1];
	struct passage *frames = passage((struct net_device *)ctx[0], to->ifindex);

	if (frames) {
		frames->sent_frames += (int)ctx[2];
		frames->lost_frames += (int)ctx[3];
	}
	return 0;
}

/* Arguments: dev, and who redirected it where and why not. */
SEC("tp_btf/xdp_redirect_err")
int count_refused(__u64 *ctx)
{
	struct passage *frames = passage((struct net_device *)ctx[0], 0);

	if (frames)
		frames->lost_frames += 1;
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
