//! Writes the JSON Schema of everything that commands print, into `docs/`:
//!
//! ```text
//! cargo run -p nicpoll-report --example schemas
//! ```

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (name, schema) in nicpoll_report::SCHEMAS {
        std::fs::write(docs.join(format!("nicpoll.{name}-1.schema.json")), schema())?;
    }
    Ok(())
}
