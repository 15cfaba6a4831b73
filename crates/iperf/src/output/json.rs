//! Prints streams as JSON: one object at the end, or one object per line as things happen. Both contain the
//! same records.
//!
//! Each line is flushed at once. The one object of a server that runs for ever holds a bounded number of
//! records and counts the rest; a stream it holds always has its total.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Instant;

use nicpoll_model::traffic::{
    IPERF_SCHEMA, IperfBuffer, IperfCounts, IperfDirections, IperfEnd, IperfEndOf, IperfEndpoint,
    IperfError, IperfEvent, IperfInterval, IperfIntervalOf, IperfRole, IperfRun, IperfServerReport,
    IperfSettings, IperfStart, IperfStartOf, IperfStream, IperfStreamStart, IperfSum, IperfTotal,
};
use nicpoll_model::{Protocol, Rate, RateUnit, Side};
use nicpoll_traffic::{CloseAccount, SocketBuffer};

use super::sums::{DueSums, StreamSum, SummedStream, SummedStreams};
use crate::events::{Output, Room, RunObject, Settings, StreamKey};
use crate::options::{Json, Options};
use crate::records::{Connected, IntervalRecord, Total, window_bytes};
use crate::wire::{Amount, Directions, ServerReport};

/// Prints the JSON of one client or server.
pub struct JsonPrinter {
    /// The first line, until it is printed.
    start: Option<IperfStart>,
    out: Box<dyn Write + Send>,
    began: Instant,
    account: Option<CloseAccount>,
    /// Each with its id.
    streams: SummedStreams<u32>,
    last_id: u32,
    /// The one object so far; `None` once printed, and for output by line.
    run: Option<IperfRun>,
    /// How much more it may hold.
    room: Room,
    /// Whether to return the one object at the end instead of printing it.
    is_given_away: bool,
    end: IperfEnd,
}

/// Sums up the streams with the same side and peer.
fn group_sum(sum: &StreamSum) -> IperfSum {
    let connected = &sum.connected;
    IperfSum {
        side: side(connected),
        peer_address: connected.peer.ip().to_string(),
        streams: sum.streams(),
        counts: IperfCounts {
            // Each stream has its own.
            mss_bytes: None,
            congestion_window_bytes: None,
            round_trip_seconds: None,
            round_trip_variation_seconds: None,
            jitter_seconds: None,
            ..counts(connected, &sum.record)
        },
    }
}

fn stream_total(stream: &SummedStream<u32>, total: &Total) -> IperfTotal {
    IperfTotal {
        id: stream.known,
        side: side(&stream.connected),
        counts: counts(&stream.connected, &total.whole),
        close_seconds: total.close_seconds,
        socket_buffer: buffer(&total.buffer),
        gaps: total.gaps.as_deref().cloned(),
        server_report: total.server_report.as_ref().map(server_report),
    }
}

fn side(connected: &Connected) -> Side {
    match connected.is_sender {
        true => Side::Sender,
        false => Side::Receiver,
    }
}

fn protocol(connected: &Connected) -> Protocol {
    match connected.tcp {
        Some(_) => Protocol::Tcp,
        None => Protocol::Udp,
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
    /// A printer to `out` that closes `account` at the end.
    pub fn new(
        form: Json,
        options: &Options,
        account: Option<CloseAccount>,
        out: Box<dyn Write + Send>,
    ) -> Self {
        let end = IperfEnd::default();
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
            streams: SummedStreams::new(options, true),
            last_id: 0,
            run,
            room: Room::default(),
            is_given_away: false,
            end,
        }
    }

    /// The same, but returns the one object, limited to `room`, at the end.
    pub fn collected(self, room: Room) -> Self {
        JsonPrinter {
            is_given_away: true,
            room,
            ..self
        }
    }

    /// Prints an event as a line, or adds it to the one object if there is room. A stream whose start was
    /// omitted is omitted altogether.
    fn tell(&mut self, event: IperfEvent) -> io::Result<()> {
        let Some(run) = &mut self.run else {
            self.begin()?;
            return self.write(&event);
        };
        if keep(run, event, &mut self.room).is_none() {
            self.end.omitted_records += 1;
        }
        Ok(())
    }

    /// Prints the first line, if it is still due.
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

    fn error(&mut self, id: Option<u32>, why: &str) -> io::Result<()> {
        let message = String::from(why);
        let error = IperfEvent::Error(IperfError { id, message });
        self.tell(error)
    }

    /// Marks a stream as ended.
    fn leave(&mut self, key: StreamKey, whole: Option<&IntervalRecord>) -> io::Result<()> {
        let ended = self.streams.end(key, whole);
        ended.iter().try_for_each(|due| self.due(due))
    }

    /// Prints the sums that are due, except interval sums of a single stream.
    fn due(&mut self, due: &DueSums) -> io::Result<()> {
        for sum in due.intervals.iter().filter(|sum| sum.members > 1) {
            let sum = IperfIntervalOf::Sum(group_sum(sum));
            self.tell(IperfEvent::Interval(sum))?;
        }
        due.total.as_ref().map_or(Ok(()), |sum| {
            self.tell(IperfEvent::End(IperfEndOf::Sum(group_sum(sum))))
        })
    }
}

/// Adds an event to the one object; `None` when there is no room.
fn keep(run: &mut IperfRun, event: IperfEvent, room: &mut Room) -> Option<()> {
    match event {
        IperfEvent::Start(IperfStartOf::Stream(start)) => {
            take(&mut room.streams)?;
            run.streams.push(IperfStream {
                start,
                intervals: Vec::new(),
                total: None,
                error: None,
            });
        }
        IperfEvent::Interval(IperfIntervalOf::Stream(interval)) => {
            let stream = record_of(run, interval.id)?;
            take(&mut room.others)?;
            stream.intervals.push(interval);
        }
        IperfEvent::End(IperfEndOf::Stream(total)) => {
            let stream = record_of(run, total.id)?;
            stream.total = Some(*total);
        }
        IperfEvent::Interval(IperfIntervalOf::Sum(sum)) => {
            take(&mut room.others)?;
            run.interval_sums.push(sum);
        }
        IperfEvent::End(IperfEndOf::Sum(sum)) => {
            take(&mut room.others)?;
            run.sums.push(sum);
        }
        IperfEvent::Error(IperfError { id, message }) => {
            if let Some(stream) = id.and_then(|id| record_of(run, id)) {
                stream.error = Some(message.clone());
            }
            run.error.get_or_insert(message);
        }
        // The object itself, or the one that contains it.
        IperfEvent::Start(IperfStartOf::Test(_))
        | IperfEvent::End(IperfEndOf::Test(_) | IperfEndOf::Runs(_)) => {}
    }
    Some(())
}

fn take(left: &mut u32) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}

/// The stream's record in the object, unless it was omitted.
fn record_of(run: &mut IperfRun, id: u32) -> Option<&mut IperfStream> {
    let mut streams = run.streams.iter_mut().rev();
    streams.find(|stream| stream.start.id == id)
}

impl Output for JsonPrinter {
    fn number(&self, key: StreamKey) -> u32 {
        let stream = self.streams.get(key);
        stream.map_or(key.number + 1, |stream| stream.known)
    }

    /// The first line contains the settings; a server prints it when it listens.
    fn settings(&mut self, _: &Settings) -> io::Result<()> {
        self.begin()
    }

    fn connected(&mut self, key: StreamKey, connected: &Connected) -> io::Result<()> {
        self.last_id += 1;
        let id = self.last_id;
        self.streams.add(key, connected, id);
        let start = IperfStartOf::Stream(stream_start(id, connected));
        self.tell(IperfEvent::Start(start))
    }

    fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> io::Result<()> {
        let Some(stream) = self.streams.get(key) else {
            return Ok(());
        };
        let interval = IperfIntervalOf::Stream(IperfInterval {
            id: stream.known,
            side: side(&stream.connected),
            is_partial: record.is_partial,
            counts: counts(&stream.connected, record),
        });
        self.tell(IperfEvent::Interval(interval))?;
        let due = self.streams.interval(key, record);
        self.due(&due)
    }

    fn finished(&mut self, key: StreamKey, total: &Total) -> io::Result<()> {
        let Some(stream) = self.streams.get(key) else {
            return self.leave(key, None);
        };
        match total.problem {
            None => self.end.streams_done += 1,
            Some(_) => self.end.streams_failed += 1,
        }
        let end = IperfEndOf::Stream(Box::new(stream_total(&stream, total)));
        self.tell(IperfEvent::End(end))?;
        if let Some(problem) = &total.problem {
            self.error(Some(stream.known), problem)?;
        }
        self.leave(key, Some(&total.whole))
    }

    fn failed(&mut self, key: StreamKey, why: Option<&str>) -> io::Result<()> {
        self.end.streams_failed += 1;
        if let Some(why) = why {
            let id = self.streams.get(key).map(|stream| stream.known);
            self.error(id, why)?;
        }
        self.leave(key, None)
    }

    fn gave_up(&mut self, why: &str) -> io::Result<()> {
        self.error(None, why)
    }

    fn end(&mut self) -> io::Result<Option<RunObject>> {
        let mut end = self.end.clone();
        end.elapsed_seconds = self.began.elapsed().as_secs_f64();
        end.host = self.account.take().and_then(|close| close());
        let Some(mut run) = self.run.take() else {
            self.tell(IperfEvent::End(IperfEndOf::Test(end)))?;
            return Ok(None);
        };
        run.end = end;
        if self.is_given_away {
            let room = self.room;
            return Ok(Some(RunObject { run, room }));
        }
        serde_json::to_writer_pretty(&mut self.out, &run)?;
        self.out.write_all(b"\n")?;
        self.out.flush()?;
        Ok(None)
    }
}

fn stream_start(id: u32, connected: &Connected) -> IperfStreamStart {
    IperfStreamStart {
        id,
        side: side(connected),
        direction: connected.direction,
        protocol: protocol(connected),
        local: endpoint(connected.local),
        peer: endpoint(connected.peer),
        socket_buffer: buffer(&connected.buffer),
        tcp: connected.tcp,
    }
}

fn counts(connected: &Connected, record: &IntervalRecord) -> IperfCounts {
    let seconds = record.end - record.start;
    let is_sender = connected.is_sender;
    let (is_tcp, is_udp) = (connected.tcp.is_some(), connected.tcp.is_none());
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

/// The first record.
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
        Amount::ENDLESS => (None, None),
        Amount::Time(time) => (Some(time), None),
        Amount::Bytes(bytes) => (None, Some(bytes)),
    };
    let rate = |unit| stream.rate.filter(|rate| rate.unit() == unit);
    IperfSettings {
        protocol: stream.protocol,
        host: options.host.clone(),
        port: options.port,
        bind: options.bind.as_ref().map(|bind| bind.address.clone()),
        directions: is_client.then(|| directions(stream.directions)),
        length_bytes: stream.length_bytes as u64,
        duration_seconds: duration.map(|time| time.as_secs_f64()),
        amount_bytes,
        rate_bits_per_second: rate(RateUnit::BitsPerSecond).and_then(Rate::whole_per_second),
        rate_datagrams_per_second: rate(RateUnit::PacketsPerSecond).map(Rate::per_second),
        burst_datagrams: (is_client && options.is_udp()).then_some(stream.burst_datagrams),
        interval_seconds: stream.interval.map(|interval| interval.as_secs_f64()),
        streams: match is_client {
            true => Some(stream.streams),
            false => options.connections,
        },
        window_bytes: stream.buffer_bytes.map(|bytes| bytes as u64),
        type_of_service: stream.socket.type_of_service,
        congestion_control: stream.congestion_control.clone(),
        has_nodelay: stream.no_delay,
        is_batched: stream.is_batched,
    }
}

#[cfg(test)]
mod tests;
