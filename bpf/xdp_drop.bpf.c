// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Drops every frame that it sees.
 *
 * What it is for: a benchmark attaches it to a receiver, to show how fast frames are sent where nothing is done with
 * them. Nothing but that loads it.
 */
#include "kernel.h"

enum { DROP = 1 };

SEC("xdp")
int drop_all_frames(void *ctx)
{
	(void)ctx;
	return DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
