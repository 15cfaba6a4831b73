//! Prints the JSON Schema of a study.
//!
//! ```text
//! cargo run -p nicpoll-report --example schema > docs/nicpoll.demo-1.schema.json
//! ```

fn main() {
    print!("{}", nicpoll_report::json_schema());
}
