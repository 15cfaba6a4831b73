//! What a store holds: its studies, one line each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the JSON that [`Studies`] becomes.
pub const STUDIES_SCHEMA: &str = "nicpoll.studies/1";

/// What made a study. It decides which document is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudyKind {
    /// `nicpoll demo`.
    Demo,
    /// `nicpoll study run`.
    Study,
    /// `nicpoll ab`: pairs of blocks with the traffic of the moment.
    Ab,
    /// Results that another program measured.
    Imported,
}

impl StudyKind {
    /// Every kind.
    pub const ALL: [StudyKind; 4] = [
        StudyKind::Demo,
        StudyKind::Study,
        StudyKind::Ab,
        StudyKind::Imported,
    ];

    /// The word that JSON and a store have for it.
    pub fn name(self) -> &'static str {
        match self {
            StudyKind::Demo => "demo",
            StudyKind::Study => "study",
            StudyKind::Ab => "ab",
            StudyKind::Imported => "imported",
        }
    }

    /// The kind that a store calls so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// How far a study has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudyState {
    /// Its program runs.
    Running,
    /// It has ended, and what follows from it is stored.
    Finished,
    /// It was stopped, or failed, and said so.
    EndedEarly,
    /// Its program was killed, or the machine went down.
    Killed,
}

impl StudyState {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            StudyState::Running => "running",
            StudyState::Finished => "finished",
            StudyState::EndedEarly => "ended early",
            StudyState::Killed => "killed",
        }
    }
}

/// A study in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyEntry {
    /// Its number in the store.
    pub id: i64,
    /// What made it.
    pub kind: StudyKind,
    /// How far it has come.
    pub state: StudyState,
    /// Why it ended early; null in any other state.
    pub reason: Option<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// How long it ran.
    pub elapsed_seconds: f64,
    /// Trials that are stored.
    pub trials_done: u32,
    /// Trials that its plan has. Time may not suffice for all of them.
    pub trials_planned: u32,
    /// Kernel that it ran on; empty of imported trials, which ran elsewhere.
    pub kernel: String,
    /// Version of nicpoll that made it.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
}

/// What a command did with the studies that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudiesAction {
    /// `nicpoll study list`.
    Listed,
    /// `nicpoll study delete --dry-run`.
    WouldDelete,
    /// `nicpoll study delete`.
    Deleted,
}

/// Everything that `nicpoll study list --json` and `nicpoll study delete --json` print.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Studies {
    /// Name and version of this layout: [`STUDIES_SCHEMA`].
    pub schema: String,
    /// The file.
    pub store: String,
    /// What was done with the studies.
    pub action: StudiesAction,
    /// The studies, the oldest first.
    pub studies: Vec<StudyEntry>,
    /// The studies that come with the program; empty unless `action` is `listed`.
    #[serde(default)]
    pub ready: Vec<ReadyStudy>,
}

/// A study that comes with the program: `nicpoll study run NAME` runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadyStudy {
    /// Its name.
    pub name: String,
    /// What it answers.
    pub question: String,
}
