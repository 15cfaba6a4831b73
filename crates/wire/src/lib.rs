//! Wire formats as bytes: builds and parses, nothing else.
//!
//! No I/O, no clock, no allocation per frame. Parses untrusted input: no byte string makes a parser panic. What
//! is built parses back to the same.

pub mod frame;
pub mod pcap;
pub mod rr;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
