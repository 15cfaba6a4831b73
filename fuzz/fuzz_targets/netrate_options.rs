//! The command lines of netblast, netreceive and netsend come from whoever wrote the script. Any arguments are read or refused without a panic, a refusal says something, and what was
//! read is within its limits. Each line of the input is an argument.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_traffic::netrate::options::{
    CommandLine, OptionError, PACKETS_PER_SECOND_MAX, PAYLOAD_BYTES_MAX, parse_netblast,
    parse_netreceive, parse_netsend,
};

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let args: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(blast) = options(parse_netblast(&args)) {
        assert_ne!(blast.port, 0);
        assert!(blast.payload_bytes as u64 <= PAYLOAD_BYTES_MAX);
        assert!(blast.threads.is_none_or(|threads| threads > 0));
    }
    if let Some(receive) = options(parse_netreceive(&args)) {
        assert_ne!(receive.port, 0);
        assert!((1..=64).contains(&receive.threads));
    }
    if let Some(send) = options(parse_netsend(&args)) {
        assert!(send.port > 0 && send.port <= send.port_max);
        assert!(send.payload_bytes as u64 <= PAYLOAD_BYTES_MAX);
        let rate = send.rate.map(|rate| rate.whole_per_second());
        assert!(rate.is_none_or(|rate| rate.is_some_and(|rate| rate <= PACKETS_PER_SECOND_MAX)));
    }
});

fn options<T>(parsed: Result<CommandLine<T>, OptionError>) -> Option<T> {
    match parsed {
        Ok(CommandLine::Run(options)) => Some(options),
        Ok(CommandLine::Help) => None,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}
