//! Prints what streams tell, in iperf's words and order, flushed line by line.
//!
//! What must hold: a line appears as soon as what it says is known; a header appears once above the
//! first line that needs it; [SUM] lines appear when every stream of their group has told its part.

mod sums;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;

use nicpoll_model::iperf::Direction;

use crate::text::{
    self, Connection, CsvRow, EnhancedHeader, Header, InitialTcp, Interval, Label, ReceiptFigures,
    StreamId, Style, Timestamp,
};
use crate::{Connected, IntervalRecord};

use super::descriptors::Descriptors;
use super::enhanced;
use super::manner::Manner;
use super::sum::Sum;
use crate::events::StreamKey;
use crate::total::Total;

/// Part of an interval that its rest must be to be told, as in 2.1.8.
const PARTIAL_MIN: f64 = 0.25;

struct Stream {
    id: StreamId,
    connected: Connected,
    is_done: bool,
}

/// Streams that are summed: those of one address at the other end that run at the same time. Style
/// 2.0 sums what this end sends and what it receives apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    peer: IpAddr,
    is_later: bool,
    is_sender: Option<bool>,
}

/// The printer of one client or server.
pub struct Printer {
    manner: Manner,
    out: Box<dyn Write + Send>,
    streams: BTreeMap<StreamKey, Stream>,
    sums: BTreeMap<(Group, u64), Sum>,
    totals: BTreeMap<Group, Sum>,
    headers: Vec<Header>,
    descriptors: Descriptors,
    enhanced_headers: Vec<EnhancedHeader>,
    /// How long connecting took, of a client's TCP streams.
    connect_seconds: Vec<f64>,
    failed_streams: u64,
}

impl Printer {
    /// A printer to `out`.
    pub fn new(manner: Manner, out: Box<dyn Write + Send>) -> Self {
        Printer {
            manner,
            out,
            streams: BTreeMap::new(),
            sums: BTreeMap::new(),
            totals: BTreeMap::new(),
            headers: Vec::new(),
            descriptors: Descriptors::new(manner.is_client, manner.is_udp),
            enhanced_headers: Vec::new(),
            connect_seconds: Vec::new(),
            failed_streams: 0,
        }
    }

    /// Prints the settings, unless they are left out.
    pub fn banner(&mut self, banner: &str) -> io::Result<()> {
        if self.manner.csv || self.manner.exclude.settings {
            return Ok(());
        }
        self.line(banner)
    }

    /// A stream has a peer.
    pub fn connected(&mut self, key: StreamKey, connected: &Connected) -> io::Result<()> {
        let style = self.manner.format.style;
        let mut told = self.streams.keys();
        let is_told = style == Style::V2_1 && told.any(|told| told.number == key.number);
        let id = StreamId {
            number: match style {
                // Both ways of a socket have one number, and one line.
                Style::V2_1 => key.number + 1,
                Style::V2_0 => {
                    let open = self.streams.values().filter(|stream| !stream.is_done);
                    self.descriptors.next(open.map(|stream| stream.id.number))
                }
            },
            is_reversed: key.is_reversed,
        };
        let stream = Stream {
            id,
            connected: *connected,
            is_done: false,
        };
        self.streams.insert(key, stream);
        let connecting = connected.tcp.and_then(|tcp| tcp.connecting);
        if let Some(time) = connecting.filter(|_| self.is_enhanced() && !is_told) {
            self.connect_seconds.push(time.as_secs_f64());
        }
        let exclude = self.manner.exclude;
        if self.manner.csv || exclude.connections || exclude.streams || is_told {
            return Ok(());
        }
        // Both ways over the client's socket share its line.
        let has_own_socket = connected.is_sender && connected.direction == Direction::Reverse;
        let line = text::connection_line(
            style,
            &Connection {
                id: StreamId {
                    is_reversed: key.is_reversed && has_own_socket,
                    ..id
                },
                local: connected.local,
                peer: connected.peer,
                direction: connected.direction,
                is_sender: connected.is_sender,
                has_no_fin: connected.tcp.is_none() && is_unanswered(key, connected),
                remarks: connected.remarks,
                tcp: connected.tcp.map(|tcp| InitialTcp {
                    window_segments: tcp.congestion_window_segments,
                    mss_bytes: tcp.segment_bytes,
                    rtt_micros: tcp.round_trip.as_micros() as u32,
                }),
                enhanced: None,
            },
        );
        self.line(&line)
    }

    /// An interval of a stream has ended.
    pub fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> io::Result<()> {
        let length = self.manner.interval_seconds.unwrap_or(f64::INFINITY);
        let interval = Interval {
            start_seconds: record.start,
            end_seconds: record.end,
            bytes: record.bytes,
        };
        let receipt = record.receipt.map(|receipt| ReceiptFigures {
            jitter_ms: 1e3 * receipt.jitter_seconds.unwrap_or(0.0),
            lost: receipt.lost,
            total: receipt.expected,
            out_of_order: receipt.out_of_order,
        });
        if record.is_partial && !self.tells_partial(record.end - record.start, length, record.bytes)
        {
            return Ok(());
        }
        self.data(key, &interval, receipt.as_ref(), record)?;
        let Some(group) = self.group_of(key) else {
            return Ok(());
        };
        let index = (record.start / length).round() as u64;
        let is_sender = self.is_sender(key);
        let sum = self.sums.entry((group, index)).or_default();
        sum.add(is_sender, &interval, receipt.as_ref(), record);
        if sum.streams >= self.running(group) {
            let sum = self.sums.remove(&(group, index)).unwrap_or_default();
            self.sum(key, &sum, false)?;
        }
        Ok(())
    }

    /// A stream has ended well.
    pub fn finished(&mut self, key: StreamKey, total: &Total) -> io::Result<()> {
        let whole = &total.detail.whole;
        self.data(key, &total.interval, total.receipt.as_ref(), whole)?;
        self.after_total(key, total)?;
        let Some(group) = self.group_of(key) else {
            return Ok(());
        };
        let is_sender = self.is_sender(key);
        let sum = self.totals.entry(group).or_default();
        sum.add(is_sender, &total.interval, total.receipt.as_ref(), whole);
        if let Some(datagrams) = total.sent_datagrams {
            sum.add_sent(datagrams);
        }
        self.ended(key)
    }

    /// A stream has ended otherwise.
    pub fn failed(&mut self, key: StreamKey) -> io::Result<()> {
        self.failed_streams += 1;
        self.ended(key)
    }

    /// Everything has ended.
    pub fn end(&mut self) -> io::Result<()> {
        let streams = self.connect_seconds.len() as u64 + self.failed_streams;
        let line = text::connect_times_line(&self.connect_seconds, self.failed_streams);
        match line {
            Some(line) if streams > 1 && !self.manner.csv => self.line(&line),
            _ => Ok(()),
        }
    }

    /// A stream has ended, well or not. The last one of a group has its sum told.
    fn ended(&mut self, key: StreamKey) -> io::Result<()> {
        let Some(group) = self.group_of(key) else {
            return Ok(());
        };
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.is_done = true;
        }
        if self.running(group) > 0 {
            return Ok(());
        }
        let sum = self.totals.remove(&group).unwrap_or_default();
        self.sum(key, &sum, true)?;
        self.sums.retain(|(summed, _), _| *summed != group);
        let ended = self.streams.keys().copied();
        let ended: Vec<_> = ended
            .filter(|key| self.group_of(*key) == Some(group))
            .collect();
        for key in ended {
            self.streams.remove(&key);
        }
        Ok(())
    }

    /// 2.0 never tells the rest of an interval, 2.1 only a long one in which something flowed.
    fn tells_partial(&self, seconds: f64, length: f64, bytes: u64) -> bool {
        self.manner.format.style == Style::V2_1 && seconds > PARTIAL_MIN * length && bytes > 0
    }

    fn data(
        &mut self,
        key: StreamKey,
        interval: &Interval,
        receipt: Option<&ReceiptFigures>,
        record: &IntervalRecord,
    ) -> io::Result<()> {
        let Some((id, connected)) = self
            .streams
            .get(&key)
            .map(|stream| (stream.id, stream.connected))
        else {
            return Ok(());
        };
        if self.manner.exclude.data {
            return Ok(());
        }
        if self.manner.csv {
            let row = self.csv_row(id, &connected, interval, receipt, record.datagrams);
            return self.line(&text::csv_row(self.manner.format.style, &row));
        }
        if self.manner.exclude.streams {
            return Ok(());
        }
        let format = self.manner.format;
        if self.is_enhanced()
            && let Some((header, line)) =
                enhanced::line(format, id, &connected, interval, receipt, record)
        {
            self.enhanced_header(header)?;
            self.line(&line)?;
        } else if let Some(receipt) = receipt {
            self.header(Header::Receiver)?;
            self.line(&text::receiver_line(format, id, interval, receipt))?;
        } else {
            self.header(Header::Sender)?;
            let label = Label::Stream(id);
            self.line(&text::sender_line(format, label, interval))?;
        }
        self.out_of_order(Label::Stream(id), interval, receipt)
    }

    /// Tells how many datagrams came late, if any did.
    fn out_of_order(
        &mut self,
        label: Label,
        interval: &Interval,
        receipt: Option<&ReceiptFigures>,
    ) -> io::Result<()> {
        let style = self.manner.format.style;
        let line =
            receipt.and_then(|receipt| text::out_of_order_line(style, label, interval, receipt));
        line.map_or(Ok(()), |line| self.line(&line))
    }

    fn after_total(&mut self, key: StreamKey, total: &Total) -> io::Result<()> {
        let style = self.manner.format.style;
        let Some(stream) = self.streams.get(&key) else {
            return Ok(());
        };
        let (id, connected) = (stream.id, stream.connected);
        let relayed = total.relayed();
        if self.manner.csv {
            // 2.1 leaves the relayed report out.
            if let (Some((interval, receipt)), Style::V2_0) = (relayed, style) {
                let mut row = self.csv_row(id, &connected, &interval, Some(&receipt), 0);
                (row.reporter, row.peer) = (connected.peer, connected.local);
                row.is_sender = !connected.is_sender;
                return self.line(&text::csv_row(style, &row));
            }
            return Ok(());
        }
        // 2.1 tells it with the settings.
        if let (Some(tcp), true) = (connected.tcp, self.manner.print_mss && style == Style::V2_0) {
            self.line(&text::mss_lines(id, tcp.segment_bytes))?;
        }
        // 2.1 does not mark these lines, whichever way the stream goes.
        let unmarked = StreamId {
            is_reversed: false,
            ..id
        };
        if let Some(datagrams) = total
            .sent_datagrams
            .filter(|_| !self.manner.exclude.streams)
        {
            let label = Label::Stream(unmarked);
            self.line(&text::sent_line(style, label, datagrams))?;
        }
        if let (Some(gaps), true) = (&total.detail.gaps, self.manner.enhanced) {
            self.line(&text::gaps_line(style, id, gaps))?;
        }
        if let Some((interval, receipt)) = relayed.filter(|_| !self.manner.exclude.server_report) {
            self.line(&text::server_report_line(style, unmarked))?;
            self.header(Header::Receiver)?;
            let format = self.manner.format;
            self.line(&text::receiver_line(format, id, &interval, &receipt))?;
            self.out_of_order(Label::Stream(id), &interval, Some(&receipt))?;
        }
        Ok(())
    }

    fn csv_row(
        &self,
        id: StreamId,
        connected: &Connected,
        interval: &Interval,
        receipt: Option<&ReceiptFigures>,
        datagrams: u64,
    ) -> CsvRow {
        let is_udp = connected.tcp.is_none();
        // A UDP sender of style 2.1 adds the receiver's fields, with what it knows.
        let sent = ReceiptFigures {
            jitter_ms: 0.0,
            lost: 0,
            total: datagrams,
            out_of_order: 0,
        };
        let adds = is_udp && connected.is_sender && self.manner.format.style == Style::V2_1;
        CsvRow {
            time: local_time(),
            has_millis: self.manner.enhanced,
            reporter: connected.local,
            peer: connected.peer,
            is_sender: connected.is_sender,
            id,
            interval: *interval,
            receipt: receipt.copied().or(adds.then_some(sent)),
        }
    }

    /// Style 2.0 has no further columns.
    fn is_enhanced(&self) -> bool {
        self.manner.enhanced && self.manner.format.style == Style::V2_1
    }

    fn is_sender(&self, key: StreamKey) -> bool {
        let stream = self.streams.get(&key);
        stream.is_some_and(|stream| stream.connected.is_sender)
    }

    fn enhanced_header(&mut self, header: EnhancedHeader) -> io::Result<()> {
        if self.enhanced_headers.contains(&header) {
            return Ok(());
        }
        self.enhanced_headers.push(header);
        self.line(text::enhanced_header(header))
    }

    /// The header, unless it was told; of 2.0.x the first one only, whatever columns follow later.
    fn header(&mut self, header: Header) -> io::Result<()> {
        let is_told = match self.manner.format.style {
            Style::V2_0 => !self.headers.is_empty(),
            Style::V2_1 => self.headers.contains(&header),
        };
        if is_told {
            return Ok(());
        }
        self.headers.push(header);
        self.line(text::header(header))
    }

    fn group_of(&self, key: StreamKey) -> Option<Group> {
        let connected = &self.streams.get(&key)?.connected;
        Some(Group {
            peer: connected.peer.ip(),
            is_later: key.is_later,
            is_sender: match self.manner.format.style {
                Style::V2_0 => Some(connected.is_sender),
                Style::V2_1 => None,
            },
        })
    }

    fn running(&self, group: Group) -> u32 {
        let of_group = self
            .streams
            .iter()
            .filter(|(key, stream)| !stream.is_done && self.group_of(**key) == Some(group));
        of_group.count() as u32
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }
}

/// Whether nobody answers the FIN, as a client that does so remarks of both ways and one that only
/// receives leaves to the server to remark.
fn is_unanswered(key: StreamKey, connected: &Connected) -> bool {
    match connected.direction {
        Direction::Forward => false,
        Direction::Reverse => connected.is_sender && !key.is_reversed,
        Direction::FullDuplex => true,
    }
}

/// Now, as the clock on the wall has it.
pub(super) fn local_time() -> Timestamp {
    let now = jiff::Zoned::now();
    Timestamp {
        year: now.year().unsigned_abs(),
        month: now.month().unsigned_abs(),
        day: now.day().unsigned_abs(),
        hour: now.hour().unsigned_abs(),
        minute: now.minute().unsigned_abs(),
        second: now.second().unsigned_abs(),
        millis: now.millisecond().unsigned_abs(),
    }
}
