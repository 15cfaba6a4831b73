//! The project's own commands, `cargo xtask COMMAND`: one way to test, check and build what cargo
//! alone does not, the same for a developer and for CI.
//!
//! stdout carries the test runner's output, the list of skipped tests and, as its last line, the counts
//! over all tests; everything else goes to stderr. A step or a test that did not run is shown as skipped,
//! with the reason, and never counts as passed.

mod bpf;
mod dist;
mod fuzz;
mod guests;
mod needs;
mod page;
mod process;
mod programs;
mod steps;
mod suite;
mod tally;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use needs::Scope;
use steps::Steps;

/// The project's own commands.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Command {
    /// Install what the tests need and run them, then the structure checks.
    Test {
        /// With the tests that take several seconds each: guests that boot, whole studies, fits, long waits.
        #[arg(long)]
        all: bool,
        /// Install nothing: tests that need a missing program are skipped, and listed as such.
        #[arg(long)]
        no_install: bool,
        /// Arguments for the test programs, as after the `--` of `cargo test`.
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Everything that a change must pass: format, clippy, documentation, dependencies, then `test`.
    Ci,
    /// Check the structure: circles, sizes, exports, direction of crates, unsafe code, wording, links.
    Tidy {
        /// Check nothing: print lines of code, without tests, comments and blank lines, for each crate.
        #[arg(long)]
        size: bool,
    },
    /// Compile bpf/*.bpf.c into the crates that load them.
    Bpf {
        /// Change nothing: rebuild, and compare with the committed objects byte by byte.
        #[arg(long)]
        check: bool,
    },
    /// Build docs/simulator.html, the simulator in a page, from crates/page and sim. Takes the target wasm32-wasip1.
    Page {
        /// Change nothing: compare the committed page with what its sources give.
        #[arg(long)]
        check: bool,
    },
    /// Build what a release has, in target/dist: the program as one static file, an archive, packages for dpkg and RPM,
    /// a bill of materials, checksums.
    Dist {
        /// Also run lintian, install the packages in fresh roots, try them, and remove them again. Takes root and
        /// debootstrap.
        #[arg(long)]
        check: bool,
        /// Build it for this target, such as aarch64-unknown-linux-gnu, by the linker and the runner that cargo has
        /// for it.
        #[arg(long)]
        target: Option<String>,
    },
    /// Boot kernels from 5.10 to the newest in QEMU, and write what works on which into docs/kernels.md.
    Guests {
        /// The program to try [default: this workspace's, built for tests].
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Run the fuzz targets from their committed inputs, as many at a time as there are processors.
    Fuzz {
        /// Seconds for each target [default: 60, or with --executions no limit].
        #[arg(long)]
        seconds: Option<u32>,
        /// Run one target after the other, each for so many executions, and write what they came to into
        /// fuzz/runs.md.
        #[arg(long)]
        executions: Option<u64>,
        /// Fuzz nothing: keep the fewest inputs of the last runs that reach what the seeds do not, in fuzz/kept.
        #[arg(long, conflicts_with_all = ["seconds", "executions"])]
        keep: bool,
        /// These targets only.
        targets: Vec<String>,
    },
}

fn main() -> ExitCode {
    let command = Command::parse();
    if let Err(error) = enter_workspace() {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    let mut steps = Steps::default();
    match command {
        Command::Test {
            all,
            no_install,
            args,
        } => {
            let scope = if all { Scope::All } else { Scope::Quick };
            suite::test(&mut steps, scope, no_install, &args);
        }
        Command::Ci => suite::ci(&mut steps),
        Command::Tidy { size: true } => steps.run("size", tidy::print_sizes),
        Command::Tidy { size: false } => steps.run("structure", tidy::check),
        Command::Bpf { check: true } => steps.run("bpf", bpf::check),
        Command::Bpf { check: false } => steps.run("bpf", bpf::build),
        Command::Page { check: true } => steps.run("page", page::check),
        Command::Page { check: false } => steps.run("page", page::build),
        Command::Dist { check, target } => dist::run_steps(&mut steps, target.as_deref(), check),
        Command::Guests { program } => steps.run("guests", || guests::tell(program.as_deref())),
        Command::Fuzz {
            keep: true,
            targets,
            ..
        } => steps.run("fuzz", || fuzz::keep(&targets)),
        Command::Fuzz {
            seconds,
            executions,
            targets,
            ..
        } => {
            let seconds = seconds.or(executions.is_none().then_some(60));
            let limits = fuzz::Limits {
                seconds,
                executions,
            };
            steps.run("fuzz", || fuzz::run_targets(&targets, limits));
        }
    }
    steps.finish()
}

/// Every path in these commands is relative to the workspace, wherever they are called from.
fn enter_workspace() -> Result<()> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("start this as `cargo xtask`: cargo says where the workspace is")?;
    let root = Path::new(&manifest).join("..");
    std::env::set_current_dir(&root).with_context(|| format!("cannot enter {}", root.display()))
}
