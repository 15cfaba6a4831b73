// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Drops every eighth frame that it sees.
 *
 * What it is for: a test attaches it to a lab's receiver, to show that the ledger finds what an XDP
 * program drops, to the packet. Nothing but that test loads it.
 *
 * Guarantees: frames are counted over all CPUs together; the test's frames all come from one.
 */
#include "kernel.h"

#define XDP_DROP 1

static volatile unsigned int frames;

SEC("xdp")
int drop_every_eighth_frame(void *ctx)
{
	(void)ctx;
	frames = frames + 1;
	return frames % 8 == 0 ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
