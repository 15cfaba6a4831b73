//! The echo server of the examples, asked by ordinary sockets.

mod common;
#[allow(dead_code)] // Its own `main` is not called.
#[path = "../examples/echo.rs"]
mod echo;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nicpoll_testkit::needs;

use common::{PATIENCE, PORT, Pair};

/// A question is repeated: the server may not have begun.
const AGAIN: Duration = Duration::from_millis(200);

#[test]
fn what_is_sent_comes_back_by_ipv4_and_ipv6() {
    needs!(Root, Ip);
    let pair = Pair::new();
    let goes_on = Arc::new(AtomicBool::new(true));
    let is_on = Arc::clone(&goes_on);
    let serve = move || echo::serve("em0", PORT, || is_on.load(Ordering::Relaxed)).unwrap();
    let cpu = nicpoll_sys::schedule::last_allowed_cpu().unwrap();
    let server = pair.receiver.spawn_pinned(cpu, "echo", serve).unwrap();
    for (from, to) in [
        ("198.18.0.1:0", "198.18.0.2"),
        ("[2001:2::1]:0", "2001:2::2"),
    ] {
        let ask = move |(): &mut ()| {
            let socket = UdpSocket::bind(from).unwrap();
            socket.connect((to, PORT)).unwrap();
            socket.set_read_timeout(Some(AGAIN)).unwrap();
            for question in [&b"x"[..], &[7; 64], &[9; 1000]] {
                let mut answer = [0; 2000];
                let began = std::time::Instant::now();
                loop {
                    // Before the server has begun the kernel refuses.
                    let _ = socket.send(question);
                    match socket.recv(&mut answer) {
                        Ok(length) if &answer[..length] == question => break,
                        _ => assert!(began.elapsed() < PATIENCE, "{to}: {} bytes", question.len()),
                    }
                }
            }
        };
        pair.sender.run(ask).unwrap();
    }
    goes_on.store(false, Ordering::Relaxed);
    server.join().unwrap().unwrap();
}
