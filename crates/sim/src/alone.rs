//! One host and an ideal far end.

use nicpoll_model::sim::{SimFigures, SimLedger, SimLoss, SimPlace, SimSlice};

use crate::host::Host;
use crate::line::Wire;
use crate::machine::{Attachment, FarEnd, Flow, Machine, Setup, Start, Task, ratio};
use crate::packet::FAR;
use crate::plan::{self, Plan, PlanError};
use crate::queue::Queue;
use crate::shared::Shared;
use crate::source::Source;
use crate::tally::FlowTally;
use crate::workload::Pattern;
use crate::world::World;

/// Runs a plan on a host.
///
/// # Errors
/// Why the host cannot run it; see [`Plan::check`].
pub fn simulate(host: &Host, plan: &Plan) -> Result<SimFigures, PlanError> {
    plan.check(host)?;
    let mut world = world(plan.discipline.applied_to(host), plan)?;
    world.run_until(plan.warmup_ns);
    let counting = world.begin_counting();
    let start = &counting.starts[0];
    let slices = run_slices(&mut world, plan, start);
    world.run_until(plan.warmup_ns.saturating_add(plan.duration_ns));
    let ledger = SimLedger {
        in_flight_at_start: counting.in_flight,
        offered: world.shared.offered(),
        delivered: world.shared.delivered(),
        losses: losses(&world.shared),
        in_flight_at_end: world.in_flight(),
    };
    Ok(figures(&world, plan, start, slices, ledger))
}

fn world(host: Host, plan: &Plan) -> Result<World, PlanError> {
    let is_blast = plan.workload.pattern == Pattern::Blast;
    let shapes = plan::shapes(&plan.workload, host.link.mtu_bytes)?;
    let wire = Wire::new(host.link.bits_per_second);
    let line_bytes = shapes.iter().map(|shape| shape.line_bytes).sum();
    // Both ways share a half-duplex line.
    let (out, back) = (0, 1 - host.link.half_duplex as usize);
    let far = FarEnd {
        source: Source::new(&plan.workload, wire.frame_ns(line_bytes), plan.seed),
        flow: 0,
        frames: plan::trace_frames(&plan.workload, host.link.mtu_bytes)?,
        wire: back,
        queue: Queue::new(host.link.queue_packets),
    };
    let flow = Flow {
        number: 0,
        to: if is_blast { FAR } else { 0 },
        program: 0,
        card: 0,
        ip: plan.workload.ip,
        payload_bytes: plan.workload.payload_bytes,
        shapes,
        counts_from_card: !is_blast,
    };
    let machine = Machine::new(Setup {
        number: 0,
        discipline: &plan.discipline.kind,
        poller: plan::poller(&plan.discipline, &host, 1)?,
        attachments: vec![Attachment {
            wire: out,
            delay_ns: host.link.delay_ns,
            far: Some(far),
        }],
        flows: vec![flow],
        tasks: vec![if is_blast {
            Task::Blast { flow: 0 }
        } else {
            Task::Read {
                flow: 0,
                reads_clock: false,
            }
        }],
        ends: Vec::new(),
        tick_phase_ns: 0,
        host,
    });
    let shared = Shared {
        wires: vec![wire; 2],
        flows: vec![FlowTally::new(0)],
        losses: vec![Default::default()],
        ..Shared::default()
    };
    Ok(World::new(vec![machine], vec![vec![None]], shared))
}

/// Runs through all the slices that are asked for.
fn run_slices(world: &mut World, plan: &Plan, start: &Start) -> Vec<SimSlice> {
    let mut before = Mark::default();
    let mut slices = Vec::new();
    for number in 1..=u64::from(plan.slices) {
        let end_ns = u128::from(plan.duration_ns) * u128::from(number) / u128::from(plan.slices);
        // Not beyond the duration.
        let end_ns = end_ns as u64;
        world.run_until(plan.warmup_ns.saturating_add(end_ns));
        let now = Mark::of(world);
        slices.push(SimSlice {
            end_seconds: end_ns as f64 / 1e9,
            offered: now.offered - before.offered,
            delivered: now.delivered - before.delivered,
            lost: now.lost - before.lost,
            interrupts: now.interrupts - before.interrupts,
            throttled: now.throttled - before.throttled,
            knobs: world.machines[0].knob_figures(start),
        });
        before = now;
    }
    slices
}

/// Counts so far.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    offered: u64,
    delivered: u64,
    lost: u64,
    interrupts: u64,
    throttled: u64,
}

impl Mark {
    fn of(world: &World) -> Self {
        let shared = &world.shared;
        Mark {
            offered: shared.offered(),
            delivered: shared.delivered(),
            lost: SimPlace::ALL.iter().map(|place| shared.lost(*place)).sum(),
            interrupts: world.machines[0].interrupts(),
            throttled: world.machines[0].throttled(),
        }
    }
}

fn losses(shared: &Shared) -> Vec<SimLoss> {
    let loss = |place| SimLoss {
        place,
        packets: shared.lost(place),
    };
    SimPlace::ALL.map(loss).to_vec()
}

fn figures(
    world: &World,
    plan: &Plan,
    start: &Start,
    slices: Vec<SimSlice>,
    ledger: SimLedger,
) -> SimFigures {
    let seconds = plan.duration_ns as f64 / 1e9;
    let machine = &world.machines[0];
    let flow = &world.shared.flows[0];
    let delivered_pps = ledger.delivered as f64 / seconds;
    let payload_bytes = match plan.workload.pattern {
        // What goes out is no program's at the far end.
        Pattern::Blast => ledger.delivered * u64::from(plan.workload.payload_bytes),
        _ => flow.read_bytes,
    };
    let switches = machine.context_switches(start);
    let bytes = machine.line_bytes(0);
    let line_bytes = bytes.received + bytes.transmitted;
    SimFigures {
        offered_pps: ledger.offered as f64 / seconds,
        delivered_pps,
        delivered_payload_bits_per_second: 8.0 * payload_bytes as f64 / seconds,
        loss_ratio: ratio(ledger.lost(), ledger.offered),
        line_ratio: world.shared.wires[0].share(line_bytes, seconds),
        latency: flow.latency(),
        jitter_ns: flow.jitter_ns(),
        cpu: machine.cpu_figures(start),
        context_switches: switches,
        context_switches_per_packet: ratio(switches, ledger.delivered),
        interrupts: machine.interrupts(),
        slices,
        queues: machine.queue_figures(),
        storm: machine.storm_figures(),
        polling: machine.polling_figures(start),
        napi: machine.napi_figures(),
        ledger,
    }
}
