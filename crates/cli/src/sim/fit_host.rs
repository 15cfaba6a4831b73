//! `nicpoll sim fit --host`: measures what receiving costs on this machine, writes a host file, and compares
//! predictions with measurements.
//!
//! The host file is complete before the measurements that check it begin. Only the lab's own namespaces are touched.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use nicpoll_calibrate::{
    MeasuredMachine, compare, host_of, measure_costs, numbers_of, predict, ticks_per_second,
};
use nicpoll_inspect::host_facts;
use nicpoll_lab::{Lab, LabError, Veth, require_lab};
use nicpoll_model::sim::{HostCheck, SIM_FIT_HOST_SCHEMA, SimFitHost};
use nicpoll_report::{render_host_file, render_sim_fit_host};
use nicpoll_sim::HostModel;
use nicpoll_stats::order::Seed;
use nicpoll_study::demo::{INTERRUPT, POLLING};
use nicpoll_study::{DEFAULT_PERIOD, DemoOptions, TrialPlace, Trials, apply, demo, plan};
use nicpoll_switch::{Journal, guard_of_this_program};
use nicpoll_traffic::signals::Stop;

use crate::failure::Failure;
use crate::output;
use crate::progress::Spinner;

/// Trials of each row of the check.
const CHECKS: u32 = 10;
const QUICK_CHECKS: u32 = 3;

/// Options of `nicpoll sim fit --host`.
#[derive(Args, Debug)]
pub struct HostFitArgs {
    /// Measure for a shorter time: fewer and shorter repeats
    #[arg(long, requires = "host")]
    pub quick: bool,
    /// Measure the demo's traffic afterwards, and compare it with what the simulator predicts
    #[arg(long, requires = "host")]
    pub check: bool,
    /// Write the host file here rather than to standard output; an existing file is left alone
    #[arg(long, value_name = "FILE", requires = "host")]
    pub out: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Measures, writes and checks.
pub fn run(args: &HostFitArgs) -> Result<u8, Failure> {
    if let Some(path) = args.out.as_deref().filter(|path| path.exists()) {
        return Err(exists(path));
    }
    require_lab("the fit", "nicpoll sim fit --host")?;
    let stop = Stop::on_signals().context("catching signals")?;
    let fit = match measure(args, &stop) {
        Ok(fit) => fit,
        Err(error) => return Err(stop.signal().map_or_else(|| error.into(), Failure::Signal)),
    };
    let file = render_host_file(&fit);
    if let Some(path) = &args.out {
        write_new(path, &file)?;
    }
    output::print_either(&fit, args.json, |fit| match args.out {
        Some(_) => render_sim_fit_host(fit),
        None => format!("{}\n{file}", render_sim_fit_host(fit)),
    })?;
    Ok(0)
}

fn measure(args: &HostFitArgs, stop: &Stop) -> anyhow::Result<SimFitHost> {
    let (started_at, begin) = (output::now(), Instant::now());
    let facts = host_facts()?;
    let veth = Veth::build().context("building the lab")?;
    let guard = guard_of_this_program().context("finding this program")?;
    let (_guard, mut lab) = Lab::guarded(veth.link(), &Journal::of_this_machine(), guard)
        .context("building the lab")?;
    let spinner = Spinner::new();
    let design = demo::design(DEFAULT_PERIOD);
    let put_in_force = |lab: &mut Lab, timeout_ns: Option<u64>| {
        let name = if timeout_ns.is_some() {
            POLLING
        } else {
            INTERRUPT
        };
        let unknown = || LabError::Unexpected(format!("the demo has no setting {name}"));
        apply(lab, design.setting(name).ok_or_else(unknown)?, timeout_ns)
    };
    let costs = measure_costs(
        &mut lab,
        args.quick,
        &put_in_force,
        stop.asked(),
        |repeat, of| {
            spinner.show(format!("measuring costs, {repeat} of {of}"));
        },
    )?;
    let numbers = numbers_of(
        &costs.costs,
        &MeasuredMachine {
            started_at: &started_at,
            kernel: &facts.kernel,
            ticks_per_second: ticks_per_second(),
        },
    )?;
    let checks = if args.check {
        check(&mut lab, &host_of(&numbers), args.quick, stop, &spinner)?
    } else {
        Vec::new()
    };
    Ok(SimFitHost {
        schema: String::from(SIM_FIT_HOST_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        started_at,
        elapsed_seconds: begin.elapsed().as_secs_f64(),
        host: facts,
        repeats: costs.repeats,
        others_ratio: costs.others_ratio,
        steal_ratio: costs.steal_ratio,
        costs: costs.costs,
        numbers,
        checks,
    })
}

/// Predicts the demo's traffic on the host, then measures it.
fn check(
    lab: &mut Lab,
    host: &HostModel,
    quick: bool,
    stop: &Stop,
    spinner: &Spinner,
) -> anyhow::Result<Vec<HostCheck>> {
    let rows = demo::design(DEFAULT_PERIOD).to_simulate()?;
    let mut workloads: Vec<String> = rows.iter().map(|row| row.workload.clone()).collect();
    workloads.dedup();
    let options = DemoOptions {
        quick,
        blocks: Some(if quick { QUICK_CHECKS } else { CHECKS }),
        workloads,
        ..DemoOptions::default()
    };
    // Any order will do, if it is the same each time.
    let (design, plan) = plan(&options, Seed(1)).context("planning the check")?;
    let predictions = predict(host, &rows)?;
    let mut trials = Trials::new(lab, &design, &plan, stop.asked())?;
    trials.rehearse(Instant::now() + Duration::from_secs(60))?;
    let mut done = Vec::new();
    let wanted = plan.order.iter();
    let is_checked = |name: &str| rows.iter().any(|row| row.setting == name);
    let wanted = wanted.filter(|(_, setting)| is_checked(setting));
    let count = wanted.clone().count();
    for (index, (workload, setting)) in wanted.enumerate() {
        if stop.asked().load(Ordering::Relaxed) {
            return Err(LabError::Cancelled.into());
        }
        let sequence = index as u32 + 1;
        spinner.show(format!(
            "checking, trial {sequence} of {count}: {workload} under {setting}"
        ));
        done.push(trials.run(TrialPlace {
            sequence,
            block: sequence,
            workload: workload.clone(),
            setting: setting.clone(),
        })?);
    }
    Ok(compare(&predictions, &done))
}

fn exists(path: &Path) -> Failure {
    Failure::Usage(format!(
        "{} exists and is left alone; name another file with --out, or move it away",
        path.display()
    ))
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let file = File::create_new(path);
    match file.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(error) => {
            // Leaves no half-written host file.
            let _ = fs::remove_file(path);
            let context = format!("cannot write the host file {}", path.display());
            Err(anyhow::Error::new(error).context(context).into())
        }
    }
}
