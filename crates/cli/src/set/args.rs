//! The command lines of `nicpoll set` and `nicpoll restore`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use nicpoll_model::time::parse_seconds;
use nicpoll_report::help::set::EXAMPLES;
pub use nicpoll_report::help::set::{RESTORE_ABOUT, SET_ABOUT};
use nicpoll_switch::knob::table::GRO_FLUSH_TIMEOUT;
use nicpoll_switch::{Needs, Values};

use crate::failure::Failure;
use crate::knobs::{GROUP, KnobArgs, POLLING};

/// How long an unconfirmed change of the interface that carries the caller's own ssh connection lasts.
const TRIAL_OVER_SSH: Duration = Duration::from_secs(60);
/// Nobody waits longer for a look after a change.
const LOOK_MAX: Duration = Duration::from_secs(10);

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

/// Options of `nicpoll restore`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  nicpoll restore\n  nicpoll restore eth0\n  nicpoll restore em0 --netns lab\n  \
        nicpoll restore root@bsd:em0\n\n\
        Exit codes: 0 done, 1 something could not be restored, 5 a privilege or /proc is missing."
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
        let values = self.knobs.setting(is_polling);
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
