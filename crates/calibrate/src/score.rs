//! What predictions are worth: which of them say something, and what a guess would have done.
//!
//! What must hold: a figure that another one of its run says already, or that was put in, counts for nothing. The
//! guess knows what was measured under interrupts and the speed of the line, and nothing of polling.

use nicpoll_model::line::{Line, Packet};
use nicpoll_model::sim_published::{ErrorKind, PublishedRow, PublishedScore, RowKind, ScoreTally};
use nicpoll_sim::{Pattern, TrafficModel};

use crate::library::Library;
use crate::outcome::{Flow, Outcome};
use crate::quantity::{CpuState, FlowQuantity, Quantity};
use crate::table::{Figure, Mode, PublishedRun, Table};

/// Counts what is met.
pub fn score_of(rows: &[PublishedRow]) -> PublishedScore {
    let scored =
        |row: &&PublishedRow| row.kind == RowKind::Predicted && row.is_within_aim.is_some();
    let own = |row: &&PublishedRow| scored(row) && !row.is_restated;
    let polled = |row: &&PublishedRow| own(row) && row.discipline == Mode::Polling.name();
    let count =
        |is_meant: &dyn Fn(&&PublishedRow) -> bool| rows.iter().filter(is_meant).count() as u64;
    let tally = |is_meant: &dyn Fn(&&PublishedRow) -> bool| ScoreTally {
        rows: count(is_meant),
        simulated: count(&|row| is_meant(row) && row.is_within_aim == Some(true)),
        guessed: count(&|row| is_meant(row) && row.is_guess_within_aim == Some(true)),
    };
    PublishedScore {
        predicted: count(&scored),
        restating: count(&|row| scored(row) && row.is_restated),
        small: count(&|row| own(row) && row.is_small),
        polled: tally(&polled),
        polled_rates: tally(&|row| polled(row) && row.error_kind == ErrorKind::Relative),
        polled_large: tally(&|row| polled(row) && !row.is_small),
    }
}

/// Whether other figures of the run, or what was put in, say the same.
pub(crate) fn is_restated(run: &PublishedRun, figure: &Figure) -> bool {
    let measured = || {
        run.figures
            .iter()
            .filter(|other| !other.measured.is_empty())
    };
    let has = |wanted: Quantity| measured().any(|other| other.quantity == Some(wanted));
    let says = |wanted: Option<Said>| measured().any(|other| said(other) == wanted);
    match figure.quantity {
        // The shares of a host make a whole.
        Some(Quantity::Cpu(end, CpuState::Idle)) => {
            let others = [CpuState::User, CpuState::System, CpuState::Interrupt];
            others
                .into_iter()
                .all(|state| has(Quantity::Cpu(end, state)))
        }
        Some(Quantity::Flow(FlowQuantity::SendErrors, way)) => {
            let calls = Quantity::Flow(FlowQuantity::Calls, way);
            has(calls) && says(Some((false, way as u8)))
        }
        Some(Quantity::Flow(FlowQuantity::Loss, way)) => {
            says(Some((false, way as u8))) && says(Some((true, way as u8)))
        }
        _ => said(figure).is_some() && (is_put_in(run, figure) || !is_first(run, figure)),
    }
}

/// Whether it is what was delivered, rather than sent, and which way.
type Said = (bool, u8);

/// What a figure says in whatever unit.
fn said(figure: &Figure) -> Option<Said> {
    use FlowQuantity as Q;
    let Some(Quantity::Flow(flow, way)) = figure.quantity else {
        return None;
    };
    match flow {
        Q::SentPackets | Q::SentRate | Q::SentPayload | Q::SentFrames => Some((false, way as u8)),
        Q::DeliveredRate | Q::DeliveredPayload => Some((true, way as u8)),
        _ => None,
    }
}

/// An ideal sender sends what it is told to: without loss the same comes out.
fn is_put_in(run: &PublishedRun, figure: &Figure) -> bool {
    run.scenario.as_ref().is_some_and(|scenario| {
        let rate = scenario.workload.rate_pps.map(|rate| rate as f64);
        scenario.hosts.len() == 1 && rate.is_some() && rate == figure.measured_mean()
    })
}

/// Whether it stands for those of its run that say the same: fitted ones do before others.
fn is_first(run: &PublishedRun, figure: &Figure) -> bool {
    let alike = || {
        run.figures
            .iter()
            .filter(|other| said(other) == said(figure))
    };
    let fitted = alike().find(|other| other.is_fitted);
    let first = fitted.or_else(|| alike().find(|other| !other.measured.is_empty()));
    first.is_some_and(|first| std::ptr::eq(first, figure))
}

/// What one would say of a polled run's figure who knows nothing of polling, in basic units.
pub(crate) fn guess(
    library: &Library,
    table: &Table,
    run: &PublishedRun,
    figure: &Figure,
) -> Option<f64> {
    let scenario = run
        .scenario
        .as_ref()
        .filter(|_| run.mode == Mode::Polling)?;
    let is_other = |other: &&PublishedRun| {
        let of_other = other.scenario.as_ref();
        other.mode == Mode::Interrupt
            && of_other
                .is_some_and(|of| of.hosts == scenario.hosts && of.workload == scenario.workload)
    };
    let interrupts = table.runs.iter().find(is_other);
    let same = interrupts
        .into_iter()
        .flat_map(|other| &other.figures)
        .find(|other| other.quantity == figure.quantity);
    let measured = same.and_then(|same| Some(same.measured_mean()? * same.unit.scale));
    measured.or_else(|| {
        let line = full_line(library, &scenario.hosts, &scenario.workload)?;
        figure.quantity?.of(&line, None, scenario.seconds)
    })
}

/// What goes over a full line, without loss; of TCP nobody knows its segments.
fn full_line(library: &Library, hosts: &[String], workload: &TrafficModel) -> Option<Outcome> {
    if matches!(workload.pattern, Pattern::IperfTcp(_)) {
        return None;
    }
    let hosts = hosts.iter().filter_map(|name| library.hosts.get(name));
    let line = Line::new(hosts.map(|host| host.link.bits_per_second).min()?)?;
    let cost = line.cost(Packet::Udp {
        ip: workload.ip,
        payload_bytes: workload.payload_bytes,
    });
    let cost = cost.ok()?;
    let rate = line.packets_per_second(&cost) as f64;
    let payload_bits = rate * 8.0 * f64::from(workload.payload_bytes);
    Some(Outcome {
        flows: vec![Flow {
            calls_rate: rate,
            send_errors_rate: 0.0,
            sent_rate: rate,
            sent_payload_bits: payload_bits,
            delivered_rate: rate,
            delivered_payload_bits: payload_bits,
            received_rate: Some(rate),
            frame_bits: None,
            loss_ratio: Some(0.0),
            jitter_seconds: None,
            out_of_order: 0,
            intervals_bits: None,
        }],
        hosts: Vec::new(),
        bottleneck: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"table = "Z"
title = "a table"

[[run]]
name = "polled"
discipline = "freebsd-polling"
hosts = ["a", "b"]
workload = "netblast:payload=64"
seconds = 10
figures = [
    { quantity = "calls", unit = "calls", measured = [90000] },
    { quantity = "send_errors", unit = "calls", measured = [10000] },
    { quantity = "sent_packets", unit = "packets", measured = [80000] },
    { quantity = "sent_rate", unit = "packets/s", measured = [8000] },
    { quantity = "delivered_rate", unit = "packets/s", measured = [7000] },
    { quantity = "loss", unit = "%", measured = [12.5] },
    { quantity = "receiver.user", unit = "%", measured = [10] },
    { quantity = "receiver.system", unit = "%", measured = [20] },
    { quantity = "receiver.interrupt", unit = "%", measured = [30] },
    { quantity = "receiver.idle", unit = "%", measured = [40] },
    { quantity = "sender.idle", unit = "%", measured = [5] },
]
"#;

    #[test]
    fn what_another_figure_says_counts_for_nothing() {
        let table = Table::parse(TABLE).unwrap();
        let run = &table.runs[0];
        let restated = run.figures.iter().filter(|figure| is_restated(run, figure));
        let names: Vec<_> = restated.map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["send_errors", "sent_rate", "loss", "receiver.idle"]);
    }

    #[test]
    fn a_fitted_figure_is_what_the_others_restate() {
        let text = TABLE.replace("freebsd-polling", "freebsd-interrupt");
        let text = text.replace("seconds = 10", "seconds = 10\nfit = \"all\"");
        let text = text.replace("[8000] }", "[8000], fit = true }");
        let table = Table::parse(&text).unwrap();
        let run = &table.runs[0];
        let restated = |name: &str| {
            let mut figures = run.figures.iter();
            is_restated(run, figures.find(|figure| figure.name == name).unwrap())
        };
        assert!(restated("sent_packets") && !restated("sent_rate"));
    }

    #[test]
    fn an_ideal_sender_gives_its_own_rate_back() {
        let text = TABLE.replace("[\"a\", \"b\"]", "[\"a\"]");
        let text = text.replace("netblast:payload=64", "constant:rate=7k");
        let table = Table::parse(&text).unwrap();
        let run = &table.runs[0];
        assert!(is_restated(run, &run.figures[4]));
    }
}
