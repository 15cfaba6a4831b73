//! `nicpoll man`: the manual pages, made from the command line itself.
//!
//! Examples and tables keep their lines; each command has a page of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man;

use crate::failure::Failure;
use crate::output;

/// Options of `nicpoll man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The command, such as 'set' or 'sim run' [default: nicpoll itself]
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    out: Option<PathBuf>,
}

/// Prints a page, or writes all.
pub fn run(args: &ManArgs, program: Command) -> Result<u8, Failure> {
    let mut whole = program.disable_help_subcommand(true);
    whole.build();
    if let Some(directory) = &args.out {
        write_all(&whole, directory)?;
        return Ok(0);
    }
    let mut command = &whole;
    for word in &args.words {
        let below = command.find_subcommand(word);
        command = below.ok_or_else(|| no_command(command, word))?;
    }
    output::print(&page(command)?)?;
    Ok(0)
}

fn no_command(command: &Command, word: &str) -> Failure {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let names: Vec<_> = shown.map(Command::get_name).collect();
    // The program itself has none of these.
    let name = command.get_bin_name().filter(|name| !name.is_empty());
    let name = name.unwrap_or(command.get_name());
    Failure::Usage(if names.is_empty() {
        format!("'{name}' has no commands of its own; try nicpoll man")
    } else {
        format!(
            "'{name}' has no command '{word}'; it has {}",
            names.join(", ")
        )
    })
}

fn write_all(command: &Command, directory: &Path) -> Result<(), Failure> {
    let path = directory.join(Man::new(command.clone()).get_filename());
    let text = page(command)?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown
        .into_iter()
        .try_for_each(|sub| write_all(sub, directory))
}

fn page(command: &Command) -> anyhow::Result<String> {
    let mut page = Vec::new();
    render(command, &mut page).context("making the manual page")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn render(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(command.clone());
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    // Commands that replace another program parse their own options.
    if command.is_disable_help_flag_set() {
        let help = command.clone().render_long_help().to_string();
        page.extend_from_slice(as_it_is("OPTIONS", &help).as_bytes());
    } else {
        man.render_options_section(page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    let after = command.get_after_long_help().or(command.get_after_help());
    if let Some(text) = after {
        page.extend_from_slice(as_it_is("MORE", &text.to_string()).as_bytes());
    }
    if command.get_version().is_some() {
        man.render_version_section(page)?;
    }
    Ok(())
}

/// Returns a section whose lines keep their breaks.
fn as_it_is(heading: &str, text: &str) -> String {
    let mut section = format!(".SH {heading}\n.nf\n");
    for line in text.lines() {
        // A line that begins with a dot or a quote would be a request.
        if line.starts_with(['.', '\'']) {
            section.push_str("\\&");
        }
        section.push_str(&line.replace('\\', "\\e").replace('-', "\\-"));
        section.push('\n');
    }
    section.push_str(".fi\n");
    section
}
