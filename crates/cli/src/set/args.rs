//! The command lines of `nicpoll set` and `nicpoll restore`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use nicpoll_model::time::parse_seconds;
use nicpoll_switch::knob::table::GRO_FLUSH_TIMEOUT;
use nicpoll_switch::{Needs, POLLING_PERIOD_NS, Values};

use crate::failure::Failure;
use crate::knobs::{GROUP, KnobArgs, POLLING};

/// How long an unconfirmed change of the interface that carries the caller's own ssh connection lasts.
const TRIAL_OVER_SSH: Duration = Duration::from_secs(60);
/// Nobody waits longer for a look after a change.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// What `nicpoll set` is.
pub const SET_ABOUT: &str = "\
Switch interfaces to polling and back, as 'ifconfig em0 polling' did

With 'polling' a timer decides when the kernel looks for packets: after the first packet the card's
interrupt stays masked, and every period one round of polls takes what has arrived. '-polling'
restores every value. A setting persists after exit, until '-polling' or a reboot; --persist keeps it
across reboots. Needs root.

After the change it watches the polls for a moment and reports what starts them: a timer or an
arriving packet. Without traffic nothing can be proven.

Every old value is saved in /var/lib/nicpoll before it is changed. A command changes all interfaces
that it names, or none. A VLAN, bond or bridge stands for the interfaces below it; 'all' for every
interface that can be polled.";

const EXAMPLES: &str = "\
Examples:
  nicpoll set eth0 polling                  poll eth0 by a timer of 200us
  nicpoll set eth0 -polling                 restore everything
  nicpoll set eth0 polling --period 50us --dry-run
  nicpoll set eth0 polling --for 60s        undo after 60 s, unless confirmed:
  nicpoll set eth0 --confirm                ... keep it
  nicpoll set eth0 polling --threaded --threaded-cpus 1 --nice -5
  nicpoll set eth0 polling --threaded --cpu-share 50
  nicpoll set eth0:rx0-3 polling            four receive queues only
  nicpoll set eth0 --moderation rx-usecs=50,adaptive=off
  nicpoll set veth0 polling --fix           also GRO here and TSO at the other end
  nicpoll set all polling --netns lab
  nicpoll set eth0 polling --persist        also after a reboot (shows what it writes)
  nicpoll set eth0 polling --json | jq '.proofs[].is_proven'
  nicpoll set root@bsd:em0 polling --user-frac 20     a FreeBSD host

Over ssh: if the interface carries your own connection, the change is undone after 60 s unless you
confirm it. '--for forever' keeps it at once.

Exit codes: 0 done, 1 failed and nothing is changed, 2 usage, 5 a privilege or kernel feature is
missing. More in docs/switch.md.";

/// Options of `nicpoll set`.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
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
    pub trial: Option<Trial>,
    /// Keep the last change
    #[arg(long, conflicts_with_all = [GROUP, "trial", "no_polling"])]
    pub confirm: bool,
    /// Also change what polling needs: interface up, GRO, TSO of a veth's other end
    #[arg(long)]
    pub fix: bool,
    /// Print each write, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also set it after every boot
    #[arg(long, conflicts_with_all = ["netns", "no_polling"])]
    pub persist: bool,
    /// What --persist runs at boot; nobody but root may be able to change it [default: this program]
    #[arg(long, value_name = "PATH", requires = "persist")]
    pub program: Option<PathBuf>,
    /// No longer set it after a boot; what is in force now stays
    #[arg(long, conflicts_with_all = [GROUP, "trial", "persist", "netns", "no_polling"])]
    pub no_persist: bool,
    /// How long to watch for proof that it is in force; 0: not at all [default: 25 periods, 250ms to 2s]
    #[arg(long, value_name = "TIME", value_parser = parse_look)]
    pub look: Option<Duration>,
    /// Print one JSON object instead of text (docs/switch.md)
    #[arg(long, conflicts_with = "confirm")]
    pub json: bool,
    /// Where --persist finds /etc, for the image of another machine
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
}

/// What `nicpoll restore` is.
pub const RESTORE_ABOUT: &str = "\
Restore everything that nicpoll changed

Without a name: every interface of every network namespace, including what killed programs left, and
every FreeBSD host. Values that something else changed in the meantime are listed.";

/// Options of `nicpoll restore`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  nicpoll restore\n  nicpoll restore eth0\n  nicpoll restore em0 --netns lab\n  \
        nicpoll restore root@bsd:em0\n\n\
        Exit codes: 0 done, 1 something could not be restored, 5 a privilege is missing."
)]
pub struct RestoreArgs {
    /// Interfaces [default: all that were changed]
    #[arg(value_name = "IF")]
    pub interfaces: Vec<String>,
    /// Network namespace, by its name for 'ip netns'
    #[arg(long, value_name = "NAME", requires = "interfaces")]
    pub netns: Option<String>,
    /// Print one JSON object instead of text (docs/switch.md)
    #[arg(long)]
    pub json: bool,
}

/// How long a change lasts without being confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// So long.
    For(Duration),
    /// It need not be confirmed.
    Forever,
}

impl SetArgs {
    /// What is to be set; `is_polling` when the word is there.
    pub fn values(&self, is_polling: bool) -> Result<Values, Failure> {
        let mut values = if is_polling {
            Values::polling(POLLING_PERIOD_NS)
        } else {
            Values::new()
        };
        for (row, value) in self.knobs.values.iter() {
            values.insert(row, value.clone());
        }
        let usage = |text: &str| Err(Failure::Usage(String::from(text)));
        if values.is_empty() {
            return usage(
                "nothing to set; add 'polling', '-polling' or an option such as --period 50us \
                 (nicpoll set --help)",
            );
        }
        if is_polling && values.number(&GRO_FLUSH_TIMEOUT) == Some(0) {
            return usage("a period of 0 means no timer, so nothing would poll; use 20us or more");
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
            Some(Trial::Forever) => None,
            Some(Trial::For(time)) => Some(time),
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

fn parse_trial(text: &str) -> Result<Trial, String> {
    if text == "forever" {
        return Ok(Trial::Forever);
    }
    let time = parse_seconds(text).map_err(|error| error.to_string())?;
    if time < Duration::from_secs(1) {
        return Err(String::from(
            "nobody can confirm within a second; use 1s or more",
        ));
    }
    Ok(Trial::For(time))
}

fn parse_look(text: &str) -> Result<Duration, String> {
    let look = parse_seconds(text).map_err(|error| error.to_string())?;
    if look > LOOK_MAX {
        return Err(String::from(
            "10s is the maximum; nicpoll show --for watches longer",
        ));
    }
    Ok(look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_lasts_a_second_or_forever() {
        assert_eq!(parse_trial("forever"), Ok(Trial::Forever));
        assert_eq!(parse_trial("90"), Ok(Trial::For(Duration::from_secs(90))));
        assert!(parse_trial("10ms").is_err());
    }
}
