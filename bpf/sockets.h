/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * The AF_XDP sockets that frames are given to, and the count of what became of each frame.
 *
 * Before it is included, FATES must be declared: the number of fates that a frame can have. The names
 * of both maps are a contract with the loaders in crates/engine.
 */
#define BPF_MAP_TYPE_XSKMAP 17

/* Receive queues that can have a socket. */
#define QUEUES_MAX 128

/* By receive queue. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} SOCKETS SEC(".maps");

/* By fate. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FATES);
	__type(key, __u32);
	__type(value, __u64);
} FRAMES SEC(".maps");

/* Counts the frame by its fate, and returns the verdict. */
INLINE int counted(__u32 fate, int verdict)
{
	__u64 *frames = bpf_map_lookup_elem(&FRAMES, &fate);

	if (frames)
		*frames += 1;
	return verdict;
}
