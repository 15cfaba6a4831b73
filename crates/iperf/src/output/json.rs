//! Prints what streams report as JSON: one object at the end, or an object a line as things happen. Both are
//! made of the same records.
//!
//! A line is flushed before the next thing happens. A server that runs for ever holds a bounded number of
//! bytes of records and counts those it left out; what it has of a stream includes the stream's total.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::Sender;
use std::time::Instant;

use nicpoll_model::traffic::{
    IPERF_SCHEMA, IperfBuffer, IperfCounts, IperfDirections, IperfEnd, IperfEndOf, IperfEndpoint,
    IperfError, IperfEvent, IperfInterval, IperfIntervalOf, IperfRole, IperfRun, IperfServerReport,
    IperfSettings, IperfStart, IperfStartOf, IperfStream, IperfStreamStart, IperfSum, IperfTotal,
};
use nicpoll_model::{Protocol, Rate, RateUnit, Side};
use nicpoll_traffic::{CloseAccount, SocketBuffer};
use serde::Serialize;

use super::sums::{Sum, Sums};
use super::text::interval_seconds;
use crate::config::Input;
use crate::events::{Output, Settings, StreamKey};
use crate::options::{Json, Options};
use crate::records::{Connected, IntervalRecord, Total, window_bytes};
use crate::wire::{Amount, Directions, ServerReport};

/// Bytes of records that the one object holds, at most: as compact JSON, which is no shorter than they are in
/// memory.
pub const KEPT_BYTES_MAX: u64 = 32 << 20;
/// What of it a stream that runs holds for its end: its total with all distributions, its sum and its error.
const END_BYTES: u64 = 6 << 10;

/// The one object of a run, to be made part of another (--repeat).
pub struct Kept {
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
    sums: Sums<(IpAddr, Side)>,
    /// What the one object holds so far; `None` when it has been printed, and for a stream of lines.
    run: Option<IperfRun>,
    kept_bytes: u64,
    kept_bytes_max: u64,
    /// Receives the one object instead of having it printed.
    receiver: Option<Sender<Kept>>,
    end: IperfEnd,
}

impl Running {
    /// The sum of this stream and others of its side and peer, which is never one of both sides.
    fn sum(&self, sum: &Sum) -> IperfSum {
        IperfSum {
            side: self.side,
            peer_address: self.peer.to_string(),
            streams: sum.streams(),
            counts: IperfCounts {
                // Each stream has its own.
                mss_bytes: None,
                congestion_window_bytes: None,
                round_trip_seconds: None,
                round_trip_variation_seconds: None,
                jitter_seconds: None,
                ..counts(self.side, self.protocol, &sum.record)
            },
        }
    }

    fn total(&self, total: &Total) -> IperfTotal {
        IperfTotal {
            id: self.id,
            side: self.side,
            counts: counts(self.side, self.protocol, &total.whole),
            close_seconds: total.close_seconds,
            socket_buffer: buffer(&total.buffer),
            gaps: total.gaps.as_deref().cloned(),
            one_way_delay: total.one_way_delays.as_deref().cloned(),
            server_report: total.server_report.as_ref().map(server_report),
        }
    }
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
        options: &Options,
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
        let start = start(options);
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
            sums: Sums::new(interval_seconds(options)),
            run,
            kept_bytes: 0,
            kept_bytes_max: KEPT_BYTES_MAX,
            receiver: None,
            end,
        }
    }

    /// The same, but `receiver` is given the one object, which holds so many bytes of records.
    pub fn kept_for(self, receiver: Sender<Kept>, kept_bytes_max: u64) -> Self {
        JsonPrinter {
            receiver: Some(receiver),
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
        let Some(sum) = self.sums.total((left.peer, left.side)) else {
            return Ok(());
        };
        self.record(
            left.sum(&sum),
            |sum| IperfEvent::End(IperfEndOf::Sum(sum)),
            |run, sum| run.sums.push(sum),
        )?;
        Ok(())
    }

    /// Frees what was reserved for the end of a stream, which is printed now.
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
    fn settings(&mut self, _: &Settings) -> io::Result<()> {
        self.begin()
    }

    fn connected(&mut self, key: StreamKey, connected: &Connected) -> io::Result<()> {
        self.last_id += 1;
        let id = self.last_id;
        let start = stream_start(id, connected);
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
        let (side, peer) = (stream.side, stream.peer);
        self.record_of(
            stream,
            IperfInterval {
                id: stream.id,
                side,
                is_partial: record.is_partial,
                counts: counts(side, stream.protocol, record),
            },
            |interval| IperfEvent::Interval(IperfIntervalOf::Stream(interval)),
            |stream, interval| stream.intervals.push(interval),
        )?;
        let running = self.count(peer, side);
        let is_sender = side == Side::Sender;
        match self.sums.interval((peer, side), is_sender, record, running) {
            Some(sum) if sum.streams() > 1 => self.interval_sum(stream.sum(&sum)),
            _ => Ok(()),
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
        let is_sender = stream.side == Side::Sender;
        self.sums
            .add((stream.peer, stream.side), is_sender, &total.whole);
        self.has_ended(stream);
        self.record_of(
            stream,
            stream.total(total),
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
        if let Some(receiver) = &self.receiver {
            let bytes = self.kept_bytes;
            return receiver.send(Kept { run, bytes }).map_err(io::Error::other);
        }
        serde_json::to_writer_pretty(&mut self.out, &run)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

fn stream_start(id: u32, connected: &Connected) -> IperfStreamStart {
    let protocol = match connected.tcp {
        Some(_) => Protocol::Tcp,
        None => Protocol::Udp,
    };
    IperfStreamStart {
        id,
        side: match connected.is_sender {
            true => Side::Sender,
            false => Side::Receiver,
        },
        direction: connected.direction,
        protocol,
        local: endpoint(connected.local),
        peer: endpoint(connected.peer),
        socket_buffer: buffer(&connected.buffer),
        tcp: connected.tcp,
    }
}

fn counts(side: Side, protocol: Protocol, record: &IntervalRecord) -> IperfCounts {
    let seconds = record.end - record.start;
    let is_sender = side == Side::Sender;
    let (is_tcp, is_udp) = (protocol == Protocol::Tcp, protocol == Protocol::Udp);
    let receipt = record.receipt;
    IperfCounts {
        start_seconds: record.start,
        end_seconds: record.end,
        bytes: record.bytes,
        bits_per_second: per_second(8.0 * record.bytes as f64, seconds),
        datagrams: is_udp.then_some(record.datagrams),
        datagrams_per_second: per_second(record.datagrams as f64, seconds).filter(|_| is_udp),
        calls: record.calls.done,
        refused_calls: is_sender.then_some(record.calls.refused),
        reads_by_eighth: (is_tcp && !is_sender).then(|| record.calls.read_sizes.to_vec()),
        retransmitted_segments: record.tcp.map(|tcp| tcp.retransmitted_segments),
        mss_bytes: record.tcp.map(|tcp| tcp.send_segment_bytes),
        congestion_window_bytes: record.tcp.as_ref().map(window_bytes),
        round_trip_seconds: record.tcp.map(|tcp| tcp.round_trip.as_secs_f64()),
        round_trip_variation_seconds: record.tcp.map(|tcp| tcp.round_trip_variation.as_secs_f64()),
        expected_datagrams: receipt.map(|receipt| receipt.expected),
        lost_datagrams: receipt.map(|receipt| receipt.lost),
        loss_ratio: receipt
            .filter(|receipt| receipt.expected > 0)
            .map(|receipt| receipt.lost as f64 / receipt.expected as f64),
        out_of_order_datagrams: receipt.map(|receipt| receipt.out_of_order),
        duplicate_datagrams: receipt.map(|receipt| receipt.duplicates),
        jitter_seconds: receipt.and_then(|receipt| receipt.jitter_seconds),
    }
}

fn per_second(count: f64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| count / seconds)
}

fn endpoint(address: SocketAddr) -> IperfEndpoint {
    IperfEndpoint {
        address: address.ip().to_string(),
        port: address.port(),
    }
}

fn buffer(buffer: &SocketBuffer) -> IperfBuffer {
    IperfBuffer {
        asked_bytes: buffer.asked_bytes,
        granted_bytes: buffer.granted_bytes,
    }
}

fn server_report(report: &ServerReport) -> IperfServerReport {
    let elapsed_seconds = report.elapsed.as_secs_f64();
    IperfServerReport {
        side: Side::Receiver,
        elapsed_seconds,
        bytes: report.bytes,
        bits_per_second: per_second(8.0 * report.bytes as f64, elapsed_seconds),
        expected_datagrams: report.datagrams,
        lost_datagrams: report.lost,
        out_of_order_datagrams: report.out_of_order,
        jitter_seconds: report.jitter.as_secs_f64(),
    }
}

/// The record that begins everything.
fn start(options: &Options) -> IperfStart {
    IperfStart {
        schema: String::from(IPERF_SCHEMA),
        nicpoll_version: String::from(env!("CARGO_PKG_VERSION")),
        argv: std::env::args_os()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
        kernel: kernel(),
        started_at: jiff::Timestamp::now().to_string(),
        role: match options.is_client() {
            true => IperfRole::Client,
            false => IperfRole::Server,
        },
        settings: settings(options),
    }
}

fn kernel() -> String {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.release(), name.machine()];
    parts.map(|part| part.to_string_lossy()).join(" ")
}

fn directions(directions: Directions) -> IperfDirections {
    match directions {
        Directions::Forward => IperfDirections::Forward,
        Directions::Reverse => IperfDirections::Reverse,
        Directions::FullDuplex => IperfDirections::FullDuplex,
        Directions::Dual {
            is_at_once: true, ..
        } => IperfDirections::Dual,
        Directions::Dual { .. } => IperfDirections::TradeOff,
    }
}

fn settings(options: &Options) -> IperfSettings {
    let stream = &options.stream;
    let is_client = options.is_client();
    let (duration, amount_bytes) = match stream.amount {
        _ if !is_client => (options.time, None),
        // Payload from elsewhere ends the test when it ends.
        _ if stream.input.is_some() => (None, None),
        Amount::ENDLESS => (None, None),
        Amount::Time(time) => (Some(time), None),
        Amount::Bytes(bytes) => (None, Some(bytes)),
    };
    // The options have been judged: of a range there are ports for all of a client's streams.
    let last = options.last_port.map(|last| match is_client {
        true => options.port + stream.streams.saturating_sub(1) as u16,
        false => last,
    });
    let rate = |unit| stream.rate.filter(|rate| rate.unit() == unit);
    let input = stream.input.as_ref().map(|input| match input {
        Input::File(path) => path.to_string_lossy().into_owned(),
        Input::Stdin => String::from("-"),
    });
    IperfSettings {
        protocol: stream.protocol,
        host: options.host.clone(),
        port: options.port,
        port_max: last.unwrap_or(options.port),
        bind: options.bind.as_ref().map(|bind| bind.address.clone()),
        directions: is_client.then(|| directions(stream.directions)),
        length_bytes: stream.length_bytes as u64,
        duration_seconds: duration.map(|time| time.as_secs_f64()),
        amount_bytes,
        rate_bits_per_second: rate(RateUnit::BitsPerSecond).and_then(Rate::whole_per_second),
        rate_datagrams_per_second: rate(RateUnit::PacketsPerSecond).map(Rate::per_second),
        pacing_bytes_per_second: stream.pacing_bytes_per_second,
        burst_datagrams: (is_client && options.is_udp()).then_some(stream.burst_datagrams),
        interval_seconds: stream.interval.map(|interval| interval.as_secs_f64()),
        streams: match is_client {
            true => Some(stream.streams),
            false => options.connections,
        },
        window_bytes: stream.buffer_bytes.map(|bytes| bytes as u64),
        type_of_service: stream.socket.type_of_service,
        congestion_control: stream.congestion_control.clone(),
        asks_for_version: stream.asks_for_version,
        has_nodelay: stream.no_delay,
        is_batched: stream.is_batched,
        input: input.filter(|_| is_client),
    }
}

#[cfg(test)]
mod tests;
