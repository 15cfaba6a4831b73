//! `nicpoll show`: what interfaces can do and do.

mod args;
mod freebsd;

use nicpoll_inspect::{AskedVariables, NOT_WATCHED, asked_variables, inside};
use nicpoll_model::Show;
use nicpoll_report::{render_document, render_polling_values, render_show_text};
use nicpoll_switch::freebsd::FreebsdTarget;
use nicpoll_sys::tell;

pub use self::args::{ABOUT, ShowArgs};
use crate::failure::Failure;
use crate::output::{origin, print, text_options};

/// Runs the command and returns its exit code.
pub fn show(args: &ShowArgs) -> Result<u8, Failure> {
    if let Some(target) = FreebsdTarget::among(&args.interfaces)? {
        return freebsd::show(args, &target);
    }
    let asked = asked_variables(&args.values).map_err(|error| Failure::Usage(error.to_string()))?;
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
    let text = if args.json {
        render_document(&show)
    } else {
        render_show_text(&show, &text_options())
    };
    print(&text)?;
    Ok(0)
}

/// Values alone, as `sysctl -n` prints them, and on standard error why one that was named has none.
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
