//! Which settings and workloads the engine can receive.

use nicpoll_model::FileError;
use toml::Spanned;

use super::Reader;
use super::entry::WorkloadEntry;
use crate::design::NamedSetting;
use crate::engine::EngineRequest;

impl Reader<'_> {
    /// Refuses what no engine does.
    pub(super) fn engine_possible(&self, engine: &Spanned<EngineRequest>) -> Result<(), FileError> {
        if self.is_routed() {
            let message = String::from(
                "the engine receives datagrams at the receiver, and here the router's receiving is what is studied; \
                 leave out topology.kind = \"router\"",
            );
            return Err(self.error(engine.span(), message));
        }
        let settings = engine.get_ref().settings();
        let refused = |error: crate::engine::EngineRefusal| error.to_string();
        settings
            .map(|_| ())
            .map_err(|error| self.error(engine.span(), refused(error)))
    }

    /// Refuses traffic that needs sockets at the receiver under a setting that has none.
    pub(super) fn received_by_engine(
        &self,
        entry: &WorkloadEntry,
        settings: &[NamedSetting],
    ) -> Result<(), FileError> {
        let Some(setting) = settings.iter().find(|setting| setting.engine.is_some()) else {
            return Ok(());
        };
        let fits = entry.traffic.get_ref().workload().datagram_receiver();
        let why = if fits.is_none() {
            "traffic of kind udp"
        } else if entry.both_ways || !entry.beside.is_empty() {
            "one stream one way, without both_ways and beside"
        } else if self.links > 1 {
            "one link"
        } else {
            return Ok(());
        };
        let message = format!(
            "under the setting {} the engine receives, which takes {why}; make a study of its own of this workload",
            setting.name()
        );
        Err(self.error(entry.traffic.span(), message))
    }
}

#[cfg(test)]
mod tests {
    use nicpoll_model::Side;
    use nicpoll_stats::order::Seed;

    use crate::design::Evidence;
    use crate::file::StudyFile;
    use crate::file::tests::assert_refused;

    const ENGINES: &str = r#"
question = "What does the engine's polling cost?"
[[factor]]
name = "receiver"
levels = [
  { name = "socket", receiver = { gro = "on" } },
  { name = "engine", engine = { discipline = "polling", hz = 2000, knobs = { burst_max = 1000 } } },
]
[[workload]]
name = "udp"
spinner = true
traffic = { kind = "udp", payload_bytes = 64, packets_per_second = 1000 }
"#;

    #[test]
    fn an_engine_is_a_level_that_the_plan_names() {
        let file = StudyFile::parse(ENGINES).unwrap();
        let engine = file.design.setting("engine").unwrap();
        assert_eq!(engine.evidence, Evidence::Polls);
        let plan = file.plan(Seed(1)).unwrap();
        let words = "polling at 2000 Hz, burst_max=1000";
        let write = (Side::Receiver, String::from("engine"), String::from(words));
        assert_eq!(plan.settings[1].writes, [write]);
        assert!(plan.workloads[0].description.contains("computes beside"));
        // The run with a program beside it takes its time.
        let without = StudyFile::parse(&ENGINES.replace("spinner = true\n", "")).unwrap();
        let without = without.plan(Seed(1)).unwrap().plan;
        assert!(plan.plan.reckoned_trial_seconds[0] > without.reckoned_trial_seconds[0] + 0.1);
    }

    #[test]
    fn what_the_engine_cannot_receive_is_refused_with_its_line() {
        let changes = [
            ("burst_max = 1000", "burst_max = 5", 7, "10 to 20000"),
            ("hz = 2000", "hertz = 2000", 7, "discipline such as"),
            (
                "traffic = { kind = \"udp\", payload_bytes = 64, packets_per_second = 1000 }",
                "traffic = { kind = \"rr\" }",
                12,
                "traffic of kind udp",
            ),
            ("spinner = true", "both_ways = true", 12, "one way"),
            (
                "[[factor]]",
                "[topology]\nlinks = 2\n[[factor]]",
                14,
                "one link",
            ),
            (
                "[[factor]]",
                "[topology]\nkind = \"router\"\n[[factor]]",
                9,
                "router's",
            ),
            (
                "name = \"engine\", ",
                "name = \"engine\", xdp = { receiver = {} }, ",
                7,
                "one program",
            ),
            (
                "[[workload]]",
                "[[factor]]\nname = \"two\"\nlevels = [{ name = \"a\", engine = \"polling\" }, { name = \"b\" }]\n[[workload]]",
                11,
                "two factors set engine",
            ),
        ];
        assert_refused(ENGINES, &changes);
    }
}
