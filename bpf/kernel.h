/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * What every program here is written with: the kernel's short names of types, the marks that the loader reads, and
 * the helpers of the kernel that are called.
 *
 * Guarantees:
 * - No program needs the kernel's own headers. The kernel's types are declared with the fields that are read and no
 *   others; preserve_access_index has the loader find their real offsets in the running kernel.
 * - Nothing here makes code or a type that a program does not use. The numbers are those of the kernel's
 *   include/uapi/linux/bpf.h.
 */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;

#define SEC(name) __attribute__((section(name), used))
/* Of the kernel's types. */
#define CORE __attribute__((preserve_access_index))
#define INLINE static __attribute__((always_inline)) inline
/* Of the running kernel, filled in by the loader. */
#define HAS_FIELD(field) __builtin_preserve_field_info(field, 2)
#define OFFSET_OF(type, field) __builtin_preserve_field_info(((type *)0)->field, 0)
/* A map's definition is read from BTF: numbers and types are encoded as types of pointers. */
#define __uint(name, val) int (*name)[val]
#define __type(name, val) val *name

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_HASH 5
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_F_NO_PREALLOC 1
#define BPF_NOEXIST 1

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17

#define XDP_PASS 2

#define HELPER static __attribute__((unused))
HELPER void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
HELPER long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   __u64 flags) = (void *)2;
HELPER __u64 (*bpf_ktime_get_ns)(void) = (void *)5;
HELPER __u32 (*bpf_get_prandom_u32)(void) = (void *)7;
HELPER __u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
HELPER long (*bpf_probe_read_kernel)(void *to, __u32 size, const void *from) = (void *)113;
HELPER long (*bpf_probe_read_kernel_str)(void *to, __u32 size, const void *from) = (void *)115;

/* NAPI instances that are watched, at most. */
#define INSTANCES_MAX 4096

/* Big-endian 0x0800 and 0x86DD as a little-endian CPU reads them. */
#define ETH_P_IP 0x0008
#define ETH_P_IPV6 0xDD86

/* The way to a network namespace, whose inode number is its name, as in /proc/PID/ns/net. */
struct ns_common {
	unsigned int inum;
} CORE;

struct net {
	struct ns_common ns;
} CORE;

typedef struct {
	struct net *net;
} CORE possible_net_t;
