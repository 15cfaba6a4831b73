//! `nicpoll ab`: compares two settings of an interface under its own traffic.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use nicpoll_ab::{AbProgress, AbRequest, Duty, EXAMPLES, parse_block, parse_duty, plan, prepare};
use nicpoll_lab::draw_seed;
use nicpoll_model::ab::{AbEndCause, AbPlan, LiveAb};
use nicpoll_model::units::parse_seconds;
use nicpoll_report::{render_ab_plan, render_html};
use nicpoll_switch::knob::table::{DEFER_HARD_IRQS, GRO_FLUSH_TIMEOUT};
use nicpoll_switch::{Journal, KnobValues, Name, guard_of_this_program};
use nicpoll_sys::tell;
use nicpoll_traffic::signals::Stop;

use super::knobs::{GROUP, KnobArgs, MINUS_POLLING, POLLING};
use crate::failure::{EXIT_FAILED, EXIT_INCONCLUSIVE, Failure};
use crate::options::{StoreFile, There, number, usage};
use crate::output::{self, origin};
use crate::progress::Spinner;

/// Options of `nicpoll ab`.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "nicpoll ab IF [polling | -polling] [OPTIONS]"
)]
pub struct AbArgs {
    /// Interface (eth0, eth0:rx0-3, eth0:napi257), then the setting to judge against the current one: 'polling' or
    /// '-polling' [default: polling, unless an option sets something]
    #[arg(required = true, value_name = "IF", num_args = 1..=2)]
    pub words: Vec<String>,
    /// Judge interrupts against the current setting; the same as -polling
    #[arg(long, conflicts_with = GROUP)]
    pub no_polling: bool,
    /// Compare the current setting with itself: any difference is chance or the method's error
    #[arg(long, conflicts_with_all = [GROUP, "no_polling"])]
    pub null: bool,
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// How long to compare
    #[arg(long = "for", value_name = "TIME", value_parser = parse_seconds, default_value = "10m")]
    pub duration: Duration,
    /// Mean length of a block; each is half to one and a half times as long
    #[arg(long, value_name = "TIME", value_parser = parse_block, default_value = "4s")]
    pub block: Duration,
    /// Measure for this part of each period, such as 5m/1h; the original setting is in effect in between
    #[arg(long, value_name = "TIME/TIME", value_parser = parse_duty)]
    pub duty: Option<Duty>,
    /// Give up when the other setting loses this many times the usual
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = number::<u32>(..))]
    pub loss_limit: u32,
    /// Network namespace, by its name for 'ip netns'
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Allow values whose change resets the queues, which loses packets at every block
    #[arg(long)]
    pub disruptive: bool,
    /// Seed of the random order [default: random; it is printed]
    #[arg(long, value_name = "N", value_parser = number::<u64>(..))]
    pub seed: Option<u64>,
    /// Print the plan and each write without writing
    #[arg(long)]
    pub dry_run: bool,
    /// Where the comparison is stored.
    #[command(flatten)]
    pub file: StoreFile,
    /// Store nothing
    #[arg(long, conflicts_with = "store")]
    pub no_store: bool,
    /// Also write one page with plots that a browser shows (docs/report.md); what FILE holds is replaced
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub report: Option<PathBuf>,
    /// Print one JSON object instead of text (docs/ab.md)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub there: There,
}

/// Runs `nicpoll ab` and returns its exit code.
pub fn ab(args: &AbArgs) -> Result<u8, Failure> {
    args.knobs.refuse_on_linux()?;
    output::require_place_for(args.report.as_deref())?;
    let prepared = prepare(args.request()?, Journal::of_this_machine())?;
    for note in prepared.notes() {
        tell!("nicpoll: {note}");
    }
    if args.dry_run {
        let plan = prepared.document(origin())?;
        output::print_either(&plan, args.json, render_ab_plan)?;
        return Ok(0);
    }
    let stop = Stop::on_signals().context("catching signals")?;
    let guard = guard_of_this_program().context("finding this program")?;
    let store = (!args.no_store).then(|| args.file.to_write()).transpose()?;
    let spinner = Spinner::new();
    let ended = prepared.run(origin(), guard, store, stop.asked(), &mut |progress| {
        show(&spinner, &progress);
    })?;
    drop(spinner);
    let compared = ended.outcome?;
    output::print_document(&compared, args.json)?;
    if let Some(place) = ended.place {
        tell!("{}", place.sentence(true));
    }
    if let Some(file) = &args.report {
        output::write_report(file, &render_html(&compared))?;
    }
    ended.unstored.map_or(Ok(()), Err)?;
    match stop.signal() {
        Some(signal) if exit_code(&compared) != EXIT_FAILED => Err(Failure::Signal(signal)),
        _ => Ok(exit_code(&compared)),
    }
}

fn show(spinner: &Spinner, progress: &AbProgress<'_>) {
    spinner.show(progress.to_string());
    if let AbProgress::FirstMinute(_) = progress {
        spinner.say(progress.to_string());
    }
}

fn exit_code(compared: &LiveAb) -> u8 {
    match compared.end.cause {
        _ if compared.restored.iter().any(|one| !one.is_as_before) => EXIT_FAILED,
        AbEndCause::Planned if compared.answer.verdict.is_some() => 0,
        AbEndCause::Planned | AbEndCause::Interrupted => EXIT_INCONCLUSIVE,
        _ => EXIT_FAILED,
    }
}

impl AbArgs {
    fn request(&self) -> Result<AbRequest, Failure> {
        let (values, words) = self.setting()?;
        let plan = AbPlan {
            is_null: self.null,
            ..plan(
                self.duration,
                self.block,
                self.duty,
                self.seed.unwrap_or_else(draw_seed),
            )
        };
        if self.duty.is_some_and(|duty| duty.every >= self.duration) {
            return Err(usage(
                "--duty has no second period within --for: give a longer --for, as in --for 3d",
            ));
        }
        let name = self.words.first().map(String::as_str).unwrap_or_default();
        Ok(AbRequest {
            name: Name::parse(name).map_err(usage)?,
            values,
            words,
            netns: self.netns.clone(),
            plan,
            is_disruptive: self.disruptive,
            loss_factor: f64::from(self.loss_limit),
        })
    }

    /// Returns the setting to judge, and the `nicpoll set` words for it.
    fn setting(&self) -> Result<(KnobValues, String), Failure> {
        let wrong = |text: &str| Err(usage(text));
        let second = self.words.get(1).map(String::as_str);
        if second.is_some_and(|word| word != POLLING) {
            return wrong("after the interface comes 'polling', '-polling' or nothing");
        }
        if self.null && second.is_some() {
            return wrong("--null compares the current setting with itself: leave 'polling' out");
        }
        if self.no_polling {
            if second.is_some() {
                return wrong("'polling' does not go with -polling");
            }
            let off = KnobValues::new().with(&DEFER_HARD_IRQS, 0);
            return Ok((off.with(&GRO_FLUSH_TIMEOUT, 0), String::from(MINUS_POLLING)));
        }
        let is_polling = second.is_some() || self.knobs.values.is_empty();
        let word = is_polling.then_some(POLLING);
        let given = self.knobs.given.iter().map(String::as_str);
        let words: Vec<&str> = word.into_iter().chain(given).collect();
        Ok((self.knobs.setting(is_polling), words.join(" ")))
    }
}
