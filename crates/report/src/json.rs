//! Documents as JSON, and the JSON Schemas of them.
//!
//! A document is one object with a newline at its end. It has every field, `null` if not measured, and reads back as
//! the same object. `docs/` holds each schema in a [file of its own](schema_file); `cargo run -p nicpoll-report
//! --example schemas` writes them.

use std::io::{self, Write};

use nicpoll_model::ab::{AB_SCHEMA, LiveAb};
use nicpoll_model::cpu::{SIM_TICKS_SCHEMA, SimTicks};
use nicpoll_model::engine::{
    BLAST_SCHEMA, BlastDocument, FORWARD_SCHEMA, ForwardDocument, SINK_SCHEMA, SinkDocument,
};
use nicpoll_model::line::{LINE_RATES_SCHEMA, LineRates};
use nicpoll_model::sim::{
    SIM_FIT_HOST_SCHEMA, SIM_FIT_SCHEMA, SIM_PUBLISHED_SCHEMA, SIM_RUN_SCHEMA, SIM_SWEEP_SCHEMA,
    SimFit, SimFitHost, SimPublished, SimRun, SimSweep,
};
use nicpoll_model::traffic::{
    IPERF_RUNS_SCHEMA, IPERF_SCHEMA, IperfEvent, IperfRun, IperfRuns, NETBLAST_RUNS_SCHEMA,
    NETBLAST_SCHEMA, NETRECEIVE_SCHEMA, NETSEND_SCHEMA, Netblast, NetblastRuns, Netreceive,
    Netsend, RR_SCHEMA, RrDocument,
};
use nicpoll_model::tune::{TUNE_SCHEMA, Tune};
use nicpoll_model::{
    COMPARED_SCHEMA, CPU_TRUTH_SCHEMA, Compared, CpuTruth, DOCTOR_SCHEMA, Doctor, HOSTS_SCHEMA,
    HostsCompared, IMPORTED_SCHEMA, Imported, SCHEMA, SET_SCHEMA, SHOW_SCHEMA, STUDIES_SCHEMA,
    STUDY_PLAN_SCHEMA, STUDY_SEARCH_SCHEMA, Show, Studies, Study, StudyPlan, StudySearch,
    SwitchRun, WATCH_SCHEMA, WatchEnd, WatchSample, WatchStart,
};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Renders a document as one pretty-printed JSON object.
pub fn render_document<T: Serialize>(document: &T) -> String {
    let mut text = pretty(&compact(document));
    text.push('\n');
    text
}

/// Serialises a document as JSON without blanks.
pub(crate) fn compact(document: &impl Serialize) -> String {
    let mut text = Vec::new();
    write_compact(document, &mut text).expect("a document has string keys and serialises");
    String::from_utf8(text).expect("JSON is text")
}

/// The same, to a writer. All kinds of output start from it: another serialiser would add a copy of all documents'
/// code to the program.
pub(crate) fn write_compact(document: &impl Serialize, to: &mut dyn Write) -> io::Result<()> {
    Ok(serde_json::to_writer(to, document)?)
}

/// Reformats JSON with a line for each field, like serde_json's pretty printer.
fn pretty(compact: &str) -> String {
    let mut text = String::with_capacity(2 * compact.len());
    let (mut depth, mut is_quoted, mut is_escaped) = (0, false, false);
    let line = |depth: usize| format!("\n{:1$}", "", 2 * depth);
    let mut letters = compact.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            _ if is_quoted => {
                is_quoted = is_escaped || letter != '"';
                is_escaped = !is_escaped && letter == '\\';
            }
            '"' => is_quoted = true,
            '}' | ']' => {
                depth -= 1;
                text += &line(depth);
            }
            _ => {}
        }
        text.push(letter);
        match letter {
            _ if is_quoted => {}
            ':' => text.push(' '),
            ',' => text += &line(depth),
            '{' | '[' => match letters.next_if(|next| matches!(next, '}' | ']')) {
                Some(end) => text.push(end),
                None => {
                    depth += 1;
                    text += &line(depth);
                }
            },
            _ => {}
        }
    }
    text
}

/// The same of a document with computed figures.
///
/// JSON has no number for infinity and none for "not a number". Such a figure is a bug; without debug assertions it
/// prints as `null`, because a run of many minutes is worth more than one bad figure.
///
/// # Panics
///
/// With debug assertions, when a figure is infinite or not a number.
pub fn render_json<T: Serialize + DeserializeOwned + PartialEq>(document: &T) -> String {
    let text = render_document(document);
    debug_assert!(
        serde_json::from_str::<T>(&text).is_ok_and(|read| read == *document),
        "there is a figure that is not finite"
    );
    text
}

/// Renders an event of a stream as one line of JSON: `{"event": ..., "data": ...}`.
pub fn render_event<T: Serialize>(event: &'static str, data: &T) -> String {
    #[derive(Serialize)]
    struct NamedEvent<'a, T> {
        event: &'static str,
        data: &'a T,
    }
    let mut text = serde_json::to_string(&NamedEvent { event, data })
        .expect("an event has string keys and serialises");
    text.push('\n');
    text
}

/// The name and version of a kind of document, and the function that makes its schema.
pub type NamedSchema = (&'static str, fn(&str) -> String);

/// Every kind of document.
pub const SCHEMAS: [NamedSchema; 31] = [
    (AB_SCHEMA, schema_of::<LiveAb>),
    (BLAST_SCHEMA, schema_of::<BlastDocument>),
    (CPU_TRUTH_SCHEMA, schema_of::<CpuTruth>),
    (SCHEMA, schema_of::<Study>),
    (DOCTOR_SCHEMA, schema_of::<Doctor>),
    (FORWARD_SCHEMA, schema_of::<ForwardDocument>),
    (IMPORTED_SCHEMA, schema_of::<Imported>),
    (IPERF_SCHEMA, schema_of::<IperfOutput>),
    (IPERF_RUNS_SCHEMA, schema_of::<IperfRuns>),
    (LINE_RATES_SCHEMA, schema_of::<LineRates>),
    (NETBLAST_SCHEMA, schema_of::<Netblast>),
    (NETBLAST_RUNS_SCHEMA, schema_of::<NetblastRuns>),
    (NETRECEIVE_SCHEMA, schema_of::<Netreceive>),
    (NETSEND_SCHEMA, schema_of::<Netsend>),
    (RR_SCHEMA, schema_of::<RrDocument>),
    (SET_SCHEMA, schema_of::<SwitchRun>),
    (SHOW_SCHEMA, schema_of::<Show>),
    (SIM_FIT_SCHEMA, schema_of::<SimFit>),
    (SIM_FIT_HOST_SCHEMA, schema_of::<SimFitHost>),
    (SIM_PUBLISHED_SCHEMA, schema_of::<SimPublished>),
    (SIM_RUN_SCHEMA, schema_of::<SimRun>),
    (SIM_SWEEP_SCHEMA, schema_of::<SimSweep>),
    (SIM_TICKS_SCHEMA, schema_of::<SimTicks>),
    (SINK_SCHEMA, schema_of::<SinkDocument>),
    (STUDIES_SCHEMA, schema_of::<Studies>),
    (COMPARED_SCHEMA, schema_of::<Compared>),
    (HOSTS_SCHEMA, schema_of::<HostsCompared>),
    (STUDY_PLAN_SCHEMA, schema_of::<StudyPlan>),
    (STUDY_SEARCH_SCHEMA, schema_of::<StudySearch>),
    (TUNE_SCHEMA, schema_of::<Tune>),
    (WATCH_SCHEMA, schema_of::<WatchLine>),
];

/// What `nicpoll iperf` prints as JSON: an object, or a line of a stream.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum IperfOutput {
    Run(Box<IperfRun>),
    Event(Box<IperfEvent>),
}

/// A line of what `nicpoll watch` prints as JSON.
#[derive(JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum WatchLine {
    /// The first line.
    Start(Box<WatchStart>),
    /// An interval has ended.
    Interval(Box<WatchSample>),
    /// The last line.
    End(Box<WatchEnd>),
}

/// Returns the file in `docs/` with the schema of a kind of document: `nicpoll.show-1.schema.json` for
/// `nicpoll.show/1`.
pub fn schema_file(document: &str) -> String {
    format!("{}.schema.json", document.replace('/', "-"))
}

/// Makes the JSON Schema of a document whose field `schema` is `name`. If the document is one of several, that
/// applies to those with the field.
fn schema_of<T: JsonSchema>(name: &str) -> String {
    // The schema of the output, in which fields without a value are null.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    RecursiveTransform(plain_description).transform(&mut schema);
    let mut told = include_str!("schemas.txt").split("\n\n").map(str::lines);
    let mut told = told
        .find_map(|mut lines| (lines.next()? == name).then_some(lines))
        .expect("each schema has its title and description");
    for key in ["title", "description"] {
        let text = told.next().unwrap_or_default();
        schema.insert(String::from(key), Value::from(text));
    }
    if let Some(named) = schema.pointer_mut("/properties/schema") {
        named["const"] = Value::from(name);
    } else if let Some(Value::Object(parts)) = schema.get_mut("$defs") {
        let named = |part| Value::pointer_mut(part, "/properties/schema");
        for named in parts.values_mut().filter_map(named) {
            named["const"] = Value::from(name);
        }
    }
    render_document(&schema)
}

/// Removes rustdoc's link brackets from a description.
fn plain_description(schema: &mut Schema) {
    let Some(Value::String(description)) = schema.get_mut("description") else {
        return;
    };
    *description = description.replace("[`", "`").replace("`]", "`");
}
