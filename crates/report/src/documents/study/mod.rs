//! The page of a study: the answer first, then what it is based on.
//!
//! Verdicts and intervals come out of the study as they are; an old study has the same page again. Read `answer` first
//! (the first screen), then `workload` and `comparisons` (a part for each workload); `trials` says which trials count.

mod answer;
pub(super) mod comparisons;
mod notes;
pub(super) mod plots;
pub(super) mod run;
mod sweep;
mod trials;
mod within;
mod workload;

use nicpoll_model::{Study, StudyPlan};

use super::data::{csv, json, saved, series_as_csv, trials_as_csv};
use crate::page::{Document, Ink, Medium, Page, Part};

impl Document for Study {
    fn page(&self) -> Page {
        let mut page = Page::new(&self.question);
        let answer = || Part::linked(Medium::All, "answer", "Answer");
        page.part(answer(), |part| answer::write(part, self));
        let hint = "Details follow. To see this screen alone: --brief.";
        page.part(Part::new(Medium::Text), |part| {
            part.paragraph(Ink::Faint, hint);
        });
        for sweep in &self.sweeps {
            page.part(Part::new(Medium::All), |part| sweep::write(part, sweep));
        }
        page.part(Part::new(Medium::Text), |part| {
            run::write(part, self);
            run::write_changes(part, self);
        });
        for (number, facts) in (1..).zip(&self.workloads) {
            let id = format!("workload-{number}");
            let part = Part::linked(Medium::All, id, &facts.workload);
            let figures = plots::of_workload(self, facts);
            page.part(part, |part| workload::write(part, self, facts, figures));
        }
        let run = Part::linked(Medium::Html, "run", "What was run");
        page.part(run, |part| run::write(part, self));
        page.part(Part::new(Medium::All), |part| notes::write(part, self));
        let machine = Part::linked(Medium::Html, "machine", "The machine");
        page.part(machine, |part| run::write_machine(part, self));
        let repeat = Part::linked(Medium::Html, "repeat", "Repeat it");
        page.part(repeat, |part| {
            run::write_repeat(part, &self.argv, self.seed, &self.nicpoll_version);
        });
        page.part(saved(), |part| write_data(part, self));
        page
    }
}

/// The first screen of a study's page alone.
pub fn brief_page(study: &Study) -> Page {
    Page::of(&study.question, |part| {
        answer::write(part, study);
        let hint = "Details: the same command without --brief.";
        part.paragraph(Ink::Faint, hint);
    })
}

impl Document for StudyPlan {
    fn page(&self) -> Page {
        run::planned(self)
    }
}

fn write_data(part: &mut Part, study: &Study) {
    let whole = json("study.json", study, "the whole study (docs/schema.md)");
    part.blocks.push(whole);
    let mut add = |name, data, holds| part.blocks.push(csv(name, data, holds));
    add("trials.csv", trials_as_csv(study), "a line for each trial");
    let mut figures = study.trials.iter().filter_map(|it| it.figures.as_ref());
    if figures.any(|figures| figures.series.is_some()) {
        let holds = "what passed within the trials, a line a step";
        add("series.csv", series_as_csv(study), holds);
    }
}
