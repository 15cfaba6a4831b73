//! `nicpoll study search`: the highest load that each setting holds.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use nicpoll_model::SearchGoal;
use nicpoll_model::line::{LinePacket, RFC_2544_FRAMES};
use nicpoll_model::units::parse_seconds;
use nicpoll_report::render_html;
use nicpoll_stats::search::{NDR, PDR, RFC_2544};
use nicpoll_study::{SearchRequest, StudyFile, frames_study, search_here};
use nicpoll_switch::guard_of_this_program;
use nicpoll_traffic::signals::Stop;

use crate::failure::{EXIT_FAILED, EXIT_INCONCLUSIVE, Failure};
use crate::output;
use crate::progress::Spinner;
use crate::study::run::{read_study, require};

/// A goal with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// No-drop rate: nothing lost in half of 21 trials of 1 s
    Ndr,
    /// Partial drop rate: at most 0.5 % lost in half of 21 trials of 1 s
    Pdr,
    /// RFC 2544's throughput: nothing lost in 60 s
    Rfc2544,
}

impl Preset {
    fn goal(self) -> SearchGoal {
        match self {
            Preset::Ndr => NDR,
            Preset::Pdr => PDR,
            Preset::Rfc2544 => RFC_2544,
        }
    }
}

/// Options of `nicpoll study search`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/study-search-examples.txt"))]
pub struct SearchArgs {
    /// The study: a file (docs/studies.md), or the name of a ready one. Without it the demo's settings are searched
    /// between two namespaces, with --frames
    #[arg(value_name = "FILE", conflicts_with = "frames")]
    pub study: Option<PathBuf>,
    /// Frame lengths in bytes with FCS, rfc2544 (the seven of the RFC) or imix [default: 64]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = parse_frames)]
    pub frames: Vec<SearchedFrames>,
    /// Run it between the machines that this file names (docs/hosts.md)
    #[arg(long, value_name = "FILE", requires = "study")]
    pub hosts: Option<PathBuf>,
    /// Search only these workloads
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "study")]
    pub workload: Vec<String>,
    /// Search only these settings
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub setting: Vec<String>,
    /// What counts as held
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "ndr,pdr"
    )]
    pub preset: Vec<Preset>,
    /// Search for these loss ratios in place of the preset's: 0,0.1%,0.5%
    #[arg(long, value_name = "SHARES", value_delimiter = ',', value_parser = parse_loss)]
    pub loss: Vec<f64>,
    /// Length of a trial that decides, in seconds or with a unit
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub trial: Option<Duration>,
    /// Sum of trials at a load after which it is decided [default: the preset's, at least one trial]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub sum: Option<Duration>,
    /// How close the bounds are to be, from 0.1% to 50% [default: 0.5%]
    #[arg(long, value_name = "SHARE", value_parser = parse_width)]
    pub width: Option<f64>,
    /// Print one JSON object instead of tables (docs/search.md)
    #[arg(long)]
    pub json: bool,
    /// Also write one page with plots that a browser shows; what FILE holds is replaced
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// The frames of one word of `--frames`.
#[derive(Clone, Debug)]
pub struct SearchedFrames(Vec<LinePacket>);

fn parse_frames(text: &str) -> Result<SearchedFrames, String> {
    let frame = |bytes| LinePacket::Frame { bytes };
    Ok(SearchedFrames(match text {
        "imix" => vec![LinePacket::Imix],
        "rfc2544" => RFC_2544_FRAMES.map(frame).to_vec(),
        _ => {
            let why = "a number of bytes, rfc2544 or imix was expected";
            vec![frame(text.parse().map_err(|_| String::from(why))?)]
        }
    }))
}

fn parse_loss(text: &str) -> Result<f64, String> {
    parse_share(text, 0.0, 0.5)
}

fn parse_width(text: &str) -> Result<f64, String> {
    parse_share(text, 0.001, 0.5)
}

/// Parses a share: in percent with a sign, else as a ratio.
fn parse_share(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    share
        .ok()
        .filter(|share| (least..=most).contains(share))
        .ok_or_else(|| format!("give {}% to {}%, such as 0.5%", 100.0 * least, 100.0 * most))
}

/// Runs the search, and returns the exit code.
pub fn run(args: &SearchArgs) -> Result<u8, Failure> {
    let file = read(args)?;
    let file = match args.workload.is_empty() {
        true => file,
        false => file.with_workloads(&args.workload)?,
    };
    let is_apart = file.design.topology.hosts.is_some();
    let request = SearchRequest::new(file.design, &file.lengths, &args.setting, goals(args)?)?;
    output::require_place_for(args.report.as_deref())?;
    if !is_apart {
        require("a search", "nicpoll study search")?;
    }
    let stop = Stop::on_signals().context("catching signals")?;
    let guard = guard_of_this_program().context("finding this program")?;
    let line = Spinner::new();
    let found = search_here(&request, output::origin(), guard, stop.asked(), |it| {
        let (workload, setting) = (it.workload, it.setting);
        let trial = it.trials + 1;
        line.show(format!(
            "{workload} under {setting}, trial {trial}: {}/s",
            it.per_second
        ));
    });
    drop(line);
    let mut found =
        found.map_err(|error| stop.signal().map_or_else(|| error.into(), Failure::Signal))?;
    output::print_document(&found, args.json)?;
    if let Some(file) = &args.report {
        found.host.leave_out_names();
        output::write_report(file, &render_html(&found))?;
    }
    if let Some(signal) = stop.signal() {
        return Err(Failure::Signal(signal));
    }
    if !found.is_finished {
        return Ok(EXIT_FAILED);
    }
    let mut bounds = found.searches.iter().flat_map(|it| &it.bounds);
    Ok(if bounds.all(|it| it.is_finished) {
        0
    } else {
        EXIT_INCONCLUSIVE
    })
}

/// Reads the study, or makes one of frames.
fn read(args: &SearchArgs) -> Result<StudyFile, Failure> {
    let Some(path) = &args.study else {
        let mut frames: Vec<LinePacket> = args.frames.iter().flat_map(|it| it.0.clone()).collect();
        if frames.is_empty() {
            frames.push(LinePacket::Frame { bytes: 64 });
        }
        return Ok(frames_study(&frames)?);
    };
    read_study(path, args.hosts.as_deref())
}

/// Returns the goals that the options ask for, the strictest first.
fn goals(args: &SearchArgs) -> Result<Vec<SearchGoal>, Failure> {
    let mut goals: Vec<SearchGoal> = args.preset.iter().map(|preset| preset.goal()).collect();
    if !args.loss.is_empty() {
        let first = goals[0];
        let with = |loss_ratio: &f64| SearchGoal {
            loss_ratio: *loss_ratio,
            ..first
        };
        goals = args.loss.iter().map(with).collect();
    }
    for goal in &mut goals {
        if let Some(trial) = args.trial {
            goal.final_trial_seconds = trial.as_secs_f64();
            goal.initial_trial_seconds = goal.initial_trial_seconds.min(trial.as_secs_f64());
        }
        let sum = args
            .sum
            .map_or(goal.duration_sum_seconds, |sum| sum.as_secs_f64());
        goal.duration_sum_seconds = sum.max(goal.final_trial_seconds);
        goal.width_ratio = args.width.unwrap_or(goal.width_ratio);
        if goal.final_trial_seconds < 0.1 {
            return Err(Failure::Usage(String::from("--trial: give 0.1 s or more")));
        }
    }
    goals.sort_by(|one, other| one.loss_ratio.total_cmp(&other.loss_ratio));
    goals.dedup();
    Ok(goals)
}
