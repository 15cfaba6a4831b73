//! Tests that time and output grow in proportion to a text's length, whatever it contains.
//!
//! Each kind of text is read at two lengths, one sixteen times the other. Quadratic time would take 256 times
//! as long. Only this thread's CPU time counts, as a ratio, so other programs and slow hosts change it little.

use std::time::Duration;

use nicpoll_model::{Imported, Origin};
use rustix::time::{ClockId, clock_gettime};

use super::*;
use crate::lines::{Budget, scan};
use crate::plain::Plain;
use crate::transcript::table::tables;

/// Pieces of the shorter text.
const PIECES: usize = 400;
/// Length of the longer text in multiples of the shorter one.
const TIMES: usize = 16;
/// How much faster than the length time and output may grow, to allow for caches and growing tables. Quadratic
/// growth would exceed the length sixteenfold.
const TIMES_MAX: f64 = 1.8;
/// Most measurements until one is within the limit.
const TRIES: usize = 4;

/// A kind of text: its name, and its piece with this number, of this many.
type TextKind = (&'static str, fn(usize, usize) -> String);

const KINDS: [TextKind; 21] = [
    ("a quotation in one line", |i, _| match i {
        0 => String::from("oak wrote:\n> "),
        i => format!("oak# iperf -c h{i} [  3]  0.0-10.0 sec  12.5 MBytes  10.5 Mbits/sec "),
    }),
    ("cases of a table, each with a test", |i, of| match i {
        0 => String::from("| run | from | to |\n"),
        i if i < of / 2 => format!("| r{i} | oak | elm |\n"),
        i => format!("## run r{i}\n[  3]  0.0-10.0 sec  12.5 MBytes  10.5 Mbits/sec\n"),
    }),
    ("prompts, each of another host", |i, _| {
        format!("h{i}:/# iperf -s\n")
    }),
    (
        "connections of one test, each with another number",
        |i, _| {
            let port = 1024 + i % 60_000;
            format!("[{i}] local 10.0.0.1 port {port} connected with 10.0.0.2 port 5001\n")
        },
    ),
    (
        "connections behind a stream of many intervals",
        |i, of| match i < of / 2 {
            true => format!("[  3] {i}.0-{}.0 sec  1.25 MBytes  10.5 Mbits/sec\n", i + 1),
            false => format!(
                "[  3] local 10.0.0.1 port {} connected with 10.0.0.2 port 9\n",
                i % 60_000
            ),
        },
    ),
    ("sizes of one test, then its streams", |i, of| match i {
        0 => String::from("Client connecting to b, TCP port 5001\n"),
        i if i < of / 2 => String::from("TCP window size: 32.5 KByte\n"),
        i => format!("[{i}]  0.0-10.0 sec  12.5 MBytes  10.5 Mbits/sec\n"),
    }),
    ("banners", |_, _| {
        String::from("Client connecting to 10.0.0.2, UDP port 5001\n")
    }),
    ("interfaces, each another one that polls", |i, _| {
        format!("em{i}: flags=8843 mtu 1500\n\toptions=4b<RXCSUM,POLLING>\n")
    }),
    ("prompts, with lines of CPU states", |i, _| {
        let test = "[  3]  0.0-10.0 sec  12.5 MBytes  10.5 Mbits/sec\n";
        let cpu = "CPU: 2.7% user, 0.0% nice, 47.1% system, 49.4% interrupt, 0.8% idle\n";
        format!("h{i}:/# iperf -c h{}\n{test}{cpu}", i + 1)
    }),
    (
        "a long test, and its result again and again",
        |i, of| match i < of / 2 {
            true => format!("[  3] {i}.0-{}.0 sec  1.25 MBytes  10.5 Mbits/sec\n", i + 1),
            false => String::from(
                "so that\n[  3]  0.0-99999.0 sec  122 GBytes  10.5 Mbits/sec\n# iperf -s\n",
            ),
        },
    ),
    ("rows below a long heading", |i, of| match i {
        0 => format!("a | {} Mbit/s\n---|---\n", "long ".repeat(of)),
        i => format!("polling | {i}\n"),
    }),
    ("tables", |i, _| {
        format!("a | polling\n--|--\nUDP | {i} Mbit/s\n")
    }),
    ("cells", |i, _| {
        format!("|1 Mb/s{}", if i % 40 == 39 { "\n" } else { "" })
    }),
    ("tests, each under another setting", |i, _| {
        let test = "[  3]  0.0-10.0 sec  12.5 MBytes  10.5 Mbits/sec\n";
        format!("a:/# sysctl net.inet.ip.x={i}\na:/# iperf -c b\n{test}")
    }),
    ("letters of another alphabet", |i, _| {
        format!("\u{0441}\u{043a}\u{043e}\u{0440}\u{043e}\u{0441}\u{0442}\u{044c} {i} Mb/s\u{5e45}")
    }),
    ("runs of netblast and lines of netreceive", |i, _| {
        format!(
            "start: {i}.000000001\nfinish: {}.000000001\nsend calls: {}\nsend errors: 0\n\
             7244 pps 4.172 Mbps - 3622 pkts in 0.500012345 ns\n",
            i + 10,
            i + 1000
        )
    }),
    ("counters before and after tests", |i, _| {
        let test = "[  3]  0.0-10.0 sec  12.5 MBytes  10.5 Mbits/sec\n";
        format!("udp:\n\t{i} datagrams received\n\t{i} dropped due to full socket buffers\n{test}")
    }),
    ("lines of a chat, each of another speaker", |i, _| {
        format!(
            "20:37 <n{i}> [  3]  0.0-10.0 sec  12.5 MBytes  10.5 Mbits/sec\n20:38 <n{i}> oak polls\n"
        )
    }),
    ("cases and ways, then tests", |i, of| match i < of / 2 {
        true => format!("(a) {i}: polling off on both\nOak sends to elm. Swapped.\n"),
        false => format!(
            "# sysctl net.core.busy_poll={i} (oak and elm)\n[  3]  0.0-10.0 sec  12.5 MBytes  10.5 Mbits/sec\n"
        ),
    }),
    ("rows of mpstat below headings", |i, _| {
        let heads = "CPU %usr %nice %sys %iowait %irq %soft %steal %guest %gnice %idle\n";
        let test = "[  3]  0.0-10.0 sec  12.5 MBytes  10.5 Mbits/sec\n";
        let row = format!(
            "all {}.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 {}.00\n",
            i % 90,
            100 - i % 90
        );
        format!("{test}\n== Again ==\n\n{heads}{row}{row}")
    }),
    ("lines that are nearly a table of interrupts", |_, _| {
        String::from("interrupt total rate irq1: 7\n top of #  [ 3] 0.0-")
    }),
];

fn text((_, piece): &TextKind, pieces: usize) -> String {
    (0..pieces).map(|index| piece(index, pieces)).collect()
}

fn read(text: &str) -> (Imported, Duration) {
    let files = [(String::from("page.txt"), String::from(text))];
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let began = now();
    let imported = read_transcripts(&files, &[], &Origin::default()).unwrap();
    (imported, now() - began)
}

#[test]
fn time_and_what_is_kept_go_with_the_length() {
    for kind in &KINDS {
        let texts = [PIECES, TIMES * PIECES].map(|pieces| text(kind, pieces));
        let most = TIMES_MAX * texts[1].len() as f64 / texts[0].len() as f64;
        let mut ratios = Vec::new();
        let is_even = (0..TRIES).any(|_| {
            let [(short, short_time), (long, long_time)] = [0, 1].map(|at: usize| read(&texts[at]));
            let kept = |it: &Imported| serde_json::to_string(it).unwrap().len() as f64;
            // Even an empty text's document has some hundred bytes.
            let grown = kept(&long) / kept(&short);
            assert!(grown < most, "{}: keeps {grown} times as much", kind.0);
            let slower = long_time.as_secs_f64() / short_time.as_secs_f64();
            ratios.push(slower);
            slower < most
        });
        assert!(
            is_even,
            "{}: {ratios:?} times the time, at most {most}",
            kind.0
        );
    }
}

#[test]
fn a_text_with_more_findings_than_the_budget_is_refused() {
    let plain = Plain::of("1 Mb/s, 2 Mb/s, 3 Mb/s");
    let count = |budget: usize| {
        let mut found = 0;
        let ended = scan(&plain, &mut Budget::of(budget), |_| found += 1);
        (found, ended.is_some())
    };
    assert_eq!(count(3), (3, true));
    assert_eq!(count(2), (2, false));
    let table = "a | b\n--|--\n1 | 2\n";
    assert!(tables(table, 0, &mut Budget::of(1)).is_some_and(|it| it.len() == 1));
    assert!(tables(&table.repeat(2), 0, &mut Budget::of(1)).is_none());
}
