/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * Buckets of times for histograms in the kernel: from 2^GAP_FIRST_OCTAVE ns on each doubling is cut into
 * GAP_PARTS. What lies below is in the first bucket, what lies above in the last. The reader in crates/observe has
 * the same numbers.
 */
#define GAP_FIRST_OCTAVE 8
#define GAP_PARTS_SHIFT 4
#define GAP_PARTS (1 << GAP_PARTS_SHIFT)
#define GAP_OCTAVES 26
#define GAP_BUCKETS (GAP_OCTAVES * GAP_PARTS)

/* The bucket of a gap. BPF has no instruction for a logarithm. */
INLINE __u32 gap_bucket(__u64 ns)
{
	__u32 octave = 0;
	__u64 rest = ns >> GAP_FIRST_OCTAVE;

	if (!rest)
		return 0;
	if (rest >> 16) {
		octave += 16;
		rest >>= 16;
	}
	if (rest >> 8) {
		octave += 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		octave += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		octave += 2;
		rest >>= 2;
	}
	if (rest >> 1)
		octave += 1;
	__u64 part = (ns >> (octave + GAP_FIRST_OCTAVE - GAP_PARTS_SHIFT)) & (GAP_PARTS - 1);
	__u64 bucket = octave * GAP_PARTS + part;
	return bucket < GAP_BUCKETS ? bucket : GAP_BUCKETS - 1;
}
