//! The engine as the receiver of a setting, as data: its discipline, its clock and its knobs.
//!
//! What must hold: what the engine would refuse is refused with the file's line, in its own words.

use std::collections::BTreeMap;

use nicpoll_core::{Controller, Knob, Poller};
use nicpoll_engine::{
    Drive, KnobNameError, KnobRefusal, Named, RunnerSettings, UnknownName, parse_knob, write_knob,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Ticks a second, as `nicpoll sink` takes them.
const HZ: std::ops::RangeInclusive<u32> = 100..=10_000;
/// The same where nobody says.
pub const HZ_DEFAULT: u32 = 1000;

/// How the engine receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Entry")]
pub struct EngineRequest {
    /// How it learns of packets, by its name.
    pub discipline: String,
    /// Ticks a second.
    pub hz: u32,
    /// How the burst follows the load, by its name.
    pub controller: String,
    /// Passes back to back after which an interrupt is throttled; 0: never.
    pub storm_threshold: u32,
    /// Knobs of `kern.polling` that are written before it begins.
    pub knobs: BTreeMap<String, u32>,
}

/// What a file says: a discipline, or a discipline with the rest.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a discipline such as \"polling\", or { discipline = \"polling\" } with any of hz, controller, \
                 storm_threshold and knobs = { burst_max = 1000 }"
)]
enum Entry {
    Name(String),
    Table(Table),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    discipline: String,
    hz: Option<u32>,
    controller: Option<String>,
    storm_threshold: Option<u32>,
    #[serde(default)]
    knobs: BTreeMap<String, u32>,
}

impl From<Entry> for EngineRequest {
    fn from(entry: Entry) -> Self {
        let table = match entry {
            Entry::Table(table) => table,
            Entry::Name(discipline) => Table {
                discipline,
                hz: None,
                controller: None,
                storm_threshold: None,
                knobs: BTreeMap::new(),
            },
        };
        let controller = || String::from(Controller::default().name());
        EngineRequest {
            discipline: table.discipline,
            hz: table.hz.unwrap_or(HZ_DEFAULT),
            controller: table.controller.unwrap_or_else(controller),
            storm_threshold: table.storm_threshold.unwrap_or(0),
            knobs: table.knobs,
        }
    }
}

/// Why the engine cannot receive so.
#[derive(Debug, Error)]
pub enum EngineRefusal {
    /// There is no such discipline.
    #[error("the engine has no discipline '{0}'; {1}")]
    Discipline(String, UnknownName),
    /// There is no such controller.
    #[error("the engine has no controller '{0}'; it has {names}", names = Controller::ALL.map(Controller::name).join(", "))]
    Controller(String),
    /// Too few ticks, or too many.
    #[error("hz = {0} is out of range; give {least} to {most}", least = HZ.start(), most = HZ.end())]
    Hz(u32),
    /// There is no such knob.
    #[error(transparent)]
    Name(#[from] KnobNameError),
    /// A value is out of range.
    #[error(transparent)]
    Knob(#[from] KnobRefusal),
}

impl EngineRequest {
    /// What the engine is told.
    ///
    /// # Errors
    /// With what is out of range, and what is possible.
    pub fn settings(&self) -> Result<(RunnerSettings, Vec<(Knob, u32)>), EngineRefusal> {
        let drive = Drive::by_name(&self.discipline)
            .map_err(|unknown| EngineRefusal::Discipline(self.discipline.clone(), unknown))?;
        let controller = Controller::from_name(&self.controller);
        let controller =
            controller.ok_or_else(|| EngineRefusal::Controller(self.controller.clone()))?;
        let poller = HZ.contains(&self.hz).then(|| Poller::new(self.hz).ok());
        let mut poller = poller.flatten().ok_or(EngineRefusal::Hz(self.hz))?;
        let mut knobs = Vec::new();
        // In alphabetical order burst_max comes first, which bounds the others.
        for (name, value) in &self.knobs {
            let knob = parse_knob(name)?;
            write_knob(&mut poller, knob, *value)?;
            knobs.push((knob, *value));
        }
        let settings = RunnerSettings {
            drive,
            hz: self.hz,
            controller,
            storm_threshold: self.storm_threshold,
        };
        Ok((settings, knobs))
    }

    /// What it is, for the record.
    pub(crate) fn words(&self) -> String {
        let mut words = format!("{} at {} Hz", self.discipline, self.hz);
        if self.controller != Controller::default().name() {
            words += &format!(", controller {}", self.controller);
        }
        if self.storm_threshold > 0 {
            words += &format!(", storm threshold {}", self.storm_threshold);
        }
        for (name, value) in &self.knobs {
            words += &format!(", {name}={value}");
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> EngineRequest {
        #[derive(Deserialize)]
        struct File {
            engine: EngineRequest,
        }
        let file: File = toml::from_str(&format!("engine = {text}")).unwrap();
        file.engine
    }

    #[test]
    fn a_name_stands_for_a_discipline_with_what_the_sink_has_without_options() {
        let short = parsed("\"adaptive\"");
        assert_eq!(short, parsed("{ discipline = \"adaptive\" }"));
        let (settings, knobs) = short.settings().unwrap();
        assert_eq!((settings.drive, settings.hz), (Drive::Adaptive, 1000));
        assert!(knobs.is_empty());
        assert_eq!(short.words(), "adaptive at 1000 Hz");
        // It crosses to another host as it is.
        let json = serde_json::to_string(&short).unwrap();
        assert_eq!(serde_json::from_str::<EngineRequest>(&json).unwrap(), short);
    }

    #[test]
    fn knobs_are_written_in_an_order_in_which_they_are_allowed() {
        let request = parsed(
            "{ discipline = \"polling\", hz = 2000, knobs = { each_burst = 400, burst_max = 500 } }",
        );
        let (_, knobs) = request.settings().unwrap();
        assert_eq!(knobs, [(Knob::BurstMax, 500), (Knob::EachBurst, 400)]);
        assert_eq!(
            request.words(),
            "polling at 2000 Hz, burst_max=500, each_burst=400"
        );
    }

    #[test]
    fn what_the_engine_would_refuse_is_refused_in_its_words() {
        let refused = |text: &str| parsed(text).settings().unwrap_err().to_string();
        assert!(refused("\"poll\"").contains("polling, interrupt, busy-poll, adaptive"));
        assert!(refused("{ discipline = \"polling\", hz = 50 }").contains("100 to 10000"));
        let controller = refused("{ discipline = \"polling\", controller = \"pid\" }");
        assert!(controller.contains("freebsd, share"), "{controller}");
        let knob = refused("{ discipline = \"polling\", knobs = { burst_max = 5 } }");
        assert!(knob.contains("10 to 20000"), "{knob}");
        let name = refused("{ discipline = \"polling\", knobs = { bust_max = 5 } }");
        assert!(name.contains("unknown oid"), "{name}");
    }
}
