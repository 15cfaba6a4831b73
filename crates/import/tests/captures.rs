//! Texts that iperf 2.1.8 and iperf3 3.12 printed, over loopback, and texts in the layout of iperf 2.0.

use nicpoll_import::{Quantity, ResultFormat, ToolRun};

fn read(text: &str) -> (&'static str, Vec<ToolRun>) {
    let format = ResultFormat::of(text);
    (format.word, format.read(text, 1).unwrap())
}

#[test]
fn iperf3_says_what_was_received() {
    let (word, runs) = read(include_str!("captures/iperf3_tcp.json"));
    assert_eq!(word, "iperf3");
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!(
        (run.line, run.quantity, run.is_sent),
        (1, Quantity::BitsPerSecond, false)
    );
    assert_eq!(run.value.map(f64::round), Some(9_185_354_852.0));
    assert_eq!(run.series.len(), 4);
    assert_eq!(run.series[0].round(), 8_113_787_950.0);
    let (_, runs) = read(include_str!("captures/iperf3_udp.json"));
    assert_eq!(runs[0].loss_ratio, Some(0.0));
    assert_eq!(runs[0].jitter_seconds, Some(6.521_110_679_067_857e-6));
    // With -R the receiver is the client.
    let (_, runs) = read(include_str!("captures/iperf3_reverse.json"));
    assert_eq!(runs[0].value.map(f64::round), Some(7_817_392_101.0));
}

#[test]
fn runs_of_iperf3_may_follow_one_another() {
    let one = include_str!("captures/iperf3_tcp.json");
    let lines = one.lines().count();
    let (_, runs) = read(&format!("{one}\n{one}{one}"));
    let at: Vec<usize> = runs.iter().map(|run| run.line).collect();
    assert_eq!(at, [1, lines + 2, 2 * lines + 2]);
    let (word, array) = read(&format!("[\n{one},{one}]"));
    let values = |runs: &[ToolRun]| runs.iter().map(|run| run.value).collect::<Vec<_>>();
    assert_eq!((word, values(&array)), ("iperf3", values(&runs[..2])));
}

#[test]
fn iperf3s_failures_have_their_line() {
    let fails = |text: &str| {
        ResultFormat::of(text)
            .read(text, 1)
            .unwrap_err()
            .to_string()
    };
    let failed =
        "{\"start\": {},\n\"intervals\": [], \"end\": {},\n\"error\": \"unable to connect\"}";
    assert!(
        fails(failed).starts_with("line 1: the run that begins here failed: unable to connect;")
    );
    assert!(fails("\n\n{\"schema\": 1}").starts_with("line 3: this JSON is not that of iperf3 -J"));
    assert!(fails("{\n  \"end\": oops}").starts_with("line 2: not JSON: expected"));
    let text = "[ ID] Interval           Transfer     Bitrate\n";
    assert!(fails(text).contains("run iperf3 with -J"));
}

#[test]
fn old_sums_of_datagrams_are_less_what_was_lost() {
    let text =
        "{\"intervals\": [], \"end\": {\"sum\": {\"bits_per_second\": 1e6, \"lost_percent\": 25}}}";
    let (_, runs) = read(text);
    assert_eq!((runs[0].value, runs[0].is_sent), (Some(750_000.0), false));
}

#[test]
fn iperf_of_either_side() {
    let (word, runs) = read(include_str!("captures/iperf_tcp.txt"));
    assert_eq!(word, "iperf2");
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((run.value, run.is_sent), (Some(16.4e9), false));
    assert_eq!(run.series, [11.7e9, 15.9e9, 18.6e9, 19.7e9]);
    let (_, runs) = read(include_str!("captures/iperf_tcp_two.txt"));
    assert_eq!((runs.len(), runs[0].value), (1, Some(15.4e9)));
    let (_, runs) = read(include_str!("captures/iperf_enhanced.txt"));
    assert_eq!(
        (runs[0].value, &runs[0].series[..]),
        (Some(21.8e9), &[21.9e9, 21.7e9][..])
    );
    assert_eq!(runs[0].loss_ratio, None);
}

#[test]
fn a_server_has_a_run_for_each_test() {
    let (_, runs) = read(include_str!("captures/iperf_server.txt"));
    let values: Vec<Option<f64>> = runs.iter().map(|run| run.value).collect();
    // The last had traffic both ways, of which there is a sum.
    assert_eq!(
        values,
        [Some(16.4e9), Some(15.4e9), Some(21.8e9), Some(30.7e9)]
    );
}

#[test]
fn what_arrived_takes_the_place_of_what_was_sent() {
    let (_, runs) = read(include_str!("captures/iperf_udp.txt"));
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!(
        (run.value, run.loss_ratio, run.is_sent),
        (Some(10e6), Some(0.0), false)
    );
    assert_eq!(run.jitter_seconds, Some(1e-6));
    assert_eq!(run.series, [9.95e6, 10.1e6]);
    let (_, runs) = read(include_str!("captures/iperf_udp_two.txt"));
    assert_eq!(
        (runs.len(), runs[0].value, runs[0].is_sent),
        (1, Some(20e6), true)
    );
}

const OLD: &str = "\
------------------------------------------------------------
Client connecting to 192.168.1.2, UDP port 5001
Sending 1470 byte datagrams
UDP buffer size:  208 KByte (default)
------------------------------------------------------------
[  3] local 192.168.1.1 port 1025 connected with 192.168.1.2 port 5001
[ ID] Interval       Transfer     Bandwidth
[  3]  0.0- 2.0 sec  1.19 MBytes  5.00 Mbits/sec
[  3]  2.0- 4.0 sec  1.19 MBytes  5.01 Mbits/sec
[  3]  0.0- 4.0 sec  2.38 MBytes  5.00 Mbits/sec
[  3] Sent 1701 datagrams
[  3] Server Report:
[  3]  0.0- 4.1 sec  1.79 MBytes   469 KBytes/sec   0.120 ms  425/ 1701 (25%)
[  3]  0.0- 4.1 sec  1 datagrams received out-of-order
";

#[test]
fn iperf_2_0_has_blanks_in_its_times_and_counts() {
    let (word, runs) = read(&OLD.repeat(3));
    assert_eq!((word, runs.len()), ("iperf2", 3));
    assert_eq!(runs[1].value, Some(469.0 * 1024.0 * 8.0));
    assert_eq!(runs[1].loss_ratio, Some(425.0 / 1701.0));
    assert_eq!((runs[1].series.len(), runs[1].line), (2, 20));
}

#[test]
fn lines_that_were_picked_out_are_runs() {
    let text = "[SUM]  0.0-10.0 sec  1.09 GBytes   936 Mbits/sec\n".repeat(5);
    let (_, runs) = read(&text);
    assert_eq!(runs.len(), 5);
    assert!(runs.iter().all(|run| run.value == Some(936e6)));
}

#[test]
fn a_run_that_was_cut_off_has_intervals_alone() {
    let cut: Vec<&str> = OLD.lines().take(9).collect();
    let (_, runs) = read(&cut.join("\n"));
    assert_eq!((runs[0].value, runs[0].series.len()), (None, 2));
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    let text = OLD.replace("5.01 Mbits/sec", "5.01 furlongs");
    let error = ResultFormat::of(&text)
        .read(&text, 1)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("line 9: expected '[ID] start-end sec"),
        "{error}"
    );
    let nothing = ResultFormat::of("").read("", 1).unwrap_err().to_string();
    assert_eq!(
        nothing,
        "line 1: there is no result in this text, which was read as a column of numbers"
    );
}

#[test]
fn each_format_has_a_word_of_its_own() {
    for format in &nicpoll_import::RESULT_FORMATS {
        assert_eq!(
            ResultFormat::named(format.word).map(|it| it.name),
            Some(format.name)
        );
    }
    assert!(ResultFormat::named("ttcp").is_none());
}
