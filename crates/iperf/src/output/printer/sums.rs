//! What several streams come to together: [SUM].

use std::io;

use nicpoll_model::iperf::Direction;

use crate::output::enhanced;
use crate::output::sum::Sum;
use crate::text::{self, Header, Label, Style};
use crate::{Connected, IntervalRecord};

use super::{Printer, StreamKey};

impl Printer {
    /// Tells a sum, of whole streams or of one interval of each; `key` is that of one of them.
    pub(super) fn sum(&mut self, key: StreamKey, sum: &Sum, is_whole: bool) -> io::Result<()> {
        let exclude = self.manner.exclude;
        let least = if exclude.streams && !self.manner.csv {
            1
        } else {
            2
        };
        let Some(stream) = self.streams.get(&key) else {
            return Ok(());
        };
        let (id, connected) = (stream.id, stream.connected);
        let (Some(interval), Some(record), true) = (sum.interval, sum.record, sum.streams >= least)
        else {
            return Ok(());
        };
        if exclude.sums || exclude.data {
            return Ok(());
        }
        if self.manner.csv {
            let receipt = sum.receipt.as_ref();
            let row = self.csv_row(id, &connected, &interval, receipt, record.datagrams);
            let (style, is_client) = (self.manner.format.style, self.manner.is_client);
            return self.line(&text::csv_sum_row(style, is_client, &row));
        }
        if exclude.streams {
            self.sum_only(&connected, sum, &record)?;
        } else {
            self.sum_beside(&connected, sum, &record)?;
        }
        let is_told = is_whole && self.manner.format.style == Style::V2_1;
        if is_told && self.tells_sent(sum) {
            let label = Label::SumOf(sum.senders);
            let line = text::sent_line(Style::V2_1, label, sum.sent_datagrams);
            return self.line(&line);
        }
        Ok(())
    }

    /// A sum below the lines of single streams.
    fn sum_beside(
        &mut self,
        connected: &Connected,
        sum: &Sum,
        record: &IntervalRecord,
    ) -> io::Result<()> {
        let Some(interval) = sum.interval else {
            return Ok(());
        };
        let format = self.manner.format;
        let [receives, sends] = sum.has_sides;
        let is_two_way = receives && sends;
        // Both ways together have no columns of their own.
        if self.is_enhanced() && !is_two_way {
            let receipt = sum.receipt.as_ref();
            let (_, line) =
                enhanced::sum_line(format, Label::Sum, connected, &interval, receipt, record);
            return self.line(&line);
        }
        let is_duplex = connected.direction == Direction::FullDuplex;
        match sum.receipt_of_both() {
            Some(_) if is_two_way && is_duplex && format.style == Style::V2_1 => {
                self.header(Header::DuplexSum)?;
                self.line(&text::duplex_sum_line(format, &interval, record.datagrams))
            }
            // 2.1.8 takes both ways of -d at a client for what it sent.
            Some(receipt) if !is_two_way || !self.manner.is_client => {
                self.header(Header::Sender)?;
                self.line(&text::receiver_sum_line(format, &interval, &receipt))?;
                match format.style {
                    Style::V2_0 => Ok(()),
                    Style::V2_1 => self.out_of_order(Label::Sum, &interval, Some(&receipt)),
                }
            }
            _ => self.line(&text::sender_line(format, Label::Sum, &interval)),
        }
    }

    /// A sum in place of single streams (--sum-only).
    fn sum_only(
        &mut self,
        connected: &Connected,
        sum: &Sum,
        record: &IntervalRecord,
    ) -> io::Result<()> {
        let Some(interval) = sum.interval else {
            return Ok(());
        };
        let format = self.manner.format;
        let label = Label::SumOf(sum.streams);
        let [receives, sends] = sum.has_sides;
        let is_two_way = receives && sends;
        let both = sum.receipt_of_both();
        let receipt = both.filter(|_| !is_two_way || !self.manner.is_client);
        let is_told = format.style == Style::V2_1;
        if is_told && (self.is_enhanced() && !is_two_way || receipt.is_some()) {
            let receipt = receipt.as_ref();
            let (header, line) =
                enhanced::sum_line(format, label, connected, &interval, receipt, record);
            self.enhanced_header(header)?;
            self.line(&line)?;
            return self.out_of_order(label, &interval, receipt);
        }
        self.header(Header::SumOnly)?;
        self.line(&text::sender_line(format, label, &interval))
    }

    /// Whether the datagrams that were sent are told below a sum: by the end that sends or, of both ways, by
    /// the client, where there are several streams.
    fn tells_sent(&self, sum: &Sum) -> bool {
        let [receives, _] = sum.has_sides;
        let least = if self.manner.exclude.streams { 1 } else { 2 };
        sum.senders >= least && (self.manner.is_client || !receives)
    }
}
