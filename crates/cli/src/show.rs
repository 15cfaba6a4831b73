//! `nicpoll show`: what interfaces can do and do.

mod args;
mod freebsd;

use nicpoll_freebsd::Target;
use nicpoll_inspect::{NOT_WATCHED, inside, variable_name, variable_names};
use nicpoll_model::numbers::plain_number;
use nicpoll_model::{InterfaceShow, PollingVariable, Show};
use nicpoll_report::{render_document, render_show_text};

pub use self::args::{ABOUT, ShowArgs};
use crate::failure::Failure;
use crate::output::{origin, print, text_options};

/// Runs the command and returns its exit code.
pub fn show(args: &ShowArgs) -> Result<u8, Failure> {
    if let Some(target) = Target::among(&args.interfaces)? {
        return freebsd::show(args, &target);
    }
    let variables = variables(&args.values)?;
    let (options, origin) = (args.options(), origin());
    let show = match args.netns.clone() {
        None => nicpoll_inspect::show(&options, origin, None),
        Some(name) => inside(&name.clone(), move || {
            nicpoll_inspect::show(&options, origin, Some(&name))
        }),
    }?;
    if !variables.is_empty() {
        return print_values(&show, &variables);
    }
    let text = if args.json {
        render_document(&show)
    } else {
        render_show_text(&show, &text_options())
    };
    print(&text)?;
    Ok(0)
}

fn variables(names: &[String]) -> Result<Vec<&'static str>, Failure> {
    let find = |name: &String| {
        variable_name(name).ok_or_else(|| {
            let known: Vec<&str> = variable_names().collect();
            Failure::Usage(format!(
                "there is no variable '{name}'; under kern.polling there are: {}",
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

/// Values alone, as `sysctl -n` prints them: for each interface one line for each variable.
fn print_values(show: &Show, variables: &[&str]) -> Result<u8, Failure> {
    let mut text = String::new();
    let mut missing = Vec::new();
    let mut needs_look = false;
    for interface in &show.interfaces {
        for variable in variables {
            let found = value(interface, variable);
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

fn value<'a>(interface: &'a InterfaceShow, variable: &str) -> &'a PollingVariable {
    let mut all = interface.kern_polling.iter();
    all.find(|one| one.name == variable)
        .expect("every variable is in the block")
}
