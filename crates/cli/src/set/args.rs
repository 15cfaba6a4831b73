//! The command lines of `nicpoll set` and `nicpoll restore`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use nicpoll_model::time::{parse_seconds, parse_time};
use nicpoll_switch::{DEFER_HARD_IRQS_MAX, Moderation, Request};
use nicpoll_sys::schedule::Policy;

use super::kern_polling::KernPolling;

use crate::failure::Failure;

/// The word that switches polling on.
pub const POLLING: &str = "polling";
/// The word that puts everything back, as ifconfig(8) writes it.
pub const MINUS_POLLING: &str = "-polling";
/// The same as an option, into which the word is translated before the command line is read.
pub const NO_POLLING: &str = "--no-polling";

/// From poll to poll unless --period says otherwise; 200 µs is 5000 rounds a second.
pub const PERIOD_NS: u64 = 200_000;
/// How long an unconfirmed change of the interface that carries the caller's own ssh connection lasts.
const TRIAL_OVER_SSH: Duration = Duration::from_secs(60);
/// Nobody waits longer for a look after a change.
const LOOK_MAX: Duration = Duration::from_secs(10);
/// A share of the CPU is given in each period of this length.
const SHARE_PERIOD_NS: u64 = 1_000_000;

/// What `nicpoll set` is.
pub const SET_ABOUT: &str = "\
Switch interfaces to polling and back, as 'ifconfig em0 polling' did

'polling' lets a timer decide when the kernel looks for packets: after the first packet the card's
interrupt stays masked, and every period one round of polls takes what has arrived. '-polling' puts
every value back as it was. What is set stays until then, over the end of this program, but not over
a reboot unless --persist says so. It needs root.

Afterwards it looks at the polls for a moment and says what they prove: a timer begins them, or an
arrival does. Without a packet nothing is proven.

Every value is written down before it is changed, in /var/lib/nicpoll. A command changes all that it
names or nothing. VLANs, bonds and bridges stand for the interfaces below them; 'all' for every
interface that can be polled.";

const EXAMPLES: &str = "\
Examples:
  nicpoll set eth0 polling                  a timer of 200us polls eth0
  nicpoll set eth0 -polling                 everything as it was
  nicpoll set eth0 polling --period 50us --dry-run
  nicpoll set eth0 polling --for 60s        back by itself, unless within 60 s:
  nicpoll set eth0 --confirm                ... it is kept
  nicpoll set eth0 polling --threaded --threaded-cpus 1 --nice -5
  nicpoll set eth0 polling --threaded --cpu-share 50
  nicpoll set eth0:rx0-3 polling            four receive queues only
  nicpoll set eth0 --moderation rx-usecs=50,adaptive=off
  nicpoll set veth0 polling --fix           GRO here and TSO at the other end, too
  nicpoll set all polling --netns lab
  nicpoll set eth0 polling --persist        after a reboot, too (shows what it writes)
  nicpoll set eth0 polling --json | jq '.proofs[].is_proven'
  nicpoll set root@bsd:em0 polling --user-frac 20     a FreeBSD host

Over ssh: when the interface carries your own connection, the change is undone after 60 s unless
it is confirmed. '--for forever' makes it stay at once.

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
    /// Put back everything that nicpoll changed; the same as -polling
    #[arg(long, conflicts_with_all = SETTINGS)]
    pub no_polling: bool,
    /// Time from the end of one round to the next poll (gro_flush_timeout)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub period: Option<Duration>,
    /// Empty polls until the card's interrupt comes back (napi_defer_hard_irqs) [polling: never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(DEFER_HARD_IRQS_MAX)))]
    pub defer: Option<u32>,
    /// Let kernel threads poll, which the scheduler sees
    #[arg(long)]
    pub threaded: bool,
    /// Let kernel threads poll without end, one whole CPU each
    #[arg(long, conflicts_with = "threaded")]
    pub busy_poll: bool,
    /// CPUs of the threads, such as 1 or 2-3,6
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    pub threaded_cpus: Option<Cpus>,
    /// Nice value of the threads, -20 to 19
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(-20..=19))]
    pub nice: Option<i32>,
    /// Real-time priority of the threads (SCHED_FIFO), 1 to 99
    #[arg(long, value_name = "PRIO", conflicts_with = "nice",
        value_parser = clap::value_parser!(u32).range(1..=99))]
    pub rt: Option<u32>,
    /// The most of a CPU that each thread gets, in percent (SCHED_DEADLINE): 100 - user_frac
    #[arg(long, value_name = "PERCENT", conflicts_with_all = ["nice", "rt", "threaded_cpus"],
        value_parser = clap::value_parser!(u32).range(1..=95))]
    pub cpu_share: Option<u32>,
    /// How long an application that polls may keep interrupts off (irq-suspend-timeout)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub suspend: Option<Duration>,
    /// Interrupt moderation of the card: rx-usecs=50,rx-frames=32,adaptive=off,...
    #[arg(long, value_name = "LIST", value_parser = parse_moderation)]
    pub moderation: Option<Parameters>,
    #[command(flatten)]
    pub kern_polling: KernPolling,
    /// Network namespace, by its name for 'ip netns'
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Undo the change after this time unless it is confirmed; 'forever': let it stay
    #[arg(long = "for", value_name = "TIME", value_parser = parse_trial)]
    pub trial: Option<Trial>,
    /// Let the last change stay
    #[arg(long, conflicts_with_all = SETTINGS, conflicts_with = "no_polling")]
    pub confirm: bool,
    /// Change what polling needs, too: interface up, GRO, TSO of a veth's other end
    #[arg(long)]
    pub fix: bool,
    /// Print each write, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do it after every boot, too
    #[arg(long, conflicts_with_all = ["netns", "no_polling"])]
    pub persist: bool,
    /// Do not do it after a boot any more; what is in force now stays
    #[arg(long, conflicts_with_all = SETTINGS, conflicts_with_all = ["persist", "netns", "no_polling"])]
    pub no_persist: bool,
    /// How long to look for proof that it is in force; 0: not at all [default: 25 periods, 250ms to 2s]
    #[arg(long, value_name = "TIME", value_parser = parse_look)]
    pub look: Option<Duration>,
    /// Print one JSON object instead of text (docs/switch.md)
    #[arg(long, conflicts_with = "confirm")]
    pub json: bool,
    /// Where --persist finds /etc, for the image of another machine
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
}

/// Options that set something.
const SETTINGS: [&str; 16] = [
    "period",
    "defer",
    "threaded",
    "busy_poll",
    "threaded_cpus",
    "nice",
    "rt",
    "cpu_share",
    "suspend",
    "moderation",
    "user_frac",
    "burst_max",
    "each_burst",
    "idle_poll",
    "reg_frac",
    "trial",
];

/// What `nicpoll restore` is.
pub const RESTORE_ABOUT: &str = "\
Put back everything that nicpoll changed

Without a name: on every interface of every network namespace, what killed programs left included, and
on every FreeBSD host.
Values that somebody else changed meanwhile are named.";

/// Options of `nicpoll restore`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  nicpoll restore\n  nicpoll restore eth0\n  nicpoll restore em0 --netns lab\n  \
        nicpoll restore root@bsd:em0\n\n\
        Exit codes: 0 done, 1 something could not be put back, 5 a privilege is missing."
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

/// Options of the process that undoes a change which nobody confirms.
#[derive(Args, Debug)]
pub struct GuardArgs {
    /// When, in ns of CLOCK_BOOTTIME
    #[arg(long)]
    pub until: u64,
}

/// A list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub Vec<u32>);

/// Parameters of interrupt moderation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters(pub BTreeMap<Moderation, u32>);

/// How long a change lasts without being confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// So long.
    For(Duration),
    /// It need not be confirmed.
    Forever,
}

impl SetArgs {
    /// What is asked for; `is_polling` when the word is there.
    pub fn request(&self, is_polling: bool) -> Result<Request, Failure> {
        let nanos = |time: Duration| {
            u64::try_from(time.as_nanos())
                .map_err(|_| Failure::Usage(format!("{time:?} is out of range")))
        };
        let period_ns = self.period.map(nanos).transpose()?;
        let threaded = match (self.threaded, self.busy_poll) {
            (_, true) => Some(2),
            (true, false) => Some(1),
            (false, false) => None,
        };
        let mut moderation = BTreeMap::new();
        if let Some(Parameters(asked)) = &self.moderation {
            moderation.clone_from(asked);
        }
        let request = Request {
            defer_hard_irqs: self.defer.or(is_polling.then_some(DEFER_HARD_IRQS_MAX)),
            gro_flush_timeout_ns: period_ns.or(is_polling.then_some(PERIOD_NS)),
            threaded,
            thread_cpus: self.threaded_cpus.clone().map(|Cpus(cpus)| cpus),
            thread_policy: self.policy(),
            irq_suspend_timeout_ns: self.suspend.map(nanos).transpose()?,
            moderation,
        };
        if request == Request::default() {
            return Err(Failure::Usage(String::from(
                "nothing is asked for; say 'polling', '-polling' or a setting such as --period 50us \
                 (nicpoll set --help)",
            )));
        }
        if is_polling && request.gro_flush_timeout_ns == Some(0) {
            return Err(Failure::Usage(String::from(
                "a period of 0 means no timer, so nothing would poll; ask for 20us or more",
            )));
        }
        Ok(request)
    }

    fn policy(&self) -> Option<Policy> {
        if let Some(percent) = self.cpu_share {
            return Some(Policy::Deadline {
                runtime_ns: SHARE_PERIOD_NS / 100 * u64::from(percent),
                deadline_ns: SHARE_PERIOD_NS,
                period_ns: SHARE_PERIOD_NS,
            });
        }
        let fifo = self.rt.map(|priority| Policy::Fifo { priority });
        fifo.or(self.nice.map(|nice| Policy::Fair { nice }))
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
        let mut options: Vec<String> = Vec::new();
        if is_polling {
            options.push(String::from(POLLING));
        }
        let mut push = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                options.push(format!("--{name}={value}"));
            }
        };
        let nanos = |time: Duration| format!("{}ns", time.as_nanos());
        push("period", self.period.map(nanos));
        push("defer", self.defer.map(|count| count.to_string()));
        push(
            "threaded-cpus",
            self.threaded_cpus.as_ref().map(|Cpus(cpus)| {
                let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
                cpus.join(",")
            }),
        );
        push("nice", self.nice.map(|nice| nice.to_string()));
        push("rt", self.rt.map(|priority| priority.to_string()));
        push("cpu-share", self.cpu_share.map(|share| share.to_string()));
        push("suspend", self.suspend.map(nanos));
        push(
            "moderation",
            self.moderation.as_ref().map(|Parameters(asked)| {
                let asked: Vec<String> = asked
                    .iter()
                    .map(|(parameter, value)| format!("{}={value}", parameter.name()))
                    .collect();
                asked.join(",")
            }),
        );
        for (is_asked, flag) in [
            (self.threaded, "--threaded"),
            (self.busy_poll, "--busy-poll"),
            (self.fix, "--fix"),
        ] {
            if is_asked {
                options.push(String::from(flag));
            }
        }
        options
    }
}

fn parse_trial(text: &str) -> Result<Trial, String> {
    if text == "forever" {
        return Ok(Trial::Forever);
    }
    let time = parse_seconds(text).map_err(|error| error.to_string())?;
    if time < Duration::from_secs(1) {
        return Err(String::from(
            "nobody confirms within a second; ask for 1s or more",
        ));
    }
    Ok(Trial::For(time))
}

fn parse_look(text: &str) -> Result<Duration, String> {
    let look = parse_seconds(text).map_err(|error| error.to_string())?;
    if look > LOOK_MAX {
        return Err(String::from(
            "it looks for 10s at the most; nicpoll show --for looks longer",
        ));
    }
    Ok(look)
}

/// As the kernel writes lists: `0`, `2-3`, `0,2-3`.
fn parse_cpus(text: &str) -> Result<Cpus, String> {
    let mut cpus = parse_numbers(text)?;
    cpus.sort_unstable();
    cpus.dedup();
    Ok(Cpus(cpus))
}

/// Numbers and ranges of them, separated by commas.
pub fn parse_numbers(text: &str) -> Result<Vec<u32>, String> {
    /// More than any machine has CPUs, or a card queues.
    const RANGE_MAX: u32 = 65_536;
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|_| format!("'{text}' is not a number"))
    };
    let mut numbers = Vec::new();
    for piece in text.split(',') {
        match piece.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last || last - first >= RANGE_MAX {
                    return Err(format!(
                        "'{piece}' is not a range of 1 to {RANGE_MAX} numbers"
                    ));
                }
                numbers.extend(first..=last);
            }
            None => numbers.push(number(piece)?),
        }
    }
    Ok(numbers)
}

fn parse_moderation(text: &str) -> Result<Parameters, String> {
    let mut asked = BTreeMap::new();
    for piece in text.split(',') {
        let (name, value) = piece
            .split_once('=')
            .ok_or_else(|| format!("'{piece}' has no value, such as rx-usecs=50"))?;
        let number = match value {
            "on" => 1,
            "off" => 0,
            _ => value
                .parse()
                .map_err(|_| format!("'{value}' is neither a number nor on or off"))?,
        };
        let mut parameters = Moderation::ALL.into_iter().filter(|parameter| {
            parameter.name() == name || (name == "adaptive" && parameter.is_adaptive())
        });
        let first = parameters.next().ok_or_else(|| {
            let known: Vec<&str> = Moderation::ALL.iter().map(|known| known.name()).collect();
            format!(
                "'{name}' is not known; known are {} and adaptive",
                known.join(", ")
            )
        })?;
        if first.is_adaptive() && number > 1 {
            return Err(format!("{name} is on or off"));
        }
        asked.insert(first, number);
        asked.extend(parameters.map(|parameter| (parameter, number)));
    }
    Ok(Parameters(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_cpus("2-3,0,2"), Ok(Cpus(vec![0, 2, 3])));
        assert_eq!(parse_numbers("7"), Ok(vec![7]));
        for wrong in ["", "a", "3-1", "1,,2", "-1", "0-99999999", "4294967296"] {
            assert!(parse_numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn adaptive_means_both_directions() {
        let asked = parse_moderation("rx-usecs=50,adaptive=off").unwrap();
        let wanted = [
            (Moderation::RxUsecs, 50),
            (Moderation::AdaptiveRx, 0),
            (Moderation::AdaptiveTx, 0),
        ];
        assert_eq!(asked, Parameters(BTreeMap::from(wanted)));
        for wrong in [
            "rx-usecs",
            "rx-usecs=",
            "usecs=1",
            "adaptive=2",
            "rx-usecs=-1",
        ] {
            assert!(parse_moderation(wrong).is_err(), "{wrong}");
        }
        assert!(
            parse_moderation("speed=1")
                .unwrap_err()
                .contains("rx-frames-irq")
        );
    }

    #[test]
    fn a_trial_lasts_a_second_or_forever() {
        assert_eq!(parse_trial("forever"), Ok(Trial::Forever));
        assert_eq!(parse_trial("90"), Ok(Trial::For(Duration::from_secs(90))));
        assert!(parse_trial("10ms").is_err());
    }
}
