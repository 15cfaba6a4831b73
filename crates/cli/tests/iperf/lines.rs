//! Lines of `nicpoll iperf` compared with iperf 2.1.8's, in namespaces, with our program at either end.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::prelude::*;
use crate::pair::{Pair, Program};

/// The end whose output a case compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Client,
    Server,
}

impl End {
    const BOTH: [End; 2] = [End::Client, End::Server];

    /// Returns a program's output at this end; the other end is the other program.
    fn printed(self, pair: &Pair, program: Program, options: &[&str]) -> String {
        let other = match program {
            Program::Ours => Program::Iperf,
            Program::Iperf => Program::Ours,
        };
        match self {
            End::Client => pair.run(program, other, options).0,
            End::Server => pair.run(other, program, options).1,
        }
    }
}

/// A case: options of a test, and the part of an end's text that both programs print alike.
struct Case {
    options: &'static str,
    what: fn(&str) -> Vec<String>,
    ends: &'static [End],
}

/// Returns the line of the window, in bytes.
fn window(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(" size: "));
    lines.map(String::from).collect()
}

/// Returns the datagrams out of order, from each line about a whole test.
fn out_of_order(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains("out-of-order"));
    let of_test = lines.filter(|line| line.contains(" 0.0"));
    of_test
        .filter_map(|line| Some(String::from(line.split_once(" sec ")?.1.trim())))
        .collect()
}

const CASES: [Case; 6] = [
    Case {
        options: "-n 64K",
        what: window,
        // The original's client reads its window before or after connecting, by chance.
        ends: &[End::Server],
    },
    // A window above the host's limit is cut to it, even for root.
    Case {
        options: "-n 64K -w 64M",
        what: window,
        ends: &End::BOTH,
    },
    Case {
        options: "-n 64K -w 64K",
        what: window,
        ends: &End::BOTH,
    },
    Case {
        options: "-u -n 64K -b 10m -w 64M",
        what: window,
        ends: &End::BOTH,
    },
    Case {
        options: "-u -n 64K -b 10m -w 64K",
        what: window,
        ends: &End::BOTH,
    },
    Case {
        options: "-u -n 147000 -b 4m -p 6001",
        what: out_of_order,
        ends: &End::BOTH,
    },
];

/// Port of a relay before a server that sends every tenth datagram twice.
const RELAY_PORT: u16 = 6001;

/// Relays datagrams from its port until it is stopped.
struct Relay<'a>(&'a AtomicBool);

impl Drop for Relay<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn hand_on(front: &UdpSocket, back: &UdpSocket, is_over: &AtomicBool) {
    let mut datagram = [0; 2048];
    let mut client: Option<SocketAddr> = None;
    let mut data = 0;
    while !is_over.load(Ordering::Relaxed) {
        if let Ok((length, from)) = front.recv_from(&mut datagram) {
            if client.replace(from) != Some(from) {
                data = 0;
            }
            let _ = back.send(&datagram[..length]);
            let is_fin = datagram[0] & 0x80 != 0;
            data += u32::from(!is_fin);
            if !is_fin && data % 10 == 0 {
                let _ = back.send(&datagram[..length]);
            }
        }
        while let (Ok(length), Some(client)) = (back.recv(&mut datagram), client) {
            let _ = front.send_to(&datagram[..length], client);
        }
    }
}

#[test]
fn lines_are_those_of_the_original() {
    needs!(Root, Iperf, Ip);
    let pair = Pair::new();
    let is_over = AtomicBool::new(false);
    let sockets = pair.veth.inside(Side::Receiver).run(|_| {
        // The relay and the server are on one host.
        let is_up = Command::new("ip")
            .args(["link", "set", "lo", "up"])
            .status();
        assert!(is_up.unwrap().success());
        let front = UdpSocket::bind(("198.18.0.2", RELAY_PORT)).unwrap();
        let back = UdpSocket::bind("198.18.0.2:0").unwrap();
        back.connect("198.18.0.2:5001").unwrap();
        front
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        back.set_nonblocking(true).unwrap();
        (front, back)
    });
    let (front, back) = sockets.unwrap();
    thread::scope(|scope| {
        let _relay = Relay(&is_over);
        scope.spawn(|| hand_on(&front, &back, &is_over));
        for case in &CASES {
            for end in case.ends {
                let options = [&words(case.options)[..], &["--style", "2.1"]].concat();
                let of = |program| (case.what)(&end.printed(&pair, program, &options));
                let (ours, theirs) = (of(Program::Ours), of(Program::Iperf));
                assert!(!ours.is_empty(), "{} at the {end:?}", case.options);
                assert_eq!(ours, theirs, "{} at the {end:?}", case.options);
            }
        }
    });
}

#[test]
fn the_window_of_a_client_is_that_from_before_it_connects() {
    needs!(Root, Iperf);
    let pair = Pair::new();
    let sizes = pair
        .veth
        .inside(Side::Sender)
        .run(|_| fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem"));
    let sizes = sizes.unwrap().unwrap();
    let default = sizes.split_whitespace().nth(1).unwrap();
    let printed = End::Client.printed(&pair, Program::Ours, &["-n", "1M"]);
    assert_has(
        printed,
        format!("TCP window size: {default} Byte (default)"),
    );
}

/// Parses start, end and bytes of a line with this label.
fn interval(line: &str, label: &str) -> Option<(f64, f64, u64)> {
    let rest = line.strip_prefix(label)?;
    let (times, rest) = rest.split_once(" sec ")?;
    let (start, end) = times.split_once('-')?;
    let bytes = rest.split_once(" Bytes")?.0.trim();
    let of = |time: &str| time.trim().parse().ok();
    Some((of(start)?, of(end)?, bytes.parse().ok()?))
}

/// Checks that each interval has one sum, which adds up its streams.
fn check_sums(text: &str, streams: usize, case: &str) {
    let sums: Vec<_> = text
        .lines()
        .filter_map(|it| interval(it, "[SUM]"))
        .collect();
    let (total, parts) = sums.split_last().unwrap_or_else(|| panic!("{case}"));
    assert!(parts.len() >= 3, "{case}");
    assert_eq!(
        total.2,
        parts.iter().map(|part| part.2).sum::<u64>(),
        "{case}"
    );
    let lines: Vec<_> = text
        .lines()
        .filter_map(|line| interval(line, line.split_inclusive(']').next()?))
        .collect();
    for part in parts {
        let begun_then = lines
            .iter()
            .filter(|line| line.0 == part.0 && line != &total);
        let own = begun_then.filter(|line| line.1 <= part.1 && *line != part);
        let bytes: Vec<u64> = own.map(|line| line.2).collect();
        assert_eq!(bytes.len(), streams, "{part:?}\n{case}");
        assert_eq!(bytes.iter().sum::<u64>(), part.2, "{part:?}\n{case}");
    }
}

#[test]
fn sums_of_intervals_have_every_stream_and_add_up() {
    needs!(Root, Iperf);
    let pair = Pair::new();
    for style in ["2.0", "2.1"] {
        for protocol in [&[][..], &["-u"]] {
            let options = words("-P 4 -i 0.5 -t 1.4 -b 2m -l 1000");
            let options = [&options[..], &["--style", style], protocol].concat();
            for end in End::BOTH {
                let printed = end.printed(&pair, Program::Ours, &options);
                let case = format!("{options:?} at the {end:?}\n{printed}");
                check_sums(&printed, 4, &case);
            }
        }
    }
}

#[test]
fn a_server_has_a_line_for_its_last_interval() {
    needs!(Root, Iperf);
    let pair = Pair::new();
    for style in ["2.0", "2.1"] {
        let options = [
            "-i", "0.5", "-t", "1", "-b", "4m", "-l", "1000", "--style", style,
        ];
        for _ in 0..4 {
            let printed = End::Server.printed(&pair, Program::Ours, &options);
            let lines: Vec<_> = printed
                .lines()
                .filter_map(|line| interval(line, line.split_inclusive(']').next()?))
                .collect();
            let (total, parts) = lines.split_last().unwrap();
            let end = parts.iter().map(|part| part.1).fold(0.0, f64::max);
            // A quarter of an interval may be left out, and the figures are rounded.
            assert!(total.1 - end <= 0.125 + 0.1, "{style}\n{printed}");
        }
    }
}

#[test]
fn a_warning_names_the_stream_as_its_lines_do() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    for (style, label) in [("2.0", "[  3] "), ("2.1", "[  1] ")] {
        let args = [
            "iperf",
            "-u",
            "-c",
            "127.0.0.1",
            "-p",
            &port,
            "-n",
            "2000",
            "--style",
            style,
        ];
        let output = nicpoll(args).output().unwrap();
        assert_has(stdout(&output), format!("{label}local "));
        assert_has(
            stderr(&output),
            format!("{label}WARNING: did not receive ack"),
        );
    }
}
