//! What came out on a host, from what came out on each of its processors.

use nicpoll_model::sim::{SimCard, SimCpu, SimHostFigures, SimHostLedger, SimNapi, SimQueue};

/// A host's figures. One processor's are the host's; of several, counts add up, shares of time are means, and of the
/// queues of a name the one counts in which most waited.
pub(super) fn of_processors(mut each: Vec<SimHostFigures>) -> Option<SimHostFigures> {
    let mut host = each.pop()?;
    if each.is_empty() {
        return Some(host);
    }
    each.push(host.clone());
    host.cpus = each.iter().map(|of| of.cpu).collect();
    host.cpu = mean(&host.cpus);
    let sampled: Vec<_> = each.iter().filter_map(|of| of.cpu_sampled).collect();
    host.cpu_sampled = (!sampled.is_empty()).then(|| mean(&sampled));
    let last = each.len() - 1;
    for of in &each[..last] {
        add(&mut host, of);
    }
    Some(host)
}

fn mean(cpus: &[SimCpu]) -> SimCpu {
    let of = |share: fn(&SimCpu) -> f64| cpus.iter().map(share).sum::<f64>() / cpus.len() as f64;
    SimCpu {
        user: of(|cpu| cpu.user),
        system: of(|cpu| cpu.system),
        interrupt: of(|cpu| cpu.interrupt),
        soft_interrupt: of(|cpu| cpu.soft_interrupt),
        idle: of(|cpu| cpu.idle),
    }
}

fn add(host: &mut SimHostFigures, of: &SimHostFigures) {
    host.context_switches += of.context_switches;
    host.interrupts += of.interrupts;
    add_ledger(&mut host.ledger, &of.ledger);
    for (card, other) in host.cards.iter_mut().zip(&of.cards) {
        add_card(card, other);
    }
    for (queue, other) in host.queues.iter_mut().zip(&of.queues) {
        take_fuller(queue, other);
    }
    host.napi = host.napi.zip(of.napi).map(|(one, other)| SimNapi {
        polls: one.polls + other.polls,
        empty_polls: one.empty_polls + other.empty_polls,
        time_squeezes: one.time_squeezes + other.time_squeezes,
        handovers: one.handovers + other.handovers,
        timer_polls: one.timer_polls + other.timer_polls,
        busy_polls: one.busy_polls + other.busy_polls,
    });
}

fn add_ledger(ledger: &mut SimHostLedger, of: &SimHostLedger) {
    ledger.in_flight_at_start += of.in_flight_at_start;
    ledger.received += of.received;
    ledger.made += of.made;
    ledger.transmitted += of.transmitted;
    ledger.taken += of.taken;
    ledger.merged += of.merged;
    ledger.in_flight_at_end += of.in_flight_at_end;
    for (loss, other) in ledger.losses.iter_mut().zip(&of.losses) {
        loss.packets += other.packets;
    }
}

fn add_card(card: &mut SimCard, of: &SimCard) {
    card.received += of.received;
    card.ring_lost += of.ring_lost;
    card.interrupts += of.interrupts;
    let ratios = card.line_ratio.zip(of.line_ratio);
    card.line_ratio = ratios.map(|(one, other)| one + other);
}

/// All have the queues of one host file, in one order.
fn take_fuller(queue: &mut SimQueue, of: &SimQueue) {
    queue.most = queue.most.max(of.most);
}
