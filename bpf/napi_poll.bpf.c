// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Counts what the kernel's NAPI polls do, for one network namespace or one NAPI of it.
 *
 * What it is for: every receive discipline claims a rhythm (one poll a packet, one round a
 * millisecond). These four counters are the evidence that a trial really ran that way.
 *
 * Guarantees:
 * - The names TARGET, COUNTS and count_napi_polls and the layouts of `struct target` and
 *   `struct counts` are a contract with the loader in crates/observe.
 * - Nothing is printed, sent or allocated for a poll: at one poll a packet this runs for each
 *   packet of the trial and must not change what it measures.
 * - It counts on the CPU where the poll ran, so two CPUs never write one counter.
 */
#include "kernel.h"

struct net_device {
	possible_net_t nd_net;
} CORE;

struct napi_struct {
	struct net_device *dev;
	unsigned int napi_id;
} CORE;

/* Whose polls count. Namespaces are told apart by inode number, as in /proc/PID/ns/net: both ends
 * of a pair may carry the same interface name. */
struct target {
	__u32 netns;
	__u32 napi_id; /* 0: every NAPI of the namespace */
};

struct counts {
	__u64 polls;
	__u64 rounds;      /* polls that ended with work below their budget: the ring was emptied */
	__u64 empty_polls; /* polls that found nothing */
	__u64 frames;      /* the sum of the polls' work */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct target);
} TARGET SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} COUNTS SEC(".maps");

/* The tracepoint's arguments are: struct napi_struct *napi, int work, int budget. */
SEC("tp_btf/napi_poll")
int count_napi_polls(__u64 *ctx)
{
	struct napi_struct *napi = (struct napi_struct *)ctx[0];
	int work = (int)ctx[1];
	int budget = (int)ctx[2];
	__u32 only = 0;

	struct target *target = bpf_map_lookup_elem(&TARGET, &only);
	if (!target)
		return 0;
	if (target->napi_id && target->napi_id != napi->napi_id)
		return 0;
	/* A NAPI without a device reads as namespace 0, which no namespace has: the kernel answers a
	 * read through a null pointer of its own types with 0. */
	if (napi->dev->nd_net.net->ns.inum != target->netns)
		return 0;

	struct counts *counts = bpf_map_lookup_elem(&COUNTS, &only);
	if (!counts)
		return 0;
	counts->polls++;
	counts->frames += work;
	if (work < budget)
		counts->rounds++;
	if (work == 0)
		counts->empty_polls++;
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
