//! Streams added up, as text tells them.

use crate::IntervalRecord;
use crate::text::{Interval, ReceiptFigures};

/// A sum that waits for the rest of its group.
#[derive(Default)]
pub struct Sum {
    pub streams: u32,
    pub interval: Option<Interval>,
    pub receipt: Option<ReceiptFigures>,
    /// Whether there are streams that this end receives, and such that it sends.
    pub has_sides: [bool; 2],
    pub record: Option<IntervalRecord>,
    /// Datagrams that this end sent, and of how many streams; known of whole streams only.
    pub sent_datagrams: u64,
    pub senders: u32,
    /// Datagrams of the streams that this end sends, as the intervals count them.
    sender_datagrams: u64,
}

impl Sum {
    /// Adds a part of one stream, which this end sends or receives.
    pub fn add(
        &mut self,
        is_sender: bool,
        part: &Interval,
        receipt: Option<&ReceiptFigures>,
        record: &IntervalRecord,
    ) {
        self.streams += 1;
        self.has_sides[usize::from(is_sender)] = true;
        if is_sender {
            self.sender_datagrams += record.datagrams;
        }
        self.record = Some(match self.record {
            None => *record,
            Some(sum) => sum.plus(record),
        });
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
                Some(sum) => ReceiptFigures {
                    jitter_ms: sum.jitter_ms.max(part.jitter_ms),
                    lost: sum.lost + part.lost,
                    total: sum.total + part.total,
                    out_of_order: sum.out_of_order + part.out_of_order,
                },
            });
        }
    }

    /// Takes note of what a whole stream sent.
    pub fn add_sent(&mut self, datagrams: u64) {
        self.sent_datagrams += datagrams;
        self.senders += 1;
    }

    /// What all receivers counted, and all that was sent beside as if it had arrived, as 2.1.8 sums them up.
    pub fn receipt_of_both(&self) -> Option<ReceiptFigures> {
        self.receipt.map(|receipt| ReceiptFigures {
            total: receipt.total + self.sender_datagrams,
            ..receipt
        })
    }
}
