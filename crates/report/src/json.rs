//! A study and the proof of the CPU account as JSON, and the JSON Schemas of them.
//!
//! What must hold: the JSON reads back as the very same object. Every field is there in every
//! document, `null` where nothing was measured. A figure that is not finite is a mistake of the part
//! that computed it: builds with debug assertions refuse it. Others print `null`, because a run of
//! many minutes is worth more than its one bad figure.

use nicpoll_model::{CPU_TRUTH_SCHEMA, CpuTruth, SCHEMA, Study};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::documents::render_document;

/// The study as one pretty-printed JSON object, with a newline at its end.
///
/// # Panics
///
/// With debug assertions, when a figure of the study is infinite or not a number.
pub fn render_json(study: &Study) -> String {
    render(study)
}

/// The proof of the CPU account as one pretty-printed JSON object, with a newline at its end.
///
/// # Panics
///
/// With debug assertions, when a figure of it is infinite or not a number.
pub fn render_cpu_truth_json(truth: &CpuTruth) -> String {
    render(truth)
}

fn render<T: Serialize + DeserializeOwned + PartialEq>(object: &T) -> String {
    let text = render_document(object);
    debug_assert!(
        reads_back_as(&text, object),
        "there is a figure that is not finite"
    );
    text
}

/// JSON has no number for infinity and none for "not a number", so such a figure does not return.
fn reads_back_as<T: DeserializeOwned + PartialEq>(text: &str, object: &T) -> bool {
    serde_json::from_str::<T>(text).is_ok_and(|read| read == *object)
}

/// The JSON Schema of what [`render_json`] prints, as `docs/` holds it.
pub(crate) fn json_schema() -> String {
    schema_of::<Study>(
        "What `nicpoll demo --json` prints",
        "A finished nicpoll study: what was planned, where it ran, every trial, and what \
         follows. docs/schema.md explains it. Units stand in field names; null means not \
         measured.",
        SCHEMA,
    )
}

/// The JSON Schema of what [`render_cpu_truth_json`] prints, as `docs/` holds it.
pub(crate) fn cpu_truth_json_schema() -> String {
    schema_of::<CpuTruth>(
        "What `nicpoll doctor --cpu-truth --json` prints",
        "A load that measured itself, and what two accounts of CPU time made of it. docs/cpu-time.md \
         explains it. Units stand in field names; null means not measured.",
        CPU_TRUTH_SCHEMA,
    )
}

/// The JSON Schema of a document whose field `schema` holds `version`. When the document may be one of
/// several, that holds for whichever of them has the field.
pub(crate) fn schema_of<T: JsonSchema>(title: &str, description: &str, version: &str) -> String {
    // Of what is written, not of what may be read: fields without a value are there as null.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    RecursiveTransform(plain_description).transform(&mut schema);
    schema.insert(String::from("title"), Value::from(title));
    schema.insert(String::from("description"), Value::from(description));
    if let Some(named) = schema.pointer_mut("/properties/schema") {
        named["const"] = Value::from(version);
    } else if let Some(Value::Object(parts)) = schema.get_mut("$defs") {
        let named = |part| Value::pointer_mut(part, "/properties/schema");
        for named in parts.values_mut().filter_map(named) {
            named["const"] = Value::from(version);
        }
    }
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema serialises");
    text.push('\n');
    text
}

/// Takes rustdoc's link brackets out of a description: outside of rustdoc they lead nowhere.
fn plain_description(schema: &mut Schema) {
    let Some(Value::String(description)) = schema.get_mut("description") else {
        return;
    };
    *description = description.replace("[`", "`").replace("`]", "`");
}
