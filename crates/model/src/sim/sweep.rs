//! Sweeps, and joining the parts of a sweep or a fit that were run separately.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::sim::run::{SimFigures, SimPlan};

/// Name and version of the JSON of [`SimSweep`].
pub const SIM_SWEEP_SCHEMA: &str = "nicpoll.sim-sweep/3";

/// Runs over a range of one parameter, for each discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimSweep {
    /// Name and version of this layout: [`SIM_SWEEP_SCHEMA`].
    pub schema: String,
    /// Version of nicpoll.
    pub nicpoll_version: String,
    /// The varied parameter: `offered`, in packets per second, or a number of the host file.
    pub parameter: String,
    /// The workload with its options, in command-line notation.
    pub workload: String,
    /// The part of the sweep; null for the whole sweep.
    pub shard: Option<SimShard>,
    /// The points, by discipline, then by value of the parameter.
    pub points: Vec<SimPoint>,
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPoint {
    /// The parameter's value.
    pub value: f64,
    /// The input.
    pub plan: SimPlan,
    /// The results.
    pub figures: SimFigures,
}

/// A part of a sweep or a fit: of its points in order, every `of`th, beginning with the `number`th.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimShard {
    /// Number of the part, from 1.
    pub number: u64,
    /// Number of parts.
    pub of: u64,
    /// Number of points of all parts together; of a fit, of sets.
    pub points_of_all: u64,
    /// Hash of the host's numbers and every run of the sweep, or of the files of the fit: equal in all parts.
    pub sweep: String,
}

/// A document whose points can be made in parts.
pub trait InParts: Sized {
    /// What a part has some of.
    type Point: Clone;
    /// Name and version of its JSON.
    const SCHEMA: &'static str;
    /// The command that makes one.
    const COMMAND: &'static str;

    /// Returns its schema, which part it is, and the part's points.
    fn part(&self) -> (&str, Option<&SimShard>, &[Self::Point]);

    /// Whether this and another part differ only in their points.
    fn is_like(&self, other: &Self) -> bool;

    /// Returns the whole of which this is a part.
    fn whole(self, points: Vec<Self::Point>) -> Self;
}

impl InParts for SimSweep {
    type Point = SimPoint;
    const SCHEMA: &'static str = SIM_SWEEP_SCHEMA;
    const COMMAND: &'static str = "nicpoll sim sweep";

    fn part(&self) -> (&str, Option<&SimShard>, &[Self::Point]) {
        (&self.schema, self.shard.as_ref(), &self.points)
    }

    fn is_like(&self, other: &Self) -> bool {
        let names = |it: &Self| {
            let names = [&it.parameter, &it.workload, &it.nicpoll_version];
            names.map(String::clone)
        };
        names(self) == names(other)
    }

    fn whole(self, points: Vec<Self::Point>) -> Self {
        SimSweep {
            shard: None,
            points,
            ..self
        }
    }
}

/// Why parts cannot be joined.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct JoinError {
    /// Position of the wrong part; `None` if no single part is wrong.
    pub part: Option<usize>,
    why: String,
}

impl JoinError {
    fn of(part: impl Into<Option<usize>>, why: impl Into<String>) -> Self {
        JoinError {
            part: part.into(),
            why: why.into(),
        }
    }
}

/// Missing parts that are named at most.
const MISSING_MAX: usize = 100;

/// Joins the parts of a sweep or a fit.
///
/// # Errors
/// Why the parts are not those of one.
pub fn join<P: InParts>(parts: Vec<P>) -> Result<P, JoinError> {
    let mut shards = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        shards.push(looked_at(place, part, &parts[0])?);
    }
    let first = shards.first();
    let first = first.ok_or_else(|| JoinError::of(None, "no part was given"))?;
    let (of, points_of_all) = (first.of, first.points_of_all);
    let mut order: Vec<(u64, usize)> = Vec::new();
    for (place, shard) in shards.iter().enumerate() {
        if order.iter().any(|(number, _)| *number == shard.number) {
            return Err(JoinError::of(
                place,
                "another file is the same part; give each once",
            ));
        }
        order.push((shard.number, place));
    }
    order.sort_unstable();
    // Parts without points may be left out.
    let is_missing = |number: &u64| order.binary_search_by_key(number, |it| it.0).is_err();
    let missing = (1..=of.min(points_of_all)).filter(is_missing);
    let missing: Vec<u64> = missing.take(MISSING_MAX).collect();
    if !missing.is_empty() {
        let told = |before: &str, after: &str, between: &str| {
            let parts = missing
                .iter()
                .map(|number| format!("{before}{number}{after}"));
            parts.collect::<Vec<_>>().join(between)
        };
        let why = format!(
            "parts are missing; make them by {}, in a Slurm array by --array={}, and give the files of all parts",
            told("--shard ", &format!("/{of}"), ", "),
            told("", "", ","),
        );
        return Err(JoinError::of(None, why));
    }
    let each = order.iter().map(|(_, place)| parts[*place].part().2.iter());
    let mut each: Vec<_> = each.collect();
    let mut points = Vec::new();
    while points.len() as u64 != points_of_all {
        points.extend(each.iter_mut().filter_map(Iterator::next).cloned());
    }
    let first = parts.into_iter().next();
    first
        .map(|first| first.whole(points))
        .ok_or_else(|| JoinError::of(None, "no part was given"))
}

/// Returns the part's shard, after checking that it belongs to the same as the first part.
fn looked_at<'a, P: InParts>(
    place: usize,
    part: &'a P,
    first: &P,
) -> Result<&'a SimShard, JoinError> {
    let wrong = |why: &str| Err(JoinError::of(place, why));
    let (schema, shard, own_points) = part.part();
    if schema != P::SCHEMA {
        return wrong(&format!(
            "its schema is not {}; give what `{} --shard I/N --json` of this version prints",
            P::SCHEMA,
            P::COMMAND
        ));
    }
    let Some(shard) = shard else {
        return wrong("it is no part but the whole; parts are made with --shard I/N");
    };
    let is_part = (1..=shard.of).contains(&shard.number);
    let before = shard.number.saturating_sub(1);
    let points = shard
        .points_of_all
        .saturating_sub(before)
        .div_ceil(shard.of.max(1));
    if !is_part || own_points.len() as u64 != points {
        return wrong(
            "its points are not those of the part that it says it is; make it again with --shard",
        );
    }
    let is_same = first.part().1.is_some_and(|one| {
        (one.of, one.points_of_all, &one.sweep) == (shard.of, shard.points_of_all, &shard.sweep)
    });
    if !is_same || !part.is_like(first) {
        return wrong(
            "it is not of the same as the first file; parts have the same files, options and version of nicpoll",
        );
    }
    Ok(shard)
}
