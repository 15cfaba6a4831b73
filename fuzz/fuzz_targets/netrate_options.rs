//! The command lines of netblast, netreceive and netsend come from whoever wrote the script. Any arguments are read or refused without a panic, a refusal says something, and what was
//! read is within its limits. Each line of the input is an argument.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nicpoll_traffic::netrate::options::{
    NetrateOptions, NetrateTool, PACKETS_PER_SECOND_MAX, PAYLOAD_BYTES_MAX,
};

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let args: Vec<String> = text.lines().map(str::to_owned).collect();
    for tool in [
        NetrateTool::Netblast,
        NetrateTool::Netreceive,
        NetrateTool::Netsend,
    ] {
        let options = match NetrateOptions::parse(tool, &args) {
            Ok(Some(options)) => options,
            Ok(None) => continue,
            Err(refused) => {
                assert!(!refused.0.is_empty());
                continue;
            }
        };
        assert_ne!(options.port, 0);
        assert!(options.payload_bytes as u64 <= PAYLOAD_BYTES_MAX);
        assert!(options.threads.is_none_or(|threads| threads > 0));
        if tool == NetrateTool::Netreceive {
            assert!(options.threads.is_none_or(|threads| threads <= 64));
        }
        if tool == NetrateTool::Netsend {
            assert!(options.port <= options.port_max);
            let rate = options.rate.map(|rate| rate.whole_per_second());
            assert!(
                rate.is_none_or(|rate| rate.is_some_and(|rate| rate <= PACKETS_PER_SECOND_MAX))
            );
        }
    }
});
