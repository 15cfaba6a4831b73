//! Command lines of netblast, netreceive and netsend: what is accepted with which meaning, and what is
//! refused in which words.

use nicpoll_model::Rate;
use nicpoll_traffic::netrate::options::{
    BlastOptions, CommandLine, NetrateStyle, OptionError, ReceiveOptions, SendOptions, Tool,
    parse_netblast, parse_netreceive, parse_netsend,
};
use proptest::prelude::*;

const BLAST_USAGE: &str = "netblast [ip] [port] [payloadsize] [duration]";
const RECEIVE_USAGE: &str = "netreceive port [nthreads]";
const SEND_USAGE: &str = "netsend [ip] [port[-port_max]] [payloadsize] [packet_rate] [duration]";

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn asked<T>(result: Result<CommandLine<T>, OptionError>) -> T {
    match result.unwrap() {
        CommandLine::Run(options) => options,
        CommandLine::Help => panic!("help"),
    }
}

fn blast(line: &str) -> BlastOptions {
    asked(parse_netblast(&words(line)))
}

#[test]
fn netblast_takes_the_originals_arguments() {
    let plain = BlastOptions {
        repeat: None,
        host: String::from("198.18.0.2"),
        port: 9000,
        payload_bytes: 64,
        duration_seconds: 10,
        threads: None,
        style: NetrateStyle::Router,
        is_batched: false,
        is_blocking: false,
        json: false,
    };
    assert_eq!(blast("198.18.0.2 9000 64 10"), plain);
    let threads = blast("198.18.0.2 9000 64 10 2");
    assert_eq!(threads.threads, Some(2));
    // As strtoul(3) reads numbers.
    let odd = [" 198.18.0.2", "+9000", " \t64", "0010"].map(String::from);
    let odd = asked(parse_netblast(&odd));
    assert_eq!(
        (odd.port, odd.payload_bytes, odd.duration_seconds),
        (9000, 64, 10)
    );
    let extremes = blast("::1 65535 32768 0");
    assert_eq!((extremes.port, extremes.payload_bytes), (65535, 32768));
    assert_eq!(extremes.duration_seconds, 0);
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
    // One datagram a call is what it does anyway.
    let error = parse_netblast(&words("--no-batch r 1 2 3")).unwrap_err();
    let option = String::from("--no-batch");
    assert_eq!(error, OptionError::UnknownOption(Tool::Netblast, option));
}

#[test]
fn netblast_refuses_in_the_originals_words() {
    for (line, said) in [
        ("", BLAST_USAGE.to_owned()),
        ("r 1 2", BLAST_USAGE.to_owned()),
        ("r 1 2 3 4 5", BLAST_USAGE.to_owned()),
        ("r 0 64 1", format!("Invalid port number: 0\n{BLAST_USAGE}")),
        (
            "r 65536 64 1",
            format!("Invalid port number: 65536\n{BLAST_USAGE}"),
        ),
        (
            "r 9x 64 1",
            format!("Invalid port number: 9x\n{BLAST_USAGE}"),
        ),
        (
            "r 1-2 64 1",
            format!("Invalid port number: 1-2\n{BLAST_USAGE}"),
        ),
        ("r 9 -1 1", BLAST_USAGE.to_owned()),
        ("r 9 1.5 1", BLAST_USAGE.to_owned()),
        ("r 9 32769 1", String::from("payloadsize > 32768")),
        (
            "r 9 64 -1",
            format!("Invalid duration time: -1\n{BLAST_USAGE}"),
        ),
        (
            "r 9 64 1s",
            format!("Invalid duration time: 1s\n{BLAST_USAGE}"),
        ),
        (
            "r 9 64 99999999999999999999",
            format!("Invalid duration time: 99999999999999999999\n{BLAST_USAGE}"),
        ),
        ("r 9 64 1 0", BLAST_USAGE.to_owned()),
        ("r 9 64 1 x", BLAST_USAGE.to_owned()),
        (
            "--fast r 9 64 1",
            format!(
                "netblast: unknown option --fast; 'netblast --help' lists the options\n{BLAST_USAGE}"
            ),
        ),
        (
            "--json=1 r 9 64 1",
            format!(
                "netblast: unknown option --json=1; 'netblast --help' lists the options\n{BLAST_USAGE}"
            ),
        ),
        (
            "r 9 64 1 --style",
            String::from("netblast: --style takes freebsd or router, not nothing"),
        ),
        (
            "--style linux r 9 64 1",
            String::from("netblast: --style takes freebsd or router, not linux"),
        ),
    ] {
        let error = parse_netblast(&words(line)).unwrap_err();
        assert_eq!(error.to_string(), said, "{line}");
    }
    let empty = ["r", "", "64", "1"].map(String::from);
    assert_eq!(
        parse_netblast(&empty),
        Err(OptionError::InvalidPort(String::new()))
    );
}

#[test]
fn netreceive_takes_a_port_and_threads() {
    let receive = |line: &str| asked(parse_netreceive(&words(line)));
    let plain = ReceiveOptions {
        port: 9000,
        threads: 1,
        json: false,
    };
    assert_eq!(receive("9000"), plain);
    assert_eq!(receive("9000 64").threads, 64);
    assert!(receive("--json 9000").json);
    for line in ["", "0", "65536", "x", "9 0", "9 65", "9 2x", "9 1 1"] {
        let error = parse_netreceive(&words(line)).unwrap_err();
        assert_eq!(error.to_string(), RECEIVE_USAGE, "{line}");
    }
    for option in ["--batch", "--blocking", "--style"] {
        let error = parse_netreceive(&words(&format!("{option} 9"))).unwrap_err();
        assert_eq!(
            error,
            OptionError::UnknownOption(Tool::Netreceive, option.to_owned())
        );
    }
}

#[test]
fn netsend_takes_a_rate_and_a_range_of_ports() {
    let send = |line: &str| asked(parse_netsend(&words(line)));
    let plain = SendOptions {
        host: String::from("r"),
        port: 9000,
        port_max: 9000,
        payload_bytes: 64,
        rate: Rate::packets_per_second(1000),
        duration_seconds: 10,
        is_blocking: false,
        json: false,
    };
    assert_eq!(send("r 9000 64 1000 10"), plain);
    let range = send("r 9000-9003 64 0 0");
    assert_eq!((range.port, range.port_max), (9000, 9003));
    assert_eq!((range.rate, range.duration_seconds), (None, 0));
    assert!(send("r 1 2 3 4 --blocking --json").is_blocking);
    for (line, said) in [
        ("r 9 64 1", SEND_USAGE),
        ("r 0 64 1 1", SEND_USAGE),
        ("r 9-8 64 1 1", SEND_USAGE),
        ("r 9-70000 64 1 1", SEND_USAGE),
        ("r 9- 64 1 1", SEND_USAGE),
        ("r 9 x 1 1", SEND_USAGE),
        ("r 9 64 -1 1", SEND_USAGE),
        ("r 9 64 1 x", SEND_USAGE),
        ("r 9 32769 1 1", "payloadsize > 32768"),
        ("r 9 64 100000001 1", "packet rate at most 100000000"),
    ] {
        let error = parse_netsend(&words(line)).unwrap_err();
        assert_eq!(error.to_string(), said, "{line}");
    }
}

#[test]
fn help_is_for_every_tool() {
    for help in ["--help", "-h"] {
        let args = words(&format!("9000 {help}"));
        assert_eq!(parse_netblast(&args), Ok(CommandLine::Help));
        assert_eq!(parse_netreceive(&args), Ok(CommandLine::Help));
        assert_eq!(parse_netsend(&args), Ok(CommandLine::Help));
    }
}

#[test]
fn a_tool_is_known_by_its_name_only() {
    assert_eq!(Tool::named("netblast"), Some(Tool::Netblast));
    assert_eq!(Tool::named("netreceive"), Some(Tool::Netreceive));
    assert_eq!(Tool::named("netsend"), Some(Tool::Netsend));
    assert_eq!(Tool::named("nicpoll"), None);
    assert_eq!(Tool::named("netblast.old"), None);
}

proptest! {
    #[test]
    fn any_arguments_are_read_or_refused_with_words(args in prop::collection::vec("\\PC{0,12}|[0-9-]{1,8}", 0..7)) {
        for error in [
            parse_netblast(&args).err(),
            parse_netreceive(&args).err(),
            parse_netsend(&args).err(),
        ] {
            prop_assert!(error.is_none_or(|error| !error.to_string().is_empty()));
        }
    }
}

#[test]
fn netblast_repeats_what_has_an_end() {
    assert_eq!(blast("--repeat 3 host 9 64 1").repeat, Some(3));
    assert_eq!(blast("host 9 64 1 --repeat=1000").repeat, Some(1000));
    let refused = |line: &str| {
        let args: Vec<String> = line.split(' ').map(String::from).collect();
        parse_netblast(&args).unwrap_err().to_string()
    };
    for line in [
        "--repeat 0 h 9 64 1",
        "--repeat x h 9 64 1",
        "h 9 64 1 --repeat",
    ] {
        assert!(
            refused(line).contains("--repeat takes a number from 1 to 1000"),
            "{line}"
        );
    }
    let text = refused("--repeat 3 --json h 9 64 0");
    assert!(text.contains("--repeat needs a duration above 0"), "{text}");
    assert!(blast("--repeat 3 --json host 9 64 1").json);
}
