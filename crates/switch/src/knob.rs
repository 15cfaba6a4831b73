//! What a switch may change: each value by name, with what it holds.
//!
//! What must hold: a knob and a value are all that putting back needs, so they say everything that
//! the journal has to keep, and nothing that depends on the kernel's version.

use std::borrow::Cow;
use std::fmt;

use nicpoll_sys::schedule::Policy;
use serde::{Deserialize, Serialize};

use crate::moderation::Moderation;

/// Whose value it is: the interface's default, or that of one NAPI instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The interface's own value. Writing it gives it to every NAPI instance too, and instances that
    /// come later start with it.
    Device,
    /// One NAPI instance, by id.
    Napi(u32),
}

/// One value of an interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Knob {
    /// Whether the interface is up: 0 or 1.
    Up,
    /// Whether an offload feature is asked for, by the name that `ethtool -k` shows: 0 or 1.
    Feature(String),
    /// Whether threads do the polling: 0, 1, and 2 for threads that poll without end.
    Threaded(Scope),
    /// How many empty polls keep the interrupt masked.
    DeferHardIrqs(Scope),
    /// From the end of one round to the next poll, in ns; 0: no timer.
    GroFlushTimeout(Scope),
    /// How long an application may keep interrupts off, in ns, of one NAPI instance.
    IrqSuspendTimeout(u32),
    /// Interrupt moderation of the card.
    Moderation(Moderation),
    /// The CPUs of a thread, by its pid.
    ThreadCpus(u32),
    /// The scheduling of a thread, by its pid.
    ThreadPolicy(u32),
}

/// What a knob holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A number in the knob's unit.
    Number(u64),
    /// CPUs, ascending.
    Cpus(Vec<u32>),
    /// A scheduling class with its numbers.
    Policy(#[serde(with = "PolicyForm")] Policy),
}

/// [`Policy`] as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Policy", rename_all = "snake_case", deny_unknown_fields)]
enum PolicyForm {
    Fair {
        nice: i32,
    },
    Batch {
        nice: i32,
    },
    Idle,
    Fifo {
        priority: u32,
    },
    RoundRobin {
        priority: u32,
    },
    Deadline {
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    },
}

impl Value {
    /// 0 or 1.
    pub fn flag(on: bool) -> Self {
        Value::Number(u64::from(on))
    }

    /// The number, of a knob that holds one.
    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Cpus(_) | Value::Policy(_) => None,
        }
    }
}

impl Knob {
    /// The scope of a deferral knob: those whose undoing takes a wait.
    pub fn deferral_scope(&self) -> Option<Scope> {
        match self {
            Knob::DeferHardIrqs(scope) | Knob::GroFlushTimeout(scope) => Some(*scope),
            _ => None,
        }
    }

    /// Which value it is, without the NAPI instance whose value it is.
    pub fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Knob::Up => "up",
            Knob::Threaded(_) => "threaded",
            Knob::DeferHardIrqs(_) => "napi_defer_hard_irqs",
            Knob::GroFlushTimeout(_) => "gro_flush_timeout",
            Knob::IrqSuspendTimeout(_) => "irq-suspend-timeout",
            Knob::Feature(name) => return format!("feature {name}").into(),
            Knob::Moderation(parameter) => {
                return format!("coalescing {}", parameter.name()).into();
            }
            Knob::ThreadCpus(pid) => return format!("thread {pid} CPUs").into(),
            Knob::ThreadPolicy(pid) => return format!("thread {pid} scheduling").into(),
        })
    }

    /// The NAPI instance that the knob goes away with.
    pub fn napi_id(&self) -> Option<u32> {
        match self {
            Knob::Threaded(Scope::Napi(id))
            | Knob::DeferHardIrqs(Scope::Napi(id))
            | Knob::GroFlushTimeout(Scope::Napi(id))
            | Knob::IrqSuspendTimeout(id) => Some(*id),
            _ => None,
        }
    }

    /// The knob of the whole interface that writes this one along.
    pub fn of_device(&self) -> Option<Knob> {
        match self {
            Knob::Threaded(Scope::Napi(_)) => Some(Knob::Threaded(Scope::Device)),
            Knob::DeferHardIrqs(Scope::Napi(_)) => Some(Knob::DeferHardIrqs(Scope::Device)),
            Knob::GroFlushTimeout(Scope::Napi(_)) => Some(Knob::GroFlushTimeout(Scope::Device)),
            _ => None,
        }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = self.napi_id() {
            write!(f, "NAPI {id} ")?;
        }
        f.write_str(&self.name())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Cpus(cpus) => {
                let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
                f.write_str(&cpus.join(","))
            }
            Value::Policy(Policy::Fair { nice }) => write!(f, "nice {nice}"),
            Value::Policy(Policy::Batch { nice }) => write!(f, "batch, nice {nice}"),
            Value::Policy(Policy::Idle) => f.write_str("idle"),
            Value::Policy(Policy::Fifo { priority }) => write!(f, "FIFO {priority}"),
            Value::Policy(Policy::RoundRobin { priority }) => write!(f, "RR {priority}"),
            Value::Policy(Policy::Deadline {
                runtime_ns,
                period_ns,
                ..
            }) => write!(f, "deadline, {runtime_ns} ns in {period_ns} ns"),
        }
    }
}
