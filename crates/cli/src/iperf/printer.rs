//! Prints what streams tell, in iperf's words and order, flushed line by line.
//!
//! What must hold: a line appears as soon as what it says is known; a header appears once above the
//! first line that needs it; [SUM] lines appear when every stream of their group has told its part.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;

use nicpoll_traffic::iperf::options::Exclude;
use nicpoll_traffic::iperf::text::{
    self, Connection, CsvRow, Direction, Format, Header, InitialTcp, Interval, Label, Receipt,
    StreamId, Style, Timestamp,
};
use nicpoll_traffic::iperf::{Connected, IntervalRecord};
use nicpoll_wire::iperf::ServerReport;

/// Part of an interval that its rest must be to be told, as in 2.1.8.
const PARTIAL_MIN: f64 = 0.25;

/// What one end of a stream came to.
#[derive(Clone, Copy, Debug)]
pub struct Total {
    /// From the start to the end.
    pub interval: Interval,
    /// What a receiver of datagrams adds.
    pub receipt: Option<Receipt>,
    /// Datagrams that a sender sent.
    pub sent_datagrams: Option<u64>,
    /// What the server said it received.
    pub server_report: Option<ServerReport>,
}

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Style and unit.
    pub format: Format,
    /// Comma-separated values instead of text.
    pub csv: bool,
    /// Whether to tell the segment size (-m).
    pub print_mss: bool,
    /// What to leave out.
    pub exclude: Exclude,
    /// Length of the intervals; none without -i.
    pub interval_seconds: Option<f64>,
    /// Whether this end sends.
    pub is_sender: bool,
}

struct Stream {
    id: StreamId,
    connected: Connected,
    is_done: bool,
}

/// A sum that waits for the rest of its group.
#[derive(Default)]
struct Sum {
    streams: u32,
    interval: Option<Interval>,
    receipt: Option<Receipt>,
    datagrams: u64,
}

/// The printer of one client or server.
pub struct Printer {
    manner: Manner,
    out: Box<dyn Write + Send>,
    streams: BTreeMap<u32, Stream>,
    sums: BTreeMap<(IpAddr, u64), Sum>,
    totals: BTreeMap<IpAddr, Sum>,
    sender_header: bool,
    receiver_header: bool,
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
            sender_header: false,
            receiver_header: false,
        }
    }

    /// Prints the settings, unless they are left out.
    pub fn banner(&mut self, banner: &str) -> io::Result<()> {
        if self.manner.csv || self.manner.exclude.settings {
            return Ok(());
        }
        self.line(banner)
    }

    /// A stream has a peer. `number` is the stream's, from 0.
    pub fn connected(&mut self, number: u32, connected: &Connected) -> io::Result<()> {
        let style = self.manner.format.style;
        // 2.0 shows descriptors, of which a client's first is 3 and a server's first connection 4.
        let shown = match (style, self.manner.is_sender) {
            (Style::V2_1, _) => number + 1,
            (Style::V2_0, true) => number + 3,
            (Style::V2_0, false) => number + 4,
        };
        let id = StreamId {
            number: shown,
            is_reversed: false,
        };
        self.streams.insert(
            number,
            Stream {
                id,
                connected: *connected,
                is_done: false,
            },
        );
        if self.manner.csv || self.manner.exclude.connections {
            return Ok(());
        }
        let line = text::connection_line(
            style,
            &Connection {
                id,
                local: connected.local,
                peer: connected.peer,
                direction: Direction::Forward,
                has_no_fin: false,
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
    pub fn interval(&mut self, number: u32, record: &IntervalRecord) -> io::Result<()> {
        let length = self.manner.interval_seconds.unwrap_or(f64::INFINITY);
        let interval = Interval {
            start_seconds: record.start,
            end_seconds: record.end,
            bytes: record.bytes,
        };
        let receipt = record.receipt.map(|receipt| Receipt {
            jitter_ms: 1e3 * receipt.jitter_seconds.unwrap_or(0.0),
            lost: receipt.lost,
            total: receipt.expected,
            out_of_order: receipt.out_of_order,
        });
        if record.is_partial && !self.tells_partial(record.end - record.start, length, record.bytes)
        {
            return Ok(());
        }
        self.data(number, &interval, receipt.as_ref(), record.datagrams)?;
        let Some(peer) = self.peer_of(number) else {
            return Ok(());
        };
        let index = (record.start / length).round() as u64;
        let sum = self.sums.entry((peer, index)).or_default();
        sum.add(&interval, receipt.as_ref(), record.datagrams);
        if sum.streams >= self.running(peer) {
            let sum = self.sums.remove(&(peer, index)).unwrap_or_default();
            self.sum(number, &sum)?;
        }
        Ok(())
    }

    /// A stream has ended.
    pub fn finished(&mut self, number: u32, total: &Total) -> io::Result<()> {
        let datagrams = total.sent_datagrams.unwrap_or(0);
        self.data(number, &total.interval, total.receipt.as_ref(), datagrams)?;
        self.after_total(number, total)?;
        let Some(peer) = self.peer_of(number) else {
            return Ok(());
        };
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.is_done = true;
        }
        let sum = self.totals.entry(peer).or_default();
        sum.add(&total.interval, total.receipt.as_ref(), datagrams);
        if self.running(peer) == 0 {
            let sum = self.totals.remove(&peer).unwrap_or_default();
            self.sum(number, &sum)?;
            self.sums.retain(|(group, _), _| *group != peer);
            self.streams
                .retain(|_, stream| group_of(&stream.connected) != peer);
        }
        Ok(())
    }

    /// 2.0 never tells the rest of an interval, 2.1 only a long one in which something flowed.
    fn tells_partial(&self, seconds: f64, length: f64, bytes: u64) -> bool {
        self.manner.format.style == Style::V2_1 && seconds > PARTIAL_MIN * length && bytes > 0
    }

    fn data(
        &mut self,
        number: u32,
        interval: &Interval,
        receipt: Option<&Receipt>,
        datagrams: u64,
    ) -> io::Result<()> {
        let Some((id, connected)) = self
            .streams
            .get(&number)
            .map(|stream| (stream.id, stream.connected))
        else {
            return Ok(());
        };
        if self.manner.exclude.data {
            return Ok(());
        }
        if self.manner.csv {
            let row = self.csv_row(id, &connected, interval, receipt, datagrams);
            return self.line(&text::csv_row(self.manner.format.style, &row));
        }
        match receipt {
            Some(receipt) => {
                self.header(Header::Receiver)?;
                let format = self.manner.format;
                self.line(&text::receiver_line(format, id, interval, receipt))
            }
            None => {
                self.header(Header::Sender)?;
                let label = Label::Stream(id);
                self.line(&text::sender_line(self.manner.format, label, interval))
            }
        }
    }

    fn after_total(&mut self, number: u32, total: &Total) -> io::Result<()> {
        let style = self.manner.format.style;
        let Some(stream) = self.streams.get(&number) else {
            return Ok(());
        };
        let (id, connected) = (stream.id, stream.connected);
        let relayed = total.server_report.map(|report| from_server(&report));
        if self.manner.csv {
            // 2.1 leaves the relayed report out.
            if let (Some((interval, receipt)), Style::V2_0) = (relayed, style) {
                let mut row = self.csv_row(id, &connected, &interval, Some(&receipt), 0);
                (row.reporter, row.peer) = (connected.peer, connected.local);
                row.is_sender = false;
                return self.line(&text::csv_row(style, &row));
            }
            return Ok(());
        }
        // 2.1 tells it with the settings.
        if let (Some(tcp), true) = (connected.tcp, self.manner.print_mss && style == Style::V2_0) {
            self.line(&text::mss_lines(id, tcp.segment_bytes))?;
        }
        if let Some(receipt) = &total.receipt {
            let label = Label::Stream(id);
            if let Some(line) = text::out_of_order_line(style, label, &total.interval, receipt) {
                self.line(&line)?;
            }
        }
        if let Some(datagrams) = total.sent_datagrams {
            self.line(&text::sent_line(style, Label::Stream(id), datagrams))?;
        }
        if let Some((interval, receipt)) = relayed.filter(|_| !self.manner.exclude.server_report) {
            self.line(&text::server_report_line(style, id))?;
            self.header(Header::Receiver)?;
            let format = self.manner.format;
            self.line(&text::receiver_line(format, id, &interval, &receipt))?;
            let label = Label::Stream(id);
            if let Some(line) = text::out_of_order_line(style, label, &interval, &receipt) {
                self.line(&line)?;
            }
        }
        Ok(())
    }

    fn sum(&mut self, number: u32, sum: &Sum) -> io::Result<()> {
        let (Some(interval), true) = (sum.interval, sum.streams > 1) else {
            return Ok(());
        };
        if self.manner.exclude.sums || self.manner.exclude.data {
            return Ok(());
        }
        let format = self.manner.format;
        if self.manner.csv {
            let Some(stream) = self.streams.get(&number) else {
                return Ok(());
            };
            let (id, connected) = (stream.id, stream.connected);
            let row = self.csv_row(
                id,
                &connected,
                &interval,
                sum.receipt.as_ref(),
                sum.datagrams,
            );
            return match text::csv_sum_row(format.style, &row) {
                Some(line) => self.line(&line),
                None => Ok(()),
            };
        }
        match &sum.receipt {
            Some(receipt) => self.line(&text::receiver_sum_line(format, &interval, receipt)),
            None => self.line(&text::sender_line(format, Label::Sum, &interval)),
        }
    }

    fn csv_row(
        &self,
        id: StreamId,
        connected: &Connected,
        interval: &Interval,
        receipt: Option<&Receipt>,
        datagrams: u64,
    ) -> CsvRow {
        let is_udp = connected.tcp.is_none();
        // A UDP sender of style 2.1 adds the receiver's fields, with what it knows.
        let sent = Receipt {
            jitter_ms: 0.0,
            lost: 0,
            total: datagrams,
            out_of_order: 0,
        };
        let adds = is_udp && self.manner.is_sender && self.manner.format.style == Style::V2_1;
        CsvRow {
            time: local_time(),
            has_millis: false,
            reporter: connected.local,
            peer: connected.peer,
            is_sender: self.manner.is_sender,
            id,
            interval: *interval,
            receipt: receipt.copied().or(adds.then_some(sent)),
        }
    }

    fn header(&mut self, header: Header) -> io::Result<()> {
        let shown = match header {
            Header::Receiver => &mut self.receiver_header,
            _ => &mut self.sender_header,
        };
        if std::mem::replace(shown, true) {
            return Ok(());
        }
        self.line(text::header(header))
    }

    fn peer_of(&self, number: u32) -> Option<IpAddr> {
        let stream = self.streams.get(&number)?;
        Some(group_of(&stream.connected))
    }

    fn running(&self, peer: IpAddr) -> u32 {
        let running = self
            .streams
            .values()
            .filter(|stream| !stream.is_done && group_of(&stream.connected) == peer);
        running.count() as u32
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }
}

impl Sum {
    fn add(&mut self, part: &Interval, receipt: Option<&Receipt>, datagrams: u64) {
        self.streams += 1;
        self.datagrams += datagrams;
        self.interval = Some(match self.interval {
            None => *part,
            Some(sum) => Interval {
                start_seconds: sum.start_seconds.min(part.start_seconds),
                end_seconds: sum.end_seconds.max(part.end_seconds),
                bytes: sum.bytes + part.bytes,
            },
        });
        if let Some(part) = receipt {
            self.receipt = Some(match self.receipt {
                None => *part,
                Some(sum) => Receipt {
                    jitter_ms: sum.jitter_ms.max(part.jitter_ms),
                    lost: sum.lost + part.lost,
                    total: sum.total + part.total,
                    out_of_order: sum.out_of_order + part.out_of_order,
                },
            });
        }
    }
}

/// Streams are summed by the address at the other end.
fn group_of(connected: &Connected) -> IpAddr {
    connected.peer.ip()
}

fn from_server(report: &ServerReport) -> (Interval, Receipt) {
    let interval = Interval {
        start_seconds: 0.0,
        end_seconds: report.elapsed.as_secs_f64(),
        bytes: report.bytes,
    };
    let receipt = Receipt {
        jitter_ms: 1e3 * report.jitter.as_secs_f64(),
        lost: report.lost as i64,
        total: report.datagrams,
        out_of_order: report.out_of_order,
    };
    (interval, receipt)
}

fn local_time() -> Timestamp {
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
