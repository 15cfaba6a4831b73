//! Time of a trial besides its measured traffic, step by step: the median over trials of each workload under each
//! setting of the demo.
//!
//! Needs root. `cargo run --release -p nicpoll-study --example trial_overhead [TRIALS]`

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nicpoll_lab::{Host, HostEvent, HostFailure, HostMessage, INTERFACE, Lab, LocalHost, Veth};
use nicpoll_model::Side;
use nicpoll_stats::order::Seed;
use nicpoll_study::{DemoOptions, TrialPlace, Trials, plan};
use nicpoll_switch::{Journal, Owner};

/// Seconds by step, since the last reading.
type Steps = Arc<Mutex<BTreeMap<String, f64>>>;

/// A host whose requests are timed.
struct Timed {
    host: LocalHost,
    steps: Steps,
}

impl Host for Timed {
    fn send(&mut self, message: HostMessage) -> Result<(), HostFailure> {
        let debug = format!("{:?}", message.request);
        let name = debug.split(['(', ' ']).next().unwrap_or_default();
        let name = match debug.contains("counter: ") {
            true => debug.clone(),
            false => String::from(name),
        };
        let begin = Instant::now();
        let sent = self.host.send(message);
        let mut steps = self.steps.lock().map_err(|_| HostFailure::new("a panic"))?;
        *steps.entry(name).or_default() += begin.elapsed().as_secs_f64();
        sent
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Option<HostEvent>, HostFailure> {
        self.host.next_event(timeout)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).map_or(Ok(5), |n| n.parse())?;
    let state = tempfile::tempdir()?;
    let journal = Journal::at(state.path().join("state"));
    let veth = Arc::new(Veth::build()?);
    let steps = Steps::default();
    let host = |side| -> Result<Box<dyn Host>, Box<dyn std::error::Error>> {
        let namespace = veth.namespace(side).try_clone()?;
        let host = LocalHost::new(
            namespace,
            vec![String::from(INTERFACE)],
            &journal,
            Owner::this_process()?,
        )?;
        let steps = steps.clone();
        Ok(Box::new(Timed { host, steps }))
    };
    let mut lab = Lab::of(
        host(Side::Sender)?,
        None,
        host(Side::Receiver)?,
        veth.link(),
    )?;
    let (design, plan) = plan(&DemoOptions::default(), Seed(1))?;
    let cancel = AtomicBool::new(false);
    let mut trials = Trials::new(&mut lab, &design, &plan, &cancel)?;
    trials.rehearse(Instant::now() + Duration::from_secs(60))?;

    let mut all: Vec<BTreeMap<String, f64>> = Vec::new();
    for _ in 0..count {
        for workload in &design.workloads {
            for setting in &design.settings {
                steps.lock().map_err(|_| "a panic")?.clear();
                let begin = Instant::now();
                let trial = trials.run(TrialPlace {
                    sequence: 1,
                    block: 1,
                    workload: workload.name.clone(),
                    setting: String::from(setting.name()),
                })?;
                let total = begin.elapsed().as_secs_f64();
                let mut taken = std::mem::take(&mut *steps.lock().map_err(|_| "a panic")?);
                let requests: f64 = taken.values().sum();
                taken.insert(String::from("= all requests"), requests);
                taken.insert(String::from("= warm-up"), trial.warmup.seconds);
                let beside = total - plan.trial_seconds;
                let requests_and_runs = requests + trial.warmup.seconds + plan.cpu_window_seconds;
                taken.insert(String::from("= beside its traffic"), beside);
                let of_one = format!("= beside its traffic, {}", workload.name);
                taken.insert(of_one, beside);
                let waits = format!("= in no request and no run, {}", workload.name);
                taken.insert(waits, beside - requests_and_runs);
                all.push(taken);
            }
        }
    }
    print_medians(&all);
    Ok(())
}

fn print_medians(all: &[BTreeMap<String, f64>]) {
    let names: std::collections::BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    println!(
        "{} trials; median and greatest time of each step, ms",
        all.len()
    );
    for name in names {
        // A step that a trial did not take costs no time.
        let is_of_some = name.contains(", ");
        let taken = all.iter().map(|steps| steps.get(name).copied());
        let mut taken: Vec<f64> = match is_of_some {
            true => taken.flatten().collect(),
            false => taken.map(Option::unwrap_or_default).collect(),
        };
        taken.sort_by(f64::total_cmp);
        let (median, most) = (taken[taken.len() / 2], taken[taken.len() - 1]);
        println!("{:8.2} {:8.2}  {name}", 1e3 * median, 1e3 * most);
    }
}
