//! Rows of JSON as CSV (RFC 4180; lines end with a newline alone).
//!
//! A column is a field of the row by its own name or, after a blank, by its path: `p50_ns latency/p50_ns`. A figure
//! that was not measured is empty.

use std::iter;

use serde::Serialize;
use serde_json::Value;

use crate::fields::json;
use crate::lists::joined;

/// Returns the JSON of a row with more fields.
pub(crate) fn with(row: &impl Serialize, more: Value) -> Value {
    let mut row = json(row);
    if let (Value::Object(row), Value::Object(more)) = (&mut row, more) {
        row.extend(more);
    }
    row
}

/// Returns the lines of a table with these columns.
pub(crate) fn table(
    columns: String,
    rows: impl Iterator<Item = Value>,
) -> impl Iterator<Item = String> {
    let columns = columns.split('|').map(|column| {
        let (name, path) = column.split_once(' ').unwrap_or((column, column));
        (name, format!("/{path}"))
    });
    let (names, paths): (Vec<&str>, Vec<String>) = columns.unzip();
    let head = joined(names, ",") + "\n";
    let lines = rows.map(move |row| {
        let fields = paths.iter().map(|path| field(row.pointer(path)));
        joined(fields, ",") + "\n"
    });
    iter::once(head).chain(lines)
}

fn field(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => quoted(text),
        // The shortest text that reads back the same, never with an exponent.
        Some(Value::Number(number)) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => float.to_string(),
            None => number.to_string(),
        },
        Some(other) => other.to_string(),
    }
}

/// Quotes a field. A spreadsheet would compute a field that begins like a formula; a quote before it makes it text
/// (OWASP, CSV injection).
fn quoted(field: &str) -> String {
    let field = match field.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{field}"),
        false => String::from(field),
    };
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    }
}
