//! Wire formats as bytes: build and parse, nothing else.
//!
//! What must hold: no I/O, no clock, no allocation; any byte string may be parsed and none panics;
//! what is built parses back to the same. It parses untrusted input.
#![forbid(unsafe_code)]

pub mod frame;
pub mod pcap;
pub mod rr;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
