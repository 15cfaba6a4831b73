//! `nicpoll set` and `nicpoll restore`: interfaces to polling and back.
//!
//! Standard output says what was written, one value a line, and what the polls prove. Everything else, such as
//! what was found below a bridge or what somebody else changed meanwhile, goes to standard error.

pub mod args;
mod freebsd;
mod guard;
mod held;
mod kern_polling;
mod persistence;
mod proof;
mod report;
mod restore;
mod session;
mod targets;
mod text;

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Context;
use nicpoll_switch::standing::{self, Order, Preview, SetError};
use nicpoll_switch::{
    Abilities, Facts, Journal, Link, Machine, Owner, Recovered, Request, Terms, boottime_ns,
    lowest, plan,
};

use self::args::{MINUS_POLLING, NO_POLLING, POLLING, SetArgs};
use self::guard::Guard;
use self::report::Report;
use self::targets::{Name, Resolved};
use crate::failure::Failure;
use crate::stop::Stop;

pub use self::freebsd::{failure as freebsd_failure, target_among};
pub use self::guard::guard;
pub use self::held::{Held, polling_request};
pub use self::restore::restore;

/// How long arrivals are counted to see whether a ring would overflow.
const COUNTING: Duration = Duration::from_millis(200);

/// The command line with `-polling`, as ifconfig(8) has it, written as an option.
pub fn translated(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    if args.get(1).is_some_and(|command| command == "set") {
        for arg in args.iter_mut().filter(|arg| *arg == MINUS_POLLING) {
            *arg = OsString::from(NO_POLLING);
        }
    }
    args
}

/// Runs `nicpoll set` and returns its exit code.
pub fn set(args: &SetArgs) -> Result<u8, Failure> {
    if let Some(target) = freebsd::target_among(freebsd::names(&args.words))? {
        return freebsd::set(args, &target);
    }
    args.kern_polling.refuse_on_linux()?;
    let (names, is_polling) = words(args)?;
    let mut report = Report::new(args.json, args.netns.as_deref(), args.dry_run);
    if args.no_persist {
        if !args.dry_run && check_privileges().is_ok() {
            // Without its rule udev forgets what it saved.
            take_over(&Journal::of_this_machine(), &mut Machine::new())?;
        }
        persistence::remove(args, &names, &mut report)?;
        return report.finish();
    }
    check_privileges()?;
    // What has begun is finished or put back; a second signal ends at once.
    let _stop = Stop::on_signals().context("catching signals")?;
    let journal = Journal::of_this_machine();
    let mut machine = Machine::new();
    if !args.dry_run {
        recover(&journal)?;
        take_over(&journal, &mut machine)?;
    }
    let netns_inode = targets::enter(&mut machine, args.netns.as_deref())?;
    let links = targets::links(&machine, netns_inode)?;
    if args.no_polling {
        let place = (links.as_slice(), netns_inode);
        restore::named(
            &journal,
            &mut machine,
            &names,
            place,
            args.dry_run,
            &mut report,
        )?;
        return report.finish();
    }
    if args.confirm {
        return confirm(&journal, &names, &links, netns_inode);
    }
    let place = Place {
        journal,
        netns_inode,
        links,
    };
    switch(
        args,
        (&names, is_polling),
        &place,
        &mut machine,
        &mut report,
    )?;
    report.finish()
}

/// Where a command works.
struct Place {
    journal: Journal,
    netns_inode: u64,
    links: Vec<Link>,
}

/// Changes settings, or says what would be changed.
fn switch(
    args: &SetArgs,
    (names, is_polling): (&[Name], bool),
    place: &Place,
    machine: &mut Machine,
    report: &mut Report,
) -> Result<(), Failure> {
    let request = args.request(is_polling)?;
    let abilities = Abilities::probe();
    let Resolved { orders, notes } = if targets::is_all(names) {
        let (links, inode) = (&place.links, place.netns_inode);
        targets::resolve_all(machine, links, inode, &request, &abilities, args.fix)?
    } else {
        targets::resolve(names, &place.links, place.netns_inode)?
    };
    for note in notes {
        eprintln!("nicpoll: {note}");
    }
    let files = persistence::plan(args, names, is_polling, &request)?;
    let facts = standing::survey(machine, &orders, &request, &abilities).map_err(failure)?;
    let preview = standing::preview(&orders, &facts, &request, args.fix).map_err(failure)?;
    warn_of_overflow(machine, &facts, &request)?;
    warn_of_drift(&place.journal, machine, &orders)?;
    if args.dry_run {
        report.wrote(&preview, place.netns_inode)?;
        return report.files(&files);
    }
    let trial = if preview == Preview::default() {
        None
    } else {
        args.trial(carries_own_ssh(machine, place, &orders)?)
    };
    if trial.is_some() && !files.is_empty() {
        return Err(Failure::Usage(String::from(
            "what still has to be confirmed is not made to come back at boot; set and confirm it without \
             --persist, then say this again",
        )));
    }
    persistence::carry_out(&files, report)?;
    let writes = change(&place.journal, machine, &orders, &request, args.fix, trial)
        .inspect_err(|_| persistence::take_back(&files))?;
    let done = Preview {
        writes,
        is_open_ended: false,
    };
    report.wrote(&done, place.netns_inode)?;
    if let Some(time) = trial {
        say_how_to_confirm(args, names, time);
        report.is_trial(time);
    }
    prove(args, &request, &orders, report)
}

/// Looks whether the polls are as they were asked for.
fn prove(
    args: &SetArgs,
    request: &Request,
    orders: &[Order],
    report: &mut Report,
) -> Result<(), Failure> {
    let time = args.look.unwrap_or_else(|| proof::default_look(request));
    if time.is_zero() || !request.needs_napi() {
        return Ok(());
    }
    let mut names: Vec<String> = Vec::new();
    for order in orders {
        let name = &order.target.interface.name;
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let netns = args.netns.as_deref();
    report.proved(proof::prove(&names, netns, time), netns)
}

fn say_how_to_confirm(args: &SetArgs, names: &[Name], time: Duration) {
    let names: Vec<&str> = names.iter().map(|name| name.interface.as_str()).collect();
    let netns = args.netns.as_deref();
    let netns = netns.map_or_else(String::new, |netns| format!(" --netns {netns}"));
    eprintln!(
        "nicpoll: undone in {} s unless it is confirmed: nicpoll set {}{netns} --confirm",
        time.as_secs(),
        names.join(" ")
    );
}

/// Makes the change, with a guard when it has to be confirmed.
fn change(
    journal: &Journal,
    machine: &mut Machine,
    orders: &[Order],
    request: &Request,
    fix: bool,
    trial: Option<Duration>,
) -> Result<Vec<nicpoll_switch::Write>, Failure> {
    let Some(time) = trial else {
        let terms = Terms {
            owner: Owner::this_process().context("looking at this process")?,
            until_boottime_ns: None,
        };
        return standing::set(journal, machine, orders, request, fix, terms).map_err(failure);
    };
    let until = boottime_ns() + time.as_nanos() as u64;
    let guard = Guard::start(journal, until)?;
    let terms = Terms {
        owner: guard.owner,
        until_boottime_ns: Some(until),
    };
    let writes = standing::set(journal, machine, orders, request, fix, terms).map_err(failure)?;
    guard.leave()?;
    Ok(writes)
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
    if is_polling && (args.no_polling || args.confirm || args.no_persist) {
        return usage("'polling' does not go with -polling, --confirm or --no-persist");
    }
    let names = names
        .iter()
        .map(|word| targets::parse_name(word))
        .collect::<Result<Vec<Name>, _>>()?;
    Ok((names, is_polling))
}

fn confirm(
    journal: &Journal,
    names: &[Name],
    links: &[Link],
    netns_inode: u64,
) -> Result<u8, Failure> {
    let mut waited = false;
    for path in restore::records_of(journal, names, links, netns_inode)? {
        waited |= standing::confirm(journal, &path).context("confirming")?;
    }
    if !waited {
        return Err(anyhow::anyhow!(
            "nothing waits to be confirmed there; it was confirmed before, or undone already"
        )
        .into());
    }
    Ok(0)
}

/// Puts back what killed programs left; what cannot be dealt with is named and left.
fn recover(journal: &Journal) -> Result<(), Failure> {
    for (path, outcome) in nicpoll_switch::recover(journal).map_err(anyhow::Error::from)? {
        match outcome {
            Recovered::Failed(error) => {
                eprintln!(
                    "nicpoll: {}: {:#}",
                    path.display(),
                    anyhow::Error::from(error)
                );
            }
            Recovered::Restored => eprintln!(
                "nicpoll: put back what a program that was killed had left ({})",
                path.display()
            ),
            Recovered::Busy | Recovered::Gone | Recovered::Standing => {}
        }
    }
    Ok(())
}

/// Records what a udev rule of nicpoll's set.
fn take_over(journal: &Journal, machine: &mut Machine) -> Result<(), Failure> {
    nicpoll_switch::take_over(journal, machine).map_err(anyhow::Error::from)?;
    Ok(())
}

fn check_privileges() -> Result<(), Failure> {
    let missing = nicpoll_sys::privilege::missing_for_switch().context("asking for privileges")?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::Missing(format!(
        "changing an interface needs more than this process may do; missing here: {}.\nRun it as root: \
         sudo nicpoll set ...",
        missing.join(", ")
    )))
}

/// Counts arrivals for a moment when a timer is asked for.
fn warn_of_overflow(machine: &Machine, facts: &[Facts], request: &Request) -> Result<(), Failure> {
    let Some(period_ns) = request.gro_flush_timeout_ns.filter(|&ns| ns > 0) else {
        return Ok(());
    };
    let started = std::time::Instant::now();
    std::thread::sleep(COUNTING);
    for facts in facts {
        let links = targets::links(machine, facts.target.netns_inode)?;
        let elapsed = started.elapsed().as_secs_f64();
        let now = links
            .iter()
            .find(|link| link.interface.ifindex == facts.target.interface.ifindex);
        let Some(now) = now else { continue };
        let arrived = now.rx_packets.saturating_sub(facts.link.rx_packets);
        if let Some(overflow) = plan::overflow(facts, arrived as f64 / elapsed, period_ns) {
            eprintln!("nicpoll: {}", text::overflow(facts, &overflow));
        }
    }
    Ok(())
}

fn warn_of_drift(
    journal: &Journal,
    machine: &mut Machine,
    orders: &[Order],
) -> Result<(), Failure> {
    for order in orders {
        let drift = standing::drift_of(journal, machine, &order.target)
            .context("comparing with what was set before")?;
        for drift in drift {
            eprintln!(
                "nicpoll: {}",
                text::drift(&order.target.interface.name, &drift)
            );
        }
    }
    Ok(())
}

/// Whether one of the interfaces carries the ssh connection that the caller came by, be it through a
/// bridge, bond or VLAN.
fn carries_own_ssh(machine: &Machine, place: &Place, orders: &[Order]) -> Result<bool, Failure> {
    let Some(address) = session::own_address() else {
        return Ok(false);
    };
    let holders = machine
        .run(place.netns_inode, move |control| {
            control.interfaces_with(address)
        })
        .and_then(|holders| holders)
        .context("asking which interface carries the ssh connection")?;
    let carriers: Vec<u32> = place
        .links
        .iter()
        .filter(|link| holders.contains(&link.interface.ifindex))
        .flat_map(|link| lowest(&place.links, link))
        .map(|link| link.interface.ifindex)
        .collect();
    Ok(orders
        .iter()
        .any(|order| carriers.contains(&order.target.interface.ifindex)))
}

fn failure(error: SetError) -> Failure {
    match error {
        SetError::Refused(refusal) if refusal.kind == plan::RefusalKind::Kernel => {
            Failure::Missing(refusal.to_string())
        }
        other => Failure::Failed(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minus_polling_is_an_option_of_set_only() {
        let translate = |line: &str| {
            let args = translated(line.split(' ').map(OsString::from));
            args.join(" ".as_ref()).into_string().unwrap()
        };
        assert_eq!(
            translate("nicpoll set eth0 -polling"),
            "nicpoll set eth0 --no-polling"
        );
        assert_eq!(
            translate("nicpoll iperf set -polling"),
            "nicpoll iperf set -polling"
        );
    }
}
