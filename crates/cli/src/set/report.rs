//! What a command did: as text while it goes on, or as one object in the end.
//!
//! What must hold: both say the same; nothing but this writes to standard output for `set` and `restore`.

use std::env;
use std::time::Duration;

use nicpoll_model::{
    SET_SCHEMA, Switch, SwitchFile, SwitchProof, SwitchRestored, SwitchValue, SwitchWrite,
};
use nicpoll_report::render_document;
use nicpoll_switch::persist::FileChange;
use nicpoll_switch::standing::Preview;
use nicpoll_switch::{Change, Restored, Target, Value, Write};

use super::text;
use crate::failure::Failure;
use crate::output::print;

/// A command's results.
pub struct Report {
    json: Option<Switch>,
    code: u8,
}

impl Report {
    /// Nothing was done yet.
    pub fn new(is_json: bool, netns: Option<&str>, is_dry_run: bool) -> Self {
        let json = is_json.then(|| Switch {
            schema: String::from(SET_SCHEMA),
            nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
            argv: env::args().collect(),
            started_at: crate::output::now(),
            netns: netns.map(String::from),
            is_dry_run,
            writes: Vec::new(),
            is_open_ended: false,
            files: Vec::new(),
            undone_after_seconds: None,
            restored: Vec::new(),
            proofs: Vec::new(),
        });
        Report { json, code: 0 }
    }

    /// What was written, or would be, as seen from a namespace.
    pub fn wrote(&mut self, preview: &Preview, netns_inode: u64) -> Result<(), Failure> {
        let Some(json) = &mut self.json else {
            return Ok(print(&text::preview(preview, netns_inode))?);
        };
        json.writes.extend(preview.writes.iter().map(write_of));
        json.is_open_ended |= preview.is_open_ended;
        Ok(())
    }

    /// Files that are about to change, or would be.
    pub fn files(&mut self, changes: &[FileChange]) -> Result<(), Failure> {
        let Some(json) = &mut self.json else {
            return Ok(print(&text::file_changes(changes))?);
        };
        json.files.extend(changes.iter().map(|change| SwitchFile {
            path: change.path.display().to_string(),
            before: change.before.clone(),
            after: change.after.clone(),
        }));
        Ok(())
    }

    /// The change undoes itself after this time.
    pub fn is_trial(&mut self, time: Duration) {
        if let Some(json) = &mut self.json {
            json.undone_after_seconds = Some(time.as_secs_f64());
        }
    }

    /// An interface was put back, as seen from a namespace.
    pub fn restored(&mut self, restored: &Restored, netns_inode: u64) -> Result<(), Failure> {
        let name = text::label(&restored.target, netns_inode);
        let mut notes: Vec<String> = restored
            .drift
            .iter()
            .map(|drift| text::drift(&name, drift))
            .collect();
        if restored.is_gone {
            notes.push(format!("{name} is gone, and what was set on it went along"));
        }
        for note in &notes {
            eprintln!("nicpoll: {note}");
        }
        if let Some(json) = &mut self.json {
            json.writes.extend(writes_back(restored));
        }
        self.host_restored(&name, !restored.is_gone, notes)
    }

    /// An interface of this machine or another was put back, or is no more.
    pub fn host_restored(
        &mut self,
        name: &str,
        is_as_before: bool,
        notes: Vec<String>,
    ) -> Result<(), Failure> {
        match &mut self.json {
            None if is_as_before => Ok(print(&format!("{name}: every value is as it was\n"))?),
            None => Ok(()),
            Some(json) => {
                json.restored.push(SwitchRestored {
                    interface: String::from(name),
                    is_as_before,
                    notes,
                });
                Ok(())
            }
        }
    }

    /// An interface could not be put back.
    pub fn not_restored(&mut self, name: &str, failure: &Failure) {
        eprintln!("nicpoll: {failure}");
        self.code = self.code.max(failure.code());
        if let Some(json) = &mut self.json {
            json.restored.push(SwitchRestored {
                interface: String::from(name),
                is_as_before: false,
                notes: vec![failure.to_string()],
            });
        }
    }

    /// What would be put back on an interface.
    pub fn would_restore(&mut self, target: &Target, changes: &[Change]) -> Result<(), Failure> {
        for change in changes.iter().filter(|one| one.before != one.written) {
            let Change {
                knob,
                before,
                written,
            } = change;
            match &mut self.json {
                Some(json) => json.writes.push(write_back(target, change, written)),
                None => {
                    let name = &target.interface.name;
                    print(&format!("{name}: {knob} {written} -> {before}\n"))?;
                }
            }
        }
        Ok(())
    }

    /// What was seen afterwards.
    pub fn proved(&mut self, proofs: Vec<SwitchProof>, netns: Option<&str>) -> Result<(), Failure> {
        let Some(json) = &mut self.json else {
            return Ok(print(&text::proofs(&proofs, netns))?);
        };
        json.proofs = proofs;
        Ok(())
    }

    /// Prints the object, and returns the exit code.
    pub fn finish(self) -> Result<u8, Failure> {
        if let Some(json) = &self.json {
            print(&render_document(json))?;
        }
        Ok(self.code)
    }
}

/// From what each value held just before to what it had held at first.
fn writes_back(restored: &Restored) -> impl Iterator<Item = SwitchWrite> {
    restored.changes.iter().filter_map(|change| {
        let drift = restored.drift.iter().find(|one| one.knob == change.knob);
        let now = match drift {
            Some(drift) => drift.now.as_ref()?,
            None => &change.written,
        };
        (*now != change.before).then(|| write_back(&restored.target, change, now))
    })
}

fn write_back(target: &Target, change: &Change, now: &Value) -> SwitchWrite {
    write_of(&Write {
        target: target.clone(),
        knob: change.knob.clone(),
        from: now.clone(),
        to: change.before.clone(),
        is_implied: false,
    })
}

fn write_of(write: &Write) -> SwitchWrite {
    SwitchWrite {
        interface: write.target.interface.name.clone(),
        netns_inode: write.target.netns_inode,
        napi_id: write.knob.napi_id(),
        name: write.knob.name().into_owned(),
        before: value_of(&write.from),
        after: value_of(&write.to),
        is_implied: write.is_implied,
    }
}

fn value_of(value: &Value) -> SwitchValue {
    match value {
        Value::Number(number) => SwitchValue::Number(*number),
        Value::Cpus(cpus) => SwitchValue::Cpus(cpus.clone()),
        Value::Policy(_) => SwitchValue::Scheduling(value.to_string()),
    }
}
