//! Whatever connects to `nicpoll serve`. Any bytes are a request, the beginning of one, or refused, never
//! with a panic; what is answered names the server's own address.
#![no_main]

use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use nicpoll_serve::read_request;

fuzz_target!(|bytes: &[u8]| {
    let own = SocketAddr::from(([127, 0, 0, 1], 8077));
    if let Ok(Some(_)) = read_request(bytes, own, None) {
        let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
        assert!(text.contains(":8077"));
        assert!(
            text.starts_with("get ") || text.starts_with("head ") || text.starts_with(['\r', '\n'])
        );
    }
});
