//! `nicpoll sim ticks`: samples pulses of work at clock ticks, as top and vmstat do.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use nicpoll_model::units::parse_seconds;
use nicpoll_report::{plot_ticks, render_sim_ticks, sim_ticks_page};
use nicpoll_sim::{Ticks, sample_ticks};

use crate::failure::Failure;
use crate::options::{nanos, number, usage};
use crate::output;

/// Options of `nicpoll sim ticks`.
#[derive(Args, Debug)]
pub struct TicksArgs {
    /// Time from pulse to pulse
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "1ms")]
    pulse: Duration,
    /// How much slower the pulses' clock is than the ticks', in PPM
    #[arg(long, value_name = "PPM", default_value = "60", value_parser = parse_drift)]
    ppm: u32,
    /// Ticks a second
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = number::<u32>(..))]
    hz: u32,
    /// Percentage of the time for which the kernel works, from the start of each pulse
    #[arg(long, value_name = "PERCENT", default_value = "20", value_parser = parse_percent)]
    kernel: u32,
    /// Percentage of the time for which the program then works
    #[arg(long, value_name = "PERCENT", default_value = "15", value_parser = parse_percent)]
    user: u32,
    /// Length of a reading, as top's or vmstat's interval
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "1s")]
    reading: Duration,
    /// Length of all readings [default: three periods of the error, a minute without drift]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    duration: Option<Duration>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write the plot to this file too
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write one page that a browser shows (docs/report.md); what FILE holds is replaced
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub fn run(args: &TicksArgs) -> Result<u8, Failure> {
    let ticks = sample_ticks(&Ticks {
        pulse_ns: nanos(args.pulse),
        drift_ppb: args.ppm,
        hz: args.hz,
        kernel_ppm: args.kernel,
        user_ppm: args.user,
        reading_ns: nanos(args.reading),
        duration_ns: args.duration.map(nanos),
    })
    .map_err(usage)?;
    output::write_plot(args.svg.as_deref(), || plot_ticks(&ticks))?;
    output::write_page(args.report.as_deref(), |argv| sim_ticks_page(&ticks, argv))?;
    output::print_either(&ticks, args.json, render_sim_ticks)?;
    Ok(0)
}

/// Parses PPM with up to three decimals, as billionths.
fn parse_drift(text: &str) -> Result<u32, String> {
    scaled(text, 10_000.0, 1e3)
        .ok_or_else(|| String::from("give 0 to 10000 millionths, such as 60"))
}

/// Parses a percentage with up to four decimals, as millionths.
fn parse_percent(text: &str) -> Result<u32, String> {
    scaled(text.trim_end_matches('%'), 100.0, 1e4)
        .ok_or_else(|| String::from("give 0 to 100 per cent, such as 20"))
}

fn scaled(text: &str, max: f64, scale: f64) -> Option<u32> {
    let number: f64 = text.parse().ok()?;
    // Within the range every value fits the type.
    (0.0..=max)
        .contains(&number)
        .then(|| (number * scale).round() as u32)
}
