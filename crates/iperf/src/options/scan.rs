//! Splits arguments into options and their values, as iperf's own getopt_long does: letters may be
//! bundled, long names shortened, and options may follow what is none.

use super::error::OptionError;
use super::table::{Argument, Spec, specs};

/// One thing on a command line.
#[derive(Debug)]
pub enum Token {
    /// An option.
    Option {
        /// Which.
        spec: &'static Spec,
        /// Its value, if one was given.
        value: Option<String>,
    },
    /// An argument that belongs to no option.
    Extra(String),
}

/// The arguments that are left.
pub struct Scanner<I> {
    args: I,
    /// Letters of a bundle that are still to be read.
    bundle: String,
    /// `--` was seen.
    only_extras: bool,
}

impl<I: Iterator<Item = String>> Scanner<I> {
    /// Scans arguments without the program's name.
    pub fn new(args: I) -> Self {
        Self {
            args,
            bundle: String::new(),
            only_extras: false,
        }
    }

    fn letter(&mut self, letter: char) -> Result<Token, OptionError> {
        let spec = specs()
            .find(|spec| spec.short == Some(letter))
            .ok_or(OptionError::InvalidLetter(letter))?;
        if spec.argument() != Argument::Required {
            return Ok(Token::Option { spec, value: None });
        }
        let attached = std::mem::take(&mut self.bundle);
        let value = if attached.is_empty() {
            self.value(|| format!("-{letter}"))?
        } else {
            attached
        };
        Ok(Token::Option {
            spec,
            value: Some(value),
        })
    }

    fn long(&mut self, argument: &str) -> Result<Token, OptionError> {
        let (name, attached) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument, None),
        };
        let spec = find_long(name)?;
        let value = match (spec.argument(), attached) {
            (Argument::None, Some(_)) => {
                return Err(OptionError::UnexpectedArgument(name.to_owned()));
            }
            (Argument::Required, None) => Some(self.value(|| format!("--{name}"))?),
            (_, attached) => attached,
        };
        Ok(Token::Option { spec, value })
    }

    /// The next argument, whatever it looks like.
    fn value(&mut self, option: impl Fn() -> String) -> Result<String, OptionError> {
        self.args
            .next()
            .ok_or_else(|| OptionError::MissingArgument(option()))
    }
}

impl<I: Iterator<Item = String>> Iterator for Scanner<I> {
    type Item = Result<Token, OptionError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut letters = self.bundle.chars();
            if let Some(letter) = letters.next() {
                self.bundle = letters.as_str().to_owned();
                return Some(self.letter(letter));
            }
            let argument = self.args.next()?;
            if self.only_extras {
                return Some(Ok(Token::Extra(argument)));
            }
            if argument == "--" {
                self.only_extras = true;
            } else if let Some(long) = argument.strip_prefix("--") {
                return Some(self.long(long));
            } else {
                match argument.strip_prefix('-') {
                    Some(letters) if !letters.is_empty() => self.bundle = letters.to_owned(),
                    _ => return Some(Ok(Token::Extra(argument))),
                }
            }
        }
    }
}

/// The option with this long name, or the only one whose name begins so.
fn find_long(name: &str) -> Result<&'static Spec, OptionError> {
    if let Some(spec) = specs().find(|spec| spec.long.contains(&name)) {
        return Ok(spec);
    }
    let begins = |spec: &&Spec| spec.long.iter().any(|long| long.starts_with(name));
    let mut found = specs().filter(begins);
    match (found.next(), found.next()) {
        (Some(spec), None) => Ok(spec),
        (Some(_), Some(_)) if !name.is_empty() => Err(OptionError::Ambiguous(name.to_owned())),
        _ => Err(OptionError::Unrecognized(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(args: &str) -> Result<Vec<String>, OptionError> {
        let args = args.split(' ').map(str::to_owned);
        Scanner::new(args)
            .map(|token| {
                Ok(match token? {
                    Token::Option { spec, value: None } => spec.name(),
                    Token::Option {
                        spec,
                        value: Some(value),
                    } => format!("{}={value}", spec.name()),
                    Token::Extra(extra) => extra,
                })
            })
            .collect()
    }

    #[test]
    fn options_and_values_are_told_apart() {
        for (args, tokens) in [
            ("-t10", "-t=10"),
            ("-t 10", "-t=10"),
            ("-t -s", "-t=-s"),
            ("-su", "-s -u"),
            ("-sut10", "-s -u -t=10"),
            ("-sut 10", "-s -u -t=10"),
            ("--time 10", "-t=10"),
            ("--time=10", "-t=10"),
            ("--time=", "-t="),
            ("--tim=1=0", "-t=1=0"),
            ("--serv --udp", "-s -u"),
            ("x -s - y", "x -s - y"),
            ("-s -- -u --time", "-s -u --time"),
            ("--permit-key x", "--permit-key x"),
            ("--permit-key=x", "--permit-key=x"),
            ("--bounceback", "--bounceback"),
            ("--IPv6Version", "-V"),
            ("-1", "-1"),
        ] {
            let tokens: Vec<String> = tokens.split(' ').map(str::to_owned).collect();
            assert_eq!(scan(args), Ok(tokens), "{args}");
        }
    }

    #[test]
    fn what_is_no_option_is_refused() {
        let text = |text: &str| text.to_owned();
        for (args, error) in [
            ("-q", OptionError::InvalidLetter('q')),
            ("-sü", OptionError::InvalidLetter('ü')),
            ("-s-", OptionError::InvalidLetter('-')),
            ("--x", OptionError::Unrecognized(text("x"))),
            ("--timely", OptionError::Unrecognized(text("timely"))),
            ("--=5", OptionError::Unrecognized(text(""))),
            ("--t", OptionError::Ambiguous(text("t"))),
            ("-t", OptionError::MissingArgument(text("-t"))),
            ("--time", OptionError::MissingArgument(text("--time"))),
            ("--udp=3", OptionError::UnexpectedArgument(text("udp"))),
        ] {
            assert_eq!(scan(args), Err(error), "{args}");
        }
    }
}
