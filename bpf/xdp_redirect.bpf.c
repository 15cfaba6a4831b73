// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Sends every frame out by one other interface, unchanged.
 *
 * What it is for: a benchmark shows by it how fast frames can be redirected where nothing is looked up. Nothing but
 * that loads it.
 */
#include "frame.h"

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} EXIT SEC(".maps");

SEC("xdp")
int redirect_all_frames(void *ctx)
{
	(void)ctx;
	return bpf_redirect_map(&EXIT, 0, 0);
}

char _license[] SEC("license") = "Dual MIT/GPL";
