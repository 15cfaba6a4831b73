//! Studies: settings compared under workloads, in trials on the hosts of a lab.
//!
//! The folders are the steps, in order: `design` (what is compared, from a TOML file), `plan` (durations and order),
//! `run` (trials, recorded as they end), `judge` (whether trials count, and the verdicts), `results` (stored studies
//! and other tools' files, read and compared). Start with [`StudyFile::parse`] and [`Session::run`].

mod design;
mod judge;
mod plan;
mod results;
mod run;

pub use design::demo;
pub use design::demo::{DemoOptions, plan};
pub use design::file::StudyFile;
pub use design::file::needs::Here;
pub use design::frames::frames_study;
pub use design::ready::{READY, hosts_of, ready_studies};
pub use design::sweep::{SweepRate, SweepRates};
pub use design::{Design, Evidence, NamedSetting, NamedWorkload, Versus};
pub use judge::trial::TrialPlace;
pub use judge::warnings::is_decided;
pub use nicpoll_import::Correction;
pub use plan::{DEFAULT_PERIOD, Lengths, plan_of};
pub use results::compare::{CompareOptions, compare_results};
pub use results::gate::{FailOn, Gate};
pub use results::hosts::compare_hosts;
pub use results::import::{import_transcripts, read_transcript_files};
pub use results::read::{OpenResult, ResultError, ResultName, ResultSource, shown};
pub use run::search::{SearchProgress, SearchRequest, search, search_here};
pub use run::session::{Identity, Session, StudyError, StudyProgress};
pub use run::timer::apply;
pub use run::trial::Trials;
pub use run::tune::{FINALS_MAX, TuneProgress, TuneRequest, tune, tune_here};
