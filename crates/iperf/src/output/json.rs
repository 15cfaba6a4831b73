//! Prints what streams tell as JSON: one object at the end, or an object a line as things happen.
//!
//! What must hold: both forms are made of the same records; a line is flushed before the next thing
//! happens; a server that runs for ever keeps so many bytes of records, and says how many it left out. What is
//! kept of a stream includes what it came to.

mod records;
mod settings;
mod sums;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::mpsc::Sender;
use std::time::Instant;

use nicpoll_model::iperf::{
    IperfEnd, IperfEndOf, IperfError, IperfEvent, IperfIntervalOf, IperfRun, IperfStart,
    IperfStartOf, IperfStream, IperfSum,
};
use nicpoll_model::{Protocol, Side};

use nicpoll_traffic::CloseAccount;
use serde::Serialize;

use super::Output;
use crate::events::StreamKey;
use crate::options::Json;
use crate::total::Total;
use crate::{Connected, IntervalRecord};
pub use settings::Asked;
use sums::Sums;

/// Bytes of records that the one object holds, at most: as compact JSON, which is no shorter than they are in
/// memory.
pub(super) const KEPT_BYTES_MAX: u64 = 32 << 20;
/// What of it a stream that runs holds for its end: its total with all distributions, its sum and its error.
const END_BYTES: u64 = 6 << 10;

/// The one object of a run, for whoever makes one object of several.
pub(super) struct Kept {
    pub run: IperfRun,
    /// What its records take of [`KEPT_BYTES_MAX`].
    pub bytes: u64,
}

/// A stream that has not ended.
#[derive(Clone, Copy)]
struct Running {
    id: u32,
    side: Side,
    protocol: Protocol,
    peer: IpAddr,
    /// Whether the one object has it.
    is_kept: bool,
}

/// The printer of one client or server.
pub struct JsonPrinter {
    /// The first line, when it has not been printed.
    start: Option<IperfStart>,
    out: Box<dyn Write + Send>,
    began: Instant,
    account: Option<CloseAccount>,
    running: BTreeMap<StreamKey, Running>,
    last_id: u32,
    sums: Sums,
    /// What the one object holds so far; `None` when it has been printed, and for a stream of lines.
    run: Option<IperfRun>,
    kept_bytes: u64,
    kept_bytes_max: u64,
    /// Who is given the one object instead of having it printed.
    heir: Option<Sender<Kept>>,
    end: IperfEnd,
}

fn empty_run(start: IperfStart, end: IperfEnd) -> IperfRun {
    IperfRun {
        start,
        streams: Vec::new(),
        interval_sums: Vec::new(),
        sums: Vec::new(),
        error: None,
        end,
    }
}

impl JsonPrinter {
    /// A printer to `out`, which closes `account` at the end.
    pub fn new(
        form: Json,
        asked: Asked<'_>,
        account: Option<CloseAccount>,
        out: Box<dyn Write + Send>,
    ) -> Self {
        let end = IperfEnd {
            elapsed_seconds: 0.0,
            streams_done: 0,
            streams_failed: 0,
            omitted_records: 0,
            host: None,
        };
        let start = settings::start(asked);
        let (start, run) = match form {
            Json::Stream => (Some(start), None),
            Json::Whole => (None, Some(empty_run(start, end.clone()))),
        };
        JsonPrinter {
            start,
            out,
            began: Instant::now(),
            account,
            running: BTreeMap::new(),
            last_id: 0,
            sums: Sums::new(asked.common().stream.interval),
            run,
            kept_bytes: 0,
            kept_bytes_max: KEPT_BYTES_MAX,
            heir: None,
            end,
        }
    }

    /// The same, but `heir` is given the one object, which holds so many bytes of records.
    pub(super) fn kept_for(self, heir: Sender<Kept>, kept_bytes_max: u64) -> Self {
        JsonPrinter {
            heir: Some(heir),
            kept_bytes_max,
            ..self
        }
    }

    /// Prints a line, when lines are asked for; has `keep` put the record into the one object when that
    /// is, and there is room. Whether it was left out.
    fn record<T: Serialize>(
        &mut self,
        record: T,
        event: impl FnOnce(T) -> IperfEvent,
        keep: impl FnOnce(&mut IperfRun, T),
    ) -> io::Result<bool> {
        let Some(run) = &mut self.run else {
            self.line(&event(record))?;
            return Ok(false);
        };
        let bytes = self.kept_bytes + json_bytes(&record)?;
        let is_kept = bytes <= self.kept_bytes_max;
        if is_kept {
            self.kept_bytes = bytes;
            keep(run, record);
        } else {
            self.end.omitted_records += 1;
        }
        Ok(!is_kept)
    }

    /// As [`record`](Self::record), of a stream: what is not kept of its beginning is not kept of the rest.
    fn record_of<T: Serialize>(
        &mut self,
        stream: Running,
        record: T,
        event: impl FnOnce(T) -> IperfEvent,
        keep: impl FnOnce(&mut IperfStream, T),
    ) -> io::Result<()> {
        if self.run.is_some() && !stream.is_kept {
            self.end.omitted_records += 1;
            return Ok(());
        }
        self.record(record, event, |run, record| {
            if let Some(stream) = kept(run, stream.id) {
                keep(stream, record);
            }
        })?;
        Ok(())
    }

    fn line(&mut self, event: &IperfEvent) -> io::Result<()> {
        self.begin()?;
        self.write(event)
    }

    /// Prints the first line, unless it has been or there are none.
    fn begin(&mut self) -> io::Result<()> {
        match self.start.take() {
            Some(start) => self.write(&IperfEvent::Start(IperfStartOf::Test(Box::new(start)))),
            None => Ok(()),
        }
    }

    fn write(&mut self, event: &IperfEvent) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, event)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    fn interval_sum(&mut self, sum: IperfSum) -> io::Result<()> {
        self.record(
            sum,
            |sum| IperfEvent::Interval(IperfIntervalOf::Sum(sum)),
            |run, sum| run.interval_sums.push(sum),
        )?;
        Ok(())
    }

    fn error(&mut self, id: Option<u32>, why: &str) -> io::Result<()> {
        let message = String::from(why);
        let Some(run) = &mut self.run else {
            return self.line(&IperfEvent::Error(IperfError { id, message }));
        };
        if let Some(stream) = id.and_then(|id| kept(run, id)) {
            self.kept_bytes += message.len() as u64;
            stream.error = Some(message.clone());
        }
        run.error.get_or_insert(message);
        Ok(())
    }

    /// The stream runs no more; its group's sum when it was the last of it.
    fn leave(&mut self, key: StreamKey) -> io::Result<()> {
        let Some(left) = self.running.remove(&key) else {
            return Ok(());
        };
        if self.count(left.peer, left.side) > 0 {
            return Ok(());
        }
        let Some(sum) = self.sums.total(left.peer, left.side, left.protocol) else {
            return Ok(());
        };
        self.record(
            sum,
            |sum| IperfEvent::End(IperfEndOf::Sum(sum)),
            |run, sum| run.sums.push(sum),
        )?;
        Ok(())
    }

    /// Gives back what a stream held for its end, which is told now.
    fn has_ended(&mut self, stream: Running) {
        if self.run.is_some() && stream.is_kept {
            self.kept_bytes -= END_BYTES;
        }
    }

    /// Streams of a peer that run on a side.
    fn count(&self, peer: IpAddr, side: Side) -> u32 {
        let same = |stream: &&Running| (stream.peer, stream.side) == (peer, side);
        self.running.values().filter(same).count() as u32
    }
}

/// The length of a record as compact JSON.
fn json_bytes(record: &impl Serialize) -> io::Result<u64> {
    struct Length(u64);
    impl Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    serde_json::to_writer(&mut length, record)?;
    Ok(length.0)
}

/// The kept record of a stream, unless there were too many.
fn kept(run: &mut IperfRun, id: u32) -> Option<&mut IperfStream> {
    let mut streams = run.streams.iter_mut().rev();
    streams.find(|stream| stream.start.id == id)
}

impl Output for JsonPrinter {
    /// The settings are in the first line, in which a server thus says that it listens.
    fn banner(&mut self, _: &str) -> io::Result<()> {
        self.begin()
    }

    fn connected(&mut self, key: StreamKey, connected: &Connected) -> io::Result<()> {
        self.last_id += 1;
        let id = self.last_id;
        let start = records::stream_start(id, connected);
        let (side, protocol) = (start.side, start.protocol);
        // Nobody else may have the room for its end.
        self.kept_bytes += END_BYTES;
        let is_left_out = self.record(
            start,
            |start| IperfEvent::Start(IperfStartOf::Stream(start)),
            |run, start| {
                run.streams.push(IperfStream {
                    start,
                    intervals: Vec::new(),
                    total: None,
                    error: None,
                });
            },
        )?;
        if is_left_out {
            self.kept_bytes -= END_BYTES;
        }
        let stream = Running {
            id,
            side,
            protocol,
            peer: connected.peer.ip(),
            is_kept: !is_left_out,
        };
        self.running.insert(key, stream);
        Ok(())
    }

    fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> io::Result<()> {
        let Some(&stream) = self.running.get(&key) else {
            return Ok(());
        };
        let (side, protocol, peer) = (stream.side, stream.protocol, stream.peer);
        let interval = records::interval(stream.id, side, protocol, record);
        self.record_of(
            stream,
            interval,
            |interval| IperfEvent::Interval(IperfIntervalOf::Stream(interval)),
            |stream, interval| stream.intervals.push(interval),
        )?;
        let streams = self.count(peer, side);
        match self.sums.interval(peer, side, protocol, record, streams) {
            Some(sum) => self.interval_sum(sum),
            None => Ok(()),
        }
    }

    fn finished(&mut self, key: StreamKey, total: &Total) -> io::Result<()> {
        let Some(&stream) = self.running.get(&key) else {
            return Ok(());
        };
        match total.problem {
            None => self.end.streams_done += 1,
            Some(_) => self.end.streams_failed += 1,
        }
        self.sums.add(stream.peer, stream.side, &total.detail.whole);
        self.has_ended(stream);
        self.record_of(
            stream,
            records::total(stream.id, stream.side, stream.protocol, total),
            |total| IperfEvent::End(IperfEndOf::Stream(Box::new(total))),
            |stream, total| stream.total = Some(total),
        )?;
        if let Some(problem) = &total.problem {
            self.error(Some(stream.id), problem)?;
        }
        self.leave(key)
    }

    fn failed(&mut self, key: StreamKey, why: Option<&str>) -> io::Result<()> {
        self.end.streams_failed += 1;
        let stream = self.running.get(&key).copied();
        let id = stream.map(|stream| stream.id);
        if let Some(stream) = stream {
            self.has_ended(stream);
        }
        if let Some(why) = why {
            self.error(id, why)?;
        }
        self.leave(key)
    }

    fn gave_up(&mut self, why: &str) -> io::Result<()> {
        self.error(None, why)
    }

    fn end(&mut self) -> io::Result<()> {
        let mut end = self.end.clone();
        end.elapsed_seconds = self.began.elapsed().as_secs_f64();
        end.host = self.account.take().and_then(|close| close());
        let Some(mut run) = self.run.take() else {
            return self.line(&IperfEvent::End(IperfEndOf::Test(end)));
        };
        run.end = end;
        if let Some(heir) = &self.heir {
            let bytes = self.kept_bytes;
            return heir.send(Kept { run, bytes }).map_err(io::Error::other);
        }
        serde_json::to_writer_pretty(&mut self.out, &run)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}
