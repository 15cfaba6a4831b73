//! Validates commands' output by the JSON Schemas in `docs/`.

use super::prelude::*;
use jsonschema::Validator;
use nicpoll_report::{SCHEMAS, schema_file};

/// Returns the validator of a command, by its schema's name in `docs/`.
pub fn validator(command: &str) -> Validator {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let of_command = format!("nicpoll.{command}/");
    let (document, _) = SCHEMAS
        .iter()
        .find(|(document, _)| document.starts_with(&of_command))
        .unwrap();
    let schema = fs::read(Path::new(docs).join(schema_file(document))).unwrap();
    jsonschema::draft202012::new(&serde_json::from_slice(&schema).unwrap()).unwrap()
}

/// Fails with everything that violates the schema.
pub fn assert_described(document: &Value, command: &str) {
    let errors: Vec<String> = validator(command)
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new(), "{document:#}");
}
