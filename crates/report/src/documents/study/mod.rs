//! The page of a study: the answer first, then its basis.
//!
//! Verdicts and intervals are the document's own, so an old study has the same page again. Read `answer` first (the
//! first screen), then `workload` and `comparisons` (a part for each workload); `trials` says which trials count.

pub(super) mod answer;
pub(super) mod comparisons;
mod notes;
mod phrases;
pub(super) mod plots;
pub(super) mod run;
mod searched;
mod sweep;
mod trials;
mod tuned;
mod within;
mod workload;

use nicpoll_model::{Study, StudyPlan};

use super::data::{add_saved, csv, json, series_as_csv, trials_as_csv};
use crate::page::{Block, Document, Ink, Medium, Page};

impl Document for Study {
    fn page(&self) -> Page<'_> {
        let mut page = Page::new(&self.question);
        page.linked(Medium::All, ("answer", "Answer"), |part| {
            answer::write(part, self);
        });
        page.part(Medium::Terminal, |part| {
            let hint = "Details follow. To see this screen alone: --brief.";
            part.paragraph(Ink::Faint, hint);
        });
        for sweep in &self.sweeps {
            page.part(Medium::All, |part| sweep::write(part, self, sweep));
        }
        page.part(Medium::Text, |part| {
            run::write(part, self);
            run::write_changes(part, self);
        });
        for (number, facts) in (1..).zip(&self.workloads) {
            let id = format!("workload-{number}");
            page.linked(Medium::All, (&id, &facts.workload), |part| {
                workload::write(part, self, facts, plots::of_workload(self, facts));
            });
        }
        page.linked(Medium::Html, ("run", "What was run"), |part| {
            run::write(part, self);
        });
        page.part(Medium::All, |part| notes::write(part, self));
        page.linked(Medium::Html, ("machine", "The machine"), |part| {
            run::write_machine(part, self);
        });
        page.linked(Medium::Html, ("repeat", "Repeat it"), |part| {
            run::write_repeat(part, &self.argv, self.seed, &self.nicpoll_version);
        });
        add_saved(&mut page, |part| {
            let whole = json("study.json", self, "the whole study (docs/schema.md)");
            let holds = "a line for each trial";
            let trials = csv("trials.csv", || trials_as_csv(self), holds);
            part.blocks.extend([whole, trials]);
            let mut figures = self.trials.iter().filter_map(|it| it.figures.as_ref());
            if figures.any(|figures| figures.series.is_some()) {
                let holds = "what passed within the trials, a line a step";
                part.blocks
                    .push(csv("series.csv", || series_as_csv(self), holds));
            }
        });
        page
    }
}

/// The first screen of a study's page alone.
pub fn brief_page(study: &Study) -> Page<'static> {
    Page::of(&study.question, |part| {
        answer::write(part, study);
        // What makes the lines doubtful may fill the screen.
        let hint = String::from("Details: the same command without --brief.");
        part.blocks.push(Block::Spare(Ink::Faint, hint));
    })
}

impl Document for StudyPlan {
    fn page(&self) -> Page<'_> {
        Page::of(&self.question, |part| run::write_plan(part, self))
    }
}
