/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * What XDP programs are written with: the frame that they are given, the headers in it, and what they may do with it.
 *
 * Guarantees: every number of more than one byte in a header is big-endian, and is read as a little-endian CPU
 * reads it. Who reads a header has checked that the frame holds it.
 */
#include "kernel.h"

#define XDP_REDIRECT 4

/* Interfaces that frames are redirected to. */
#define BPF_MAP_TYPE_DEVMAP 14

HELPER long (*bpf_redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;

HELPER __u64 (*bpf_xdp_get_buff_len)(void *ctx) = (void *)188;

/* More fragments follow, or it is not the first: 0x3FFF. */
#define IP_FRAGMENT 0xFF3F
/* IPv4 with a header of 20 bytes, which has no options. */
#define IPV4_WITHOUT_OPTIONS 0x45

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
};

struct ethernet {
	__u8 addresses[12]; /* destination, source */
	__u16 type;
};

struct ipv4 {
	__u8 version_and_length;
	__u8 service;
	__u16 length;
	__u16 id;
	__u16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u16 checksum;
	__u32 addresses[2]; /* source, destination */
};

struct ipv6 {
	__u32 version_and_flow;
	__u16 length;
	__u8 next_header;
	__u8 hop_limit;
	__u32 addresses[8]; /* source, destination */
};

struct udp {
	__u16 source;
	__u16 destination;
	__u16 length;
	__u16 checksum;
};

/* A number of 16 bits in a header. Old verifiers do not see how large it can be, so a mask shows it. */
INLINE __u64 number(__u16 big_endian)
{
	__u64 number = __builtin_bswap16(big_endian);

	asm volatile("" : "+r"(number));
	return number & 0xffff;
}
