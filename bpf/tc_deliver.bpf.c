// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Sends each packet that it is run with out of the interface that it stands for.
 *
 * What it is for: the kernel runs it for a test, which hands it packets with time stamps that no card has to make.
 * Nothing but that loads it.
 */
#include "kernel.h"

HELPER long (*bpf_clone_redirect)(void *skb, __u32 ifindex, __u64 flags) = (void *)13;

struct __sk_buff {
	__u32 unused[10];
	__u32 ifindex;
};

SEC("classifier")
int deliver(struct __sk_buff *skb)
{
	return bpf_clone_redirect(skb, skb->ifindex, 0);
}

char _license[] SEC("license") = "Dual MIT/GPL";
