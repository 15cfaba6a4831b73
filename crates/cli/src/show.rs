//! `nicpoll show`: what interfaces can do and do.
//!
//! What must hold: nothing is changed. What cannot be seen is named with what it takes, and the rest is
//! shown.

mod args;
mod drift;
mod evidence;
mod freebsd;
mod gather;
mod look;
mod variables;

use std::env;

use nicpoll_model::{InterfaceShow, PollingVariable, SHOW_SCHEMA, Show};
use nicpoll_report::{plain_number, render_document, render_show_text};

pub use self::args::{ABOUT, ShowArgs};
pub use self::evidence::{THREADED_BUSY_POLL, of_rhythm, without_polls};
pub use self::gather::interrupts;
pub use self::look::Look;
use self::variables::{NOT_WATCHED, Variable};
use crate::failure::Failure;
use crate::namespace;
use crate::output::{print, text_options};

/// Runs the command and returns its exit code.
pub fn show(args: &ShowArgs) -> Result<u8, Failure> {
    if let Some(target) = crate::set::target_among(&args.interfaces)? {
        return freebsd::show(args, &target);
    }
    let asked = asked_variables(&args.values)?;
    let show = match &args.netns {
        None => gather(args)?,
        Some(name) => namespace::inside(name, || gather(args))?,
    };
    if !asked.is_empty() {
        return print_values(&show, &asked);
    }
    let text = if args.json {
        render_document(&show)
    } else {
        render_show_text(&show, &text_options())
    };
    print(&text)?;
    Ok(0)
}

fn asked_variables(names: &[String]) -> Result<Vec<Variable>, Failure> {
    let find = |name: &String| {
        Variable::from_name(name).ok_or_else(|| {
            let known: Vec<&str> = Variable::all().map(Variable::name).collect();
            Failure::Usage(format!(
                "there is no variable '{name}'; under kern.polling there are: {}",
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

/// The interfaces of the caller's namespace.
fn gather(args: &ShowArgs) -> Result<Show, Failure> {
    let started_at = crate::demo::now();
    let mut looked = Look::new(&args.interfaces, args.storm_threshold)?;
    let look_seconds = looked.watch(args.look)?;
    let look_cost = looked.cost();
    let (interfaces, unseen) = looked.finish();
    Ok(Show {
        schema: String::from(SHOW_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        argv: env::args().collect(),
        started_at,
        netns: args.netns.clone(),
        look_seconds,
        look_cost,
        storm_threshold: args.storm_threshold,
        interfaces,
        unseen,
    })
}

/// Values alone, as `sysctl -n` prints them: for each interface one line for each variable.
fn print_values(show: &Show, asked: &[Variable]) -> Result<u8, Failure> {
    let mut text = String::new();
    let mut missing = Vec::new();
    let mut needs_look = false;
    for interface in &show.interfaces {
        for variable in asked {
            let found = value(interface, *variable);
            text.push_str(&plain_number(found.value));
            text.push('\n');
            if found.value.is_none() {
                needs_look |= found.note == NOT_WATCHED;
                missing.push(format!(
                    "nicpoll: {}: kern.polling.{}: {}",
                    interface.name, found.name, found.note
                ));
            }
        }
    }
    print(&text)?;
    for line in missing {
        eprintln!("{line}");
    }
    match show.unseen.first() {
        Some(unseen) if needs_look => {
            Err(Failure::Missing(format!("{}: {}", unseen.what, unseen.why)))
        }
        _ => Ok(0),
    }
}

fn value(interface: &InterfaceShow, variable: Variable) -> &PollingVariable {
    let mut all = interface.kern_polling.iter();
    all.find(|one| one.name == variable.name())
        .expect("every variable is in the block")
}
