//! The options that set knobs: those of this machine's interfaces, and kern.polling of FreeBSD hosts. Each option
//! comes from its row in the knob tables; this module names no knob.

use std::ffi::OsString;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches};
use nicpoll_switch::freebsd::{WritableVariable, variables};
use nicpoll_switch::knob::{KnobOption, KnobRow, KnobUnit, Value, ValueError, options, parse_list};
use nicpoll_switch::{KnobValues, Name, POLLING_PERIOD_NS};

use crate::failure::Failure;
use crate::options::{number, usage};

/// The word that switches polling on.
pub const POLLING: &str = "polling";
/// The word that restores everything, as ifconfig(8) writes it.
pub const MINUS_POLLING: &str = "-polling";
/// [`MINUS_POLLING`] as the option into which it is translated before parsing.
pub const NO_POLLING: &str = "--no-polling";
/// The group of all options that set something.
pub const GROUP: &str = "settings";
/// Tells whether a list takes a knob.
type Takes = fn(&KnobRow) -> bool;

/// The options that take lists of knobs with values.
const LISTS: [(&str, &str, Takes); 2] = [
    (
        "moderation",
        "Interrupt moderation of the card: rx-usecs=50,rx-frames=32,adaptive=off,...",
        KnobRow::is_moderation,
    ),
    (
        "knob",
        "Any knob by its name: rx-ring=512,gro=on,... (docs/switch.md lists them)",
        |_| true,
    ),
];

/// Parses names of interfaces.
pub fn parse_names(words: &[String]) -> Result<Vec<Name>, Failure> {
    let names = words.iter().map(|word| Name::parse(word));
    names.collect::<Result<_, _>>().map_err(usage)
}

/// The knobs that the options set.
#[derive(Clone, Debug, Default)]
pub struct KnobArgs {
    /// Knobs of an interface of this machine.
    pub values: KnobValues,
    /// Variables of a FreeBSD host.
    pub variables: Vec<(&'static WritableVariable, u32)>,
    /// This machine's options as given, for the unit that sets them at boot.
    pub given: Vec<String>,
}

/// Knobs of a list, with their values.
type Listed = Vec<(&'static KnobRow, Value)>;

impl KnobArgs {
    /// Returns the values to set: those of the word 'polling', if it is there, overridden by the options.
    pub fn setting(&self, is_polling: bool) -> KnobValues {
        let mut values = if is_polling {
            KnobValues::polling(POLLING_PERIOD_NS)
        } else {
            KnobValues::new()
        };
        for (row, value) in self.values.iter() {
            values.insert(row, value.clone());
        }
        values
    }

    /// Refuses FreeBSD's variables for interfaces of this machine, and names what to use instead.
    pub fn refuse_on_linux(&self) -> Result<(), Failure> {
        let Some((variable, _)) = self.variables.first() else {
            return Ok(());
        };
        Err(Failure::Usage(format!(
            "--{} sets kern.polling.{} of a FreeBSD host (HOST:em0); {}",
            variable.option,
            variable.name(),
            variable.on_linux
        )))
    }
}

impl Args for KnobArgs {
    fn augment_args(command: Command) -> Command {
        let own = options().map(|(row, option)| arg_of(row, option));
        let lists = LISTS.iter().map(|(name, help, is_meant)| {
            let parser =
                move |text: &str| -> Result<Listed, ValueError> { parse_list(text, is_meant) };
            option(name, help)
                .value_name("LIST")
                .value_parser(ValueParser::new(parser))
        });
        let far = variables().map(|variable| {
            option(variable.option, variable.help)
                .value_name("N")
                .value_parser(ValueParser::new(number::<u32>(
                    ..=u64::from(variable.max.unwrap_or(u32::MAX)),
                )))
                .help_heading("FreeBSD hosts (HOST:IF)")
        });
        let args: Vec<Arg> = own.chain(lists).chain(far).collect();
        let ids: Vec<_> = args.iter().map(|arg| arg.get_id().clone()).collect();
        let group = ArgGroup::new(GROUP).args(ids).multiple(true);
        command.args(args).group(group)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn option(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help)
}

fn arg_of(row: &'static KnobRow, knob: &'static KnobOption) -> Arg {
    let others = row.options.iter().map(|other| other.long);
    let others = others.filter(|other| *other != knob.long);
    let arg = option(knob.long, knob.help)
        .conflicts_with_all(others)
        .conflicts_with_all(knob.conflicts);
    match knob.value_name {
        None => arg.action(ArgAction::SetTrue),
        Some(name) => arg
            .value_name(name)
            .allow_negative_numbers(true)
            .value_parser(ValueParser::new(knob.parse)),
    }
}

impl FromArgMatches for KnobArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = KnobArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let raw = |name: &str| {
            let mut texts = matches.get_raw(name).into_iter().flatten();
            texts
                .next()
                .map(|text| OsString::from(text).to_string_lossy().into_owned())
        };
        for (row, option) in options() {
            let (value, given) = match option.value_name {
                None if matches.get_flag(option.long) => {
                    let value = (option.parse)("").ok();
                    (value, format!("--{}", option.long))
                }
                None => continue,
                Some(_) => {
                    let value = matches.get_one::<Value>(option.long).cloned();
                    let text = match &value {
                        Some(Value::Number(ns)) if row.unit == KnobUnit::Time => {
                            Some(format!("{ns}ns"))
                        }
                        _ => raw(option.long),
                    };
                    (
                        value,
                        format!("--{}={}", option.long, text.unwrap_or_default()),
                    )
                }
            };
            if let Some(value) = value {
                self.values.insert(row, value);
                self.given.push(given);
            }
        }
        for (name, _, _) in LISTS {
            for (row, value) in matches.get_one::<Listed>(name).into_iter().flatten() {
                self.values.insert(row, value.clone());
            }
            self.given
                .extend(raw(name).map(|text| format!("--{name}={text}")));
        }
        for variable in variables() {
            let value = matches.get_one::<u32>(variable.option);
            self.variables.extend(value.map(|value| (variable, *value)));
        }
        Ok(())
    }
}
