//! Writes the JSON Schemas of all commands' output into `docs/`:
//!
//! ```text
//! cargo run -p nicpoll-report --example schemas
//! ```

use std::io;
use std::path::Path;

use nicpoll_report::{SCHEMAS, schema_file};

fn main() -> io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (document, schema) in SCHEMAS {
        std::fs::write(docs.join(schema_file(document)), schema(document))?;
    }
    Ok(())
}
