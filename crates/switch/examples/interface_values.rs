//! Lists an interface's NAPI instances and queues, which decide how it learns of packets.
//!
//! ```console
//! $ cargo run -p nicpoll-switch --example interface_values eth0
//! ```

use std::env;
use std::error::Error;

use nicpoll_switch::Control;

fn main() -> Result<(), Box<dyn Error>> {
    let name = env::args().nth(1).unwrap_or_else(|| String::from("lo"));
    let mut control = Control::new();
    let interface = control.interface(&name)?;
    println!(
        "{}: index {}, driver {:?}",
        interface.name, interface.ifindex, interface.driver
    );
    for napi in control.napis(interface.ifindex)? {
        println!(
            "  NAPI {}: defer-hard-irqs {}, gro-flush-timeout {} ns, threaded {}, irq {}",
            napi.id,
            or_dash(napi.defer_hard_irqs),
            or_dash(napi.gro_flush_timeout_ns),
            or_dash(napi.threaded),
            or_dash(napi.irq)
        );
    }
    for queue in control.queues(interface.ifindex)? {
        let way = if queue.is_rx { "receive" } else { "transmit" };
        println!(
            "  {way} queue {}: NAPI {}",
            queue.id,
            or_dash(queue.napi_id)
        );
    }
    Ok(())
}

/// Shows a value that the kernel does not report as a dash, not as 0.
fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| String::from("-"), |value| value.to_string())
}
