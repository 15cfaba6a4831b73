//! `nicpoll show`: how interfaces learn of packets, and what they could do.

use std::time::Duration;

use clap::Args;
use nicpoll_inspect::{
    AskedVariables, NOT_WATCHED, STORM_THRESHOLD, ShowOptions, asked_variables, inside,
};
use nicpoll_model::Show;
use nicpoll_report::render_polling_values;
use nicpoll_switch::freebsd::FreebsdTarget;
use nicpoll_sys::tell;

use super::freebsd;
use crate::failure::Failure;
use crate::options::{There, number, time_within, usage};
use crate::output::{origin, print, print_document};

/// Runs the command and returns its exit code.
pub fn show(args: &ShowArgs) -> Result<u8, Failure> {
    if let Some(target) = FreebsdTarget::among(&args.interfaces)? {
        if args.json || args.netns.is_some() {
            return Err(usage(
                "--json and --netns are for interfaces of this machine",
            ));
        }
        return freebsd::show(&args.values, &target);
    }
    let asked = asked_variables(&args.values).map_err(usage)?;
    let (options, origin) = (args.options(), origin());
    let show = match args.netns.clone() {
        None => nicpoll_inspect::show(&options, origin, None),
        Some(name) => inside(&name.clone(), move || {
            nicpoll_inspect::show(&options, origin, Some(&name))
        }),
    }?;
    if let Some(asked) = asked {
        return print_values(&show, &asked);
    }
    print_document(&show, args.json)?;
    Ok(0)
}

/// Prints values alone, as `sysctl -n` does, and on standard error why a named one has none.
fn print_values(show: &Show, asked: &AskedVariables) -> Result<u8, Failure> {
    let values = render_polling_values(show, &asked.names, asked.is_tree);
    print(&values.text)?;
    for (interface, variable) in values.missing.iter().filter(|_| !asked.is_tree) {
        let (name, note) = (&variable.name, &variable.note);
        tell!("nicpoll: {interface}: kern.polling.{name}: {note}");
    }
    let mut missing = values.missing.iter();
    let needs_look = missing.any(|(_, variable)| variable.note == NOT_WATCHED);
    match show.unseen.first() {
        Some(unseen) if needs_look && !asked.is_tree => {
            Err(Failure::Missing(format!("{}: {}", unseen.what, unseen.why)))
        }
        _ => Ok(0),
    }
}

/// Options of `nicpoll show`.
#[derive(Args, Debug)]
#[command(after_help = include_str!("../help/show-examples.txt"))]
pub struct ShowArgs {
    /// Interfaces [default: all but the loopback]
    #[arg(value_name = "IF")]
    pub interfaces: Vec<String>,
    /// Time to sample, in seconds or with a unit; 0: settings only
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = parse_look)]
    pub look: Duration,
    /// Print only the value of a variable, as 'sysctl -n' does; '-' if it has none. Repeatable.
    /// kern.polling prints all of them with their names
    #[arg(
        short = 'n',
        long = "value",
        value_name = "NAME",
        conflicts_with = "json"
    )]
    pub values: Vec<String>,
    /// Back-to-back handler entries that count as a storm (hw.intr_storm_threshold); 0: off
    #[arg(long, value_name = "N", default_value_t = STORM_THRESHOLD, value_parser = number::<u64>(..))]
    pub storm_threshold: u64,
    /// Network namespace to show: a name from 'ip netns', or a path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Print one JSON object instead of text (docs/schema.md)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub there: There,
}

impl ShowArgs {
    /// Returns what to show.
    pub fn options(&self) -> ShowOptions {
        ShowOptions {
            interfaces: self.interfaces.clone(),
            look: self.look,
            storm_threshold: self.storm_threshold,
        }
    }
}

/// The longest look.
const LOOK_MAX: Duration = Duration::from_secs(3600);

fn parse_look(text: &str) -> Result<Duration, String> {
    let bounds = Duration::ZERO..=LOOK_MAX;
    time_within(text, bounds, "the time to sample is an hour at most")
}
