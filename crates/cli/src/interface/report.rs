//! What `set` and `restore` print: text after each step, or one JSON object at the end.
//!
//! Both have the same content. Nothing else of these commands writes to standard output.

use std::time::Duration;

use nicpoll_model::{SET_SCHEMA, SwitchFile, SwitchProof, SwitchRestored, SwitchRun, SwitchWrite};
use nicpoll_report::{render_document, render_switch_proofs, render_switch_writes};
use nicpoll_switch::persist::FileChange;
use nicpoll_switch::{Preview, Restored, label};
use nicpoll_sys::tell;

use crate::failure::Failure;
use crate::output::{origin, print};

/// A command's results.
pub struct Report {
    json: Option<SwitchRun>,
    code: u8,
}

impl Report {
    /// An empty report.
    pub fn new(is_json: bool, netns: Option<&str>, is_dry_run: bool) -> Self {
        let origin = origin();
        let json = is_json.then(|| SwitchRun {
            schema: String::from(SET_SCHEMA),
            nicpoll_version: origin.nicpoll_version,
            argv: origin.argv,
            started_at: origin.started_at,
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

    /// Reports writes, done or planned, as seen from a namespace.
    pub fn wrote(&mut self, preview: &Preview, netns_inode: u64) -> Result<(), Failure> {
        let writes = preview.writes.iter().map(SwitchWrite::from).collect();
        self.show(writes, preview.is_open_ended, netns_inode)
    }

    /// Reports values to be restored, or kept, as seen from a namespace.
    pub fn values(&mut self, writes: Vec<SwitchWrite>, netns_inode: u64) -> Result<(), Failure> {
        match writes.is_empty() {
            true => Ok(()),
            false => self.show(writes, false, netns_inode),
        }
    }

    fn show(
        &mut self,
        writes: Vec<SwitchWrite>,
        is_open_ended: bool,
        netns_inode: u64,
    ) -> Result<(), Failure> {
        let label = |write: &SwitchWrite| label(&write.interface, write.netns_inode, netns_inode);
        match &mut self.json {
            Some(json) => {
                json.writes.extend(writes);
                json.is_open_ended |= is_open_ended;
            }
            None => print(&render_switch_writes(&writes, is_open_ended, label))?,
        }
        Ok(())
    }

    /// Reports files that change, or would.
    pub fn files(&mut self, changes: &[FileChange]) -> Result<(), Failure> {
        match &mut self.json {
            Some(json) => json.files.extend(changes.iter().map(SwitchFile::from)),
            None => print(&changes.iter().map(FileChange::diff).collect::<String>())?,
        }
        Ok(())
    }

    /// Reports that the change undoes itself after this time.
    pub fn is_trial(&mut self, time: Duration) {
        if let Some(json) = &mut self.json {
            json.undone_after_seconds = Some(time.as_secs_f64());
        }
    }

    /// Reports a restored interface, as seen from a namespace.
    pub fn restored(&mut self, restored: &Restored, netns_inode: u64) -> Result<(), Failure> {
        let document = restored.document(netns_inode);
        for note in &document.notes {
            tell!("nicpoll: {note}");
        }
        if let Some(json) = &mut self.json {
            json.writes.extend(restored.writes());
        }
        self.host_restored(document)
    }

    /// Reports an interface, of this machine or another, that was restored or no longer exists.
    pub fn host_restored(&mut self, restored: SwitchRestored) -> Result<(), Failure> {
        match &mut self.json {
            Some(json) => json.restored.push(restored),
            None if restored.is_as_before => {
                print(&format!(
                    "{}: every value is as it was\n",
                    restored.interface
                ))?;
            }
            None => {}
        }
        Ok(())
    }

    /// Reports an interface that could not be restored.
    pub fn not_restored(&mut self, name: &str, failure: &Failure) {
        tell!("nicpoll: {failure}");
        self.code = self.code.max(failure.code());
        if let Some(json) = &mut self.json {
            json.restored.push(SwitchRestored {
                interface: String::from(name),
                is_as_before: false,
                notes: vec![failure.to_string()],
            });
        }
    }

    /// Reports what the polls proved.
    pub fn proved(&mut self, proofs: Vec<SwitchProof>, netns: Option<&str>) -> Result<(), Failure> {
        match &mut self.json {
            Some(json) => json.proofs = proofs,
            None => print(&render_switch_proofs(&proofs, netns))?,
        }
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
