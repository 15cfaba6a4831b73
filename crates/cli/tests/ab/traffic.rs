//! Traffic from the far end to the near one that nicpoll does not control.

use crate::common::prelude::*;
use std::io;

/// A sending program at the far end, and its server at the near one.
pub struct Traffic([Child; 2]);

impl Traffic {
    fn between(pair: &Switched, program: &str, server: &str, client: &str) -> Self {
        let start = |netns: String, args: &str| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &netns, program]);
            command.args(args.split(' '));
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        };
        let server = start(pair.netns(), server);
        // iperf3 does not retry if its server does not listen yet.
        thread::sleep(Duration::from_millis(500));
        Traffic([server, start(pair.far_netns(), client)])
    }

    /// Starts iperf 2 with datagrams.
    pub fn iperf(pair: &Switched) -> Self {
        let client = "-c 198.18.0.2 -u -b 20m -l 512 -t 60";
        Traffic::between(pair, "iperf", "-s -u", client)
    }

    pub fn iperf3(pair: &Switched, client: &str) -> Self {
        let client = format!("-c 198.18.0.2 -t 60 {client}");
        Traffic::between(pair, "iperf3", "-s -1", &client)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Opens short TCP connections at independent times, 200 a second on average, while `work` runs.
pub fn under_connections<T>(pair: &Switched, work: impl FnOnce() -> T) -> T {
    const ADDRESS: (&str, u16) = ("198.18.0.2", 5_555);
    let stop = Arc::new(AtomicBool::new(false));
    let listener = pair.veth.inside(Side::Receiver);
    let listener = listener
        .run(|()| TcpListener::bind(ADDRESS))
        .unwrap()
        .unwrap();
    listener.set_nonblocking(true).unwrap();
    let asked = stop.clone();
    let serving = thread::spawn(move || {
        while !asked.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((mut connection, _)) => {
                    let _ = connection.set_nonblocking(false);
                    let _ = connection.set_read_timeout(Some(Duration::from_secs(1)));
                    let _ = io::copy(&mut connection, &mut io::sink());
                }
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
    });
    let asked = stop.clone();
    let sender = pair.veth.inside(Side::Sender);
    let sending = sender.spawn_pinned(0, "test", move || {
        let mut state = 1u64;
        while !asked.load(Ordering::Relaxed) {
            // Knuth's MMIX generator.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let uniform = ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            thread::sleep(Duration::from_secs_f64(-uniform.ln() / 200.0));
            if let Ok(mut connection) = TcpStream::connect(ADDRESS) {
                let _ = connection.write_all(&[0; 4_000]);
            }
        }
    });
    let result = work();
    stop.store(true, Ordering::Relaxed);
    sending.unwrap().join().unwrap().unwrap();
    serving.join().unwrap();
    result
}
