// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Says where each CPU's time goes, to the nanosecond, from the kernel's switch and interrupt events.
 *
 * What it is for: /proc/stat looks at a CPU once a clock tick, so work in step with the tick is
 * misjudged, timer polling most of all. Here every change of state is an event, and each event gives
 * the time since the last one to the state that ends with it.
 *
 * Guarantees:
 * - The names of maps, programs and constants and the layouts of `struct cpu`, `struct source`,
 *   `struct thread` and `struct fold` are a contract with the loader in crates/observe.
 * - A CPU's states add up to `last_ns - start_ns`, always: what `last_ns` changes by is what is added. Interrupts
 *   may come in between anywhere. Who reads a copy that does not add up has read it half-way, and reads again.
 * - An interrupt is taken off the soft interrupt or the task that it came upon, and a soft interrupt
 *   off its task, because only the state on top is given time.
 * - An exit without an entry is ignored, and a switch of tasks ends what may still seem open. A switch that was not
 *   seen is noticed at the next interrupt or switch.
 * - A kernel that lets no program read its memory (lockdown) has all of this but new names of threads.
 * - Nothing is sent to user space or allocated for an event, but one map entry for a new thread.
 */
#include "kernel.h"

HELPER struct task_struct *(*bpf_get_current_task)(void) = (void *)35;
HELPER struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
HELPER struct pt_regs *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;

#define COMM_BYTES 16

struct task_struct {
	int pid;
	int tgid;
	unsigned int flags;
	int static_prio;
	__u64 start_time;
	struct task_struct *real_parent;
	struct nsproxy *nsproxy;
	char comm[COMM_BYTES];
	void *stack;
} CORE;

struct pid_namespace {
	struct task_struct *child_reaper; /* its first process */
} CORE;

struct nsproxy {
	struct pid_namespace *pid_ns_for_children;
} CORE;

/* What the last entry from user mode was: x86 keeps the system call's number, arm64 too under
 * another name, and both a negative number when it was an interrupt or an exception. */
struct pt_regs {
	unsigned long orig_ax;
} CORE;

struct pt_regs___arm64 {
	int syscallno;
} CORE;

/* Flags of tasks that idle a CPU, and of those that never run in user mode: io_uring's and vhost's
 * workers, kernel threads. */
#define PF_IDLE 0x2
#define PF_IO_WORKER 0x10
#define PF_USER_WORKER 0x4000
#define PF_KTHREAD 0x200000
/* The static priority of nice 0. */
#define DEFAULT_PRIO 120

/* The states of a CPU. A soft interrupt's state is SOFTIRQ and its vector. */
enum {
	IDLE,
	USER,
	NICE,
	SYSTEM,
	IRQ,
	SOFTIRQ,
};
#define SOFTIRQ_VECTORS 10
#define STATES (SOFTIRQ + SOFTIRQ_VECTORS)

/* Sources of hard interrupts: first the vectors that have events of their own, then irq numbers. */
enum {
	LOCAL_TIMER,
	RESCHEDULE,
	CALL_FUNCTION,
	CALL_FUNCTION_SINGLE,
	IRQ_WORK,
	FIRST_IRQ,
};

#define BINS 20
/* What is folded: user (nice included), system, irq, softirq. */
#define FOLDED 4

/* What every event touches lies together at the front. */
struct cpu {
	__u64 last_ns;    /* latest event; 0 before the first */
	__u32 task;       /* state of the running thread: IDLE, USER, NICE or SYSTEM */
	__u32 user;       /* what it is in user mode: USER or NICE */
	__u32 softirq;    /* 0, or 1 and the vector of the soft interrupt that is handled */
	__u32 irq_depth;  /* hard interrupts that are handled */
	__u64 ns[STATES];
	__u64 start_ns; /* first event */
	__u64 switches;
	__u64 irq_entered_ns;
	__u64 slice_ns[SYSTEM + 1]; /* ns[] when the running thread was switched to */
	__u32 irq_source;           /* the outermost hard interrupt */
	__u32 pid;                  /* of the running thread; kept for the account of threads only */
	__u32 tgid;                 /* of its process; for that and for folding only */
	__u32 reserved;
	__u64 running; /* the address of the running thread */
};

struct source {
	__u64 ns;
	__u64 entries;
	__u64 run;           /* entries back to back, this one included */
	__u64 longest_run;
	__u64 storm_entries; /* entries whose run had reached the threshold */
	__u64 task_ns;       /* time of all tasks of the CPU, idle included, when it last came */
};

struct thread {
	__u64 started_ns; /* tells threads apart that had the same number one after another */
	__u64 ns[SYSTEM + 1];
	__u64 slices;
	__u32 tgid;
	__u32 starter_tgid; /* the grandparent of the first process in its PID namespace */
	__u8 comm[COMM_BYTES];
};

struct fold {
	__u64 ns[FOLDED][BINS];
};

/* Set by the loader before the programs are verified, so that what is off costs nothing. */
const volatile __u64 FOLD_PERIOD_NS = 0; /* 0: no folding */
const volatile __u32 FOLD_TGID = 0;      /* the process whose time is folded, beside interrupts */
const volatile __u32 COUNT_THREADS = 0;  /* 0: no account of single threads */
const volatile __u64 STORM_THRESHOLD = 0; /* as hw.intr_storm_threshold; 0: off */
const volatile __u64 BACK_TO_BACK_NS = 0; /* less task time than this between two entries is none */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu);
} CPUS SEC(".maps");

/* The loader sizes it for the machine's interrupts. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FIRST_IRQ);
	__type(key, __u32);
	__type(value, struct source);
} SOURCES SEC(".maps");

/* The longest unused threads make room for new ones. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct thread);
} THREADS SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fold);
} FOLD SEC(".maps");

INLINE struct cpu *this_cpu(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&CPUS, &only);
}

/* The state that the CPU is in: what came last is on top. */
INLINE __u32 state_of(struct cpu *cpu)
{
	if (cpu->irq_depth)
		return IRQ;
	if (cpu->softirq)
		return SOFTIRQ - 1 + cpu->softirq;
	return cpu->task;
}

#ifdef FOR_OLD_KERNELS
/* A field of what the verifier does not know to be the kernel's. */
#define READ(from, field)                                                                          \
	({                                                                                         \
		__typeof__((from)->field) read = 0;                                                \
		bpf_probe_read_kernel(&read, sizeof(read), &(from)->field);                        \
		read;                                                                              \
	})

/* How far above its stack's beginning a thread keeps its registers of user mode: the same for all. 0 before the first
 * system call, which shows it. */
static volatile __u64 registers_offset;

INLINE void note_registers(__u64 *ctx)
{
	__u64 registers = 0;

	if (registers_offset)
		return;
	bpf_probe_read_kernel(&registers, sizeof(registers), ctx);
	registers_offset = registers - (__u64)READ(bpf_get_current_task(), stack);
}

INLINE struct task_struct *current_task(void)
{
	return bpf_get_current_task();
}

INLINE struct pt_regs *registers_of(struct task_struct *task)
{
	return READ(task, stack) + registers_offset;
}

/* Moves `last_ns` on, and returns what it was. An interrupt between both steps gives the same time to a state once
 * more. `last_ns` is ahead by as much then, and the next event takes it off again. */
INLINE __u64 move_on(struct cpu *cpu, __u64 now)
{
	__u64 last = *(volatile __u64 *)&cpu->last_ns;

	__sync_fetch_and_add(&cpu->last_ns, now - last);
	return last;
}
#else
#define READ(from, field) ((from)->field)

INLINE void note_registers(__u64 *ctx)
{
	(void)ctx;
}

INLINE struct task_struct *current_task(void)
{
	return bpf_get_current_task_btf();
}

INLINE struct pt_regs *registers_of(struct task_struct *task)
{
	return bpf_task_pt_regs(task);
}

INLINE __u64 move_on(struct cpu *cpu, __u64 now)
{
	return __sync_lock_test_and_set(&cpu->last_ns, now);
}
#endif

INLINE int is_in_syscall(struct task_struct *task)
{
	struct pt_regs *regs = registers_of(task);

	if (HAS_FIELD(regs->orig_ax))
		return (long)READ(regs, orig_ax) >= 0;
	return READ((struct pt_regs___arm64 *)regs, syscallno) >= 0;
}

/* Makes `task` the running one, from now on. What nothing asks for is not read: a task's fields lie
 * far apart, and at a switch they are seldom in the cache. */
INLINE void adopt(struct cpu *cpu, struct task_struct *task)
{
	__u32 flags = READ(task, flags);
	int i;

	cpu->running = (__u64)task;
	if (COUNT_THREADS)
		cpu->pid = READ(task, pid);
	if (COUNT_THREADS || FOLD_PERIOD_NS)
		cpu->tgid = READ(task, tgid);
	for (i = 0; COUNT_THREADS && i <= SYSTEM; i++)
		cpu->slice_ns[i] = cpu->ns[i];
	cpu->user = USER;
	if (flags & PF_IDLE) {
		cpu->task = IDLE;
	} else if (flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)) {
		cpu->task = SYSTEM;
	} else {
		cpu->user = READ(task, static_prio) > DEFAULT_PRIO ? NICE : USER;
		cpu->task = is_in_syscall(task) ? SYSTEM : cpu->user;
	}
}

/* Some hosts run no program while a thread of their own agent has the CPU: then the switch away from it was not
 * seen. What passed since the latest event is given to the thread that is found. */
INLINE void find(struct cpu *cpu, struct task_struct *task)
{
	if (cpu->last_ns && cpu->running != (__u64)task)
		adopt(cpu, task);
}

INLINE int folded_as(struct cpu *cpu, __u32 state)
{
	if (state >= SOFTIRQ)
		return 3;
	if (state == IRQ)
		return 2;
	if (state == IDLE || cpu->tgid != FOLD_TGID)
		return -1;
	return state == SYSTEM;
}

/* Spreads a stretch of time over the bins of the period. */
static __attribute__((noinline)) int fold(struct cpu *cpu, __u32 state, __u64 from, __u64 until)
{
	__u64 width = FOLD_PERIOD_NS / BINS;
	int row = folded_as(cpu, state);
	__u32 only = 0;
	int i;

	struct fold *fold = bpf_map_lookup_elem(&FOLD, &only);
	if (!fold || row < 0 || row >= FOLDED || until <= from)
		return 0;
	__u64 whole = (until - from) / FOLD_PERIOD_NS;
	__u64 phase = from % FOLD_PERIOD_NS;
	__u64 left = (until - from) % FOLD_PERIOD_NS;
	for (i = 0; whole && i < BINS; i++)
		__sync_fetch_and_add(&fold->ns[row][i], whole * width);
	for (i = 0; left && i <= BINS; i++) {
		__u64 bin = phase / width;
		if (bin >= BINS)
			bin = BINS - 1;
		__u64 room = (bin == BINS - 1 ? FOLD_PERIOD_NS : (bin + 1) * width) - phase;
		__u64 part = left < room ? left : room;
		__sync_fetch_and_add(&fold->ns[row][bin], part);
		left -= part;
		phase += part;
		if (phase >= FOLD_PERIOD_NS)
			phase = 0;
	}
	return 0;
}

/* Gives the time since the latest event to the state that the CPU was in. */
INLINE __u64 advance(struct cpu *cpu)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 last = move_on(cpu, now);

	if (!last) {
		__sync_fetch_and_add(&cpu->start_ns, now);
		adopt(cpu, current_task());
		return now;
	}
	__u32 state = state_of(cpu);
	if (state < STATES)
		__sync_fetch_and_add(&cpu->ns[state], now - last);
	if (FOLD_PERIOD_NS)
		fold(cpu, state, last, now);
	return now;
}

/* Begins the account of a thread. It is apart so that a switch pays neither for the zeros nor for the
 * name of a thread that is known: `on_rename` keeps the name right. */
static __attribute__((noinline)) int begin_thread(struct task_struct *task)
{
	struct thread fresh = {};
	__u32 pid = task->pid;

	fresh.started_ns = task->start_time;
	fresh.tgid = task->tgid;
	fresh.starter_tgid =
		task->nsproxy->pid_ns_for_children->child_reaper->real_parent->real_parent->tgid;
	__builtin_memcpy(fresh.comm, task->comm, COMM_BYTES);
	return bpf_map_update_elem(&THREADS, &pid, &fresh, 0);
}

/* Adds what the thread that leaves used since it came. */
INLINE void charge(struct cpu *cpu, struct task_struct *task)
{
	__u32 pid = cpu->pid;
	int i;

	struct thread *thread = bpf_map_lookup_elem(&THREADS, &pid);
	if (!thread || thread->started_ns != task->start_time) {
		begin_thread(task);
		thread = bpf_map_lookup_elem(&THREADS, &pid);
		if (!thread)
			return;
	}
	for (i = USER; i <= SYSTEM; i++)
		thread->ns[i] += cpu->ns[i] - cpu->slice_ns[i];
	thread->slices++;
}

/* Arguments: bool preempt, struct task_struct *prev, struct task_struct *next. */
SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	struct cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	find(cpu, prev);
	advance(cpu);
	if (COUNT_THREADS && cpu->pid)
		charge(cpu, prev);
	cpu->irq_depth = 0;
	cpu->softirq = 0;
	cpu->switches++;
	adopt(cpu, next);
	return 0;
}

/* Arguments: struct task_struct *task, const char *name, which it has from now on. */
SEC("tp_btf/task_rename")
int on_rename(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	__u32 pid = task->pid;

	struct thread *thread = bpf_map_lookup_elem(&THREADS, &pid);
	if (thread)
		bpf_probe_read_kernel_str(thread->comm, COMM_BYTES, (const void *)ctx[1]);
	return 0;
}

INLINE int enter_irq(__u32 number)
{
	struct cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	find(cpu, current_task());
	__u64 now = advance(cpu);
	if (cpu->irq_depth++)
		return 0;
	cpu->irq_source = number;
	cpu->irq_entered_ns = now;
	return 0;
}

/* An entry is counted when it is over: no task ran meanwhile, so that what is known of tasks now is
 * what was known then. */
INLINE int exit_irq(void)
{
	struct cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	__u64 now = advance(cpu);
	if (!cpu->irq_depth || --cpu->irq_depth)
		return 0;
	__u32 number = cpu->irq_source;
	struct source *source = bpf_map_lookup_elem(&SOURCES, &number);
	if (!source)
		return 0;
	__u64 task_ns = cpu->ns[IDLE] + cpu->ns[USER] + cpu->ns[NICE] + cpu->ns[SYSTEM];
	source->run = task_ns - source->task_ns < BACK_TO_BACK_NS ? source->run + 1 : 1;
	source->task_ns = task_ns;
	source->ns += now - cpu->irq_entered_ns;
	source->entries++;
	if (source->run > source->longest_run)
		source->longest_run = source->run;
	if (STORM_THRESHOLD && source->run >= STORM_THRESHOLD)
		source->storm_entries++;
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int on_irq_entry(__u64 *ctx)
{
	return enter_irq(FIRST_IRQ + (__u32)ctx[0]);
}

SEC("tp_btf/irq_handler_exit")
int on_irq_exit(__u64 *ctx)
{
	(void)ctx;
	return exit_irq();
}

/* Interrupts of the CPU's own vectors, which do not pass through an irq handler. */
#define VECTOR(name, source)                                                                       \
	SEC("tp_btf/" #name "_entry")                                                              \
	int on_##name##_entry(__u64 *ctx)                                                          \
	{                                                                                          \
		(void)ctx;                                                                         \
		return enter_irq(source);                                                          \
	}                                                                                          \
	SEC("tp_btf/" #name "_exit")                                                               \
	int on_##name##_exit(__u64 *ctx)                                                           \
	{                                                                                          \
		(void)ctx;                                                                         \
		return exit_irq();                                                                 \
	}

VECTOR(local_timer, LOCAL_TIMER)
VECTOR(reschedule, RESCHEDULE)
VECTOR(call_function, CALL_FUNCTION)
VECTOR(call_function_single, CALL_FUNCTION_SINGLE)
VECTOR(irq_work, IRQ_WORK)

SEC("tp_btf/softirq_entry")
int on_softirq_entry(__u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	__u32 vector = ctx[0];

	if (!cpu || vector >= SOFTIRQ_VECTORS)
		return 0;
	advance(cpu);
	cpu->softirq = 1 + vector;
	return 0;
}

SEC("tp_btf/softirq_exit")
int on_softirq_exit(__u64 *ctx)
{
	struct cpu *cpu = this_cpu();

	(void)ctx;
	if (!cpu)
		return 0;
	advance(cpu);
	cpu->softirq = 0;
	return 0;
}

SEC("tp_btf/sys_enter")
int on_sys_enter(__u64 *ctx)
{
	struct cpu *cpu = this_cpu();

	note_registers(ctx);
	if (!cpu)
		return 0;
	advance(cpu);
	cpu->task = SYSTEM;
	return 0;
}

SEC("tp_btf/sys_exit")
int on_sys_exit(__u64 *ctx)
{
	struct cpu *cpu = this_cpu();

	(void)ctx;
	if (!cpu)
		return 0;
	advance(cpu);
	cpu->task = cpu->user;
	return 0;
}

/* Does nothing. When the kernel times programs, its runs show what the timing itself takes. */
SEC("tp_btf/sched_switch")
int on_switch_do_nothing(__u64 *ctx)
{
	(void)ctx;
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
