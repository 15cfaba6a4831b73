/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * When packets came to their card, by the kernel's clock: from the card's own time stamps, and a line for each card's
 * clock that the loader keeps true.
 *
 * Before it is included, KINDS and record() must be declared. The names of maps and constants, the
 * layout of `struct line` and RATE_SHIFT are a contract with crates/observe. Each stamp is believed, or its packet
 * counts as left out of the kind that it would have been in: none is lost silently.
 */

struct skb_shared_hwtstamps {
	__u64 hwtstamp;
} CORE;

struct skb_shared_info {
	struct skb_shared_hwtstamps hwtstamps;
} CORE;

/* Where both clocks were, and by how much the kernel's gains on the card's, in parts of 2^RATE_SHIFT. */
struct line {
	long long card_ns;
	long long kernel_ns;
	long long rate;
};
#define RATE_SHIFT 32

/* By the number of the card's clock, from 1 on; none while a clock is not to be relied on. A hash and not an array:
 * what replaces an element appears all at once. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, INSTANCES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct line);
} LINES SEC(".maps");

/* Packets without a stamp, or with one that cannot be right. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KINDS);
	__type(key, __u32);
	__type(value, __u64);
} LEFT_OUT SEC(".maps");

/* Set by the loader: how far the kernel's clock may be from what a line says. */
const volatile __u64 STAMP_ERROR_NS = 0;
/* No packet waits so long for a program. */
#define STAMP_AGE_MAX_NS 10000000000LL

/* No card stamps what comes this way. */
#define NOT_STAMPED 0
/* One should have. */
#define NOT_KNOWN (~0ULL)

/* When a packet came to its card, that is now taken over; `head` and `end` are where its memory begins and how long
 * its part for data is. */
INLINE __u64 came_to_card(__u32 clock, const unsigned char *head, __u32 end, __u64 now)
{
	__u64 stamp = 0;

	if (!clock)
		return NOT_STAMPED;
	struct line *line = bpf_map_lookup_elem(&LINES, &clock);
	bpf_probe_read_kernel(&stamp, sizeof(stamp),
			      head + end + OFFSET_OF(struct skb_shared_info, hwtstamps));
	if (!line || !stamp)
		return NOT_KNOWN;
	long long since = stamp - line->card_ns;
	if (since > STAMP_AGE_MAX_NS || since < -STAMP_AGE_MAX_NS)
		return NOT_KNOWN;
	__u64 came = line->kernel_ns + since + (since * line->rate >> RATE_SHIFT);
	long long age = now - came;
	if (age > STAMP_AGE_MAX_NS || age < -(long long)STAMP_ERROR_NS)
		return NOT_KNOWN;
	return came;
}

/* What came to its card at `came` is read now. */
INLINE void record_since(__u64 came, __u32 kind, __u64 now)
{
	if (came == NOT_STAMPED)
		return;
	if (came != NOT_KNOWN) {
		record(kind, now > came ? now - came : 0);
		return;
	}
	__u64 *left_out = bpf_map_lookup_elem(&LEFT_OUT, &kind);
	if (left_out)
		*left_out += 1;
}
