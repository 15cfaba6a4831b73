//! docs/switch.md lists every knob as the table does.

use nicpoll_switch::knob::KnobRow;
use nicpoll_switch::knob::table::TABLE;

const PAGE: &str = include_str!("../../../docs/switch.md");

const HEAD: &str = "\
| Knob | What it is | Value | Options | Where | Changing it disturbs | FreeBSD |
|---|---|---|---|---|---|---|
";

fn line(row: &KnobRow) -> String {
    let options = row.options.iter().map(|option| match option.value_name {
        Some(value) => format!("`--{} {value}`", option.long),
        None => format!("`--{}`", option.long),
    });
    let mut options: Vec<String> = options.collect();
    if row.is_moderation() {
        options.push(String::from("`--moderation`"));
    }
    let freebsd = row
        .freebsd
        .map_or_else(String::new, |name| format!("`{name}`"));
    format!(
        "| `{}` | {} | {} | {} | {} | {} | {freebsd} |\n",
        row.name,
        row.help,
        row.unit.describe(),
        options.join(", "),
        row.location(),
        row.disturbs.describe(),
    )
}

#[test]
fn the_page_lists_every_knob_as_the_table_has_it() {
    let table: String = TABLE.iter().map(|row| line(row)).collect();
    let wanted = format!("{HEAD}{table}");
    assert!(
        PAGE.contains(&wanted),
        "docs/switch.md should contain:\n{wanted}"
    );
}
