//! A knob as the journal writes it.
//!
//! What must hold: files that earlier versions wrote are read as they were meant: `"up"`,
//! `{"feature": "rx-gro"}`, `{"moderation": "rx-usecs"}`, `{"threaded": "device"}`,
//! `{"gro_flush_timeout": {"napi": 257}}`, `{"irq_suspend_timeout": 257}`, `{"thread_cpus": 4711}`.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::table::TABLE;
use super::{Kind, Knob, KnobRow, Scope, row_of};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Word(String),
    Member(BTreeMap<String, Item>),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Item {
    Id(u32),
    Name(String),
    Scope(Scope),
}

/// What stands beside a knob's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Nothing: there is one such knob.
    Nothing,
    /// The name of a feature.
    Feature,
    /// The row's own name: the key stands for a family of rows.
    KnobRow,
    /// The interface or a NAPI instance.
    Scope,
    /// The id of a NAPI instance.
    Napi,
    /// The pid of a thread.
    Thread,
}

impl Serialize for Knob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (key, beside) = self.row.place.journal_key();
        let id = |scope| match scope {
            Scope::Napi(id) | Scope::Thread(id) => Item::Id(id),
            Scope::Device => Item::Scope(scope),
        };
        let item = match beside {
            Beside::Nothing => return Form::Word(String::from(key)).serialize(serializer),
            Beside::Feature => Item::Name(self.feature.clone().unwrap_or_default()),
            Beside::KnobRow => Item::Name(String::from(self.row.name)),
            Beside::Scope => Item::Scope(self.scope),
            Beside::Napi | Beside::Thread => id(self.scope),
        };
        Form::Member(BTreeMap::from([(String::from(key), item)])).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Knob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = Form::deserialize(deserializer)?;
        read(&form).ok_or_else(|| D::Error::custom("a knob that this nicpoll does not know"))
    }
}

fn read(form: &Form) -> Option<Knob> {
    let (key, item) = match form {
        Form::Word(key) => (key, None),
        Form::Member(member) => {
            let (key, item) = member.first_key_value().filter(|_| member.len() == 1)?;
            (key, Some(item))
        }
    };
    let of_table = TABLE.iter().find_map(|row| read_as(row, key, item));
    of_table.or_else(|| {
        let Some(Item::Name(name)) = item else {
            return None;
        };
        let row = row_of(Kind::of_key(key)?, name).ok()?;
        read_as(row, key, item)
    })
}

fn read_as(row: &'static KnobRow, key: &str, item: Option<&Item>) -> Option<Knob> {
    let (own, beside) = row.place.journal_key();
    if own != key {
        return None;
    }
    let of = |scope| Some(Knob::new(row, scope));
    match (beside, item) {
        (Beside::Nothing, None) => of(Scope::Device),
        (Beside::Feature, Some(Item::Name(name))) if row.stands_for(name) => Knob::of_feature(name),
        (Beside::KnobRow, Some(Item::Name(name))) if name == row.name => of(Scope::Device),
        (Beside::Scope, Some(Item::Name(word))) if word == "device" => of(Scope::Device),
        (Beside::Scope, Some(Item::Scope(scope @ Scope::Napi(_)))) => of(*scope),
        (Beside::Napi, Some(Item::Id(id))) => of(Scope::Napi(*id)),
        (Beside::Thread, Some(Item::Id(pid))) => of(Scope::Thread(*pid)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As version 2 of the journal has them, from before there was a table.
    const WRITTEN: [&str; 11] = [
        r#""up""#,
        r#"{"feature":"rx-gro"}"#,
        r#"{"feature":"tx-tcp-ecn-segmentation"}"#,
        r#"{"feature":"rx-checksum"}"#,
        r#"{"sysctl":"net.ipv4.tcp_ecn"}"#,
        r#"{"threaded":"device"}"#,
        r#"{"defer_hard_irqs":{"napi":257}}"#,
        r#"{"gro_flush_timeout":"device"}"#,
        r#"{"irq_suspend_timeout":257}"#,
        r#"{"moderation":"adaptive-rx"}"#,
        r#"{"thread_cpus":4711}"#,
    ];

    #[test]
    fn records_of_earlier_versions_are_read_and_written_the_same() {
        for text in WRITTEN {
            let knob: Knob = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&knob).unwrap(), text);
        }
    }

    #[test]
    fn what_no_row_stands_for_is_refused() {
        for text in [
            r#""down""#,
            r#""threaded""#,
            r#"{"feature":"rx checksum"}"#,
            r#"{"sysctl":"net/../../etc/passwd"}"#,
            r#"{"moderation":"speed"}"#,
            r#"{"threaded":{"thread":7}}"#,
            r#"{"thread_cpus":{"napi":7}}"#,
            r#"{"threaded":"device","feature":"rx-gro"}"#,
            "{}",
        ] {
            assert!(serde_json::from_str::<Knob>(text).is_err(), "{text}");
        }
    }
}
