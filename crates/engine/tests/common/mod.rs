//! Numbered datagrams from one network namespace to another.
#![allow(dead_code, unused_imports)] // Each test program uses a part of it.

use std::net::UdpSocket;

use nicpoll_sys::netns::NetnsThread;
use nicpoll_testkit::NetnsPair;

pub const RECEIVER: &str = "198.18.0.2";
pub const PORT: u16 = 9000;

pub type Side = NetnsThread<()>;
pub type Pair = NetnsPair<()>;

pub use nicpoll_testkit::shell as run;

/// Sends datagrams that carry their numbers, `first` and up.
pub fn send(from: &Side, first: u64, count: u32) {
    let send = move |(): &mut ()| {
        let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
        for number in first..first + u64::from(count) {
            let mut payload = [0; 64];
            payload[..8].copy_from_slice(&number.to_be_bytes());
            socket.send_to(&payload, (RECEIVER, PORT)).unwrap();
        }
    };
    from.run(send).unwrap();
}
