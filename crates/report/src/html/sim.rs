//! What the simulator was asked and what it said, as one page.
//!
//! What must hold: as for a report. The words and figures are those that the terminal shows, and the page says in its
//! heading that nothing was measured.

use maud::{Markup, PreEscaped, html};
use nicpoll_model::sim::{SimRun, SimSweep};
use nicpoll_model::ticks::SimTicks;
use serde::Serialize;

use super::{download, own_links, page};
use crate::sim::{plot_sweep, plot_ticks, render_sim_run, render_sim_sweep, render_sim_ticks};

/// A run as one HTML file. `command` is what was asked.
pub fn render_sim_run_html(run: &SimRun, command: &[String]) -> String {
    simulated(command, None, &render_sim_run(run), run)
}

/// A sweep as one HTML file. `command` is what was asked.
pub fn render_sim_sweep_html(sweep: &SimSweep, command: &[String]) -> String {
    let plot = plot_sweep(sweep);
    simulated(command, Some(&plot), &render_sim_sweep(sweep), sweep)
}

/// Readings of clock ticks as one HTML file. `command` is what was asked.
pub fn render_sim_ticks_html(ticks: &SimTicks, command: &[String]) -> String {
    let plot = plot_ticks(ticks);
    simulated(command, Some(&plot), &render_sim_ticks(ticks), ticks)
}

fn simulated(
    command: &[String],
    plot: Option<&str>,
    text: &str,
    document: &impl Serialize,
) -> String {
    let title = "Simulated, not measured";
    let body: Markup = html! {
        header id="answer" {
            h1 { (title) }
            p.lead { "What hosts in virtual time do. The same command gives the same figures." }
            pre tabindex="0" { (command.join(" ")) }
        }
        @if let Some(plot) = plot {
            section {
                figure {
                    figcaption { "The figures of this plot are in the table below it." }
                    (PreEscaped(plot))
                }
            }
        }
        section id="figures" {
            h2 { "Figures" }
            pre tabindex="0" { (text) }
        }
        (download::of_simulated(document))
    };
    let links = own_links([
        ("answer", "Command"),
        ("figures", "Figures"),
        ("data", "Data"),
    ]);
    page(title, &links, &body)
}
