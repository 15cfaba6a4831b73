//! `nicpoll set HOST:IF`: an interface of a FreeBSD host.

use anyhow::Context;
use nicpoll_core::Knob;
use nicpoll_model::SwitchRestored;
use nicpoll_switch::Journal;
use nicpoll_switch::freebsd::{
    self as freebsd, FreebsdChange, FreebsdHost, FreebsdTarget, FreebsdWrite, HZ_ADVISED,
    LineChange, Ssh, Survey, variables,
};
use nicpoll_sys::tell;

use super::args::SetArgs;
use super::report::Report;
use crate::failure::Failure;
use crate::knobs::POLLING;
use crate::output::print;
use crate::stop::Stop;

const POLLING_IS_GONE: &str = "its kernel has polling no more, and what was set went along";

/// The words without the one that switches on.
pub fn names(words: &[String]) -> &[String] {
    match words.split_last() {
        Some((last, names)) if last == POLLING => names,
        _ => words,
    }
}

/// Runs the command for an interface of a host and returns its exit code.
pub fn set(args: &SetArgs, target: &FreebsdTarget) -> Result<u8, Failure> {
    refuse_options_of_linux(args)?;
    let polling = args.words.len() > 1;
    let asked = FreebsdChange {
        polling,
        knobs: args
            .knobs
            .variables
            .iter()
            .map(|(variable, value)| (variable.knob, *value))
            .collect(),
    };
    let is_asked = asked != FreebsdChange::default();
    if is_asked && (args.no_polling || args.no_persist) {
        return usage("'polling' does not go with -polling or --no-persist");
    }
    let _stop = Stop::on_signals().context("catching signals")?;
    let journal = Journal::of_this_machine();
    if args.no_persist {
        return no_persist(&journal, target, args.dry_run);
    }
    if args.no_polling && args.dry_run {
        return would_restore(target).map(|()| 0);
    }
    if args.no_polling {
        let mut report = Report::new(false, None, false);
        restore(target, &mut report)?;
        return report.finish();
    }
    if !is_asked {
        return usage(
            "nothing to set; add 'polling', '-polling' or an option such as --user-frac 20",
        );
    }
    if args.persist && !(polling && asked.knobs.is_empty()) {
        return usage(
            "--persist writes the word 'polling' to the host's /etc/rc.conf and no more; lines such as \
             kern.polling.user_frac=20 go to its /etc/sysctl.conf by hand",
        );
    }
    switch(args, target, &asked, &journal)
}

fn switch(
    args: &SetArgs,
    target: &FreebsdTarget,
    asked: &FreebsdChange,
    journal: &Journal,
) -> Result<u8, Failure> {
    let host = FreebsdHost::reach(Ssh::to(target))?;
    let survey = host.survey(target.interface())?;
    let writes = freebsd::plan(&survey, target, asked)?;
    advise(&survey, target);
    let line = match args.persist {
        true => freebsd::would_persist(&host, target)?,
        false => None,
    };
    let shown = line.as_ref().map_or_else(String::new, LineChange::diff);
    if args.dry_run {
        print(&format!("{}{shown}", commands(target, &writes)))?;
        return Ok(0);
    }
    freebsd::set(journal, &host, target, &writes)?;
    print(&changes(target, &writes))?;
    print(&shown)?;
    if let Some(line) = &line {
        freebsd::persist(journal, &host, target, line)?;
    }
    Ok(0)
}

/// Says what the clock means for polling.
fn advise(survey: &Survey, target: &FreebsdTarget) {
    let hz = survey.hz;
    if hz < HZ_ADVISED {
        tell!(
            "nicpoll: {} ticks {hz} times a second, and polling waits for a tick; {HZ_ADVISED} or more is advised: \
             kern.hz=\"{HZ_ADVISED}\" in its /boot/loader.conf, or 'options HZ={HZ_ADVISED}'",
            target.host()
        );
    }
    let burst_max = survey.polling.get(Knob::BurstMax);
    if let Some(burst_max) = burst_max.filter(|_| survey.polling.get(Knob::IdlePoll) == Some(0)) {
        tell!(
            "nicpoll: with the burst_max of now, {target} takes {} packets a second at the most (hz x burst_max)",
            i64::from(hz) * burst_max
        );
    }
}

/// Puts an interface back.
pub fn restore(target: &FreebsdTarget, report: &mut Report) -> Result<(), Failure> {
    let journal = Journal::of_this_machine();
    let Some(restored) = freebsd::restore(&journal, target)? else {
        say_nothing_changed(target);
        return Ok(());
    };
    let mut notes = restored.drift;
    if restored.is_gone {
        notes.push(String::from(POLLING_IS_GONE));
    }
    for note in &notes {
        tell!("nicpoll: {target}: {note}");
    }
    report.host_restored(SwitchRestored {
        interface: target.to_string(),
        is_as_before: !restored.is_gone,
        notes,
    })
}

/// Prints the commands that would put an interface back.
fn would_restore(target: &FreebsdTarget) -> Result<(), Failure> {
    let journal = Journal::of_this_machine();
    let Some(restored) = freebsd::would_restore(&journal, target)? else {
        say_nothing_changed(target);
        return Ok(());
    };
    for drift in restored.drift {
        tell!("nicpoll: {target}: {drift}");
    }
    if restored.is_gone {
        tell!("nicpoll: {target}: {POLLING_IS_GONE}");
        return Ok(());
    }
    Ok(print(&commands(target, &restored.writes))?)
}

fn say_nothing_changed(target: &FreebsdTarget) {
    tell!("nicpoll: nicpoll has changed nothing on {target}, so nothing is put back");
}

/// Puts back what was changed on hosts; one that cannot be reached does not keep the others.
pub fn restore_all(targets: &[FreebsdTarget], report: &mut Report) {
    for target in targets {
        if let Err(failure) = restore(target, report) {
            let why = anyhow::anyhow!("{target}: {failure}");
            report.not_restored(&target.to_string(), &Failure::Failed(why));
        }
    }
}

fn no_persist(journal: &Journal, target: &FreebsdTarget, dry_run: bool) -> Result<u8, Failure> {
    let Some(line) = freebsd::would_no_persist(journal, target)? else {
        tell!("nicpoll: nicpoll has written nothing to /etc/rc.conf for {target}");
        return Ok(0);
    };
    print(&line.diff())?;
    if !dry_run {
        let host = FreebsdHost::reach(Ssh::to(target))?;
        freebsd::no_persist(journal, &host, target, &line)?;
    }
    Ok(0)
}

fn commands(target: &FreebsdTarget, writes: &[FreebsdWrite]) -> String {
    let lines = writes.iter().map(|write| {
        format!(
            "ssh {} {}\n",
            target.host(),
            write.command(target.interface())
        )
    });
    or_nothing(lines.collect())
}

fn changes(target: &FreebsdTarget, writes: &[FreebsdWrite]) -> String {
    let lines = writes.iter().map(|write| format!("{target}: {write}\n"));
    or_nothing(lines.collect())
}

fn or_nothing(text: String) -> String {
    if text.is_empty() {
        return String::from("nothing: everything is so already\n");
    }
    text
}

fn refuse_options_of_linux(args: &SetArgs) -> Result<(), Failure> {
    let given = [
        (args.netns.is_some(), "--netns"),
        (args.trial.is_some(), "--for"),
        (args.confirm, "--confirm"),
        (args.fix, "--fix"),
        (args.look.is_some(), "--look"),
        (args.json, "--json"),
    ];
    let knob = args
        .knobs
        .given
        .first()
        .and_then(|given| given.split('=').next());
    let other = given.iter().find(|(is_given, _)| *is_given);
    let Some(option) = knob.or(other.map(|(_, option)| *option)) else {
        return Ok(());
    };
    let known: Vec<String> = variables()
        .map(|one| format!("--{}", one.option()))
        .collect();
    usage(&format!(
        "{option} is for interfaces of this machine; a FreeBSD host knows {}",
        known.join(", ")
    ))
}

fn usage<T>(text: &str) -> Result<T, Failure> {
    Err(Failure::Usage(String::from(text)))
}
