//! What came out on a simulated host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LossPlace;

/// What came out on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimHostFigures {
    /// Name of the host.
    pub host: String,
    /// Where the processor's time went; of several, the mean.
    pub cpu: SimCpu,
    /// The same of each processor in turn; left out for a host of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<SimCpu>,
    /// The same as a clock sees it that looks at the processor now and then: what top(1) would have shown. Null when it
    /// did not look in the counted time.
    pub cpu_sampled: Option<SimCpu>,
    /// Switches to another thread, the idle one included.
    pub context_switches: u64,
    /// Interrupts of its cards.
    pub interrupts: u64,
    /// Where each of its IP packets ended.
    pub ledger: SimHostLedger,
    /// Each card.
    pub cards: Vec<SimCard>,
    /// Every queue with a limit, and the most that waited in it; of several processors' the fullest.
    pub queues: Vec<SimQueue>,
    /// The storm detection's work; null for disciplines that have none.
    pub storm: Option<SimStorm>,
    /// The poller's work; null for other disciplines.
    pub polling: Option<SimPolling>,
    /// NAPI's work; null for other disciplines.
    pub napi: Option<SimNapi>,
}

/// `in_flight_at_start + received + made = transmitted + taken + merged + sum of losses + in_flight_at_end`,
/// in IP packets: a fragment is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimHostLedger {
    /// Packets in the host when the counted time began.
    #[serde(rename = "in_flight_at_start_packets")]
    pub in_flight_at_start: u64,
    /// Packets that reached its cards.
    #[serde(rename = "received_packets")]
    pub received: u64,
    /// Packets that it made.
    #[serde(rename = "made_packets")]
    pub made: u64,
    /// Packets that left its cards.
    #[serde(rename = "transmitted_packets")]
    pub transmitted: u64,
    /// Packets, or datagrams put together, that its programs read.
    #[serde(rename = "taken_packets")]
    pub taken: u64,
    /// Fragments that were taken up into a datagram, the last one left out.
    #[serde(rename = "merged_packets")]
    pub merged: u64,
    /// Losses by place, zeros included, in the order in which a packet passes the places.
    pub losses: Vec<SimLoss>,
    /// Packets in the host when the counted time ended.
    #[serde(rename = "in_flight_at_end_packets")]
    pub in_flight_at_end: u64,
}

impl SimHostFigures {
    /// Share of its lines that was in use; `None` without lines.
    pub fn line_ratio(&self) -> Option<f64> {
        let each: Option<Vec<f64>> = self.cards.iter().map(|card| card.line_ratio).collect();
        let each = each.filter(|each| !each.is_empty())?;
        Some(each.iter().sum::<f64>() / each.len() as f64)
    }
}

impl SimHostLedger {
    /// Whether every packet is accounted for.
    pub fn is_closed(&self) -> bool {
        let lost: u64 = self.losses.iter().map(|loss| loss.packets).sum();
        self.in_flight_at_start + self.received + self.made
            == self.transmitted + self.taken + self.merged + lost + self.in_flight_at_end
    }
}

/// What a card did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimCard {
    /// IP packets that reached it, each fragment one.
    #[serde(rename = "received_packets")]
    pub received: u64,
    /// Of these, those that its receive ring had no room for.
    #[serde(rename = "ring_lost_packets")]
    pub ring_lost: u64,
    /// Its interrupts.
    pub interrupts: u64,
    /// Share of its line that was in use; null without a line, as at an end of a veth pair.
    pub line_ratio: Option<f64>,
}

/// Packets lost at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimLoss {
    /// Where.
    pub place: LossPlace,
    /// How many.
    pub packets: u64,
}

/// Shares of the processor's time, each 0 to 1. They add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimCpu {
    /// The program's own work.
    #[serde(rename = "user_ratio")]
    pub user: f64,
    /// System calls, kernel threads, switches to them.
    #[serde(rename = "system_ratio")]
    pub system: f64,
    /// Hard interrupts, the clock's included, and interrupt threads.
    #[serde(rename = "interrupt_ratio")]
    pub interrupt: f64,
    /// Software interrupts: netisr and polling, NET_RX.
    #[serde(rename = "soft_interrupt_ratio")]
    pub soft_interrupt: f64,
    /// Nothing to do.
    #[serde(rename = "idle_ratio")]
    pub idle: f64,
}

/// A queue with a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimQueue {
    /// What it is.
    pub name: String,
    /// What it holds.
    #[serde(rename = "limit_packets")]
    pub limit: u64,
    /// The most that it held.
    #[serde(rename = "most_packets")]
    pub most: u64,
}

/// What interrupt storm detection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimStorm {
    /// Passes of the interrupt thread.
    pub passes: u64,
    /// Of these, followed by a tick's sleep.
    #[serde(rename = "throttled_passes")]
    pub throttled: u64,
    /// Messages in the log.
    pub reports: u64,
}

/// What the poller did, and its knobs at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimPolling {
    /// How the burst is adapted.
    pub controller: String,
    /// Cycles that began.
    pub cycles: u64,
    /// Packets that cycles asked the card for.
    #[serde(rename = "asked_packets")]
    pub asked: u64,
    /// Mean burst of the cycles; null without cycles.
    #[serde(rename = "burst_mean_packets")]
    pub burst_mean: Option<f64>,
    /// The least burst of a cycle; null without cycles.
    #[serde(rename = "burst_min_packets")]
    pub burst_min: Option<u32>,
    /// The greatest burst of a cycle; null without cycles.
    #[serde(rename = "burst_max_reached_packets")]
    pub burst_max_reached: Option<u32>,
    /// Cycles whose burst was the greatest that `burst_max` allows.
    pub full_cycles: u64,
    /// Every variable under `kern.polling` at the end, counters since the start of the counted time.
    pub knobs: Vec<SimKnob>,
}

/// A variable under `kern.polling`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimKnob {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: u32,
}

/// What NAPI did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimNapi {
    /// Polls, empty ones included.
    pub polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Passes that ended for want of budget or time (`time_squeeze`).
    pub time_squeezes: u64,
    /// Times that ksoftirqd took over.
    pub handovers: u64,
    /// Times that the deferral timer polled.
    pub timer_polls: u64,
    /// Polls by the program.
    pub busy_polls: u64,
}
