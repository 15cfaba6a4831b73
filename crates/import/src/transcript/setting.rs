//! Under which setting a trial ran: what the text has said of its hosts by then.
//!
//! What must hold: a setting that nothing says is not said. Before the first command that switches polling on, a host
//! did not poll: that follows, and is marked so.

use std::collections::{BTreeMap, HashMap};

use nicpoll_model::{ImportedBasis, SourcePlace};

use super::found::{Knob, Switch};

/// A setting, why it is taken for that, and where it is said.
pub type Said = (String, ImportedBasis, Option<SourcePlace>);

/// The name of trials of which nothing says how hosts received.
pub const NOT_SAID: &str = "not-said";

/// All that was said, by host.
pub struct Settings<'a> {
    by_host: HashMap<Option<&'a str>, Vec<&'a Switch>>,
    all: Vec<&'a Switch>,
    /// What was set beside polling, by host and name.
    knobs: BTreeMap<(Option<&'a str>, &'a str), Vec<&'a Knob>>,
    knob_places: Vec<SourcePlace>,
}

impl<'a> Settings<'a> {
    pub fn of(switches: &'a [Switch], knobs: &'a [Knob]) -> Self {
        let mut by_host: HashMap<Option<&str>, Vec<&Switch>> = HashMap::new();
        for switch in switches {
            by_host
                .entry(switch.host.as_deref())
                .or_default()
                .push(switch);
        }
        let mut by_name: BTreeMap<(Option<&str>, &str), Vec<&Knob>> = BTreeMap::new();
        for knob in knobs {
            let key = (knob.host.as_deref(), knob.name.as_str());
            by_name.entry(key).or_default().push(knob);
        }
        Settings {
            by_host,
            all: switches.iter().collect(),
            knobs: by_name,
            knob_places: knobs.iter().map(|it| it.place).collect(),
        }
    }

    /// The last word before a place, in the same file.
    fn last(of: &[&'a Switch], place: &SourcePlace) -> Option<&'a Switch> {
        let before = of.partition_point(|it| it.place < *place);
        let last = of.get(before.checked_sub(1)?)?;
        (last.place.file == place.file).then_some(*last)
    }

    /// The last word about a host, or about all.
    fn of_host(&self, host: Option<&str>, place: &SourcePlace) -> Option<&'a Switch> {
        let said = |host: Option<&str>| Self::last(self.by_host.get(&host)?, place);
        let own = host.and_then(|host| said(Some(host)));
        let all = said(None);
        [own, all].into_iter().flatten().max_by_key(|it| it.place)
    }

    /// The setting of a trial at a place, between two hosts: how they receive, and what else was set.
    pub fn of_trial(
        &self,
        sender: Option<&str>,
        receiver: Option<&str>,
        place: &SourcePlace,
    ) -> Said {
        let (mut name, mut basis, mut said) = self.receiving(sender, receiver, place);
        for (words, of, at) in self.beside(sender, receiver, place) {
            match name.as_str() {
                NOT_SAID => (name, basis) = (words, of),
                _ => name += &format!("+{words}"),
            }
            if of != ImportedBasis::Said {
                basis = ImportedBasis::Inferred;
            }
            said = said.max(Some(at));
        }
        (name, basis, said)
    }

    /// What was set beside polling by then, on either host or on one that the text names beside them. What a variable
    /// held before the first command that sets it is known where that command tells it.
    fn beside(
        &self,
        sender: Option<&str>,
        receiver: Option<&str>,
        place: &SourcePlace,
    ) -> Vec<(String, ImportedBasis, SourcePlace)> {
        let of = |((host, name), all): (&(Option<&str>, &str), &Vec<&'a Knob>)| {
            let after = all.partition_point(|it| it.place < *place);
            let in_file = |it: &&&Knob| it.place.file == place.file;
            let last = after.checked_sub(1).and_then(|at| all.get(at));
            let (value, at, is_said) = match last.filter(in_file) {
                Some(last) => (&last.value, last.place, true),
                None => {
                    let next = all.get(after).filter(in_file)?;
                    (next.before.as_ref()?, next.place, false)
                }
            };
            let is = |end: Option<&str>| end.is_some() && end == *host;
            let (whose, is_of_end) = match (is(sender), is(receiver), host) {
                (true, _, _) => (String::from("sender-"), true),
                (_, true, _) => (String::from("receiver-"), true),
                (.., Some(host)) => (format!("{host}-"), false),
                (.., None) => (String::new(), false),
            };
            let basis = match is_said && is_of_end {
                true => ImportedBasis::Said,
                false => ImportedBasis::Inferred,
            };
            Some((format!("{whose}{name}={value}"), basis, at))
        };
        self.knobs.iter().filter_map(of).collect()
    }

    /// How the hosts of a trial receive.
    fn receiving(&self, sender: Option<&str>, receiver: Option<&str>, place: &SourcePlace) -> Said {
        let name = |is_polling| String::from(if is_polling { "polling" } else { "interrupt" });
        let ends =
            [sender, receiver].map(|host| host.and_then(|host| self.of_host(Some(host), place)));
        match ends {
            [Some(one), Some(other)] => {
                let basis = match [one, other]
                    .iter()
                    .all(|it| it.basis == ImportedBasis::Said)
                {
                    true => ImportedBasis::Said,
                    false => ImportedBasis::Inferred,
                };
                let last = one.place.max(other.place);
                let name = match (one.is_polling, other.is_polling) {
                    (true, false) => String::from("polling-sender-only"),
                    (false, true) => String::from("polling-receiver-only"),
                    (both, _) => name(both),
                };
                (name, basis, Some(last))
            }
            [Some(one), None] | [None, Some(one)] => (
                name(one.is_polling),
                ImportedBasis::Inferred,
                Some(one.place),
            ),
            [None, None] => {
                let nameless = || self.of_host(None, place);
                let any = || {
                    Self::last(&self.all, place).filter(|_| sender.is_none() && receiver.is_none())
                };
                if let Some(one) = nameless().or_else(any) {
                    return (
                        name(one.is_polling),
                        ImportedBasis::Inferred,
                        Some(one.place),
                    );
                }
                match self.next_command(sender, receiver, place) {
                    Some(next) => (
                        name(!next.is_polling),
                        ImportedBasis::Inferred,
                        Some(next.place),
                    ),
                    None => (String::from(NOT_SAID), ImportedBasis::Unknown, None),
                }
            }
        }
    }

    /// The first command behind a place that changes the setting, when nothing was said of it in between.
    fn next_command(
        &self,
        sender: Option<&str>,
        receiver: Option<&str>,
        place: &SourcePlace,
    ) -> Option<&'a Switch> {
        let after = self.all.partition_point(|it| it.place < *place);
        let is_of = |it: &&&Switch| {
            let host = it.host.as_deref();
            host.is_none()
                || (sender.is_none() && receiver.is_none())
                || host == sender
                || host == receiver
        };
        let next = self.all.get(after..)?.iter().take(64).find(is_of)?;
        (next.is_command && next.place.file == place.file).then_some(*next)
    }

    /// Whether anything is said between two places.
    pub fn changes_between(&self, one: &SourcePlace, other: &SourcePlace) -> bool {
        let at = |place: &SourcePlace| self.all.partition_point(|it| it.place < *place);
        let knobs = |place: &SourcePlace| self.knob_places.partition_point(|it| it < place);
        at(one) != at(other) || knobs(one) != knobs(other)
    }
}
