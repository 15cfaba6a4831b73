//! Prints streams in iperf's words and order, or as comma-separated values.
//!
//! Each line is printed and flushed as soon as its figures are known. Column headings appear once, above the
//! first line that needs them. A [SUM] line appears when every stream of its group has finished the interval or
//! ended.

use std::io::{self, Write};

use nicpoll_model::Way;
use nicpoll_model::traffic::Direction;
use nicpoll_sys::stdio;
use nicpoll_traffic::{CloseAccount, losses};

use super::lines::{self, CsvRow, Format, Label};
use super::sums::{self, DueSums, StreamSum, SummedStreams};
use crate::events::{Output, RunObject, Settings, StreamKey};
use crate::options::{Exclude, Options, Style};
use crate::records::{Connected, IntervalRecord, Receipt, Total};
use crate::wire::Directions;

/// Least fraction of an interval for which the last, partial one is printed, as in 2.1.8.
const PARTIAL_MIN: f64 = 0.25;

/// How lines name a stream.
#[derive(Clone, Copy)]
struct StreamName {
    label: Label,
    /// Its number in 2.0.x.
    number: u32,
}

type LabelledStream = sums::SummedStream<StreamName>;

/// Prints the text or CSV of one client or server.
pub struct TextPrinter<'a> {
    options: &'a Options,
    format: Format,
    exclude: Exclude,
    out: Box<dyn Write + Send>,
    /// Closed at the end; packets that this host dropped are then reported on standard error.
    account: Option<CloseAccount>,
    streams: SummedStreams<StreamName>,
    headers: Vec<&'static str>,
    descriptors: Descriptors,
    /// Connect times of a client's TCP streams.
    connect_seconds: Vec<f64>,
    failed_streams: u64,
}

impl<'a> TextPrinter<'a> {
    /// A printer to `out` that closes `account` at the end.
    pub fn new(
        options: &'a Options,
        account: Option<CloseAccount>,
        out: Box<dyn Write + Send>,
    ) -> Self {
        let stream = &options.stream;
        let mut exclude = options.exclude;
        let is_client = options.is_client();
        if is_client {
            // As in 2.1.8, a single stream and the one the server connects back for are not summed up.
            let is_full_duplex = stream.directions == Directions::FullDuplex;
            exclude.sums |= stream.streams == 1 && !is_full_duplex && !exclude.streams;
        }
        TextPrinter {
            options,
            format: lines::format_of(options),
            exclude,
            out,
            account,
            streams: SummedStreams::new(options, options.style == Style::V2_0),
            headers: Vec::new(),
            descriptors: Descriptors::new(is_client, options.is_udp()),
            connect_seconds: Vec::new(),
            failed_streams: 0,
        }
    }

    /// Marks a stream as ended.
    fn leave(&mut self, key: StreamKey, whole: Option<&IntervalRecord>) -> io::Result<()> {
        let ended = self.streams.end(key, whole);
        ended.iter().try_for_each(|due| self.due(due))
    }

    /// Prints the sums that are due.
    fn due(&mut self, due: &DueSums) -> io::Result<()> {
        for sum in &due.intervals {
            if self.prints(&sum.record) {
                self.sum(sum, false)?;
            }
        }
        due.total.as_ref().map_or(Ok(()), |sum| self.sum(sum, true))
    }

    /// Whether to print an interval. As in 2.1.8, a partial one is printed only if it is long enough and not
    /// empty.
    fn prints(&self, record: &IntervalRecord) -> bool {
        !record.is_partial || self.streams.part(record) > PARTIAL_MIN && record.bytes > 0
    }

    fn data(&mut self, stream: LabelledStream, record: &IntervalRecord) -> io::Result<()> {
        let (label, connected) = (stream.known.label, stream.connected);
        if self.exclude.data {
            return Ok(());
        }
        if self.is_csv() {
            return self.csv(CsvRow::Stream(stream.known.number), &connected, record);
        }
        if self.exclude.streams {
            return Ok(());
        }
        let is_enhanced = self.is_enhanced();
        let (columns, line) = lines::data(self.format, label, &connected, record, is_enhanced);
        self.below(columns, &line)?;
        self.out_of_order(label, record)
    }

    /// Prints the number of late datagrams, if any.
    fn out_of_order(&mut self, label: Label, record: &IntervalRecord) -> io::Result<()> {
        let line = lines::out_of_order(self.format.style, label, record);
        line.map_or(Ok(()), |line| self.line(&line))
    }

    fn after_total(&mut self, stream: LabelledStream, total: &Total) -> io::Result<()> {
        let style = self.format.style;
        let (label, connected) = (stream.known.label, stream.connected);
        let relayed = total.relayed();
        if self.is_csv() {
            // 2.1 omits the relayed report.
            let Some(record) = relayed.filter(|_| style == Style::V2_0) else {
                return Ok(());
            };
            let server = Connected {
                local: connected.peer,
                peer: connected.local,
                is_sender: !connected.is_sender,
                ..connected
            };
            return self.csv(CsvRow::Stream(stream.known.number), &server, &record);
        }
        // 2.1 has it in the settings.
        let print_mss = self.options.print_mss && style == Style::V2_0;
        if let Some(tcp) = connected.tcp.filter(|_| print_mss) {
            self.line(&lines::segment_size(label, tcp.mss_bytes))?;
        }
        // 2.1 never marks these lines as reversed.
        let unmarked = label.unmarked();
        if connected.tcp.is_none() && connected.is_sender && !self.exclude.streams {
            self.line(&lines::sent(style, unmarked, total.whole.datagrams))?;
        }
        if let (Some(gaps), true) = (&total.gaps, self.options.enhanced) {
            self.line(&lines::gaps(style, label, gaps))?;
        }
        let Some(record) = relayed.filter(|_| !self.exclude.server_report) else {
            return Ok(());
        };
        self.line(&lines::server_report(style, unmarked))?;
        if let Some(receipt) = &record.receipt {
            let line = lines::received(self.format, label, &record, receipt);
            self.below(lines::RECEIVER, &line)?;
        }
        self.out_of_order(label, &record)
    }

    /// Prints a sum of whole streams or of one interval.
    fn sum(&mut self, sum: &StreamSum, is_whole: bool) -> io::Result<()> {
        let connected = &sum.connected;
        let is_alone = self.exclude.streams;
        let least = if is_alone && !self.is_csv() { 1 } else { 2 };
        if sum.members < least || self.exclude.sums || self.exclude.data {
            return Ok(());
        }
        if self.is_csv() {
            return self.csv(CsvRow::Sum, connected, &sum.record);
        }
        let is_client = self.options.is_client();
        let is_two_way = sum.receivers > 0 && sum.senders > 0;
        // Both UDP directions together: like 2.1.8, count sent datagrams as arrived; a client prints the sum as
        // if it had sent them all.
        let receipt = sum.record.receipt.map(|receipt| Receipt {
            expected: receipt.expected + sum.sent_datagrams,
            ..receipt
        });
        let summed = receipt.filter(|_| !is_two_way || !is_client);
        let record = IntervalRecord {
            receipt: summed,
            ..sum.record
        };
        // Both directions together have no columns of their own.
        let is_enhanced = self.is_enhanced() && !is_two_way;
        let is_v2_1 = self.format.style == Style::V2_1;
        if is_alone {
            let label = Label::SumOf(sum.streams());
            if is_v2_1 && (is_enhanced || summed.is_some()) {
                let (columns, line) =
                    lines::data(self.format, label, connected, &record, is_enhanced);
                self.below(columns, &line)?;
                self.out_of_order(label, &record)?;
            } else {
                let line = lines::plain(self.format, label, &record);
                self.below(lines::SUM_ONLY, &line)?;
            }
        } else if is_enhanced {
            let (_, line) = lines::data(self.format, Label::Sum, connected, &record, true);
            self.line(&line)?;
        } else if receipt.is_some() && is_two_way && is_v2_1 && is_duplex(connected) {
            let line = lines::duplex_sum(self.format, &record);
            self.below(lines::DUPLEX_SUM, &line)?;
        } else if let Some(receipt) = &summed {
            let line = lines::receiver_sum(self.format, &record, receipt);
            self.below(lines::PLAIN, &line)?;
            if is_v2_1 {
                self.out_of_order(Label::Sum, &record)?;
            }
        } else {
            self.line(&lines::plain(self.format, Label::Sum, &record))?;
        }
        // Total of datagrams sent: printed by the sender or, with both directions, by the client.
        let is_sender_of_udp = connected.tcp.is_none() && sum.senders >= least;
        if is_whole && is_v2_1 && is_sender_of_udp && (is_client || sum.receivers == 0) {
            let label = Label::SumOf(sum.senders);
            return self.line(&lines::sent(Style::V2_1, label, sum.sent_datagrams));
        }
        Ok(())
    }

    fn csv(
        &mut self,
        row: CsvRow,
        connected: &Connected,
        record: &IntervalRecord,
    ) -> io::Result<()> {
        let now = jiff::Zoned::now().datetime();
        self.line(&lines::csv(&now, self.options, row, connected, record))
    }

    fn is_csv(&self) -> bool {
        self.options.csv
    }

    /// Whether to print the columns of -e; style 2.0 has none.
    fn is_enhanced(&self) -> bool {
        self.options.enhanced && self.format.style == Style::V2_1
    }

    /// Prints a line, preceded by its column headings unless already printed. Style 2.0 prints only the first
    /// headings.
    fn below(&mut self, columns: &'static str, line: &str) -> io::Result<()> {
        let is_printed = match self.format.style {
            Style::V2_0 => !self.headers.is_empty(),
            Style::V2_1 => self.headers.contains(&columns),
        };
        if !is_printed {
            self.headers.push(columns);
            self.line(columns)?;
        }
        self.line(line)
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }
}

impl Output for TextPrinter<'_> {
    fn number(&self, key: StreamKey) -> u32 {
        let stream = self.streams.get(key);
        stream.map_or(key.number + 1, |stream| stream.known.number)
    }

    fn settings(&mut self, settings: &Settings) -> io::Result<()> {
        if self.is_csv() || self.exclude.settings {
            return Ok(());
        }
        self.line(&lines::settings(self.options, settings))
    }

    fn connected(&mut self, key: StreamKey, connected: &Connected) -> io::Result<()> {
        let style = self.format.style;
        // In 2.1, both directions of a socket share one number and one line.
        let is_printed = style == Style::V2_1 && self.streams.has_number(key.number);
        let number = match style {
            Style::V2_1 => key.number + 1,
            Style::V2_0 => {
                let open = self.streams.running();
                self.descriptors
                    .next(open.map(|(_, stream)| stream.known.number))
            }
        };
        let label = Label::of(number, key.is_reversed);
        self.streams
            .add(key, connected, StreamName { label, number });
        if is_printed {
            return Ok(());
        }
        let connecting = connected.tcp.and_then(|tcp| tcp.connect_seconds);
        self.connect_seconds
            .extend(connecting.filter(|_| self.is_enhanced()));
        if self.is_csv() || self.exclude.connections || self.exclude.streams {
            return Ok(());
        }
        // Both directions over the client's socket share its line.
        let has_own_socket = connected.is_sender && connected.direction == Direction::Reverse;
        let label = Label::of(number, key.is_reversed && has_own_socket);
        let has_no_fin = connected.tcp.is_none() && is_unanswered(key, connected);
        self.line(&lines::connection(style, label, connected, has_no_fin))
    }

    fn interval(&mut self, key: StreamKey, record: &IntervalRecord) -> io::Result<()> {
        let Some(stream) = self.streams.get(key) else {
            return Ok(());
        };
        if self.prints(record) {
            self.data(stream, record)?;
        }
        let due = self.streams.interval(key, record);
        self.due(&due)
    }

    fn finished(&mut self, key: StreamKey, total: &Total) -> io::Result<()> {
        let Some(stream) = self.streams.get(key) else {
            return self.leave(key, None);
        };
        let whole = total.printed(self.format.style);
        self.data(stream, &whole)?;
        self.after_total(stream, total)?;
        self.leave(key, Some(&whole))
    }

    fn failed(&mut self, key: StreamKey, _: Option<&str>) -> io::Result<()> {
        self.failed_streams += 1;
        self.leave(key, None)
    }

    fn gave_up(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<Option<RunObject>> {
        let streams = self.connect_seconds.len() as u64 + self.failed_streams;
        let line = lines::connect_times(&self.connect_seconds, self.failed_streams);
        if let Some(line) = line.filter(|_| streams > 1 && !self.is_csv()) {
            self.line(&line)?;
        }
        if let Some(host) = self.account.take().and_then(|close| close()) {
            stdio::print_error(losses::only_losses(&host, &[Way::Out, Way::In]));
        }
        Ok(None)
    }
}

fn is_duplex(connected: &Connected) -> bool {
    connected.direction == Direction::FullDuplex
}

/// Whether the connection line says that the FIN gets no answer. A client says so in full duplex; a server also
/// where it alone sends.
fn is_unanswered(key: StreamKey, connected: &Connected) -> bool {
    match connected.direction {
        Direction::Forward => false,
        Direction::Reverse => connected.is_sender && !key.is_reversed,
        Direction::FullDuplex => true,
    }
}

/// The socket descriptors that number the streams of 2.0.x: each is the lowest free one, as the kernel assigns
/// them.
struct Descriptors {
    /// The descriptor a server listens on.
    listening: Option<u32>,
    /// Whether the listening socket becomes the client's and another listens, as in a UDP server.
    is_handed_over: bool,
}

impl Descriptors {
    /// The first after the three standard ones.
    const FIRST: u32 = 3;

    fn new(is_client: bool, is_udp: bool) -> Self {
        Descriptors {
            listening: (!is_client).then_some(Self::FIRST),
            is_handed_over: is_udp,
        }
    }

    /// The number of a new stream, given those of open streams.
    fn next(&mut self, open: impl Iterator<Item = u32>) -> u32 {
        let taken: Vec<u32> = open.chain(self.listening).collect();
        let free = (Self::FIRST..).find(|number| !taken.contains(number));
        let free = free.unwrap_or(u32::MAX);
        match &mut self.listening {
            Some(listening) if self.is_handed_over => std::mem::replace(listening, free),
            _ => free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_taken() {
        let mut client = Descriptors::new(true, false);
        assert_eq!(client.next([].into_iter()), 3);
        assert_eq!(client.next([3, 5].into_iter()), 4);
        let mut server = Descriptors::new(false, false);
        assert_eq!(server.next([].into_iter()), 4);
        assert_eq!(server.next([4].into_iter()), 5);
        assert_eq!(server.next([5].into_iter()), 4);
    }

    #[test]
    fn a_udp_server_gives_away_the_socket_that_it_listened_on() {
        let mut server = Descriptors::new(false, true);
        assert_eq!(server.next([].into_iter()), 3);
        assert_eq!(server.next([3].into_iter()), 4);
        // The first two are closed; 5 listens.
        assert_eq!(server.next([].into_iter()), 5);
        assert_eq!(server.next([5].into_iter()), 3);
    }
}
