//! The iperf command line comes from whoever wrote the script. Any arguments are read
//! or refused without a panic, a refusal says something, and what was read is within its limits. Each
//! line of the input is an argument; lines that begin with `$NAME=` are the environment.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_iperf::Amount;
use nicpoll_iperf::options::{Options, Parsed, parse};
use nicpoll_iperf::wire::Directions;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (variables, args): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('$'));
    let variables: Vec<_> = variables
        .iter()
        .filter_map(|line| line[1..].split_once('='))
        .collect();
    let environment = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    match parse(args.into_iter().map(str::to_owned), environment) {
        Ok(Parsed::Test(options)) => {
            let stream = &options.stream;
            assert_ne!(options.port, 0);
            let longest = if options.is_udp() { 65_507 } else { 64 << 20 };
            assert!((1..=longest).contains(&stream.length_bytes));
            assert!(
                stream
                    .interval
                    .is_none_or(|interval| interval.as_millis() >= 5)
            );
            if options.is_client() {
                check_client(&options);
            }
        }
        Ok(Parsed::Help | Parsed::Version) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

fn check_client(options: &Options) {
    let stream = &options.stream;
    assert!((1..=65_535).contains(&stream.streams));
    assert!(stream.burst_datagrams >= 1);
    assert!(stream.rate.is_some() || !options.is_udp());
    match stream.amount {
        Amount::Time(time) => assert!(!time.is_zero()),
        Amount::Bytes(bytes) => assert!(bytes > 0),
    }
    if stream.directions != Directions::Forward {
        // What the server is asked for has to fit the header, and there has to be one.
        assert!(stream.has_header);
        assert!(!matches!(stream.amount, Amount::Bytes(bytes) if bytes > i32::MAX as u64));
    }
}
