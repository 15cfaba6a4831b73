use std::fmt::Write as _;
use std::time::Duration;

use nicpoll_model::{Rate, RateUnit};
use nicpoll_testkit::golden;
use proptest::prelude::*;

use super::types::Bind;
use super::*;
use crate::config::{Input, StreamConfig};
use crate::wire::{Amount, Dialect, Directions};

fn parsed_with(args: &str, environment: &[(&str, &str)]) -> Result<Parsed, OptionError> {
    let find = |name: &str| {
        let found = environment.iter().find(|(known, _)| *known == name)?;
        Some(found.1.to_owned())
    };
    parse(args.split_whitespace().map(str::to_owned), find)
}

fn parsed(args: &str) -> Result<Parsed, OptionError> {
    parsed_with(args, &[])
}

/// What a test's options come to.
fn test(args: &str) -> Options {
    match parsed(args) {
        Ok(Parsed::Test(options)) => *options,
        other => panic!("{args}: {other:?}"),
    }
}

fn client(args: &str) -> Options {
    let client = test(&format!("-c host {args}"));
    assert!(client.is_client());
    client
}

fn server(args: &str) -> Options {
    let server = test(&format!("-s {args}"));
    assert!(!server.is_client());
    server
}

fn refused(args: &str) -> String {
    parsed(args).expect_err(args).to_string()
}

/// The stream that a client's options make.
fn stream(args: &str) -> StreamConfig {
    client(args).stream
}

#[test]
fn defaults_are_those_of_the_original() {
    let options = |amount, host: Option<&str>| Options {
        stream: StreamConfig {
            is_batched: true,
            ..StreamConfig::tcp(amount)
        },
        host: host.map(String::from),
        port: 5001,
        last_port: None,
        is_realtime: false,
        bind: None,
        ipv6: false,
        format: 'a',
        style: Style::V2_0,
        csv: false,
        enhanced: false,
        exclude: Exclude::default(),
        print_mss: false,
        json: None,
        output: None,
        warnings: Vec::new(),
        repeat: None,
        connections: None,
        allow: Vec::new(),
        single_client: false,
        time: None,
        daemon: false,
    };
    let ten_seconds = Amount::Time(Duration::from_secs(10));
    assert_eq!(client(""), options(ten_seconds, Some("host")));
    assert_eq!(server(""), options(Amount::Bytes(0), None));
}

/// What an option changes.
type Change = fn(&mut Options);

const CHANGES: &[(&str, Change)] = &[
    ("-p 6000", |c| c.port = 6000),
    ("--port=1", |c| c.port = 1),
    ("-p65535", |c| c.port = 65_535),
    ("-l 8K", |c| c.stream.length_bytes = 8192),
    ("-l 8k", |c| c.stream.length_bytes = 8000),
    ("--len 64M", |c| c.stream.length_bytes = 64 << 20),
    ("-w 256K", |c| c.stream.buffer_bytes = Some(262_144)),
    ("-w 0", |_| {}),
    ("-V", |c| c.ipv6 = true),
    ("-i 1", |c| c.stream.interval = Some(Duration::from_secs(1))),
    ("-i .5", |c| {
        c.stream.interval = Some(Duration::from_millis(500))
    }),
    ("-i 0", |_| {}),
    ("-f m", |c| c.format = 'm'),
    ("-f Kbytes", |c| c.format = 'K'),
    ("--style 2.0", |_| {}),
    ("--style 2.1", |c| c.style = Style::V2_1),
    ("-y C", |c| c.csv = true),
    ("-e", |c| {
        (c.enhanced, c.stream.records_times) = (true, true);
    }),
    ("-x C", |c| c.exclude.connections = true),
    ("-x ds", |c| {
        (c.exclude.data, c.exclude.settings) = (true, true);
    }),
    ("-x CDMSV", |c| {
        c.exclude = Exclude {
            connections: true,
            data: true,
            sums: true,
            settings: true,
            server_report: true,
            streams: false,
        };
    }),
    ("-M 1400", |c| c.stream.max_segment_bytes = Some(1400)),
    ("-m", |c| c.print_mss = true),
    ("-N", |c| c.stream.no_delay = true),
    ("--no-batch", |c| c.stream.is_batched = false),
    ("-S 0x10", |c| c.stream.socket.type_of_service = Some(16)),
    ("-S af11", |c| c.stream.socket.type_of_service = Some(0x28)),
    ("-Z cubic", |c| {
        c.stream.congestion_control = Some("cubic".to_owned())
    }),
    ("--linux-congestion reno", |c| {
        c.stream.congestion_control = Some("reno".to_owned());
    }),
    ("-o report", |c| c.output = Some("report".into())),
    ("-B 10.0.0.1", |c| {
        c.bind = Some(Bind {
            address: "10.0.0.1".to_owned(),
            device: None,
            port: None,
        });
    }),
    ("-mNe -V", |c| {
        (c.print_mss, c.stream.no_delay, c.ipv6) = (true, true, true);
        (c.enhanced, c.stream.records_times) = (true, true);
    }),
];

#[test]
fn every_common_option_changes_its_field() {
    for (args, change) in CHANGES {
        for options in [client, server] {
            let mut expected = options("");
            change(&mut expected);
            assert_eq!(options(args), expected, "{args}");
        }
    }
}

#[test]
fn a_client_has_options_of_its_own() {
    let time = |ms| Amount::Time(Duration::from_millis(ms));
    for (args, amount) in [
        ("-t 2", time(2000)),
        ("-t 0.25", time(250)),
        ("-t 0.001", time(10)),
        ("-n 1M", Amount::Bytes(1 << 20)),
        ("-n 1m", Amount::Bytes(1_000_000)),
        ("-t 2 -n 5", Amount::Bytes(5)),
        ("-n 5 -t 2", time(2000)),
    ] {
        assert_eq!(stream(args).amount, amount, "{args}");
    }
    for (args, rate) in [
        ("-u", Rate::bits_per_second(1 << 20)),
        ("-u -b 1m", Rate::bits_per_second(1_000_000)),
        ("-b 10M", Rate::bits_per_second(10 << 20)),
        ("-b 100pps -u", Rate::packets_per_second(100)),
        (
            "-u -b 0.4pps",
            Rate::decimal(RateUnit::PacketsPerSecond, "0.4", 1),
        ),
        ("-b 10000 -l 1250", Rate::bits_per_second(10_000)),
    ] {
        assert_eq!(stream(args).rate, rate, "{args}");
    }
    assert_eq!(stream("-P 1000").streams, 1000);
    assert_eq!(stream("-T 64").socket.time_to_live, Some(64));
    assert!(!stream("-C").has_header);
    assert_eq!(stream("-u").length_bytes, 1470);
    assert_eq!(stream("-u -V").length_bytes, 1450);
    assert_eq!(stream("-u -l 18").length_bytes, 18);

    let client = test("-ufk --client fe80::1%eth0 -B [::1]:7");
    assert_eq!(client.host.as_deref(), Some("fe80::1"));
    assert_eq!(client.stream.socket.device.as_deref(), Some("eth0"));
    assert_eq!(client.bind.and_then(|bind| bind.port), Some(7));
}

#[test]
fn a_server_has_options_of_its_own() {
    assert_eq!(server("-P 2").connections, Some(2));
    assert!(server("-1").single_client);
    let least = Some(Duration::from_millis(5));
    assert_eq!(server("-i 0.001").stream.interval, least);
    assert_eq!(server("-t 2.5").time, Some(Duration::from_millis(2500)));
    assert_eq!(server("-t 0").time, None);
    assert_eq!(server("-u -V").stream.length_bytes, 1470);
    let socket = server("-B 10.0.0.1%eth0").stream.socket;
    assert_eq!(socket.device.as_deref(), Some("eth0"));
}

/// Command lines, each with its refusal or its warnings.
#[test]
fn what_is_said_is_as_recorded() {
    let recorded = include_str!("said.txt").lines();
    let mut text = String::new();
    for args in recorded.filter_map(|line| line.strip_prefix("$ iperf")) {
        let said = match parsed(args) {
            Ok(Parsed::Test(options)) => options.warnings.join("\n"),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        };
        writeln!(text, "$ iperf{args}\n{said}").unwrap();
    }
    golden("src/options/said.txt", &text);
}

#[test]
fn values_out_of_range_are_refused() {
    const WRONG: &str = "-t x, -t 1e9, -t inf, -i x, -i -1, -i nan, -n 0, -n x, -n 1e300, -l 0, -l 65M, \
        -u -l 15, -u -F /dev/zero -l 16, -u -l 65508, -w x, -w 2G, -w -1, -p 0, -p 65536, -p x, \
        -p 1-x, -L 0, --allow x, --allow 10.0.0.0/33, -P 0, -P 65536, -M 0, -M 65536, -T 0, \
        -T 256, -S bogus, -S 300, -b 0, -b x, -B a:b, --style 2.2, --style 2, --len=, \
        --output=, --tcp-congestion=";
    for args in WRONG.split(", ") {
        for mode in ["-c host", "-s"] {
            let text = refused(&format!("{mode} {args}"));
            assert!(text.starts_with("ERROR: invalid value of '"), "{text}");
        }
    }
}

#[test]
fn what_is_left_out_is_refused_by_name() {
    for spec in specs() {
        let Some(instead) = spec.instead else {
            continue;
        };
        let mode = if spec.side == "server" { "-s" } else { "-c x" };
        let value = match spec.argument {
            Argument::Required => "1",
            _ => "",
        };
        let name = spec.name();
        let text = refused(&format!("{mode} {name} {value}"));
        assert_eq!(
            text,
            format!("ERROR: option {name} is not supported; {instead}")
        );
    }
}

#[test]
fn the_environment_comes_before_the_command_line() {
    let environment = [
        ("IPERF_CLIENT", "there"),
        ("IPERF_UDP", ""),
        ("IPERF_PORT", "77"),
        ("IPERF_TIME", "3"),
        ("IPERF_COMPAT", "1"),
        ("IPERF_HELP", "1"),
        ("TCP_WINDOW_SIZE", "8K"),
    ];
    let Ok(Parsed::Test(client)) = parsed_with("-p 78", &environment) else {
        panic!("no client");
    };
    assert_eq!(client.host.as_deref(), Some("there"));
    assert!(client.is_udp() && !client.stream.has_header);
    assert_eq!(client.port, 78);
    assert_eq!(client.stream.amount, Amount::Time(Duration::from_secs(3)));
    assert_eq!(client.stream.buffer_bytes, Some(8192));

    let wrong = parsed_with("-s", &[("IPERF_TIME", "x")]).unwrap_err();
    let text = "ERROR: invalid value of 'x' for IPERF_TIME; give seconds, at most 21474836";
    assert_eq!(wrong.to_string(), text);
    let left_out = parsed_with("-c x", &[("IPERF_TCP_QUICKACK", "")]).unwrap_err();
    let text = "ERROR: option IPERF_TCP_QUICKACK is not supported; ";
    assert!(left_out.to_string().starts_with(text), "{left_out}");
}

#[test]
fn help_and_version_end_the_reading() {
    for (args, told) in [
        ("-h", Parsed::Help),
        ("-s --help -q", Parsed::Help),
        ("-d -v -h", Parsed::Version),
        ("--version", Parsed::Version),
    ] {
        assert_eq!(parsed(args), Ok(told), "{args}");
    }
}

fn scan(args: &str) -> Result<Vec<String>, OptionError> {
    let args = args.split(' ').map(str::to_owned);
    let mut scanner = Scanner {
        args,
        bundle: String::new(),
        only_extras: false,
    };
    std::iter::from_fn(|| scanner.next())
        .map(|token| {
            Ok(match token? {
                Token::Option(spec, None) => spec.name(),
                Token::Option(spec, Some(value)) => format!("{}={value}", spec.name()),
                Token::Extra(extra) => extra,
            })
        })
        .collect()
}

#[test]
fn options_and_values_are_told_apart() {
    for (args, tokens) in [
        ("-t10", "-t=10"),
        ("-t 10", "-t=10"),
        ("-t -s", "-t=-s"),
        ("-su", "-s -u"),
        ("-sut10", "-s -u -t=10"),
        ("-sut 10", "-s -u -t=10"),
        ("--time 10", "-t=10"),
        ("--time=10", "-t=10"),
        ("--time=", "-t="),
        ("--tim=1=0", "-t=1=0"),
        ("--serv --udp", "-s -u"),
        ("x -s - y", "x -s - y"),
        ("-s -- -u --time", "-s -u --time"),
        ("--permit-key x", "--permit-key x"),
        ("--permit-key=x", "--permit-key=x"),
        ("--bounceback", "--bounceback"),
        ("--IPv6Version", "-V"),
        ("-1", "-1"),
    ] {
        let tokens: Vec<String> = tokens.split(' ').map(str::to_owned).collect();
        assert_eq!(scan(args), Ok(tokens), "{args}");
    }
}

#[test]
fn what_is_no_option_is_refused() {
    for (args, line) in [
        ("-q", "invalid option -- q"),
        ("-sü", "invalid option -- ü"),
        ("-s-", "invalid option -- -"),
        ("--x", "unrecognized option `--x'"),
        ("--timely", "unrecognized option `--timely'"),
        ("--=5", "unrecognized option `--'"),
        ("--t", "option `--t' is ambiguous"),
        ("-t", "option requires an argument -- t"),
        ("--time", "option `--time' requires an argument"),
        ("--udp=3", "option `--udp' doesn't allow an argument"),
    ] {
        let error = OptionError::usage(Some(String::from(line)));
        assert_eq!(scan(args), Err(error), "{args}");
    }
}

#[test]
fn versions_that_speak_alike_are_one_dialect() {
    for (version, dialect) in [
        ("2.0.2", Dialect::V2_0_2),
        ("2.0.5", Dialect::V2_0_2),
        ("2.0.8", Dialect::V2_0_8),
        ("2.0.9", Dialect::V2_0_8),
        ("2.0.10", Dialect::V2_0_10),
        ("2.0.12", Dialect::V2_0_10),
        ("2.0.13", Dialect::V2_0_13),
    ] {
        let client = client(&format!("-u --dialect {version}"));
        assert_eq!(client.stream.dialect, dialect, "{version}");
        assert!(client.warnings.is_empty());
    }
    assert_eq!(stream("-u").dialect, Dialect::V2_1);
}

#[test]
fn one_way_or_the_other() {
    let dual = |port, is_at_once| Directions::Dual { port, is_at_once };
    for (args, directions) in [
        ("-R", Directions::Reverse),
        ("--full-duplex", Directions::FullDuplex),
        ("-d", dual(5001, true)),
        ("-r", dual(5001, false)),
        ("-r -p 6000", dual(6000, false)),
        ("-dd -p 6000 -L 6001", dual(6001, true)),
        ("-u -d -n 2147483647", dual(5001, true)),
    ] {
        assert_eq!(stream(args).directions, directions, "{args}");
    }
    for way in ["-d", "-r"] {
        let directions = stream(&format!("-u {way} --dialect 2.0.8")).directions;
        assert!(matches!(directions, Directions::Dual { .. }), "{way}");
    }
}

#[test]
fn a_server_may_send_datagrams_where_it_is_told_to() {
    let allow = server("-u --allow 10.0.0.0/8 --allow 2001:db8::1").allow;
    let allowed = |address: &str| {
        let address = address.parse().unwrap();
        allow.iter().any(|network| network.contains(address))
    };
    assert!(allowed("10.1.2.3") && allowed("2001:db8::1"));
    assert!(!allowed("11.0.0.1") && !allowed("2001:db8::2"));
}

#[test]
fn json_is_asked_for_at_either_end() {
    assert_eq!(client("--json").json, Some(Json::Whole));
    assert_eq!(server("--json-stream").json, Some(Json::Stream));
    assert_eq!(client("--json-str").json, Some(Json::Stream));
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
}

#[test]
fn bursts_and_trip_times_are_udp_s_alone() {
    assert_eq!(stream("-u --burst 10").burst_datagrams, 10);
    assert!(stream("-u --trip-times").has_shared_clock);
    // From burst to burst there is as much time as the rate leaves, and a minute at most.
    assert_eq!(stream("-u -b 10pps --burst 600").burst_datagrams, 600);
}

#[test]
fn a_server_leaves_the_terminal_serves_one_at_a_time_and_limits_its_reads() {
    assert!(server("-D").daemon && server("--daemon").daemon);
    let single = server("-U");
    assert!(single.is_udp() && single.single_client);
    assert_eq!(single.stream.length_bytes, 1470);
    assert_eq!(
        server("-b 10m").stream.rate,
        Rate::bits_per_second(10_000_000)
    );
    assert_eq!(server("-u -b 10m").stream.rate, None);
    // As in 2.1.8.
    assert!(client("-U").is_udp());
}

#[test]
fn help_names_what_is_carried_out_and_nothing_else() {
    let help = help_text();
    for spec in specs() {
        let long = spec.long.first().map(|name| format!("--{name}"));
        let name = long.clone().unwrap_or_else(|| spec.name());
        let begin = match (spec.letter, long) {
            (Some(letter), Some(long)) => format!("\n  -{letter}, {long} "),
            (Some(letter), None) => format!("\n  -{letter} "),
            (None, _) => format!("\n      {name} "),
        };
        let carried_out = spec.instead.is_none();
        assert_eq!(help.contains(&begin), carried_out, "{name}");
        assert_eq!(spec.doc[1].is_empty(), !carried_out, "{name}");
    }
}

#[test]
fn what_2_1_8_accepts_is_accepted() {
    let endless = client("-t 0");
    assert_eq!(endless.stream.amount, Amount::ENDLESS);
    assert!(client("-z").is_realtime && server("--realtime").is_realtime);
    assert!(!client("-4").ipv6 && !client("-V -4").ipv6);
    assert!(client("-4 -V").ipv6);
    assert!(server("--sum-only").exclude.streams);
    assert!(stream("-X").asks_for_version);
    assert_eq!(
        stream("--fq-rate 100m").pacing_bytes_per_second,
        Some(12_500_000)
    );
}

#[test]
fn a_range_of_ports_is_one_stream_for_each() {
    let ports = |args: &str| {
        let options = client(args);
        (options.port, options.last_port, options.stream.streams)
    };
    assert_eq!(ports("-p 6001-6003"), (6001, Some(6003), 3));
    assert_eq!(ports("-p 6001-6003 -P 3"), (6001, Some(6003), 3));
    assert_eq!(ports("-p 6001-6003 -P 5"), (6001, Some(6003), 5));
    assert_eq!(ports("-p 6001-6001"), (6001, None, 1));
    assert_eq!(server("-p 6001-6064").last_port, Some(6064));
}

#[test]
fn a_test_with_an_end_is_repeated() {
    assert_eq!(client("--repeat 3 --json -y C").repeat, Some(3));
}

/// Arguments that are often nearly right.
fn argument() -> impl Strategy<Value = String> {
    let name = (0..specs().count()).prop_map(|at| specs().nth(at).unwrap().name());
    let long = (0..specs().count()).prop_map(|at| specs().nth(at).unwrap().long.concat());
    let value = "[0-9a-zA-Z.:%,\\[\\]+-]{0,8}";
    prop_oneof![
        Just("-s".to_owned()),
        Just("-c".to_owned()),
        Just("-u".to_owned()),
        (name, value).prop_map(|(name, value)| name + &value),
        (long, value).prop_map(|(long, value)| format!("--{long}={value}")),
        value,
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn any_arguments_are_read_or_refused(
        args in prop::collection::vec(argument(), 0..12),
        value in prop::option::weighted(0.02, argument()),
    ) {
        match parse(args, |_| value.clone()) {
            Ok(Parsed::Test(client)) if client.is_client() => {
                let rate = client.stream.rate.is_some() || !client.is_udp();
                prop_assert!(rate && (1..=65_535).contains(&client.stream.streams));
                prop_assert!(client.stream.amount != Amount::Time(Duration::ZERO));
            }
            Ok(Parsed::Test(server)) => prop_assert!(server.time != Some(Duration::ZERO)),
            Ok(Parsed::Help | Parsed::Version) => {}
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
