//! Command lines of netblast, netreceive and netsend: what is accepted with which meaning, and what is
//! refused in which words.

use nicpoll_model::Rate;
use nicpoll_traffic::netrate::options::{NetrateOptions, NetrateStyle, Tool};
use proptest::prelude::*;

const TOOLS: [Tool; 3] = [Tool::Netblast, Tool::Netreceive, Tool::Netsend];
const BLAST_USAGE: &str = "netblast [ip] [port] [payloadsize] [duration]";
const RECEIVE_USAGE: &str = "netreceive port [nthreads]";
const SEND_USAGE: &str = "netsend [ip] [port[-port_max]] [payloadsize] [packet_rate] [duration]";

fn parse(tool: Tool, line: &str) -> Result<Option<NetrateOptions>, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    NetrateOptions::parse(tool, &words).map_err(|refused| refused.to_string())
}

fn asked(tool: Tool, line: &str) -> NetrateOptions {
    parse(tool, line).unwrap().expect("no help was asked for")
}

fn blast(line: &str) -> NetrateOptions {
    asked(Tool::Netblast, line)
}

/// Each line is refused in these words, with the usage line where they end with `+`.
fn assert_refused(tool: Tool, usage: &str, cases: &[(&str, &str)]) {
    for (line, words) in cases {
        let said = match words.strip_suffix('+') {
            Some("") => String::from(usage),
            Some(words) => format!("{words}\n{usage}"),
            None => String::from(*words),
        };
        assert_eq!(parse(tool, line), Err(said), "{line}");
    }
}

#[test]
fn each_tool_takes_the_originals_arguments() {
    let plain = NetrateOptions {
        host: String::from("198.18.0.2"),
        port: 9000,
        payload_bytes: 64,
        duration_seconds: 10,
        ..NetrateOptions::default()
    };
    assert_eq!(blast("198.18.0.2 9000 64 10"), plain);
    let threads = NetrateOptions {
        threads: Some(2),
        ..plain.clone()
    };
    assert_eq!(blast("198.18.0.2 9000 64 10 2"), threads);
    let extremes = blast("::1 65535 32768 0");
    assert_eq!((extremes.port, extremes.payload_bytes), (65535, 32768));
    assert_eq!(extremes.duration_seconds, 0);
    // As strtoul(3) reads numbers.
    let odd = ["198.18.0.2", "+9000", " \t64", "0010"].map(String::from);
    assert_eq!(
        NetrateOptions::parse(Tool::Netblast, &odd),
        Ok(Some(plain.clone()))
    );

    let receive = |line: &str| asked(Tool::Netreceive, line);
    let one = NetrateOptions {
        port: 9000,
        threads: Some(1),
        ..NetrateOptions::default()
    };
    assert_eq!(receive("9000"), one);
    assert_eq!(receive("9000 64").threads, Some(64));
    assert!(receive("--json 9000").json);

    let send = |line: &str| asked(Tool::Netsend, line);
    let paced = NetrateOptions {
        port_max: 9000,
        rate: Rate::packets_per_second(1000),
        ..plain
    };
    assert_eq!(send("198.18.0.2 9000 64 1000 10"), paced);
    let range = send("r 9000-9003 64 0 0");
    assert_eq!((range.port, range.port_max), (9000, 9003));
    assert_eq!((range.rate, range.duration_seconds), (None, 0));
    assert!(send("r 1 2 3 4 --blocking --json").is_blocking);
}

#[test]
fn netblast_takes_options_of_ours_anywhere() {
    for line in [
        "--batch --blocking --json --style freebsd r 1 2 3",
        "r --style=freebsd 1 --json 2 3 --batch --blocking",
    ] {
        let options = blast(line);
        assert_eq!(options.style, NetrateStyle::Freebsd);
        assert!(options.is_batched && options.is_blocking && options.json);
        assert_eq!((options.port, options.payload_bytes), (1, 2));
    }
    assert_eq!(blast("--style router r 1 2 3").style, NetrateStyle::Router);
    assert_eq!(blast("--repeat 3 host 9 64 1").repeat, Some(3));
    assert_eq!(blast("host 9 64 1 --repeat=1000").repeat, Some(1000));
    assert!(blast("--repeat 3 --json host 9 64 1").json);
}

fn unknown(tool: &str, option: &str) -> String {
    format!("{tool}: unknown option {option}; '{tool} --help' lists the options+")
}

#[test]
fn what_netblast_cannot_do_is_refused_in_the_originals_words() {
    let repeat = "netblast: --repeat takes a number from 1 to 1000, not";
    assert_refused(
        Tool::Netblast,
        BLAST_USAGE,
        &[
            ("", "+"),
            ("r 1 2", "+"),
            ("r 1 2 3 4 5", "+"),
            ("r 0 64 1", "Invalid port number: 0+"),
            ("r 65536 64 1", "Invalid port number: 65536+"),
            ("r 9x 64 1", "Invalid port number: 9x+"),
            ("r 1-2 64 1", "Invalid port number: 1-2+"),
            ("r 9 -1 1", "+"),
            ("r 9 1.5 1", "+"),
            ("r 9 32769 1", "payloadsize > 32768"),
            ("r 9 64 -1", "Invalid duration time: -1+"),
            ("r 9 64 1s", "Invalid duration time: 1s+"),
            (
                "r 9 64 99999999999999999999",
                "Invalid duration time: 99999999999999999999+",
            ),
            ("r 9 64 1 0", "+"),
            ("r 9 64 1 x", "+"),
            ("--fast r 9 64 1", &unknown("netblast", "--fast")),
            ("--json=1 r 9 64 1", &unknown("netblast", "--json=1")),
            // One datagram a call is what it does anyway.
            ("--no-batch r 1 2 3", &unknown("netblast", "--no-batch")),
            (
                "r 9 64 1 --style",
                "netblast: --style takes freebsd or router, not nothing",
            ),
            (
                "--style linux r 9 64 1",
                "netblast: --style takes freebsd or router, not linux",
            ),
            ("--repeat 0 h 9 64 1", &format!("{repeat} 0")),
            ("--repeat x h 9 64 1", &format!("{repeat} x")),
            ("h 9 64 1 --repeat", &format!("{repeat} nothing")),
            (
                "--repeat 3 --json h 9 64 0",
                "netblast: --repeat needs a duration above 0: the first run would not end",
            ),
        ],
    );
    let empty = ["r", "", "64", "1"].map(String::from);
    let refused = NetrateOptions::parse(Tool::Netblast, &empty).unwrap_err();
    assert_eq!(refused.0, format!("Invalid port number: \n{BLAST_USAGE}"));
}

#[test]
fn what_netreceive_and_netsend_cannot_do_is_refused_in_the_originals_words() {
    for line in ["", "0", "65536", "x", "9 0", "9 65", "9 2x", "9 1 1"] {
        assert_refused(Tool::Netreceive, RECEIVE_USAGE, &[(line, "+")]);
    }
    for option in ["--batch", "--blocking", "--style"] {
        let words = unknown("netreceive", option);
        assert_refused(
            Tool::Netreceive,
            RECEIVE_USAGE,
            &[(&format!("{option} 9"), &words)],
        );
    }
    for line in [
        "r 9 64 1",
        "r 0 64 1 1",
        "r 9-8 64 1 1",
        "r 9-70000 64 1 1",
        "r 9- 64 1 1",
        "r 9 x 1 1",
        "r 9 64 -1 1",
        "r 9 64 1 x",
    ] {
        assert_refused(Tool::Netsend, SEND_USAGE, &[(line, "+")]);
    }
    let too_much = [
        ("r 9 32769 1 1", "payloadsize > 32768"),
        ("r 9 64 100000001 1", "packet rate at most 100000000"),
    ];
    assert_refused(Tool::Netsend, SEND_USAGE, &too_much);
}

#[test]
fn help_is_for_every_tool_and_a_tool_is_known_by_its_name_only() {
    for (tool, name) in TOOLS.into_iter().zip(["netblast", "netreceive", "netsend"]) {
        assert_eq!(parse(tool, "9000 --help"), Ok(None));
        assert_eq!(parse(tool, "9000 -h"), Ok(None));
        assert_eq!(Tool::named(name), Some(tool));
    }
    assert_eq!(Tool::named("nicpoll"), None);
    assert_eq!(Tool::named("netblast.old"), None);
}

proptest! {
    #[test]
    fn any_arguments_are_read_or_refused_with_words(args in prop::collection::vec("\\PC{0,12}|[0-9-]{1,8}", 0..7)) {
        for tool in TOOLS {
            let refused = NetrateOptions::parse(tool, &args).err();
            prop_assert!(refused.is_none_or(|words| !words.0.is_empty()));
        }
    }
}
