//! `nicpoll sim run --peer`: hosts in a row that send to each other.

use nicpoll_model::sim_path::{SIM_PATH_SCHEMA, SimPathRun};
use nicpoll_report::{render_document, render_sim_path};
use nicpoll_sim::{PathPlan, Pattern, Stop, explain_path, simulate_path};

use super::args::RunArgs;
use super::{duration_ns, nanos, read_host, usage};
use crate::failure::Failure;
use crate::output;

/// Runs the path that ends at the peer, and prints what came out.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let Some(peer) = &args.peer else {
        return Err(usage("a path ends at another host; name it with --peer"));
    };
    let own = &args.discipline;
    let routers = args.through.iter().map(|router| {
        let discipline = args.router_discipline.as_ref().unwrap_or(own);
        (router, discipline)
    });
    let receiver = (peer, args.peer_discipline.as_ref().unwrap_or(own));
    let mut stops = Vec::new();
    for (path, discipline) in [(&args.host, own)]
        .into_iter()
        .chain(routers)
        .chain([receiver])
    {
        stops.push(Stop {
            host: read_host(path)?,
            discipline: discipline.clone(),
        });
    }
    let plan = PathPlan {
        stops,
        workload: args.workload.clone(),
        duration_ns: duration_ns(args),
        warmup_ns: nanos(args.length.warmup),
        seed: args.length.seed,
        slices: args.slices,
    };
    if plan.slices > 0 && !matches!(plan.workload.pattern, Pattern::IperfTcp(_)) {
        return Err(usage(
            "with --peer only iperf-tcp is told of in parts; leave --slices out",
        ));
    }
    plan.check().map_err(usage)?;
    args.length.refuse_endless(packets(&plan), 1)?;
    let figures = simulate_path(&plan).map_err(usage)?;
    let run = SimPathRun {
        schema: String::from(SIM_PATH_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        plan: plan.facts(),
        bottleneck: explain_path(&plan, &figures).map_err(usage)?,
        figures,
    };
    output::print(&if args.json {
        render_document(&run)
    } else {
        render_sim_path(&run)
    })?;
    Ok(0)
}

/// About so many packets the hosts handle, a packet once for each host.
fn packets(plan: &PathPlan) -> f64 {
    let seconds = (plan.duration_ns as f64 + plan.warmup_ns as f64) / 1e9;
    let bits = 8.0 * f64::from(plan.workload.payload_bytes.max(1));
    let packets_per_second = match plan.workload.pattern {
        Pattern::IperfUdp { bits_per_second } => bits_per_second as f64 / bits,
        // A line full of the longest segments, each with an acknowledgement.
        Pattern::IperfTcp(_) => {
            let lines = plan.stops.iter().map(|stop| stop.host.link);
            let frames =
                lines.map(|line| line.bits_per_second as f64 / (8.0 * line.mtu_bytes as f64));
            2.0 * frames.fold(f64::INFINITY, f64::min)
        }
        // As many as a processor makes at most.
        _ => 1e6,
    };
    packets_per_second.min(1e6) * seconds * plan.stops.len() as f64
}
