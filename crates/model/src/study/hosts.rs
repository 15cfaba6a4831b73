//! One study on several hosts, side by side.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::study::comparison::{Ends, Metric, Verdict};

/// Name and version of the JSON of [`HostsCompared`].
pub const HOSTS_SCHEMA: &str = "nicpoll.study-hosts/1";

/// Everything that `nicpoll study compare --by host --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostsCompared {
    /// [`HOSTS_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The command line.
    pub argv: Vec<String>,
    /// The question of the first host's study.
    pub question: String,
    /// The ratio from which on a difference matters.
    pub margin_ratio: f64,
    /// The hosts in the order of their names.
    pub hosts: Vec<HostOfStudy>,
    /// What the studies compared, each with its result at every host.
    pub comparisons: Vec<HostsComparison>,
    /// What a name means in each study, and what else differs between the hosts, a sentence each.
    pub differences: Vec<String>,
}

/// A host, and its study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostOfStudy {
    /// The host's name with a part of a hash of its machine id; that of its study if it is unknown.
    pub host: String,
    /// Number of the study in the store.
    pub study: i64,
    /// When it began (RFC 3339, UTC).
    pub started_at: String,
    /// The kernel.
    pub kernel: String,
}

/// One metric of one workload under one setting against a reference, at each host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostsComparison {
    /// The workload.
    pub workload: String,
    /// The metric.
    pub metric: Metric,
    /// The judged setting.
    pub setting: String,
    /// The setting it is judged against.
    pub reference: String,
    /// The result of each host, in the order of the hosts; null where a study has none.
    pub of_hosts: Vec<Option<HostResult>>,
    /// Hosts where the setting is better.
    pub better_hosts: u32,
    /// Hosts where it is worse.
    pub worse_hosts: u32,
    /// Hosts where it is equivalent.
    pub equivalent_hosts: u32,
    /// The typical host's ratio, or its difference of shares: the Hodges-Lehmann estimate over hosts. Null without results.
    pub typical_ratio: Option<f64>,
    /// Its 95 % interval by signed ranks, for hosts like these; null ends with fewer than six hosts.
    pub typical_interval: Ends,
}

/// The result at one host, from the trials of its study alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostResult {
    /// The ratio of the settings, or the difference of shares; null if there is none.
    pub ratio: Option<f64>,
    /// Its interval.
    pub interval: Ends,
    /// The verdict.
    pub verdict: Verdict,
}
