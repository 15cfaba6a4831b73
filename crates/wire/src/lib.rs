//! Wire formats as bytes: build and parse, nothing else.
//!
//! No I/O, no clock, no allocation per frame. It parses untrusted input: any byte string may be parsed and none panics.
//! What is built parses back to the same.

pub mod frame;
pub mod pcap;
pub mod rr;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
