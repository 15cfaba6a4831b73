// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Says in what rhythm each watched NAPI instance polls, and what begins its rounds: its timer, or
 * something else (an interrupt, an arrival, an application).
 *
 * What it is for: a setting says how an interface should learn of packets; this is the evidence of how
 * it does. A round is a run of polls that ends with work below the budget. Timer polling means that
 * the NAPI's own timer begins the rounds.
 *
 * Guarantees:
 * - The names of maps and programs and the layout of `struct rhythm` are a contract with the loader in
 *   crates/observe.
 * - The loader makes the entries of RHYTHMS, and only NAPI instances that have one are looked at. Ids are
 *   unique in the machine, so no namespace is asked for.
 * - A NAPI instance is polled by one CPU at a time. The event comes just after the poll has let go of it,
 *   so that another CPU can come close behind: counters are added to atomically, and of the rest the worst
 *   is one gap that is wrong.
 */
#include "kernel.h"
#include "octaves.h"

struct hrtimer {
	int dummy;
} CORE;

struct napi_struct {
	unsigned long state;
	int weight;
	unsigned int napi_id;
	struct hrtimer timer;
} CORE;

/* NAPI_STATE_SCHED: it polls, or is about to. */
#define SCHEDULED 1

/* A poll's work from 0 to 64, and more. */
#define WORK_BUCKETS 66
#define CPUS_MAX 256
/* So many periods without a round are what FreeBSD's poller gives up after. */
#define STALL_PERIODS 100

/* Of the round that an instance is in. */
enum { NONE, KNOWN, UNKNOWN };

struct rhythm {
	__u64 period_ns; /* the timeout that gaps are held against, from the loader; 0: none */
	__u64 polls;
	__u64 frames;
	__u64 full_polls;    /* work reached the budget: more may be left */
	__u64 foreign_polls; /* with another budget than the NAPI's weight: an application's */
	__u64 rounds;        /* rounds that are over and whose beginning was seen */
	__u64 timer_rounds;  /* of these, begun by the NAPI's timer */
	__u64 empty_rounds;  /* begun by something else, and found nothing */
	__u64 short_gaps;    /* between timer rounds: under half a period */
	__u64 long_gaps;     /* over two periods */
	__u64 missed_periods;
	__u64 stalls;
	__u64 timer_gaps;
	__u64 began_ns; /* the last round's beginning; 0: none seen */
	__u64 round_frames;
	__u32 budget; /* of the last poll */
	__u32 in_round;
	__u32 timer_fired;  /* and no round has begun since */
	__u32 by_timer;     /* the present round was begun by the timer */
	__u32 timer_known;
	__u32 reserved;
	__u64 gaps[GAP_BUCKETS]; /* ns between the beginnings of timer rounds and the rounds before them */
	__u64 work[WORK_BUCKETS];
	__u64 polls_by_cpu[CPUS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, INSTANCES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* NAPI id */
	__type(value, struct rhythm);
} RHYTHMS SEC(".maps");

/* The timers of the watched instances: their addresses, and whose they are. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, INSTANCES_MAX);
	__type(key, __u64);
	__type(value, __u32);
} TIMERS SEC(".maps");

INLINE void add(__u64 *counter, __u64 count)
{
	__sync_fetch_and_add(counter, count);
}

INLINE void timer_gap(struct rhythm *rhythm, __u64 gap_ns)
{
	__u64 period_ns = rhythm->period_ns;
	__u32 bucket = gap_bucket(gap_ns);

	add(&rhythm->timer_gaps, 1);
	if (bucket < GAP_BUCKETS)
		add(&rhythm->gaps[bucket], 1);
	if (!period_ns)
		return;
	if (gap_ns < period_ns / 2)
		add(&rhythm->short_gaps, 1);
	if (gap_ns > 2 * period_ns) {
		add(&rhythm->long_gaps, 1);
		add(&rhythm->missed_periods, gap_ns / period_ns - 1);
	}
	if (gap_ns > STALL_PERIODS * period_ns)
		add(&rhythm->stalls, 1);
}

INLINE void begin_round(struct rhythm *rhythm, __u64 now_ns)
{
	rhythm->by_timer = rhythm->timer_fired;
	if (rhythm->by_timer && rhythm->began_ns)
		timer_gap(rhythm, now_ns - rhythm->began_ns);
	rhythm->timer_fired = 0;
	rhythm->round_frames = 0;
	rhythm->began_ns = now_ns;
	rhythm->in_round = KNOWN;
}

INLINE void end_round(struct rhythm *rhythm)
{
	rhythm->in_round = NONE;
	add(&rhythm->rounds, 1);
	if (rhythm->by_timer)
		add(&rhythm->timer_rounds, 1);
	else if (!rhythm->round_frames)
		add(&rhythm->empty_rounds, 1);
}

/* The tracepoint's arguments are: struct napi_struct *napi, int work, int budget. */
SEC("tp_btf/napi_poll")
int watch_napi_polls(__u64 *ctx)
{
	struct napi_struct *napi = (struct napi_struct *)ctx[0];
	int work = (int)ctx[1];
	int budget = (int)ctx[2];
	__u32 id = napi->napi_id;
	__u32 cpu = bpf_get_smp_processor_id();

	struct rhythm *rhythm = bpf_map_lookup_elem(&RHYTHMS, &id);
	if (!rhythm)
		return 0;
	if (!rhythm->timer_known) {
		__u64 timer = (__u64)&napi->timer;

		bpf_map_update_elem(&TIMERS, &timer, &id, BPF_NOEXIST);
		rhythm->timer_known = 1;
		rhythm->in_round = UNKNOWN;
	}
	if (rhythm->in_round == UNKNOWN) {
		/* Nobody can say what began this round, so it is let pass. */
		if (work < budget)
			rhythm->in_round = NONE;
		return 0;
	}
	if (rhythm->in_round == NONE)
		begin_round(rhythm, bpf_ktime_get_ns());
	rhythm->round_frames += work;
	rhythm->budget = budget;
	add(&rhythm->polls, 1);
	add(&rhythm->frames, work);
	if (cpu < CPUS_MAX)
		add(&rhythm->polls_by_cpu[cpu], 1);
	if (budget != napi->weight)
		add(&rhythm->foreign_polls, 1);
	__u64 bucket = (__u32)work;
	/* The verifier has to see the bound on the register that is used. */
	asm volatile("" : "+r"(bucket));
	if (bucket >= WORK_BUCKETS)
		bucket = WORK_BUCKETS - 1;
	add(&rhythm->work[bucket], 1);
	if (work >= budget)
		add(&rhythm->full_polls, 1);
	else
		end_round(rhythm);
	return 0;
}

/* The tracepoint's arguments are: struct hrtimer *timer, ktime_t *now. */
SEC("tp_btf/hrtimer_expire_entry")
int watch_napi_timers(__u64 *ctx)
{
	__u64 timer = ctx[0];
	__u32 *id = bpf_map_lookup_elem(&TIMERS, &timer);
	if (!id)
		return 0;
	struct rhythm *rhythm = bpf_map_lookup_elem(&RHYTHMS, id);
	if (!rhythm)
		return 0;
	struct napi_struct *napi = (void *)(timer - OFFSET_OF(struct napi_struct, timer));
	unsigned long state = 0;

	/* An instance that is scheduled already is not scheduled by its timer. */
	if (bpf_probe_read_kernel(&state, sizeof(state), &napi->state) == 0 && !(state & SCHEDULED))
		rhythm->timer_fired = 1;
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
