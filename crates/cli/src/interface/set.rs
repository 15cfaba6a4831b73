//! `nicpoll set`: switches interfaces to polling and back, here and on FreeBSD hosts; at boot with `--persist`.
//!
//! Standard output has the written values, one a line, and what the polls prove. Everything else, such as interfaces
//! found below a bridge or values that another program changed, goes to standard error.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use nicpoll_inspect::watch_polls;
use nicpoll_switch::freebsd::{FreebsdChange, FreebsdTarget, variables};
use nicpoll_switch::knob::table::GRO_FLUSH_TIMEOUT;
use nicpoll_switch::persist::{FileChange, HeldFiles, Persistence};
use nicpoll_switch::{
    Deferral, Guard, InterfacePart, Journal, KnobValues, Name, Needs, Order, Owner, Preview,
    Recovered, Resolved, Switch, boottime_ns, confirm, drift_of, guard_of_this_program, is_all,
    needs_napi, preview, prove, recover, require_privileges, similar, take_over, watch_time,
    writes_kept,
};
use nicpoll_sys::tell;
use nicpoll_traffic::signals::Stop;

use super::freebsd;
use super::knobs::{GROUP, KnobArgs, MINUS_POLLING, NO_POLLING, POLLING, parse_names};
use super::report::Report;
use super::restore::restore_named;
use crate::failure::Failure;
use crate::options::{There, time_within};

/// Returns the command line of `set` or `ab` with ifconfig(8)'s `-polling` as an option.
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

/// Refuses a mistyped `-polling`, which the parser would read as one-letter options.
pub fn see_words(args: &[OsString]) -> Result<(), Failure> {
    let words = args.iter().filter_map(|arg| arg.to_str());
    let mut words = words.skip(1);
    if !matches!(words.next(), Some("set" | "ab")) {
        return Ok(());
    }
    let is_short = |word: &&str| word.starts_with('-') && !word.starts_with("--");
    match words.find(|word| is_short(word) && similar(word, [MINUS_POLLING]).is_some()) {
        Some(word) => wrong(&no_word(word, MINUS_POLLING)),
        None => Ok(()),
    }
}

fn no_word(word: &str, meant: &str) -> String {
    format!("there is no word '{word}'; did you mean '{meant}'?")
}

/// Words of ifconfig(8) for which Linux has ip(8).
const OF_LINKS: [&str; 2] = ["up", "down"];

/// Runs `nicpoll set` and returns its exit code.
pub fn set(args: &SetArgs) -> Result<u8, Failure> {
    if let Some(target) = FreebsdTarget::among(split(&args.words).0)? {
        return set_on_freebsd(args, &target);
    }
    args.knobs.refuse_on_linux()?;
    let (names, is_polling) = words(args)?;
    let mut command = LocalSetting {
        args,
        names,
        is_polling,
        switch: Switch::new(Journal::of_this_machine()),
        report: Report::new(args.json, args.netns.as_deref(), args.dry_run),
    };
    command.run()?;
    command.report.finish()
}

/// Splits off the word that switches polling on; returns whether it is there.
fn split(words: &[String]) -> (&[String], bool) {
    match words.split_last() {
        Some((last, names)) if last == POLLING => (names, true),
        _ => (words, false),
    }
}

/// Runs the command for an interface of a FreeBSD host and returns its exit code.
fn set_on_freebsd(args: &SetArgs, target: &FreebsdTarget) -> Result<u8, Failure> {
    refuse_options_of_linux(args)?;
    let polling = args.words.len() > 1;
    let knobs = args.knobs.variables.iter();
    let asked = FreebsdChange {
        polling,
        knobs: knobs.map(|(one, value)| (one.knob, *value)).collect(),
    };
    let is_asked = asked != FreebsdChange::default();
    if is_asked && (args.no_polling || args.no_persist) {
        return wrong("'polling' does not go with -polling or --no-persist");
    }
    let _stop = Stop::on_signals().context("catching signals")?;
    let journal = Journal::of_this_machine();
    if args.no_persist {
        return freebsd::no_persist(&journal, target, args.dry_run);
    }
    if args.no_polling && args.dry_run {
        return freebsd::would_restore(target).map(|()| 0);
    }
    if args.no_polling {
        let mut report = Report::new(false, None, false);
        freebsd::restore(target, &mut report)?;
        return report.finish();
    }
    if !is_asked {
        return wrong(
            "nothing to set; add 'polling', '-polling' or an option such as --user-frac 20",
        );
    }
    if args.persist && !(polling && asked.knobs.is_empty()) {
        return wrong(
            "--persist writes the word 'polling' to the host's /etc/rc.conf and no more; lines such as \
             kern.polling.user_frac=20 go to its /etc/sysctl.conf by hand",
        );
    }
    freebsd::switch(target, &asked, args.persist, args.dry_run, &journal)
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
    let known = variables().map(|one| format!("--{}", one.option));
    let known: Vec<String> = known.collect();
    wrong(&format!(
        "{option} is for interfaces of this machine; a FreeBSD host knows {}",
        known.join(", ")
    ))
}

fn wrong<T>(text: &str) -> Result<T, Failure> {
    Err(Failure::Usage(String::from(text)))
}

/// A `set` of interfaces of this machine.
struct LocalSetting<'a> {
    args: &'a SetArgs,
    names: Vec<Name>,
    /// Whether the word 'polling' follows the names.
    is_polling: bool,
    switch: Switch,
    report: Report,
}

impl LocalSetting<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        let args = self.args;
        if args.no_persist {
            if !args.dry_run && require_privileges().is_ok() {
                // Once its rule is removed, udev forgets the values that it saved.
                take_over(&mut self.switch)?;
            }
            return self.remove_files();
        }
        if args.root != Path::new("/") {
            return self.write_image();
        }
        if !args.dry_run {
            require_privileges()?;
        }
        // A signal lets the change finish or be undone; a second one ends at once.
        let _stop = Stop::on_signals().context("catching signals")?;
        if !args.dry_run {
            restore_left(self.switch.journal())?;
            take_over(&mut self.switch)?;
        }
        let netns_inode = self.switch.enter(args.netns.as_deref())?;
        if args.no_polling {
            let (switch, report) = (&mut self.switch, &mut self.report);
            restore_named(switch, &self.names, netns_inode, args.dry_run, report)
        } else if args.confirm {
            self.keep(netns_inode)
        } else {
            self.change(netns_inode)
        }
    }

    /// Changes settings, or shows what would be changed.
    fn change(&mut self, netns_inode: u64) -> Result<(), Failure> {
        let args = self.args;
        let (values, needs) = (args.values(self.is_polling)?, args.needs());
        let resolved = self
            .switch
            .resolve(&self.names, &values, netns_inode, needs);
        let Resolved { orders, notes } = resolved?;
        for note in notes {
            tell!("nicpoll: {note}");
        }
        let files = self.plan_files(&values)?;
        let facts = self.switch.survey(&orders)?;
        let planned = preview(&facts, needs)?;
        for warning in self.switch.warnings(&facts, &values)? {
            tell!("nicpoll: {warning}");
        }
        self.warn_of_drift(&orders)?;
        if args.dry_run {
            self.report.wrote(&planned, netns_inode)?;
            return self.report.files(&files);
        }
        let trial = match planned == Preview::default() {
            true => None,
            false => args.trial(self.switch.carries_own_ssh(netns_inode, &orders)?),
        };
        if trial.is_some() && !files.is_empty() {
            return wrong(
                "--persist does not go with a change that has to be confirmed; set and confirm it first, then repeat \
                 it with --persist",
            );
        }
        let done = Preview {
            writes: change(&mut self.switch, &orders, needs, trial, &files)?,
            is_open_ended: false,
        };
        self.told_files(&files)?;
        self.report.wrote(&done, netns_inode)?;
        if let Some(time) = trial {
            let netns = args.netns.as_deref();
            let netns = netns.map_or_else(String::new, |netns| format!(" --netns {netns}"));
            let host = args.there.host.as_deref();
            let host = host.map_or_else(String::new, |host| format!(" --host {host}"));
            tell!(
                "nicpoll: undone in {} s unless it is confirmed: nicpoll set {}{netns}{host} --confirm",
                time.as_secs(),
                self.listed()
            );
            self.report.is_trial(time);
        }
        let time = args.look.unwrap_or_else(|| watch_time(&values));
        if time.is_zero() || !needs_napi(&values) {
            return Ok(());
        }
        self.show_proof(&orders, time)
    }

    /// Shows whether the polls prove the values.
    fn show_proof(&mut self, orders: &[Order], time: Duration) -> Result<(), Failure> {
        let mut names: Vec<String> = Vec::new();
        for order in orders {
            let name = &order.target.interface.name;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let inode = orders.first().map_or(0, |order| order.target.netns_inode);
        let machine = self.switch.machine();
        let proofs = prove(machine, watch_polls, inode, &names, time);
        self.report.proved(proofs, self.args.netns.as_deref())
    }

    /// Returns the interfaces' names as given.
    fn listed(&self) -> String {
        let names = self.names.iter().map(|name| name.interface.as_str());
        names.collect::<Vec<_>>().join(" ")
    }

    /// Confirms a change on trial.
    fn keep(&mut self, netns_inode: u64) -> Result<(), Failure> {
        let mut kept = Vec::new();
        for path in self.switch.records_of(&self.names, netns_inode)? {
            kept.extend(confirm(self.switch.journal(), &path).context("confirming")?);
        }
        let Some((first, _)) = kept.first() else {
            return Err(anyhow::anyhow!(
                "nothing waits to be confirmed there; it was confirmed before, or undone already"
            )
            .into());
        };
        let netns = first.netns_option();
        let writes = kept
            .iter()
            .flat_map(|(target, changes)| writes_kept(target, changes));
        self.report.values(writes.collect(), netns_inode)?;
        tell!(
            "nicpoll: kept until: nicpoll set {}{netns} -polling",
            self.listed()
        );
        Ok(())
    }

    fn warn_of_drift(&mut self, orders: &[Order]) -> Result<(), Failure> {
        let journal = self.switch.journal().clone();
        for Order { target, .. } in orders {
            let drift = drift_of(&journal, self.switch.machine(), target)
                .context("comparing with what was set before")?;
            for drift in drift {
                tell!("nicpoll: {}", drift.describe(&target.interface.name));
            }
        }
        Ok(())
    }

    /// Returns the files that set the values at boot; none without `--persist`.
    fn plan_files(&self, values: &KnobValues) -> Result<Vec<FileChange>, Failure> {
        let args = self.args;
        if !args.persist {
            return Ok(Vec::new());
        }
        self.check_names()?;
        let options = args.persistent_options(self.is_polling);
        let files = Persistence::at(&args.root);
        let program = files.program(args.program.as_deref())?;
        let deferral = Deferral::of(values);
        let mut changes: Vec<FileChange> = Vec::new();
        for name in &self.names {
            let own = files.install(&program, &name.interface, &options, deferral)?;
            // The template unit is the same for all interfaces.
            for change in own {
                if !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
        Ok(changes)
    }

    /// Writes the files into another machine's image, whose interfaces need not exist here. This machine's own stay
    /// as they are.
    fn write_image(&mut self) -> Result<(), Failure> {
        let args = self.args;
        if !args.persist {
            return wrong("--root goes with --persist or --no-persist");
        }
        let files = self.plan_files(&args.values(self.is_polling)?)?;
        if args.dry_run {
            return self.report.files(&files);
        }
        self.put_files(&files)?;
        tell!("nicpoll: no setting of this machine was changed");
        Ok(())
    }

    /// Writes files and shows them.
    fn put_files(&mut self, changes: &[FileChange]) -> Result<(), Failure> {
        HeldFiles::write(self.switch.journal(), changes, false)?.keep()?;
        self.told_files(changes)
    }

    fn told_files(&mut self, changes: &[FileChange]) -> Result<(), Failure> {
        if changes.is_empty() {
            return Ok(());
        }
        self.report.files(changes)?;
        if self.args.root == Path::new("/") {
            tell!(
                "nicpoll: systemd and udev read it at the next boot, or now with: systemctl daemon-reload; udevadm \
                 control --reload"
            );
        }
        Ok(())
    }

    /// Removes the files that `--persist` wrote.
    fn remove_files(&mut self) -> Result<(), Failure> {
        self.check_names()?;
        let files = Persistence::at(&self.args.root);
        let mut found = false;
        for name in &self.names.clone() {
            let changes = files.remove(&name.interface)?;
            found |= !changes.is_empty();
            match self.args.dry_run {
                true => self.report.files(&changes)?,
                false => self.put_files(&changes)?,
            }
        }
        if !found {
            tell!("nicpoll: nothing of nicpoll's runs at boot for that");
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), Failure> {
        let is_whole = |name: &Name| name.part == InterfacePart::Whole;
        if self.names.iter().all(is_whole) && !is_all(&self.names) {
            return Ok(());
        }
        wrong(
            "--persist takes whole interfaces, each by its name: NAPI ids and queue numbers may differ after a boot",
        )
    }
}

/// Makes a change and writes its boot files. A guard undoes a change with a time limit unless it is confirmed.
fn change(
    switch: &mut Switch,
    orders: &[Order],
    needs: Needs,
    trial: Option<Duration>,
    files: &[FileChange],
) -> Result<Vec<nicpoll_switch::Write>, Failure> {
    let Some(time) = trial else {
        let owner = Owner::this_process().context("finding this process in /proc")?;
        let (held, writes) = switch.write(orders, needs, owner, None)?;
        // A kill before the settings are committed removes the files; a later one leaves both.
        match HeldFiles::write(switch.journal(), files, true) {
            Ok(files) => {
                held.settle()?;
                files.keep()?;
            }
            Err(error) => {
                held.restore(switch)?;
                return Err(error.into());
            }
        }
        return Ok(writes);
    };
    let until = boottime_ns() + time.as_nanos() as u64;
    let program = guard_of_this_program().context("finding this program")?;
    let guard = Guard::start(program, switch.journal(), Some(until))?;
    let (held, writes) = switch.write(orders, needs, guard.owner(), Some(until))?;
    held.leave();
    guard.leave().context("leaving the change to its guard")?;
    Ok(writes)
}

/// Returns the names, and whether the word 'polling' follows them.
fn words(args: &SetArgs) -> Result<(Vec<Name>, bool), Failure> {
    let (names, is_polling) = split(&args.words);
    if names.is_empty() {
        return wrong("name an interface: nicpoll set eth0 polling");
    }
    if names.iter().any(|name| name == POLLING) {
        return wrong("'polling' comes once, after the interfaces");
    }
    let last = args.words.last().map(String::as_str).unwrap_or_default();
    let is_asked =
        !args.knobs.values.is_empty() || args.no_polling || args.confirm || args.no_persist;
    if !is_polling && !is_asked && names.len() > 1 {
        if similar(last, [POLLING]).is_some() {
            return wrong(&no_word(last, POLLING));
        }
        if OF_LINKS.contains(&last) {
            return wrong(&format!(
                "there is no word '{last}': did you mean 'ip link set {} {last}', or '{POLLING}'?",
                names[0]
            ));
        }
    }
    if is_polling && (args.no_polling || args.confirm || args.no_persist) {
        return wrong("'polling' does not go with -polling, --confirm or --no-persist");
    }
    Ok((parse_names(names)?, is_polling))
}

/// Restores what killed programs left. Names what it cannot restore, and goes on.
fn restore_left(journal: &Journal) -> Result<(), Failure> {
    for (path, outcome) in recover(journal)? {
        let path = path.display();
        match outcome {
            Recovered::Failed(error) => {
                tell!("nicpoll: {path}: {:#}", anyhow::Error::from(error));
            }
            Recovered::Restored => {
                tell!("nicpoll: restored what a killed program had left ({path})");
            }
            Recovered::Busy | Recovered::Gone | Recovered::NotFound | Recovered::Standing => {}
        }
    }
    Ok(())
}

/// How long an unconfirmed change of the interface that carries the caller's own ssh connection lasts.
const TRIAL_OVER_SSH: Duration = Duration::from_secs(60);
/// The longest look after a change.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// Options of `nicpoll set`.
#[derive(Args, Debug)]
#[command(
    after_help = include_str!("../help/set-examples.txt"),
    override_usage = "nicpoll set IF... [polling | -polling] [OPTIONS]"
)]
pub struct SetArgs {
    /// Interfaces (eth0, eth0:rx0-3, eth0:napi257, all, HOST:em0), then 'polling' or '-polling'
    #[arg(required = true, value_name = "IF")]
    pub words: Vec<String>,
    /// Restore everything that nicpoll changed; the same as -polling
    #[arg(long, conflicts_with_all = [GROUP, "trial"])]
    pub no_polling: bool,
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Network namespace, by its name for 'ip netns'
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Undo the change after this time unless it is confirmed; 'forever': keep it
    #[arg(long = "for", value_name = "TIME", value_parser = parse_trial)]
    pub trial: Option<ChangeTrial>,
    /// Keep the last change
    #[arg(long, conflicts_with_all = [GROUP, "trial", "no_polling"])]
    pub confirm: bool,
    /// Also change what polling needs: the interface up, GRO, TSO of a veth's other end
    #[arg(long)]
    pub fix: bool,
    /// Print each write without writing
    #[arg(long)]
    pub dry_run: bool,
    /// Also set it after every boot
    #[arg(long, conflicts_with_all = ["netns", "no_polling"])]
    pub persist: bool,
    /// Program that --persist runs at boot; only root may be able to change it [default: this program]
    #[arg(long, value_name = "PATH", requires = "persist")]
    pub program: Option<PathBuf>,
    /// No longer set it after a boot; the current setting stays
    #[arg(long, conflicts_with_all = [GROUP, "trial", "persist", "netns", "no_polling"])]
    pub no_persist: bool,
    /// How long to watch for proof; 0: not at all [default: 25 periods, 250ms to 2s]
    #[arg(long, value_name = "TIME", value_parser = parse_look)]
    pub look: Option<Duration>,
    /// Print one JSON object instead of text (docs/switch.md)
    #[arg(long, conflicts_with = "confirm")]
    pub json: bool,
    /// Root directory of another machine's image, into which --persist writes; this machine's settings stay
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    #[command(flatten)]
    pub there: There,
}

/// How long a change lasts without being confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeTrial {
    /// So long.
    For(Duration),
    /// It need not be confirmed.
    Forever,
}

impl SetArgs {
    /// What is to be set; `is_polling` when the word is there.
    pub fn values(&self, is_polling: bool) -> Result<KnobValues, Failure> {
        let values = self.knobs.setting(is_polling);
        if values.is_empty() {
            return wrong(
                "nothing to set; add 'polling', '-polling' or an option such as --period 50us \
                 (nicpoll set --help)",
            );
        }
        if is_polling && values.number(&GRO_FLUSH_TIMEOUT) == Some(0) {
            return wrong("a period of 0 means no timer, so nothing would poll; use 20us or more");
        }
        Ok(values)
    }

    /// What becomes of what polling needs and does not find.
    pub fn needs(&self) -> Needs {
        if self.fix { Needs::Fix } else { Needs::Refuse }
    }

    /// How long the change lasts without being confirmed; `None` when it stays at once.
    pub fn trial(&self, carries_own_ssh: bool) -> Option<Duration> {
        match self.trial {
            Some(ChangeTrial::Forever) => None,
            Some(ChangeTrial::For(time)) => Some(time),
            None => carries_own_ssh.then_some(TRIAL_OVER_SSH),
        }
    }

    /// The options that a unit gives to `nicpoll set` at boot.
    pub fn persistent_options(&self, is_polling: bool) -> Vec<String> {
        let word = is_polling.then(|| String::from(POLLING));
        let fix = self.fix.then(|| String::from("--fix"));
        let given = self.knobs.given.iter().cloned();
        word.into_iter().chain(given).chain(fix).collect()
    }
}

fn parse_trial(text: &str) -> Result<ChangeTrial, String> {
    if text == "forever" {
        return Ok(ChangeTrial::Forever);
    }
    let bounds = Duration::from_secs(1)..=Duration::MAX;
    let short = "nobody can confirm within a second; use 1s or more";
    time_within(text, bounds, short).map(ChangeTrial::For)
}

fn parse_look(text: &str) -> Result<Duration, String> {
    let longer = "10s is the maximum; nicpoll show --for watches longer";
    time_within(text, Duration::ZERO..=LOOK_MAX, longer)
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

    #[test]
    fn a_trial_lasts_a_second_or_forever() {
        assert_eq!(parse_trial("forever"), Ok(ChangeTrial::Forever));
        assert_eq!(
            parse_trial("90"),
            Ok(ChangeTrial::For(Duration::from_secs(90)))
        );
        assert!(parse_trial("10ms").is_err());
    }
}
