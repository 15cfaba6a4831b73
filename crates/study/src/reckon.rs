//! What a study is reckoned to take before any of it has run: each workload's trials by their traffic, and by what
//! a run of that traffic takes beyond it.
//!
//! What must hold: what is reckoned is what a quiet machine takes, so that all planned blocks fit into the time that
//! follows from it. While a study runs, what its trials took decides.

use std::time::Duration;

use nicpoll_model::Plan;

use crate::command::whole_seconds;
use crate::cost;
use crate::design::{Design, NamedWorkload};
use crate::plan::DRAIN_MIN;
use crate::spinner_run::SPINNER_RUN;
use crate::sweep::{SEARCH, searches};
use crate::topology::Topology;
use crate::trial::REHEARSALS;
use crate::workload::WorkloadRequest;

/// What a trial takes beside its traffic: switching, draining for the least time, reading counters.
const OVERHEAD: Duration = Duration::from_millis(200);
/// The same of a third host.
const ROUTER_OVERHEAD: Duration = Duration::from_millis(150);
/// Runs of a trial's traffic: the warm-up, the measured window, and that in which CPU time is accounted for.
const RUNS: usize = 3;
/// What a TCP sender has in its buffers when it stops: on a slow line a run ends when they are empty.
const TCP_BUFFERED_BYTES: f64 = 1e6;
/// A program of the user's starts, connects and ends.
const PROGRAM: Duration = Duration::from_millis(300);
/// A client is a thread with a socket.
const CLIENT: Duration = Duration::from_millis(1);
/// What else was asked for gets this much more time than it is reckoned to take, and [`BASE`].
const SPARE: f64 = 1.25;
/// For preparing and judging.
pub(crate) const BASE: Duration = Duration::from_secs(15);

/// What a trial of each workload takes, in the order of the design. Stragglers of each run are waited for twice, so
/// long each time.
pub(crate) fn trials(
    design: &Design,
    [warmup, trial, cpu_window]: [f64; RUNS],
    drain: Duration,
) -> Vec<f64> {
    let overhead = match design.topology.is_routed() {
        true => OVERHEAD + ROUTER_OVERHEAD,
        false => OVERHEAD,
    };
    let overhead = overhead + 2 * RUNS as u32 * drain.saturating_sub(DRAIN_MIN);
    let runs = [warmup, trial, cpu_window];
    let workloads = design.workloads.iter();
    let seconds = workloads.map(|workload| {
        let runs = runs
            .iter()
            .map(|run| run_seconds(workload, &design.topology, *run));
        let spinner = workload
            .extent
            .spinner
            .then(|| run_seconds(workload, &design.topology, SPINNER_RUN.as_secs_f64()));
        runs.sum::<f64>() + spinner.unwrap_or(0.0) + overhead.as_secs_f64()
    });
    seconds.collect()
}

/// What a trial of a workload of a plan takes.
pub(crate) fn trial_seconds(plan: &Plan, workload: &str) -> f64 {
    let mut workloads = plan.workloads.iter();
    let index = workloads.position(|known| known == workload);
    let own = index.and_then(|index| plan.reckoned_trial_seconds.get(index));
    // A plan of an older version says nothing of it.
    own.copied().unwrap_or_else(|| {
        let traffic = plan.warmup_seconds + plan.trial_seconds + plan.cpu_window_seconds;
        traffic + OVERHEAD.as_secs_f64()
    })
}

/// The time in which all of a plan's trials fit, with what comes before them.
pub(crate) fn limit_seconds(design: &Design, plan: &Plan) -> f64 {
    let of_trials: f64 = plan
        .order
        .iter()
        .map(|(workload, _)| trial_seconds(plan, workload))
        .sum();
    let rehearsals = design.timed().count() * design.workloads.len() * REHEARSALS as usize;
    let rehearsed = rehearsals as f64 * (plan.warmup_seconds + OVERHEAD.as_secs_f64() / 2.0);
    let searched = f64::from(searches(design)) * SEARCH.as_secs_f64();
    let before = BASE.as_secs_f64() + rehearsed + searched;
    cost::with_time_of_counting(SPARE * of_trials + before).ceil()
}

/// What one run of a workload takes with its end.
fn run_seconds(workload: &NamedWorkload, topology: &Topology, run: f64) -> f64 {
    let beside = workload.extent.beside.iter().map(|beside| &beside.traffic);
    let streams = std::iter::once(&workload.request).chain(beside);
    let longest = streams
        .map(|request| stream_seconds(request, topology, run))
        .fold(run, f64::max);
    let is_crowded = !workload.extent.beside.is_empty();
    // Beside other traffic, the last answers are waited for in vain.
    longest
        + if is_crowded {
            nicpoll_traffic::rr::RESPONSE_TIMEOUT.as_secs_f64()
        } else {
            0.0
        }
}

fn stream_seconds(request: &WorkloadRequest, topology: &Topology, run: f64) -> f64 {
    let beyond = match request {
        WorkloadRequest::Tcp(_) => {
            let rate = topology
                .rate
                .map(|rate| rate.bits_per_second().get() as f64);
            rate.map_or(0.0, |rate| 8.0 * TCP_BUFFERED_BYTES / rate)
        }
        WorkloadRequest::Rr(rr) => f64::from(rr.clients()) * CLIENT.as_secs_f64(),
        WorkloadRequest::Command(_) => {
            let told = whole_seconds(Duration::from_secs_f64(run)) as f64;
            told - run + PROGRAM.as_secs_f64()
        }
        _ => 0.0,
    };
    run + beyond
}

#[cfg(test)]
mod tests {
    use nicpoll_stats::order::Seed;

    use super::*;
    use crate::file::StudyFile;

    fn reckoned(topology: &str, traffic: &str) -> f64 {
        let text = format!(
            "question = \"q\"\nblocks = 3\ntrial = \"1s\"\n{topology}\n[[setting]]\nname = \"off\"\n\
             [[setting]]\nname = \"on\"\nreceiver = {{ gro = \"on\" }}\n[[workload]]\nname = \"it\"\n{traffic}"
        );
        let file = StudyFile::parse(&text).unwrap();
        let plan = file.plan(Seed(1)).unwrap().plan;
        assert!(plan.limit_seconds > 6.0 * plan.reckoned_trial_seconds[0]);
        trial_seconds(&plan, "it")
    }

    #[test]
    fn a_workload_states_what_its_runs_take_beyond_their_traffic() {
        let tcp = "traffic = { kind = \"tcp\" }";
        let plain = reckoned("", tcp);
        assert!(plain < 1.5, "{plain}");
        // A megabyte over 10 Mbit/s takes 0.8 s, three times.
        let slow = reckoned("[topology]\nrate = \"10Mbit/s\"", tcp);
        assert!((slow - plain - 2.4).abs() < 0.01, "{slow}");
        assert!(reckoned("[topology]\nkind = \"router\"", tcp) > plain);
        // Two of three runs are rounded up to a second.
        let command = "traffic = { kind = \"command\", sender = [\"true\"], parser = \"iperf2\" }";
        let program = reckoned("", command);
        assert!(program > 3.0 && program < 5.0, "{program}");
        let one = reckoned("", "traffic = { kind = \"rr\" }");
        let clients = reckoned("", "traffic = { kind = \"rr\", clients = 100 }");
        assert!(clients > one + 0.2, "{one} {clients}");
        let flooded = "traffic = { kind = \"rr\" }\n\
                       beside = [{ traffic = { kind = \"netrate\", payload_bytes = 64 } }]";
        assert!(reckoned("", flooded) > one + 0.2);
    }
}
