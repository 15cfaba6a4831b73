//! The ends of trials that print no name: by elimination, by sentences that say which host sends in all tests, and by
//! the tests that name theirs.

use std::collections::HashMap;

use nicpoll_model::ImportedTrial;

use crate::lines::prose::{RECEIVERS, SENDERS, is_in};
use crate::transcript::evidence::agreed;
use crate::transcript::found::{HostNames, Statement};

/// Most words between a host's name and its part.
const PART_WITHIN: usize = 5;

/// Names the only address without a name, if the text names two hosts and all trials are of the other one.
pub fn by_elimination(trials: &mut [ImportedTrial], hosts: &HostNames) {
    let is_address = |it: &&String| it.contains(['.', ':']);
    let ends = || {
        trials
            .iter()
            .flat_map(|it| [&it.sender, &it.receiver])
            .flatten()
    };
    let (Some(address), Some(name)) = (
        ends().find(is_address).cloned(),
        ends().find(|it| hosts.has(it)).cloned(),
    ) else {
        return;
    };
    let Some(other) = hosts.other(&name).map(String::from) else {
        return;
    };
    if ends().all(|it| *it == address || *it == name) {
        let of = trials
            .iter_mut()
            .flat_map(|it| [&mut it.sender, &mut it.receiver])
            .flatten();
        of.filter(|it| **it == address)
            .for_each(|it| it.clone_from(&other));
    }
}

/// Names the ends of trials that tell nothing, if the text names two hosts and all others agree on their parts.
pub fn by_agreement(trials: &mut [ImportedTrial], hosts: &HostNames) {
    let [sender, receiver] = agreed(trials);
    let is_bare = |it: &&mut ImportedTrial| it.sender.is_none() && it.receiver.is_none();
    for trial in trials
        .iter_mut()
        .filter(|it| hosts.count() == 2 && is_bare(it))
    {
        (trial.sender, trial.receiver) = (sender.clone(), receiver.clone());
    }
}

/// Names the ends of trials that tell none, if sentences say which host sends and which receives.
pub fn by_parts(trials: &mut [ImportedTrial], statements: &[Statement], hosts: &HostNames) {
    let mut parts: HashMap<&str, [bool; 2]> = HashMap::new();
    let told = statements
        .iter()
        .map(|it| &it.sentence)
        .filter(|it| !it.asks);
    for sentence in told {
        for name in hosts.named_in(&sentence.words) {
            let named = format!(" {} ", name.to_ascii_lowercase());
            let Some(at) = sentence.words.find(&named) else {
                continue;
            };
            let after = sentence.words[at + named.len()..].split_whitespace();
            let after = after.filter(|it| !it.starts_with(|it: char| it.is_ascii_digit()));
            let after = after.take(PART_WITHIN).take_while(|it| {
                !hosts.has(it) && !is_in(it, "to from with against than not on of for")
            });
            for word in after {
                let part = [(SENDERS, "sends transmits"), (RECEIVERS, "receives")];
                let is = part.map(|(nouns, verbs)| is_in(word, nouns) || is_in(word, verbs));
                let known = parts.entry(name).or_default();
                *known = [known[0] | is[0], known[1] | is[1]];
                if is[0] || is[1] {
                    break;
                }
            }
        }
    }
    let one = |part: [bool; 2]| {
        let mut all = parts.iter().filter(|it| *it.1 == part);
        let first = all.next()?;
        all.next().is_none().then(|| String::from(*first.0))
    };
    let (Some(sender), Some(receiver)) = (one([true, false]), one([false, true])) else {
        return;
    };
    let is = |end: &Option<String>, host: &String| end.as_ref().is_none_or(|it| it == host);
    if trials
        .iter()
        .all(|it| is(&it.sender, &sender) && is(&it.receiver, &receiver))
    {
        for trial in trials {
            trial.sender = Some(sender.clone());
            trial.receiver = Some(receiver.clone());
        }
    }
}
