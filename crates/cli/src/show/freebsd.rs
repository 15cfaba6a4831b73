//! `nicpoll show HOST:IF`: kern.polling of a FreeBSD host, as sysctl(8) prints it.

use nicpoll_core::Knob;
use nicpoll_switch::freebsd::{FreebsdHost, FreebsdTarget, Ssh, Survey};

use super::args::ShowArgs;
use crate::failure::Failure;
use crate::output::print;

/// Prints the block, or the values that are asked for.
pub fn show(args: &ShowArgs, target: &FreebsdTarget) -> Result<u8, Failure> {
    if args.json || args.netns.is_some() {
        return Err(Failure::Usage(String::from(
            "--json and --netns are for interfaces of this machine",
        )));
    }
    let asked = args
        .values
        .iter()
        .map(|name| {
            Knob::from_name(name).ok_or_else(|| {
                let known: Vec<&str> = Knob::ALL.iter().map(|knob| knob.name()).collect();
                Failure::Usage(format!(
                    "there is no variable '{name}' on FreeBSD; under kern.polling there are: {}",
                    known.join(", ")
                ))
            })
        })
        .collect::<Result<Vec<Knob>, Failure>>()?;
    let host = FreebsdHost::reach(Ssh::to(target))?;
    let survey = host.survey(target.interface())?;
    let mut text = String::new();
    for knob in &asked {
        let value = survey.polling.get(*knob);
        let value = value.map_or_else(|| String::from("-"), |value| value.to_string());
        text.push_str(&format!("{value}\n"));
    }
    if asked.is_empty() {
        text = block(target, &survey);
    }
    print(&text)?;
    Ok(0)
}

fn block(target: &FreebsdTarget, survey: &Survey) -> String {
    let state = match (survey.interface.can_poll, survey.interface.is_polling) {
        (_, true) => "polling",
        (true, false) => "interrupts; it can poll",
        (false, false) => "interrupts; its driver cannot poll",
    };
    let mut text = format!("{target}: {state}\nhz: {}\n", survey.hz);
    for (knob, value) in survey.polling.all() {
        text.push_str(&format!("kern.polling.{}: {value}\n", knob.name()));
    }
    text
}
