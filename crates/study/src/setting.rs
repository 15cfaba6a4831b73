//! The three receive disciplines on veth: what each one writes.
//!
//! veth has a receive NAPI only while GRO is on at that end, and packets go through it only while the
//! sending end has no TSO (kernel: veth_xmit, veth_skb_is_eligible_for_gro). `interrupt` and `polling`
//! both need both, so that between them only the discipline differs; `default` is the link as it
//! comes up and has neither.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use nicpoll_model::{Setting, SettingFacts, Side};
use nicpoll_switch::{DEFER_HARD_IRQS_MAX, GRO_FEATURE, Held, SwitchError, is_tso_feature};

use crate::INTERFACE;
use crate::host::{Host, Resident};
use crate::lab::Lab;

/// A setting in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Which.
    pub setting: Setting,
    /// The receiver's NAPI; `None` under `default`.
    pub napi_id: Option<u32>,
}

/// Applies `setting`; `gro_flush_timeout_ns` counts for `polling` only. Everything is recorded first.
pub fn apply(lab: &Lab, setting: Setting, gro_flush_timeout_ns: u64) -> Result<Applied> {
    if setting == Setting::Default {
        return Ok(Applied {
            setting,
            napi_id: None,
        });
    }
    with_held(lab, &lab.sender, |resident, held, ifindex| {
        let active = resident.control.features(ifindex)?.active;
        let off = active
            .into_iter()
            .filter(|(name, on)| *on && is_tso_feature(name))
            .map(|(name, _)| (name, false))
            .collect();
        held.set_features(&mut resident.control, &off)
    })?;
    with_held(lab, &lab.receiver, |resident, held, _| {
        let on = BTreeMap::from([(String::from(GRO_FEATURE), true)]);
        held.set_features(&mut resident.control, &on)
    })?;
    let napi_id = only_napi(lab)?;
    if setting == Setting::Polling {
        set_timeout(lab, napi_id, gro_flush_timeout_ns)?;
    }
    Ok(Applied {
        setting,
        napi_id: Some(napi_id),
    })
}

/// Starts timer polling, or moves its timeout.
pub fn set_timeout(lab: &Lab, napi_id: u32, gro_flush_timeout_ns: u64) -> Result<()> {
    with_held(lab, &lab.receiver, move |resident, held, _| {
        held.set_deferral(
            &mut resident.control,
            napi_id,
            DEFER_HARD_IRQS_MAX,
            gro_flush_timeout_ns,
        )
    })
}

/// The NAPI instances that the receiver has now.
pub fn napi_ids(lab: &Lab) -> Result<Vec<u32>> {
    Ok(lab.receiver.run(|resident| {
        let ifindex = resident.control.interface(INTERFACE)?.ifindex;
        let napis = resident.control.napis(ifindex)?;
        Ok::<_, nicpoll_switch::ControlError>(napis.iter().map(|napi| napi.id).collect())
    })??)
}

/// What the settings mean, for the record.
pub fn facts(period_ns: u64) -> Vec<SettingFacts> {
    let write = |side, name: &str, value: &str| (side, String::from(name), String::from(value));
    let offloads = [
        write(Side::Sender, "tx-tcp*-segmentation (TSO)", "off"),
        write(Side::Receiver, "rx-gro (GRO)", "on"),
    ];
    let timer = [
        write(
            Side::Receiver,
            "napi_defer_hard_irqs",
            &DEFER_HARD_IRQS_MAX.to_string(),
        ),
        write(
            Side::Receiver,
            "gro_flush_timeout",
            &format!("calibrated in warm-up to one round in {period_ns} ns"),
        ),
    ];
    vec![
        SettingFacts {
            setting: Setting::Default,
            description: String::from(
                "the veth link as it comes up: no receive NAPI, packets go through the per-CPU backlog",
            ),
            writes: Vec::new(),
        },
        SettingFacts {
            setting: Setting::Interrupt,
            description: String::from(
                "the receiver's NAPI, woken by each arrival that finds it idle",
            ),
            writes: offloads.to_vec(),
        },
        SettingFacts {
            setting: Setting::Polling,
            description: String::from(
                "the receiver's NAPI, woken by a timer; arrivals wake nothing (NAPI interrupt deferral)",
            ),
            writes: offloads.into_iter().chain(timer).collect(),
        },
    ]
}

fn only_napi(lab: &Lab) -> Result<u32> {
    match napi_ids(lab)?[..] {
        [id] => Ok(id),
        [] => Err(anyhow!(
            "the receiver's {INTERFACE} got no NAPI with GRO on; veth has had one since Linux 5.13"
        )),
        ref several => Err(anyhow!(
            "the receiver's {INTERFACE} has {} NAPI instances where one was expected",
            several.len()
        )),
    }
}

fn with_held(
    lab: &Lab,
    host: &Host,
    change: impl FnOnce(&mut Resident, &mut Held, u32) -> Result<(), SwitchError> + Send + 'static,
) -> Result<()> {
    let (journal, netns_inode) = (lab.journal.clone(), host.netns().inode());
    host.run(move |resident| -> Result<()> {
        let interface = resident.control.interface(INTERFACE)?;
        let ifindex = interface.ifindex;
        let mut held = resident
            .held
            .take()
            .unwrap_or_else(|| Held::new(&journal, netns_inode, interface));
        let outcome = change(resident, &mut held, ifindex);
        // Kept whatever came of it: part of the change may have been made.
        resident.held = Some(held);
        Ok(outcome?)
    })?
}
