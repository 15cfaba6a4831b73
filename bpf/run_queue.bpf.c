// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Measures how long threads wait for a CPU, from the event that makes one ready to run to its running, as a histogram
 * in the kernel.
 *
 * What it is for: soft interrupts take the CPU away from the programs that read what they deliver, and how long those
 * wait is what their users feel.
 *
 * Guarantees:
 * - The names of maps, programs and constants and the layout of `struct delays` are a contract with the loader in
 *   crates/observe.
 * - The table of waiting threads is of fixed size and never searched: a thread whose place another one takes is not
 *   measured.
 * - A thread that was woken while it ran did not wait. One that lost its CPU to another waits too, but nothing woke it:
 *   that is not in the figures.
 */
#include "kernel.h"
#include "octaves.h"

struct task_struct {
	int pid;
	int tgid;
} CORE;

struct delays {
	__u64 buckets[GAP_BUCKETS];
};

#define PROGRAMS_MAX 16384
/* A power of two. */
#define THREADS 32768

/* Set by the loader before the programs are verified. */
const volatile __u32 ALL_PROGRAMS = 0; /* every thread but those of OWN_TGID is watched */
const volatile __u32 OWN_TGID = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct delays);
} DELAYS SEC(".maps");

/* Processes whose threads are watched. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PROGRAMS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} PROGRAMS SEC(".maps");

struct waiting {
	__u64 ns;
	__u32 pid; /* 0: none waits */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREADS);
	__type(key, __u32);
	__type(value, struct waiting);
} WAITING SEC(".maps");

INLINE void record(__u64 ns)
{
	__u32 only = 0;
	struct delays *delays = bpf_map_lookup_elem(&DELAYS, &only);
	__u32 bucket = gap_bucket(ns);

	if (delays && bucket < GAP_BUCKETS)
		__sync_fetch_and_add(&delays->buckets[bucket], 1);
}

INLINE struct waiting *waiting_of(__u32 pid)
{
	__u32 place = pid & (THREADS - 1);

	return bpf_map_lookup_elem(&WAITING, &place);
}

INLINE int woken(struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (tgid == OWN_TGID)
		return 0;
	if (!ALL_PROGRAMS && !bpf_map_lookup_elem(&PROGRAMS, &tgid))
		return 0;
	struct waiting *waiting = waiting_of(task->pid);
	if (!waiting)
		return 0;
	waiting->ns = bpf_ktime_get_ns();
	waiting->pid = task->pid;
	return 0;
}

/* The tracepoints' argument is: struct task_struct *task. */
SEC("tp_btf/sched_wakeup")
int on_wakeup(__u64 *ctx)
{
	return woken((struct task_struct *)ctx[0]);
}

SEC("tp_btf/sched_wakeup_new")
int on_first_wakeup(__u64 *ctx)
{
	return woken((struct task_struct *)ctx[0]);
}

/* Arguments: bool preempt, struct task_struct *prev, struct task_struct *next. */
SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx)
{
	__u32 leaves = ((struct task_struct *)ctx[1])->pid;
	__u32 comes = ((struct task_struct *)ctx[2])->pid;

	struct waiting *waiting = waiting_of(leaves);
	/* It was woken while it ran, so it did not wait. */
	if (leaves && waiting && waiting->pid == leaves)
		waiting->pid = 0;
	waiting = waiting_of(comes);
	if (comes && waiting && waiting->pid == comes) {
		waiting->pid = 0;
		record(bpf_ktime_get_ns() - waiting->ns);
	}
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
