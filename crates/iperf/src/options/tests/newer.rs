//! JSON, payload from elsewhere, bursts, and servers in the background.

use std::{env, fs};

use super::*;

#[test]
fn json_is_asked_for_at_either_end() {
    assert_eq!(client("--json").common.json, Some(Json::Whole));
    assert_eq!(server("--json-stream").common.json, Some(Json::Stream));
    assert_eq!(client("--json-str").common.json, Some(Json::Stream));
}

#[test]
fn payload_comes_from_a_file_or_from_standard_input() {
    let file = |name: &str| Some(Input::File(name.into()));
    assert_eq!(stream("-F a.gz").input, file("a.gz"));
    assert_eq!(stream("--fileinput=a").input, file("a"));
    assert_eq!(stream("--file_input a -P 2").input, file("a"));
    for args in ["-I", "--stdin", "--stdin_input", "-u -I -P 1"] {
        assert_eq!(stream(args).input, Some(Input::Stdin), "{args}");
    }
    assert!(refused("-c host -I -P 2").starts_with("ERROR: option -I is not valid with several"));
    assert!(refused("-c host --fileinput=").contains("the name of a file"));
}

#[test]
fn bursts_and_trip_times_are_udp_s_alone() {
    assert_eq!(stream("-u --burst 10").burst_datagrams, 10);
    assert!(stream("-u --trip-times").has_shared_clock);
    for option in ["--burst 10", "--trip-times"] {
        let text = refused(&format!("-c host {option}"));
        assert!(
            text.ends_with("not valid with TCP; add -u or leave it out"),
            "{text}"
        );
    }
    for value in ["0", "x", "16777217"] {
        let text = refused(&format!("-c host -u --burst {value}"));
        assert!(text.starts_with("ERROR: invalid value of"), "{text}");
    }
    // From burst to burst there is as much time as the rate leaves, and a minute at most.
    assert_eq!(stream("-u -b 10pps --burst 600").burst_datagrams, 600);
    assert!(refused("-c host -u -b 10pps --burst 601").contains("IPG delay target"));
}

#[test]
fn a_server_leaves_the_terminal_serves_one_at_a_time_and_limits_its_reads() {
    assert!(server("-D").daemon && server("--daemon").daemon);
    let single = server("-U");
    assert!(single.common.is_udp() && single.single_client);
    assert_eq!(single.common.stream.length_bytes, 1470);
    assert_eq!(
        server("-b 10m").common.stream.rate,
        Rate::bits_per_second(10_000_000)
    );
    assert_eq!(
        refused("-s -b 10pps"),
        "ERROR: units of pps not supported with TCP"
    );
    let udp = server("-u -b 10m");
    assert_eq!(udp.common.stream.rate, None);
    assert_eq!(
        udp.common.warnings,
        ["WARNING: option -b is not valid for UDP server mode"]
    );
    assert_eq!(
        client("-D").common.warnings,
        ["WARNING: option -D is not valid for client mode"]
    );
    // As in 2.1.8.
    assert!(client("-U").common.is_udp());
}

/// Set to any value to write the page's tables anew instead of comparing with them.
const REFRESH: &str = "NICPOLL_REFRESH_GOLDEN";

#[test]
fn the_page_on_dialects_has_a_row_for_each_option() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dialects.md");
    let page = fs::read_to_string(path).unwrap();
    let expected = OPTION_TABLES
        .iter()
        .fold(page.clone(), |page, (head, rows)| {
            let (before, rest) = page.split_once(head).expect(head);
            let (_, after) = rest.split_once("\n\n").expect(head);
            format!("{before}{head}{}\n{after}", rows())
        });
    if env::var_os(REFRESH).is_some() {
        fs::write(path, &expected).unwrap();
    }
    assert!(
        page == expected || env::var_os(REFRESH).is_some(),
        "docs/dialects.md does not say what the options are; run this again with {REFRESH}=1"
    );
}

#[test]
fn help_names_what_is_carried_out_and_nothing_else() {
    let help = help_text();
    for spec in specs() {
        let long = spec.long.first().map(|name| format!("--{name}"));
        let name = long.clone().unwrap_or_else(|| spec.name());
        let begin = match (spec.short, long) {
            (Some(letter), Some(long)) => format!("\n  -{letter}, {long} "),
            (Some(letter), None) => format!("\n  -{letter} "),
            (None, _) => format!("\n      {name} "),
        };
        let carried_out = !matches!(spec.meaning, Meaning::LeftOut(..));
        assert_eq!(help.contains(&begin), carried_out, "{name}");
        assert_eq!(spec.doc.meaning.is_empty(), !carried_out, "{name}");
    }
}

#[test]
fn what_2_1_8_accepts_is_accepted() {
    let endless = client("-t 0");
    assert_eq!(endless.common.stream.amount, Amount::ENDLESS);
    let warning = "WARNING: client will send traffic forever or until an external signal (e.g. SIGINT or \
                   SIGTERM) occurs to stop it";
    assert_eq!(endless.common.warnings, [warning]);
    assert!(client("-z").common.is_realtime && server("--realtime").common.is_realtime);
    assert!(!client("-4").common.ipv6 && !client("-V -4").common.ipv6);
    assert!(client("-4 -V").common.ipv6);
    assert!(server("--sum-only").common.exclude.streams);
    assert!(stream("-X").asks_for_version);
    assert_eq!(
        refused("-c host -u -X"),
        "ERROR: option of -X or --peer-detect not supported with -u UDP"
    );
    assert_eq!(
        stream("--fq-rate 100m").pacing_bytes_per_second,
        Some(12_500_000)
    );
    for (args, side) in [("-X", "-X"), ("--fq-rate 1m", "--fq-rate")] {
        let warning = format!("WARNING: option {side} is not valid for server mode");
        assert_eq!(server(args).common.warnings, [warning]);
    }
}

#[test]
fn a_range_of_ports_is_one_stream_for_each() {
    let ports = |args: &str| {
        let common = client(args).common;
        let warnings = common.warnings.join(" ");
        (
            common.port,
            common.last_port,
            common.stream.streams,
            warnings,
        )
    };
    let more = "WARNING: port-range and -P mismatch (adjusting -P to 3)";
    assert_eq!(
        ports("-p 6001-6003"),
        (6001, Some(6003), 3, more.to_owned())
    );
    assert_eq!(
        ports("-p 6001-6003 -P 3"),
        (6001, Some(6003), 3, String::new())
    );
    let wider = "WARNING: port-range and -P mismatch (adjusting port-range to 6001-6005)";
    assert_eq!(
        ports("-p 6001-6003 -P 5"),
        (6001, Some(6003), 5, wider.to_owned())
    );
    assert_eq!(ports("-p 6001-6001"), (6001, None, 1, String::new()));
    assert_eq!(server("-p 6001-6064").common.last_port, Some(6064));
    for args in [
        "-s -p 6003-6001",
        "-s -p 0-3",
        "-s -p 1-70000",
        "-s -p 1-2-3",
    ] {
        assert!(
            refused(args).contains("the first and the last of a range"),
            "{args}"
        );
    }
    assert!(refused("-s -p 6001-6065").contains("64 ports at most"));
    assert!(refused("-c host -p 65530-65535 -P 7").contains("no port above 65535"));
}

#[test]
fn a_test_with_an_end_is_repeated() {
    assert_eq!(client("--repeat 3 --json -y C").repeat, Some(3));
    for args in ["-t 0", "-I"] {
        let text = refused(&format!("-c host --repeat 3 {args}"));
        assert!(
            text.starts_with("ERROR: option --repeat is not valid with"),
            "{text}"
        );
    }
    assert!(refused("-c host --repeat 0").contains("from 1 to 1000"));
}
