//! What can be read of an interface at one moment.

use std::fs;
use std::io;

use nicpoll_model::{InterfaceShow, InterruptShow, NapiShow};
use nicpoll_observe::{InterruptLine, parse_interrupts, thread};
use nicpoll_switch::{
    Abilities, Control, ControlError, GRO_FEATURE, LinkFacts, Napi, Queue, VETH_RING_SLOTS,
};
use nicpoll_sys::ethtool;

use super::evidence::{Values, by_setting, by_settings};

/// An interface before anybody looked at what it does.
pub struct Still {
    /// Without evidence, rates and variables.
    pub show: InterfaceShow,
    /// Kind of virtual device; `None` for one that is not virtual.
    pub kind: Option<String>,
    /// Where its device is, by which interrupts are known.
    bus_address: Option<String>,
}

/// Reads an interface. What the driver does not have or the kernel does not tell is absent.
pub fn still(
    control: &mut Control,
    abilities: &Abilities,
    link: LinkFacts,
) -> Result<Still, ControlError> {
    let ifindex = link.ifindex;
    let queues = told(control.queues(ifindex))?.unwrap_or_default();
    let count = |is_rx| queues.iter().filter(|queue| queue.is_rx == is_rx).count() as u32;
    let (rx_queues, tx_queues) = match count(true) {
        0 => (link.rx_queues, link.tx_queues),
        rx_queues => (Some(rx_queues), Some(count(false))),
    };
    let features = told(control.features(ifindex))?;
    let moderation = told(control.moderation(ifindex))?.unwrap_or_default();
    let driver = ethtool::driver(&link.name).ok();
    let (driver, bus_address) = driver
        .map(|driver| (driver.name, driver.bus_address))
        .unzip();
    let napis = napis(control, abilities, &link, &queues)?;
    let show = InterfaceShow {
        driver: driver.or_else(|| link.kind.clone()),
        ifindex,
        lower: Vec::new(),
        is_up: link.is_up,
        link_bits_per_second: told(control.link_bits_per_second(ifindex))?.flatten(),
        rx_queues,
        tx_queues,
        // veth does not tell.
        rx_ring_slots: match link.kind.as_deref() {
            Some("veth") => Some(VETH_RING_SLOTS),
            _ => told(control.rx_ring_slots(ifindex))?.flatten(),
        },
        has_gro: features.and_then(|features| features.active.get(GRO_FEATURE).copied()),
        moderation: moderation
            .into_iter()
            .map(|(row, value)| (String::from(row.name), value))
            .collect(),
        interrupts: Vec::new(),
        setting: napis.as_deref().map(|napis| by_settings(napis, &link)),
        napis,
        evidence: None,
        rx_packets_per_second: None,
        ceiling: None,
        drift: None,
        pending: None,
        kern_polling: Vec::new(),
        name: link.name,
    };
    Ok(Still {
        show,
        kind: link.kind,
        bus_address: bus_address.flatten(),
    })
}

/// `None` when a driver or kernel has no such thing.
fn told<T>(answer: Result<T, ControlError>) -> Result<Option<T>, ControlError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) => match error.kind() {
            io::ErrorKind::Unsupported | io::ErrorKind::NotFound => Ok(None),
            _ => Err(error),
        },
    }
}

fn napis(
    control: &mut Control,
    abilities: &Abilities,
    link: &LinkFacts,
    queues: &[Queue],
) -> Result<Option<Vec<NapiShow>>, ControlError> {
    let ifindex = link.ifindex;
    let Some(napis) = told(control.napis(ifindex))? else {
        return Ok(None);
    };
    let device = (!abilities.has_napi_set).then(|| device_values(link));
    let show = |napi: Napi| {
        // Kernels that cannot set the values of single instances do not tell them either; all others
        // tell both.
        let values = device.unwrap_or(Values {
            defer_hard_irqs: napi.defer_hard_irqs.unwrap_or_default(),
            gro_flush_timeout_ns: napi.gro_flush_timeout_ns.unwrap_or_default(),
            irq_suspend_timeout_ns: napi.irq_suspend_timeout_ns,
            threaded: napi.threaded,
        });
        let is_served = |queue: &&Queue| queue.is_rx && queue.napi_id == Some(napi.id);
        NapiShow {
            id: napi.id,
            irq: napi.irq,
            rx_queues: queues
                .iter()
                .filter(is_served)
                .map(|queue| queue.id)
                .collect(),
            defer_hard_irqs: values.defer_hard_irqs,
            gro_flush_timeout_ns: values.gro_flush_timeout_ns,
            irq_suspend_timeout_ns: values.irq_suspend_timeout_ns,
            threaded: values.threaded,
            thread: napi.thread_pid.and_then(|pid| thread(pid).ok()),
            setting: by_setting(values),
            rhythm: None,
        }
    };
    Ok(Some(napis.into_iter().map(show).collect()))
}

/// The values that all instances of an interface have on kernels that know no others.
fn device_values(link: &LinkFacts) -> Values {
    let directory = format!("/sys/class/net/{}", link.name);
    let read = |file: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("{directory}/{file}")).ok()?;
        text.trim().parse().ok()
    };
    // A thread in another namespace may see the interfaces of the first one there.
    if read("ifindex") != Some(link.ifindex.into()) {
        return Values::default();
    }
    Values {
        defer_hard_irqs: read("napi_defer_hard_irqs").unwrap_or(0) as u32,
        gro_flush_timeout_ns: read("gro_flush_timeout").unwrap_or(0),
        irq_suspend_timeout_ns: None,
        threaded: read("threaded").map(|threaded| threaded as u32),
    }
}

/// Every source of interrupts of the machine; `None` when they cannot be read.
pub fn interrupts() -> Option<Vec<InterruptLine>> {
    let text = fs::read_to_string("/proc/interrupts").ok()?;
    parse_interrupts(&text).ok()
}

/// The interrupts of one interface: those that its NAPI instances name, and those that bear its
/// device's address or its name. A virtual device has none.
pub fn interrupts_of(still: &Still, lines: &[InterruptLine]) -> Vec<InterruptShow> {
    let bus_address = still.bus_address.as_deref();
    let napis = still.show.napis.iter().flatten();
    let named: Vec<u32> = napis.filter_map(|napi| napi.irq).collect();
    let show = |line: &InterruptLine| {
        let irq = line.irq.parse().ok()?;
        let is_of_device = bus_address.is_some() && line.is_of(&still.show.name, bus_address);
        (named.contains(&irq) || is_of_device).then(|| InterruptShow {
            irq,
            description: line
                .description
                .split_ascii_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            cpus: cpus_of(irq),
            total: line.total(),
            per_second: None,
            is_storm: None,
        })
    };
    lines.iter().filter_map(show).collect()
}

fn cpus_of(irq: u32) -> Option<String> {
    let read = |file: &str| fs::read_to_string(format!("/proc/irq/{irq}/{file}")).ok();
    let list = read("effective_affinity_list").or_else(|| read("smp_affinity_list"))?;
    Some(String::from(list.trim())).filter(|list| !list.is_empty())
}
