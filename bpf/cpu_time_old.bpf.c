// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The account of CPU time for kernels before Linux 5.15, which lack what its programs do: to exchange a number in one
 * step, and helpers that give the running thread and its registers.
 *
 * Guarantees: those of cpu_time.bpf.c, but that time is given to the wrong state when an interrupt comes in the few
 * nanoseconds between two steps: as much as had passed since the event before.
 */
#define FOR_OLD_KERNELS
#include "cpu_time.bpf.c"
