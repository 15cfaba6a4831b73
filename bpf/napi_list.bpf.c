// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Lists the NAPI instances of an interface in the caller's network namespace.
 *
 * What it is for: kernels before 6.8 have instances and do not list them (netlink family netdev). Without
 * their numbers no poll can be told to be an interface's.
 *
 * Guarantees:
 * - The names list_napis and INSTANCES and the layout of `struct instance` are a contract with the loader
 *   in crates/observe, which runs the program itself (BPF_PROG_TEST_RUN) in the thread that asks: so the
 *   namespace is that thread's, and the kernel's RCU lock keeps devices and instances until it ends.
 * - It only reads. An instance that goes meanwhile ends the list early or reads as garbage, never worse.
 */
#include "kernel.h"

/* NETDEV_HASHENTRIES, and the longest chain that is followed. */
#define INDEX_CHAINS 256
#define CHAIN_MAX 256
#define INSTANCES_OF_ONE_MAX 1024
#define IFF_UP 1
/* No such interface in this namespace. */
#define ABSENT 0xffffffff

HELPER void *(*bpf_get_current_task)(void) = (void *)35;
#define READ(to, from) bpf_probe_read_kernel(&(to), sizeof(to), &(from))

struct list_head {
	struct list_head *next;
} CORE;

struct hlist_node {
	struct hlist_node *next;
} CORE;

struct hlist_head {
	struct hlist_node *first;
} CORE;

struct net___indexed {
	struct hlist_head *dev_index_head;
} CORE;

struct nsproxy {
	struct net___indexed *net_ns;
} CORE;

struct task_struct {
	int pid;
	struct nsproxy *nsproxy;
} CORE;

struct net_device {
	struct hlist_node index_hlist;
	struct list_head napi_list;
	int ifindex;
	unsigned int flags;
} CORE;

struct napi_struct {
	struct list_head dev_list;
	struct task_struct *thread; /* since Linux 5.12 */
	unsigned int napi_id;
} CORE;

struct instance {
	__u32 id;  /* 0: it cannot be told apart from others, as those that only send */
	__u32 pid; /* of its thread; 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, INSTANCES_OF_ONE_MAX);
	__type(key, __u32);
	__type(value, struct instance);
} INSTANCES SEC(".maps");

/* Returns the device with this index, or null. */
INLINE struct net_device *device_of(__u32 ifindex)
{
	struct task_struct *task = bpf_get_current_task();
	struct nsproxy *proxy = 0;
	struct net___indexed *net = 0;
	struct hlist_head *heads = 0;
	struct hlist_node *node = 0;

	READ(proxy, task->nsproxy);
	READ(net, proxy->net_ns);
	READ(heads, net->dev_index_head);
	READ(node, heads[ifindex % INDEX_CHAINS].first);
	for (int at = 0; at < CHAIN_MAX && node; at++) {
		struct net_device *device =
			(void *)node - OFFSET_OF(struct net_device, index_hlist);
		__u32 found = 0;

		READ(found, device->ifindex);
		if (found == ifindex)
			return device;
		READ(node, node->next);
	}
	return 0;
}

/* The only argument is an interface's index. Returns how many instances it has, with or without a number. */
SEC("raw_tp/list_napis")
int list_napis(__u64 *ctx)
{
	struct net_device *device = device_of(ctx[0]);
	struct list_head *node = 0;
	__u32 flags = 0;
	__u32 at;

	if (!device)
		return ABSENT;
	/* What is down may have instances, and they cannot poll. */
	READ(flags, device->flags);
	if (!(flags & IFF_UP))
		return 0;
	READ(node, device->napi_list.next);
	for (at = 0; at < INSTANCES_OF_ONE_MAX; at++) {
		struct napi_struct *napi = (void *)node - OFFSET_OF(struct napi_struct, dev_list);
		struct task_struct *thread = 0;
		__u32 key = at;

		if (!node || node == &device->napi_list)
			break;
		struct instance *instance = bpf_map_lookup_elem(&INSTANCES, &key);
		if (!instance)
			break;
		instance->pid = 0;
		READ(instance->id, napi->napi_id);
		if (HAS_FIELD(napi->thread))
			READ(thread, napi->thread);
		if (thread)
			READ(instance->pid, thread->pid);
		READ(node, node->next);
	}
	return at;
}

char _license[] SEC("license") = "Dual MIT/GPL";
