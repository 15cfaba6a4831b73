//! Whether what a command prints is what its JSON Schema in `docs/` says.

use super::prelude::*;
use jsonschema::Validator;
use nicpoll_report::{SCHEMAS, schema_file};

/// The check of what a command prints, by the name that its schema has in `docs/`.
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

/// Fails with everything that is not as the schema says.
pub fn assert_described(document: &Value, command: &str) {
    let errors: Vec<String> = validator(command)
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new(), "{document:#}");
}
