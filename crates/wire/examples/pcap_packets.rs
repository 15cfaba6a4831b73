//! Lists the UDP datagrams in a classic pcap file: time and payload length of each.
//!
//! ```console
//! $ cargo run -p nicpoll-wire --example pcap_packets FILE.pcap
//! ```

use std::error::Error;
use std::{env, fs};

use nicpoll_wire::pcap::Capture;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os()
        .nth(1)
        .ok_or("give the name of a pcap file")?;
    let file = fs::read(path)?;
    let mut others = 0;
    for packet in Capture::parse(&file)?.packets() {
        let packet = packet?;
        match packet.udp_payload_bytes() {
            Some(bytes) => println!("{:>12.6} s  {bytes:>5} bytes", packet.time_ns as f64 / 1e9),
            None => others += 1,
        }
    }
    println!("{others} packets of other protocols");
    Ok(())
}
