// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Lets every frame pass.
 *
 * What it is for: a study asks what it costs that any XDP program is there, before the user's own is written.
 *
 * Guarantees: it does nothing else.
 */
#include "kernel.h"

#define XDP_PASS 2

SEC("xdp")
int pass(void *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
