//! Receive livelock, and how polling ends it: packets delivered against packets offered, on the embedded host
//! `generic`. Simulated, not measured.
//!
//! ```console
//! $ cargo run --release -p nicpoll-sim --example livelock
//! ```

use std::error::Error;

use nicpoll_sim::{
    EmbeddedHost, HostModel, PathHost, ReceiveDiscipline, Simulation, TrafficModel, simulate,
};

fn main() -> Result<(), Box<dyn Error>> {
    let generic = EmbeddedHost::named("generic").ok_or("the crate carries it")?;
    let disciplines = ["freebsd-interrupt", "napi", "freebsd-polling"];
    println!(
        "{:>10}{:>18}{:>18}{:>18}",
        "offered/s", disciplines[0], disciplines[1], disciplines[2]
    );
    for offered_kpps in [25, 50, 100, 200, 400] {
        print!("{:>10}", offered_kpps * 1_000);
        for discipline in disciplines {
            let plan = Simulation {
                stops: vec![PathHost {
                    host: HostModel::parse(generic.text)?,
                    discipline: ReceiveDiscipline::parse(discipline)?,
                }],
                workload: TrafficModel::parse(&format!("poisson:rate={offered_kpps}k"))?,
                duration_ns: 500_000_000,
                warmup_ns: 500_000_000,
                seed: 1,
                slices: 0,
            };
            print!("{:>18.0}", simulate(&plan)?.delivered_packets_per_second);
        }
        println!();
    }
    Ok(())
}
