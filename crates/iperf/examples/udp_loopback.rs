//! Both ends of an iperf 2 UDP test over loopback, for a tenth of a second.
//!
//! ```console
//! $ cargo run -p nicpoll-iperf --example udp_loopback
//! ```

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nicpoll_iperf::udp::{Server, ServerConfig, run_client};
use nicpoll_iperf::{Amount, ClientConfig};
use nicpoll_model::Rate;
use nicpoll_traffic::Signals;

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::bind(&ServerConfig {
        bind: (Ipv4Addr::LOCALHOST, 0).into(),
        receive_buffer_bytes: None,
        idle_timeout: Duration::from_secs(5),
    })?;
    let amount = Amount::Time(Duration::from_millis(100));
    let mut client = ClientConfig::udp(server.local_addr(), 1470, amount);
    client.stream.rate = Rate::bits_per_second(100_000_000);
    let signals = Signals::default();
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| server.run(&signals));
        let sent = run_client(&client, &signals, &mut ());
        signals.sender_done.store(true, Ordering::Release);
        (sent, receiving.join())
    });
    let (sent, received) = (sent?, received.map_err(|_| "the server panicked")??);
    println!(
        "{} datagrams sent, {} received, {} lost",
        sent.whole.datagrams,
        received.whole.datagrams,
        received.receipt().lost
    );
    Ok(())
}
