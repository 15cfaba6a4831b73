//! The file of measurements, and the plots and tables drawn from it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nicpoll_model::engine::{EngineBenchmark, LoadCurve, LoadPoint, Overload};
use nicpoll_model::numbers::counted;
use nicpoll_model::sim::SimFitHost;
use nicpoll_report::{
    chart_of_overload, delays_as_markdown, overload_as_markdown, plot_chart, plot_delays,
};

use crate::overload::{CONTENDERS, Climbed};
use crate::peers::{leashed, our_program};
use crate::predicted;

/// Reads the file; empty if there is none.
pub fn read(path: &Path) -> Result<EngineBenchmark> {
    if !path.exists() {
        return Ok(EngineBenchmark::default());
    }
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no such file", path.display()))
}

/// Replaces the file.
pub fn write(path: &Path, figures: &EngineBenchmark) -> Result<()> {
    let text = serde_json::to_string_pretty(figures)? + "\n";
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Draws the plots of a file into a folder, and prints its tables.
pub fn draw(file: &Path, folder: &Path) -> Result<()> {
    let figures = read(file)?;
    if let Some(delays) = &figures.delays {
        fs::write(folder.join("engine-delays.svg"), plot_delays(delays))?;
        println!("{}", delays_as_markdown(delays));
    }
    if let Some(overload) = &figures.overload {
        let svg = plot_chart(&chart_of_overload(overload));
        fs::write(folder.join("engine-livelock.svg"), svg)?;
        println!("{}", overload_as_markdown(overload));
    }
    Ok(())
}

/// Returns the measurements, with the simulator's predictions for this machine.
pub fn overload(climbed: &[Climbed], fit: &SimFitHost, rounds: usize) -> Result<Overload> {
    let measured = CONTENDERS
        .iter()
        .zip(climbed)
        .map(|(contender, one)| LoadCurve {
            name: String::from(contender.name),
            is_simulated: false,
            points: one
                .rungs
                .iter()
                .map(|(_, medians)| LoadPoint {
                    offered_pps: medians.of.fed,
                    delivered_pps: medians.of.delivered,
                    programs_share: medians.of.spinner,
                })
                .collect(),
        });
    let mut loads: Vec<u32> = climbed
        .iter()
        .flat_map(|one| one.rungs.iter().map(|(load, _)| *load))
        .collect();
    loads.sort_unstable();
    loads.dedup();
    let mut curves: Vec<LoadCurve> = measured.collect();
    curves.extend(predicted::curves(fit, &loads)?);
    let how = format!(
        "2000 ns of work a packet, the kernel receives on the same core, a program computes beside but for one that is alone, {}",
        counted(rounds as u32, "round")
    );
    Ok(Overload {
        facts: crate::facts(&how)?,
        curves,
    })
}

/// Measures the costs of receiving on this machine.
pub fn measured_costs() -> Result<SimFitHost> {
    let mut fit = Command::new(our_program()?);
    fit.args(["sim", "fit", "--host", "--json"]);
    let fit = leashed(fit)?.output()?;
    let said = String::from_utf8_lossy(&fit.stderr);
    ensure!(fit.status.success(), "nicpoll sim fit --host: {said}");
    Ok(serde_json::from_slice(&fit.stdout)?)
}
