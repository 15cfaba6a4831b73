//! `nicpoll sim run`: one load under one discipline; `nicpoll sim hosts`: the hosts that need no file. Sweeps use its
//! [`Length`] and [`parse_workload`], too.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use nicpoll_model::FileError;
use nicpoll_model::sim::{SIM_RUN_SCHEMA, SimRun};
use nicpoll_model::units::parse_seconds;
use nicpoll_report::{render_sim_run, sim_run_page};
use nicpoll_sim::{
    EmbeddedHost, PathHost, ReceiveDiscipline, Simulation, SimulationCost, TRACE_LINE_BYTES_MAX,
    Trace, TraceReader, TrafficModel, bottleneck, explain, explain_work, list_presets, simulate,
    warmup_ns,
};

use crate::failure::Failure;
use crate::options::{at_line, nanos, number, read_host, usage};
use crate::output;
use crate::reading::confined;

/// Length and seed of runs.
#[derive(Args, Debug)]
pub struct Length {
    /// Virtual time that is counted [default: 10s, in a sweep 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub duration: Option<Duration>,
    /// Virtual time before it, not counted [default: 0.5s, or longer for a poller's burst to climb]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub warmup: Option<Duration>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::<u64>(..))]
    pub seed: u64,
    /// Allow runs of more than ten minutes, or of more than 4 GiB of memory
    #[arg(long)]
    pub long: bool,
}

/// Options of `nicpoll sim run`.
#[derive(Args, Debug)]
pub struct SimRunArgs {
    /// The host file, or a name that `nicpoll sim hosts` lists
    #[arg(value_name = "HOSTFILE")]
    pub host: PathBuf,
    /// Discipline of the host
    #[arg(long, value_name = "NAME[:OPTION=VALUE]...", default_value = "freebsd-interrupt", value_parser = ReceiveDiscipline::parse)]
    pub discipline: ReceiveDiscipline,
    /// The traffic
    #[arg(long, value_name = "NAME[:OPTION=VALUE]...", default_value = "poisson:rate=50k", value_parser = parse_workload)]
    pub workload: TrafficModel,
    /// Host file of the host that receives what this one sends
    #[arg(long, value_name = "HOSTFILE")]
    pub peer: Option<PathBuf>,
    /// Discipline of the peer [default: the host's]
    #[arg(long, value_name = "NAME[:OPTION=VALUE]...", requires = "peer", value_parser = ReceiveDiscipline::parse)]
    pub peer_discipline: Option<ReceiveDiscipline>,
    /// Host file of a router between the two; repeat it for several, in the order of the path
    #[arg(long, value_name = "HOSTFILE", requires = "peer")]
    pub through: Vec<PathBuf>,
    /// Discipline of the routers [default: the host's]
    #[arg(long, value_name = "NAME[:OPTION=VALUE]...", requires = "through", value_parser = ReceiveDiscipline::parse)]
    pub router_discipline: Option<ReceiveDiscipline>,
    #[command(flatten)]
    pub length: Length,
    /// Also report N equal parts of the counted time, each with every knob at its end; with --peer each TCP
    /// connection
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::<u32>(0..=1000))]
    pub slices: u32,
    /// Also write one page that a browser shows (docs/report.md); what FILE holds is replaced
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Name the bottleneck, but do not try what would move it
    #[arg(long)]
    pub no_explain: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Options of `nicpoll sim hosts`.
#[derive(Args, Debug)]
pub struct HostsArgs {
    /// Print the file of this host
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

pub fn hosts(args: &HostsArgs) -> Result<u8, Failure> {
    let Some(name) = &args.name else {
        output::print(&list_presets())?;
        return Ok(0);
    };
    let names = || {
        EmbeddedHost::all()
            .map(|host| host.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let host = EmbeddedHost::named(name);
    let host =
        host.ok_or_else(|| usage(format!("there is no host '{name}'; there are {}", names())))?;
    output::print(host.text)?;
    Ok(0)
}

/// Runs `nicpoll sim run`.
pub fn run(args: &SimRunArgs) -> Result<u8, Failure> {
    let stops = stops(args)?;
    let plan = Simulation {
        warmup_ns: args.length.warmup_ns(&stops),
        stops,
        workload: args.workload.clone(),
        duration_ns: nanos(args.length.duration.unwrap_or(Duration::from_secs(10))),
        seed: args.length.seed,
        slices: args.slices,
    };
    plan.check().map_err(usage)?;
    args.length.refuse_too_large(&SimulationCost {
        runs: plan.work(),
        trials: (!args.no_explain).then(|| explain_work(&plan)),
        memory_bytes: plan.memory_bytes(),
        workers: 1,
    })?;
    let figures = simulate(&plan).map_err(usage)?;
    let run = SimRun {
        schema: String::from(SIM_RUN_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        plan: plan.facts(),
        bottleneck: match args.no_explain {
            true => bottleneck(&plan, &figures),
            false => explain(&plan, &figures).map_err(usage)?,
        },
        figures,
    };
    output::write_page(args.report.as_deref(), |argv| sim_run_page(&run, argv))?;
    output::print_either(&run, args.json, render_sim_run)?;
    Ok(0)
}

/// Returns the host, and with `--peer` the routers and the peer.
fn stops(args: &SimRunArgs) -> Result<Vec<PathHost>, Failure> {
    let own = &args.discipline;
    let routers = args.through.iter().map(|router| {
        let discipline = args.router_discipline.as_ref().unwrap_or(own);
        (router, discipline)
    });
    let peer = args.peer.iter().map(|peer| {
        let discipline = args.peer_discipline.as_ref().unwrap_or(own);
        (peer, discipline)
    });
    let all = [(&args.host, own)].into_iter().chain(routers).chain(peer);
    let stop = |(path, discipline): (&PathBuf, &ReceiveDiscipline)| {
        Ok(PathHost {
            host: read_host(path)?,
            discipline: discipline.clone(),
        })
    };
    all.map(stop).collect()
}

impl Length {
    /// Returns the given warm-up, or one in which all hosts settle.
    pub fn warmup_ns(&self, stops: &[PathHost]) -> u64 {
        self.warmup.map_or_else(|| warmup_ns(stops), nanos)
    }

    /// Refuses long or large runs without `--long`.
    pub fn refuse_too_large(&self, need: &SimulationCost) -> Result<(), Failure> {
        need.check()
            .or_else(|error| self.long.then_some(()).ok_or(usage(error)))
    }
}

/// Parses a workload's name and options; of `trace:FILE` it reads the file, too.
pub fn parse_workload(text: &str) -> Result<TrafficModel, String> {
    let Some(rest) = text.strip_prefix("trace:") else {
        return TrafficModel::parse(text).map_err(|error| error.to_string());
    };
    let mut parts = rest.split(':');
    let file = parts.next().unwrap_or_default();
    let options: Result<Vec<_>, String> = parts
        .map(|part| {
            part.split_once('=').ok_or_else(|| {
                format!("'{part}' is no option; the form is NAME=VALUE, as in repeat=1")
            })
        })
        .collect();
    TrafficModel::replay(Arc::new(read_trace(file)?), &options?).map_err(|error| error.to_string())
}

/// Reads a trace in a process without rights, which returns its times and sizes.
fn read_trace(path: &str) -> Result<Trace, String> {
    let unreadable = |error| usage(format!("cannot read the trace {path}: {error}"));
    let read = |file| {
        let trace = trace_of(path, file)?;
        let packets = trace.packets().iter();
        Ok(packets
            .map(|packet| (packet.at_ns, packet.payload_bytes))
            .collect::<Vec<_>>())
    };
    let packets = confined(|| File::open(path).map_err(unreadable), read);
    let mut reader = TraceReader::default();
    for (at_ns, bytes) in packets.map_err(|error| error.to_string())? {
        let line = format!("{at_ns}ns {bytes}");
        reader
            .line(line.as_bytes())
            .map_err(|error| error.message)?;
    }
    reader.finish(path).map_err(|error| error.message)
}

fn trace_of(path: &str, file: File) -> Result<Trace, Failure> {
    let unreadable = |error| usage(format!("cannot read the trace {path}: {error}"));
    let wrong = |error: FileError| at_line(Path::new(path), error.line, &error.message);
    let mut file = BufReader::new(file);
    let mut reader = TraceReader::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        // One byte more than a line may have, to detect longer lines.
        let mut rest = (&mut file).take(TRACE_LINE_BYTES_MAX as u64 + 2);
        let bytes = rest.read_until(b'\n', &mut line).map_err(unreadable)?;
        if bytes == 0 {
            break;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        reader.line(&line).map_err(wrong)?;
    }
    reader.finish(path).map_err(wrong)
}
