//! UDP streams of a client.

use std::sync::mpsc;
use std::thread::Scope;

use nicpoll_traffic::iperf::{Rate, options, udp};

use super::Client;
use crate::iperf::events::{Event, Failed, StreamKey, Told};
use crate::iperf::no_acknowledgement;
use crate::iperf::printer::Total;

/// Starts all streams.
pub(super) fn start<'scope>(
    client: Client<'scope>,
    scope: &'scope Scope<'scope, '_>,
    events: &mpsc::Sender<Event>,
) -> Result<(), Failed> {
    for number in 0..client.options.streams {
        let events = events.clone();
        scope.spawn(move || {
            Told::run(StreamKey::new(number), &events, |told| send(client, told));
        });
    }
    Ok(())
}

fn send(client: Client<'_>, told: &mut Told) -> Result<Total, Failed> {
    let Client {
        options,
        peer,
        signals,
    } = client;
    let common = &options.common;
    let config = udp::ClientConfig {
        rate: options.rate.map(rate),
        datagrams_per_call: if common.no_batch { 1 } else { usize::MAX },
        send_buffer_bytes: common.window_bytes,
        interval: common.interval,
        bind: client.local_address()?,
        options: client.socket_options(),
        threads: options.streams,
        has_header: !options.compatibility,
        dialect: options.dialect,
        ..udp::ClientConfig::new(peer, common.length_bytes, client.amount())
    };
    let report = udp::run_client(&config, signals, told).map_err(|error| match error {
        udp::ClientError::Cancelled => Failed::Cancelled,
        error => Failed::because(&error),
    })?;
    if report.fin_acks_received == 0 {
        let tries = report.fins_sent.try_into().unwrap_or(u32::MAX);
        eprintln!("{}", no_acknowledgement(common, told.number(), tries));
    }
    Ok(Total {
        sent_datagrams: Some(report.datagrams_sent),
        server_report: report.server_report,
        ..Total::of(report.seconds, report.bytes_sent)
    })
}

fn rate(rate: options::Rate) -> Rate {
    match rate {
        options::Rate::BitsPerSecond(rate) => Rate::BitsPerSecond(rate),
        options::Rate::PacketsPerSecond(rate) => Rate::PacketsPerSecond(rate.round() as u64),
    }
}
