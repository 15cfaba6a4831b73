//! What a study file needs of the machine that runs it: CPUs, sysctls, offload features, files, programs and interfaces.
//!
//! Reading a file does not inspect the machine, so a file can be read anywhere. What the machine lacks is reported
//! with its line before anything is built.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, io};

use nicpoll_lab::{Cpus, ExistingInterfaces, MACHINE, open_existing, try_netem};
use nicpoll_model::{FileError, Side};
use nicpoll_switch::knob::{Kind, KnobRow};
use nicpoll_switch::{Control, KnobValues, SysctlOwner, Value, did_you_mean};
use nicpoll_sys::privilege::missing_for_lab;
use serde::{Deserialize, Serialize};
use toml::Spanned;

/// Permission bits of executable files.
const EXECUTABLE: u32 = 0o111;

/// The loopback is the first interface of a network namespace.
const LOOPBACK_INDEX: u32 = 1;

/// Something that the machine must have, and the file's position that asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResourceNeed {
    span: Range<usize>,
    wanted: Resource,
}

/// What the machine must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Resource {
    /// Cores for the traffic.
    Cpus(Cpus),
    /// A sysctl of a network namespace, or of the machine.
    Sysctl {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// Whether it belongs to the whole machine.
        is_of_machine: bool,
    },
    /// An offload feature that some interface may have.
    Feature(String),
    /// The object file of an XDP program.
    Object(PathBuf),
    /// A program of the user's, by its name or its path.
    Program(String),
    /// Interfaces that exist already, and reach each other.
    Existing(ExistingInterfaces),
    /// The kernel's queue that delays and loses packets.
    Netem,
}

impl ResourceNeed {
    /// A need of the entry at `span`.
    pub fn new(span: Range<usize>, wanted: Resource) -> Self {
        ResourceNeed { span, wanted }
    }

    /// The needs of a host's values.
    pub fn of_values(host: &str, values: &Spanned<KnobValues>) -> Vec<ResourceNeed> {
        let span = values.span();
        let of = |(row, value): (&'static KnobRow, &Value)| {
            let wanted = match row.named_kind()? {
                Kind::Sysctl => Resource::Sysctl {
                    name: String::from(row.name),
                    value: row.show(value),
                    is_of_machine: host == MACHINE,
                },
                Kind::Feature => Resource::Feature(String::from(row.name)),
            };
            Some(ResourceNeed::new(span.clone(), wanted))
        };
        values.get_ref().iter().filter_map(of).collect()
    }
}

/// What the machine has, as far as files may need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// The cores that this process may use, ascending.
    pub cpus: Vec<u32>,
    /// Owners of the sysctls that the file names, as far as they could be determined.
    pub sysctls: BTreeMap<String, SysctlOwner>,
    /// Every offload feature that this kernel knows; empty if unknown.
    pub features: BTreeSet<String>,
    /// Resources whose trial failed, and why.
    pub(crate) refused: Vec<(Resource, String)>,
}

impl Here {
    /// Inspects this machine as far as a file needs it.
    ///
    /// # Errors
    /// When the kernel does not say which cores may be used.
    pub(crate) fn look(needs: &[ResourceNeed]) -> io::Result<Self> {
        let wanted = || needs.iter().map(|need| &need.wanted);
        let sysctls = wanted().filter_map(|wanted| match wanted {
            Resource::Sysctl { name, value, .. } => Some((wanted, name.as_str(), value.clone())),
            _ => None,
        });
        let sysctls: Vec<(&Resource, &str, String)> = sysctls.collect();
        let asked = sysctls.iter();
        let asked = asked.map(|(_, name, value)| (String::from(*name), value.clone()));
        let owners = match sysctls.is_empty() {
            true => Vec::new(),
            // Without the privilege to read it, the change itself is refused later.
            false => SysctlOwner::of(asked.collect()).unwrap_or_default(),
        };
        let tried = || sysctls.iter().zip(&owners);
        let refused_values = tried().filter_map(|((wanted, name, value), (_, why))| {
            let why = why.as_ref()?;
            let text = format!("this kernel does not take {name} = \"{value}\": {why}");
            Some(((*wanted).clone(), text))
        });
        let features = match wanted().any(|wanted| matches!(wanted, Resource::Feature(_))) {
            true => Control::new().features(LOOPBACK_INDEX).ok(),
            false => None,
        };
        Ok(Here {
            cpus: nicpoll_sys::schedule::allowed_cpus()?,
            sysctls: tried()
                .map(|((_, name, _), (owner, _))| (String::from(*name), *owner))
                .collect(),
            features: features.map_or_else(BTreeSet::new, |features| {
                features.wanted.into_keys().collect()
            }),
            refused: wanted()
                .filter_map(|wanted| Some((wanted.clone(), refusal(wanted)?)))
                .chain(refused_values)
                .collect(),
        })
    }
}

/// Refuses what the machine cannot do. `text` is what the file was read from.
///
/// # Errors
/// With the line, and what would be possible.
pub fn check(needs: &[ResourceNeed], text: &str, here: &Here) -> Result<(), FileError> {
    for ResourceNeed { span, wanted } in needs {
        let refused = || {
            let mut refused = here.refused.iter();
            let own = refused.find(|(other, _)| other == wanted);
            own.map(|(_, why)| why.clone())
        };
        let missing = match wanted {
            Resource::Cpus(cpus) => missing_cpus(*cpus, &here.cpus),
            Resource::Sysctl {
                name,
                is_of_machine,
                ..
            } => {
                let owner = here.sysctls.get(name);
                let misplaced =
                    owner.and_then(|owner| misplaced_sysctl(name, *is_of_machine, *owner));
                misplaced.or_else(refused)
            }
            Resource::Feature(name) => missing_feature(name, &here.features),
            Resource::Object(_)
            | Resource::Program(_)
            | Resource::Existing(_)
            | Resource::Netem => refused(),
        };
        if let Some(message) = missing {
            return Err(FileError::at(text, span.clone(), message));
        }
    }
    Ok(())
}

/// Tries resources that only a trial can show; returns why one failed. Without the privilege, the study itself is
/// refused later.
fn refusal(wanted: &Resource) -> Option<String> {
    let is_privileged = missing_for_lab().is_ok_and(|missing| missing.is_empty());
    match wanted {
        Resource::Object(path) => {
            let error = File::open(path).err()?;
            Some(format!("cannot read {}: {error}", path.display()))
        }
        Resource::Program(name) => missing_program(name),
        Resource::Existing(interfaces) if is_privileged => {
            Some(open_existing(interfaces).err()?.with_causes())
        }
        Resource::Netem if is_privileged => {
            let error = try_netem().err()?;
            Some(format!(
                "this kernel cannot delay or lose packets of a link ({error}): load its module (modprobe sch_netem), or \
                 leave out delay and loss"
            ))
        }
        _ => None,
    }
}

fn missing_program(name: &str) -> Option<String> {
    let is_program = |path: &Path| {
        let facts = fs::metadata(path);
        facts.is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & EXECUTABLE != 0)
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let (is_there, remedy) = match name.contains('/') {
        true => (is_program(Path::new(name)), "install it there"),
        false => (
            env::split_paths(&path).any(|folder| is_program(&folder.join(name))),
            "install it, or write its path",
        ),
    };
    (!is_there).then(|| {
        let path = path.display();
        format!("there is no program '{name}' on this machine (PATH is {path}): {remedy}")
    })
}

fn misplaced_sysctl(name: &str, is_of_machine: bool, owner: SysctlOwner) -> Option<String> {
    match (owner, is_of_machine) {
        (SysctlOwner::Namespace, false) | (SysctlOwner::Machine, true) => None,
        (SysctlOwner::Namespace, true) => Some(format!(
            "each network namespace has its own {name}, and that of the machine would change nothing for the traffic; \
             write it at the sender or the receiver"
        )),
        (SysctlOwner::Machine, false) => Some(format!(
            "{name} is the whole machine's: it would affect every interface and program here during a trial. To allow \
             that, write machine = {{ sysctl = {{ \"{name}\" = ... }} }}; it is restored after each trial"
        )),
        (SysctlOwner::Nobody, _) => Some(format!(
            "this kernel has no sysctl {name} that can be written; sysctl -a lists those that there are"
        )),
    }
}

fn missing_feature(name: &str, known: &BTreeSet<String>) -> Option<String> {
    if known.is_empty() || known.contains(name) {
        return None;
    }
    let meant = did_you_mean(name, known.iter().map(String::as_str));
    Some(format!(
        "this kernel has no feature {name}; ethtool -k IF lists those of an interface{meant}"
    ))
}

fn missing_cpus(asked: Cpus, here: &[u32]) -> Option<String> {
    let list = || {
        let cpus: Vec<String> = here.iter().map(ToString::to_string).collect();
        cpus.join(", ")
    };
    // By default the lab takes the first two.
    let [first, second, ..] = here else {
        return None;
    };
    let own = Cpus {
        sender: Some(*first),
        receiver: Some(*second),
    };
    let in_force = own.under(asked);
    for side in Side::ALL {
        let cpu = in_force.of(side)?;
        if !here.contains(&cpu) {
            return Some(format!(
                "cpu {cpu} cannot run the {side}: this program may use {}",
                list()
            ));
        }
    }
    (in_force.sender == in_force.receiver).then(|| {
        format!(
            "sender and receiver would share cpu {}, and their CPU time is told apart by core; give both, of {}",
            in_force.sender.unwrap_or_default(),
            list()
        )
    })
}
