//! Documents of the simulator: runs, sweeps, clock ticks, published measurements and the costs of a machine.
//!
//! Every page says that its figures were simulated.

mod fit_host;
mod published;
mod run;
mod sweep;
mod ticks;

pub use fit_host::{render_host_file, render_sim_fit_host};
pub use published::{render_sim_fit, render_sim_published};
pub use run::render_sim_run;
pub use sweep::{plot_sweep, render_sim_sweep};
pub use ticks::{plot_ticks, render_sim_ticks};

use nicpoll_model::cpu::SimTicks;
use nicpoll_model::sim::{SimRun, SimSweep};
use serde::Serialize;

use super::data::{add_saved, json};
use crate::page::{Block, Figure, Medium, Page, Rank};

/// Returns a run as a page; `command` is the command line.
pub fn sim_run_page<'a>(run: &'a SimRun, command: &[String]) -> Page<'a> {
    page(command, None, render_sim_run(run), run)
}

/// Returns a sweep as a page; `command` is the command line.
pub fn sim_sweep_page<'a>(sweep: &'a SimSweep, command: &[String]) -> Page<'a> {
    let plot = Some(plot_sweep(sweep));
    page(command, plot, render_sim_sweep(sweep), sweep)
}

/// Returns readings of clock ticks as a page; `command` is the command line.
pub fn sim_ticks_page<'a>(ticks: &'a SimTicks, command: &[String]) -> Page<'a> {
    let plot = Some(plot_ticks(ticks));
    page(command, plot, render_sim_ticks(ticks), ticks)
}

fn page<'a>(
    command: &[String],
    plot: Option<String>,
    text: String,
    document: &'a impl Serialize,
) -> Page<'a> {
    let title = "Simulated, not measured";
    let mut page = Page::new(title);
    page.linked(Medium::Html, ("answer", "Command"), |part| {
        part.title(Rank::Title, title);
        let lead = "What hosts in virtual time do. The same command gives the same figures.";
        part.title(Rank::Lead, lead);
        part.blocks.push(Block::Code(command.join(" ")));
    });
    if let Some(svg) = plot {
        page.part(Medium::Html, |part| {
            let caption = "The figures of this plot are in the table below it.";
            part.figures([Figure {
                title: String::new(),
                caption: String::from(caption),
                svg,
                table: None,
            }]);
        });
    }
    page.linked(Medium::Html, ("figures", "Figures"), |part| {
        part.heading("Figures");
        part.blocks.push(Block::Code(text));
    });
    add_saved(&mut page, |part| {
        let whole = json("sim.json", document, "everything (docs/simulator.md)");
        part.blocks.push(whole);
    });
    page
}
