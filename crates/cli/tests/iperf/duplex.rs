//! `nicpoll iperf` against iperf 2.1.8 with data from the server to the client, in namespaces, either program at
//! either end: both ends count the same for each stream.

use crate::common::prelude::*;
use crate::pair::{Pair, Program};

const ENDS: [(Program, Program); 3] = [
    (Program::Ours, Program::Iperf),
    (Program::Iperf, Program::Ours),
    (Program::Ours, Program::Ours),
];

/// The direction of the data, and who marks its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Dual,
    TradeOff,
    Reverse,
    FullDuplex,
}

impl Way {
    fn option(self) -> &'static str {
        match self {
            Way::Dual => "-d",
            Way::TradeOff => "-r",
            Way::Reverse => "-R",
            Way::FullDuplex => "--full-duplex",
        }
    }

    fn has_forward(self) -> bool {
        self != Way::Reverse
    }

    /// Returns whether a stream at the client comes from the server, by its mark and number. A client does not mark
    /// the streams of the server's connections; they come last.
    fn is_back_at_client(self, streams: usize) -> impl Fn(bool, usize) -> bool + Copy {
        let own_socket = matches!(self, Way::Dual | Way::TradeOff);
        move |is_marked, number| is_marked || (own_socket && number > streams)
    }

    /// Returns the same for a stream at the server.
    fn is_back_at_server(self) -> impl Fn(bool, usize) -> bool + Copy {
        move |is_marked, _| is_marked || self == Way::Reverse
    }
}

const WAYS: [Way; 4] = [Way::Dual, Way::TradeOff, Way::Reverse, Way::FullDuplex];

/// Parses a final line: whether the stream is marked, its number, and its bytes.
fn line(line: &str) -> Option<(bool, usize, u64)> {
    let (label, rest) = line.strip_prefix('[')?.split_once(']')?;
    let bytes = rest.split_once(" Bytes  ")?.0.rsplit(' ').next()?;
    let label = label.trim();
    let number = label.trim_start_matches('*').parse().ok()?;
    Some((label.starts_with('*'), number, bytes.parse().ok()?))
}

/// Returns the bytes of the streams from the client and of those from the server, each ascending.
fn flows(text: &str, is_back: impl Fn(bool, usize) -> bool) -> [Vec<u64>; 2] {
    let lines = text.lines().filter_map(line);
    let (back, forward): (Vec<_>, Vec<_>) =
        lines.partition(|(is_marked, number, _)| is_back(*is_marked, *number));
    [forward, back].map(|lines| {
        let mut bytes: Vec<_> = lines.into_iter().map(|(_, _, bytes)| bytes).collect();
        bytes.sort_unstable();
        bytes
    })
}

/// Compares both ends' counts of each direction; panics if an end misses a stream.
fn check(way: Way, streams: usize, client: &str, server: &str, case: &str) -> [Vec<u64>; 2] {
    let at_client = flows(client, way.is_back_at_client(streams));
    let at_server = flows(server, way.is_back_at_server());
    let forward = if way.has_forward() { streams } else { 0 };
    assert_eq!(
        [at_client[0].len(), at_client[1].len()],
        [forward, streams],
        "{case}"
    );
    assert_eq!(at_client, at_server, "{case}");
    at_client
}

/// Runs all directions with these options.
fn each_way(pair: &Pair, options: &[&str], mut judge: impl FnMut(Way, [Vec<u64>; 2], &str)) {
    let streams = match options.iter().position(|option| *option == "-P") {
        Some(at) => options[at + 1].parse().unwrap(),
        None => 1,
    };
    for (client, server) in ENDS {
        for way in WAYS {
            // With -r and several streams the original deadlocks now and then, even with itself: its threads wait for
            // a lock that none of them has.
            let is_ours = (client, server) == (Program::Ours, Program::Ours);
            if way == Way::TradeOff && streams > 1 && !is_ours {
                continue;
            }
            // The original's listener starts a server's two directions one after the other. If one ends before that
            // is done, the server stops, crashes or drops the other, even with itself. At 20 Mbit/s a megabyte lasts
            // 0.4 s.
            let is_brief = way == Way::FullDuplex && options.contains(&"-n") && !is_ours;
            let pace: &[&str] = if is_brief { &["-b", "20m"] } else { &[] };
            let all = [&[way.option(), "--style", "2.1"], options, pace].concat();
            let (sent, received) = pair.run(client, server, &all);
            let case = format!("{client:?} to {server:?} {all:?}\n{sent}\n{received}");
            let flows = check(way, streams, &sent, &received, &case);
            judge(way, flows, &case);
        }
    }
}

#[test]
fn tcp_bytes_of_both_directions_are_the_same_at_both_ends() {
    needs!(Root, Iperf);
    let pair = Pair::new();
    each_way(&pair, &["-t", "0.3"], |_, flows, case| {
        assert!(flows.iter().flatten().all(|bytes| *bytes > 60), "{case}");
    });
    each_way(&pair, &["-V", "-n", "1M"], |_, flows, case| {
        assert!(
            flows.iter().flatten().all(|bytes| *bytes == 1 << 20),
            "{case}"
        );
    });
}

#[test]
fn tcp_has_a_stream_back_for_each_of_the_parallel_ones() {
    needs!(Time, Root, Iperf);
    let pair = Pair::new();
    each_way(
        &pair,
        &["-P", "2", "-t", "0.3", "-b", "40m", "-L", "6001"],
        |_, _, _| {},
    );
}

/// Returns sent and received datagrams of the streams that `is_wanted`, by their marks and numbers.
fn datagrams(text: &str, is_wanted: impl Fn(bool, usize) -> bool) -> (u64, u64) {
    let mut last = (false, 0);
    let (mut sent, mut received) = (0, 0);
    let mut is_relayed = false;
    for printed in text.lines() {
        // The line above names the direction.
        if let Some((_, count)) = printed.split_once(" Sent ") {
            let count: u64 = count.split(' ').next().unwrap().parse().unwrap();
            sent += if is_wanted(last.0, last.1) && !printed.contains("SUM") {
                count
            } else {
                0
            };
        }
        is_relayed |= printed.contains("Server Report:");
        let Some((is_marked, number, _)) = line(printed) else {
            continue;
        };
        last = (is_marked, number);
        let Some((_, rest)) = printed.split_once(" ms ") else {
            continue;
        };
        let (lost, total) = rest.split_once(' ').unwrap().0.split_once('/').unwrap();
        assert_eq!(lost, "0", "{text}");
        if !std::mem::take(&mut is_relayed) && is_wanted(is_marked, number) {
            received += total.parse::<u64>().unwrap();
        }
    }
    (sent, received)
}

/// Returns sent and received datagrams of both directions, by each end's output.
fn both_ways(way: Way, streams: usize, told: &str, heard: &str) -> [(u64, u64); 2] {
    let is_back = way.is_back_at_client(streams);
    let (forward_sent, _) = datagrams(told, |mark, number| !is_back(mark, number));
    let (_, back_received) = datagrams(told, is_back);
    let is_back = way.is_back_at_server();
    let (back_sent, _) = datagrams(heard, is_back);
    let (_, forward_received) = datagrams(heard, |mark, number| !is_back(mark, number));
    [(forward_sent, forward_received), (back_sent, back_received)]
}

#[test]
fn udp_datagrams_of_both_directions_agree_over_ipv4() {
    needs!(Time, Root, Iperf);
    datagrams_agree("-b 3m -t 0.5 --allow 198.18.0.0/16");
}

#[test]
fn udp_datagrams_of_both_directions_agree_over_ipv6() {
    needs!(Time, Root, Iperf);
    datagrams_agree("-V -b 300pps -l 200 -t 0.5 --allow 2001:2::1");
}

/// Runs all directions with these options, slow enough for a receiver's buffer to hold the datagrams while it does
/// not run.
fn datagrams_agree(options: &str) {
    let pair = Pair::beside_others();
    let options: Vec<&str> = options.split(' ').collect();
    for (client, server) in ENDS {
        for way in WAYS {
            let all = [&["-u", way.option(), "--style", "2.1"], &options[..]].concat();
            let (told, heard) = pair.run(client, server, &all);
            let case = format!("{client:?} to {server:?} {all:?}\n{told}\n{heard}");
            let both = both_ways(way, 1, &told, &heard);
            // The original counts the FIN, and one more sent datagram.
            for (sent, received) in both {
                assert!(sent.abs_diff(received) <= 2, "{sent} {received}\n{case}");
            }
            let [(_, forward_received), (_, back_received)] = both;
            assert!(back_received > 100, "{case}");
            assert_eq!(forward_received > 100, way.has_forward(), "{case}");
        }
    }
}

#[test]
fn udp_has_a_stream_back_for_each_of_the_parallel_ones() {
    needs!(Root, Iperf);
    let pair = Pair::beside_others();
    // The original fails with several UDP streams, at either end.
    let options = "-u -P 2 -b 2m -t 0.4 -L 6001 --style 2.1 --allow 198.18.0.1";
    for way in WAYS {
        let mut all = vec![way.option()];
        all.extend(options.split(' '));
        let (told, heard) = pair.run(Program::Ours, Program::Ours, &all);
        let case = format!("{way:?}\n{told}\n{heard}");
        let both = both_ways(way, 2, &told, &heard);
        for (sent, received) in both {
            assert_eq!(sent, received, "{case}");
        }
        let [_, (_, back_received)] = both;
        assert!(back_received > 100, "{case}");
    }
}
