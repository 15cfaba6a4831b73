//! Interfaces of FreeBSD hosts (HOST:IF): what `nicpoll set`, `restore` and `show` do with them over ssh.

use nicpoll_core::Knob;
use nicpoll_switch::Journal;
use nicpoll_switch::freebsd::{
    self as freebsd, FreebsdChange, FreebsdHost, FreebsdRestored, FreebsdTarget, FreebsdWrite,
    HZ_ADVISED, Survey,
};
use nicpoll_sys::tell;

use super::report::Report;
use crate::failure::Failure;
use crate::output::print;

/// Switches an interface, or prints the commands that would.
pub fn switch(
    target: &FreebsdTarget,
    asked: &FreebsdChange,
    persist: bool,
    dry_run: bool,
    journal: &Journal,
) -> Result<u8, Failure> {
    let host = FreebsdHost::reach(target)?;
    let survey = host.survey(target.interface())?;
    let writes = freebsd::plan(&survey, target, asked)?;
    advise(&survey, target);
    let line = match persist {
        true => freebsd::would_persist(&host, target)?,
        false => None,
    };
    let shown = line
        .as_ref()
        .map_or_else(String::new, |line| freebsd::diff(target, line));
    if dry_run {
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

/// Prints what the host's tick rate means for polling.
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

/// Restores an interface.
pub fn restore(target: &FreebsdTarget, report: &mut Report) -> Result<(), Failure> {
    let restored = freebsd::restore(&Journal::of_this_machine(), target)?;
    match print_notes(target, restored) {
        Some(restored) => report.host_restored(restored.document),
        None => Ok(()),
    }
}

/// Prints the commands that would restore an interface.
pub fn would_restore(target: &FreebsdTarget) -> Result<(), Failure> {
    let restored = freebsd::would_restore(&Journal::of_this_machine(), target)?;
    let restored = print_notes(target, restored).filter(|restored| restored.document.is_as_before);
    Ok(restored.map_or(Ok(()), |restored| {
        print(&commands(target, &restored.writes))
    })?)
}

/// Prints the messages of a result.
fn print_notes(
    target: &FreebsdTarget,
    restored: Option<FreebsdRestored>,
) -> Option<FreebsdRestored> {
    if restored.is_none() {
        tell!("nicpoll: nicpoll has changed nothing on {target}, so nothing is put back");
    }
    for note in restored
        .iter()
        .flat_map(|restored| &restored.document.notes)
    {
        tell!("nicpoll: {target}: {note}");
    }
    restored
}

/// Restores the hosts. One that cannot be reached does not hold up the others.
pub fn restore_all(targets: &[FreebsdTarget], report: &mut Report) {
    for target in targets {
        if let Err(failure) = restore(target, report) {
            let why = anyhow::anyhow!("{target}: {failure}");
            report.not_restored(&target.to_string(), &Failure::Failed(why));
        }
    }
}

/// Removes the line that `--persist` wrote to /etc/rc.conf, or shows it.
pub fn no_persist(journal: &Journal, target: &FreebsdTarget, dry_run: bool) -> Result<u8, Failure> {
    let Some(line) = freebsd::would_no_persist(journal, target)? else {
        tell!("nicpoll: nicpoll has written nothing to /etc/rc.conf for {target}");
        return Ok(0);
    };
    print(&freebsd::diff(target, &line))?;
    if !dry_run {
        let host = FreebsdHost::reach(target)?;
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

/// Prints kern.polling as sysctl(8) does, or the values asked for.
pub fn show(values: &[String], target: &FreebsdTarget) -> Result<u8, Failure> {
    let asked = values
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
    let host = FreebsdHost::reach(target)?;
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
