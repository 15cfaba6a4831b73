//! What a study would do, before it does anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Plan, SettingFacts, WorkloadFacts};

/// Name and version of the JSON of [`StudyPlan`].
pub const STUDY_PLAN_SCHEMA: &str = "nicpoll.study-plan/1";

/// What `nicpoll study run --dry-run` shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyPlan {
    /// Name and version of this layout.
    pub schema: String,
    /// What the study answers.
    pub question: String,
    /// Seed of the order.
    pub seed: u64,
    /// How long, how often, in which order, and what is held against what.
    pub plan: Plan,
    /// The traffic.
    pub workloads: Vec<WorkloadFacts>,
    /// The settings, with every value that each writes.
    pub settings: Vec<SettingFacts>,
}
