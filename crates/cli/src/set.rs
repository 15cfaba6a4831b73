//! `nicpoll set` and `nicpoll restore`: interfaces to polling and back.
//!
//! Standard output says what was written, one value a line, and what the polls prove. Everything else, such as
//! what was found below a bridge or what somebody else changed meanwhile, goes to standard error.

pub mod args;
mod freebsd;
mod persistence;
mod report;
mod restore;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nicpoll_inspect::PollWitness;
use nicpoll_switch::freebsd::FreebsdTarget;
use nicpoll_switch::{
    Guard, Journal, Name, Needs, Order, Preview, Recovered, Resolved, Switch, boottime_ns, confirm,
    drift_of, guard_of_this_program, needs_napi, preview, prove, recover, require_privileges,
    similar, take_over, watch_time, writes_kept,
};
use nicpoll_sys::tell;

use self::args::SetArgs;
use self::report::Report;
use crate::failure::Failure;
use crate::knobs::{MINUS_POLLING, NO_POLLING, POLLING};
use crate::stop::Stop;

pub use self::restore::restore;

/// The command line of `set` or `ab` with `-polling`, as ifconfig(8) has it, written as an option.
pub fn translated(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    if args
        .get(1)
        .is_some_and(|command| command == "set" || command == "ab")
    {
        for arg in args.iter_mut().filter(|arg| *arg == MINUS_POLLING) {
            *arg = OsString::from(NO_POLLING);
        }
    }
    args
}

/// Runs `nicpoll set` and returns its exit code.
pub fn set(args: &SetArgs) -> Result<u8, Failure> {
    if let Some(target) = FreebsdTarget::among(freebsd::names(&args.words))? {
        return freebsd::set(args, &target);
    }
    args.knobs.refuse_on_linux()?;
    let (names, is_polling) = words(args)?;
    let mut report = Report::new(args.json, args.netns.as_deref(), args.dry_run);
    let mut switch = Switch::new(Journal::of_this_machine());
    if args.no_persist {
        if !args.dry_run && require_privileges().is_ok() {
            // Without its rule udev forgets what it saved.
            take_over(&mut switch)?;
        }
        persistence::remove(args, &names, &mut report)?;
        return report.finish();
    }
    require_privileges()?;
    // What has begun is finished or put back; a second signal ends at once.
    let _stop = Stop::on_signals().context("catching signals")?;
    if !args.dry_run {
        put_back_left(switch.journal())?;
        take_over(&mut switch)?;
    }
    let netns_inode = switch.enter(args.netns.as_deref())?;
    if args.no_polling {
        restore::named(&mut switch, &names, netns_inode, args.dry_run, &mut report)?;
    } else if args.confirm {
        keep(&mut switch, &names, netns_inode, &mut report)?;
    } else {
        change(
            args,
            (&names, is_polling),
            &mut switch,
            netns_inode,
            &mut report,
        )?;
    }
    report.finish()
}

/// Changes settings, or says what would be changed.
fn change(
    args: &SetArgs,
    (names, is_polling): (&[Name], bool),
    switch: &mut Switch,
    netns_inode: u64,
    report: &mut Report,
) -> Result<(), Failure> {
    let values = args.values(is_polling)?;
    let Resolved { orders, notes } = switch.resolve(names, &values, netns_inode, args.needs())?;
    for note in notes {
        tell!("nicpoll: {note}");
    }
    let files = persistence::plan(args, names, is_polling, &values)?;
    let facts = switch.survey(&orders)?;
    let planned = preview(&orders, &facts, args.needs())?;
    for warning in switch.warnings(&facts, &values)? {
        tell!("nicpoll: {warning}");
    }
    warn_of_drift(switch, &orders)?;
    if args.dry_run {
        report.wrote(&planned, netns_inode)?;
        return report.files(&files);
    }
    let trial = if planned == Preview::default() {
        None
    } else {
        args.trial(switch.carries_own_ssh(netns_inode, &orders)?)
    };
    if trial.is_some() && !files.is_empty() {
        return Err(Failure::Usage(String::from(
            "--persist does not go with a change that has to be confirmed; set and confirm it first, then repeat it \
             with --persist",
        )));
    }
    persistence::carry_out(&files, report)?;
    let writes = match trial {
        None => switch.set(&orders, args.needs()).map_err(Failure::from),
        Some(time) => change_for(switch, &orders, args.needs(), time),
    };
    let done = Preview {
        writes: writes.inspect_err(|_| persistence::take_back(&files))?,
        is_open_ended: false,
    };
    report.wrote(&done, netns_inode)?;
    if let Some(time) = trial {
        say_how_to_confirm(args, names, time);
        report.is_trial(time);
    }
    let time = args.look.unwrap_or_else(|| watch_time(&values));
    if time.is_zero() || !needs_napi(&values) {
        return Ok(());
    }
    show_proof(switch, &orders, time, args.netns.as_deref(), report)
}

/// Makes a change that a guard undoes unless it is confirmed.
fn change_for(
    switch: &mut Switch,
    orders: &[Order],
    needs: Needs,
    time: Duration,
) -> Result<Vec<nicpoll_switch::Write>, Failure> {
    let until = boottime_ns() + time.as_nanos() as u64;
    let guard = Guard::start(
        guard_of_this_program().context("finding this program")?,
        switch.journal(),
        Some(until),
    )?;
    let writes = switch.try_until(orders, needs, guard.owner(), until)?;
    guard.leave().context("leaving the change to its guard")?;
    Ok(writes)
}

/// Shows whether the polls are as the values mean.
fn show_proof(
    switch: &mut Switch,
    orders: &[Order],
    time: Duration,
    netns: Option<&str>,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut names: Vec<String> = Vec::new();
    for order in orders {
        let name = &order.target.interface.name;
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let inode = orders.first().map_or(0, |order| order.target.netns_inode);
    let proofs = prove(switch.machine(), Arc::new(PollWitness), inode, &names, time);
    report.proved(proofs, netns)
}

fn say_how_to_confirm(args: &SetArgs, names: &[Name], time: Duration) {
    let names: Vec<&str> = names.iter().map(|name| name.interface.as_str()).collect();
    let netns = args.netns.as_deref();
    let netns = netns.map_or_else(String::new, |netns| format!(" --netns {netns}"));
    tell!(
        "nicpoll: undone in {} s unless it is confirmed: nicpoll set {}{netns} --confirm",
        time.as_secs(),
        names.join(" ")
    );
}

/// The names, and whether the word 'polling' follows them.
fn words(args: &SetArgs) -> Result<(Vec<Name>, bool), Failure> {
    let (names, is_polling) = match args.words.split_last() {
        Some((last, names)) if last == POLLING => (names, true),
        _ => (&args.words[..], false),
    };
    let usage = |text: &str| Err(Failure::Usage(String::from(text)));
    if names.is_empty() {
        return usage("name an interface: nicpoll set eth0 polling");
    }
    if names.iter().any(|name| name == POLLING) {
        return usage("'polling' comes once, after the interfaces");
    }
    let last = args.words.last().map(String::as_str).unwrap_or_default();
    let is_asked =
        !args.knobs.values.is_empty() || args.no_polling || args.confirm || args.no_persist;
    if !is_polling && !is_asked && names.len() > 1 && similar(last, [POLLING]).is_some() {
        return usage(&format!(
            "there is no word '{last}'; did you mean '{POLLING}'?"
        ));
    }
    if is_polling && (args.no_polling || args.confirm || args.no_persist) {
        return usage("'polling' does not go with -polling, --confirm or --no-persist");
    }
    Ok((parse_names(names)?, is_polling))
}

fn parse_names(words: &[String]) -> Result<Vec<Name>, Failure> {
    let names = words.iter().map(|word| Name::parse(word));
    names
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::Usage(error.to_string()))
}

/// Keeps a change that waits to be confirmed.
fn keep(
    switch: &mut Switch,
    names: &[Name],
    netns_inode: u64,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut kept = Vec::new();
    for path in switch.records_of(names, netns_inode)? {
        kept.extend(confirm(switch.journal(), &path).context("confirming")?);
    }
    if kept.is_empty() {
        return Err(anyhow::anyhow!(
            "nothing waits to be confirmed there; it was confirmed before, or undone already"
        )
        .into());
    }
    let netns = kept[0].0.netns_option();
    let writes = kept
        .iter()
        .flat_map(|(target, changes)| writes_kept(target, changes));
    report.values(writes.collect(), netns_inode)?;
    let names: Vec<&str> = names.iter().map(|name| name.interface.as_str()).collect();
    tell!(
        "nicpoll: kept until: nicpoll set {}{netns} -polling",
        names.join(" ")
    );
    Ok(())
}

/// Puts back what killed programs left; what cannot be dealt with is named and left.
fn put_back_left(journal: &Journal) -> Result<(), Failure> {
    for (path, outcome) in recover(journal)? {
        let path = path.display();
        match outcome {
            Recovered::Failed(error) => {
                tell!("nicpoll: {path}: {:#}", anyhow::Error::from(error));
            }
            Recovered::Restored => {
                tell!("nicpoll: put back what a program that was killed had left ({path})");
            }
            Recovered::Busy | Recovered::Gone | Recovered::NotFound | Recovered::Standing => {}
        }
    }
    Ok(())
}

fn warn_of_drift(switch: &mut Switch, orders: &[Order]) -> Result<(), Failure> {
    for Order { target, .. } in orders {
        let journal = switch.journal().clone();
        let drift = drift_of(&journal, switch.machine(), target)
            .context("comparing with what was set before")?;
        for drift in drift {
            tell!("nicpoll: {}", drift.describe(&target.interface.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minus_polling_is_an_option_of_set_and_ab_only() {
        let translate = |line: &str| {
            let args = translated(line.split(' ').map(OsString::from));
            args.join(" ".as_ref()).into_string().unwrap()
        };
        assert_eq!(
            translate("nicpoll set eth0 -polling"),
            "nicpoll set eth0 --no-polling"
        );
        assert_eq!(
            translate("nicpoll ab eth0 -polling"),
            "nicpoll ab eth0 --no-polling"
        );
        assert_eq!(
            translate("nicpoll iperf set -polling"),
            "nicpoll iperf set -polling"
        );
    }
}
