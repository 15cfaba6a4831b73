//! How words are parsed and numbers shown, as recorded in `words.txt`.

use std::fmt::Debug;

use nicpoll_model::numbers::{
    aligned, count, duration_text, figure, figure_or_missing, per_second, percent, plain_number,
    span, time_figure,
};
use nicpoll_model::units::{
    NoQuantity, parse_count_rate, parse_length, parse_rate, parse_seconds, parse_speed, parse_time,
    show_time,
};
use nicpoll_model::{Rate, RateUnit};
use nicpoll_testkit::golden_cases;

fn read<T: Debug>(quantity: Result<T, NoQuantity>) -> String {
    quantity.map_or_else(
        |error| error.to_string(),
        |quantity| format!("{quantity:?}"),
    )
}

/// Parses numbers separated by blanks; a word that is no number is a missing one.
fn numbers(words: &str) -> Vec<Option<f64>> {
    words.split(' ').map(|word| word.parse().ok()).collect()
}

#[test]
fn words_are_read_and_numbers_shown() {
    golden_cases("tests/words.txt", |name, _| {
        let (kind, word) = name.split_once(' ').unwrap_or((name, ""));
        let number = || word.parse::<f64>().expect("a number");
        let ns = || word.parse::<u64>().ok();
        match kind {
            "speed" => read(parse_speed(word)),
            "rate" => read(parse_rate(word)),
            "requests" => read(parse_count_rate(word)),
            "time" => read(parse_time(word)),
            "length" => read(parse_length(word)),
            "seconds" => read(parse_seconds(word)),
            "decimal" => {
                let (digits, scale) = word.split_once(" x").unwrap_or((word, "1"));
                let scale = scale.parse().expect("a scale");
                format!(
                    "{:?}",
                    Rate::decimal(RateUnit::PacketsPerSecond, digits, scale)
                )
            }
            "show_time" => {
                let text = show_time(ns().expect("nanoseconds"));
                let again = parse_time(&text).expect("what is shown can be read");
                assert_eq!(u64::try_from(again.as_nanos()).ok(), ns());
                text
            }
            "figure" => figure(number()),
            "figure_or_missing" => figure_or_missing(numbers(word)[0]),
            "count" => count(word),
            "percent" => percent(number()),
            "plain" => plain_number(numbers(word)[0]),
            "duration" => duration_text(ns().expect("nanoseconds")),
            "time_figure" => time_figure(ns()),
            "span" => span(number()),
            "per_second" | "aligned" => {
                let all: Vec<f64> = numbers(word).into_iter().flatten().collect();
                match all[..] {
                    [amount, seconds] if kind == "per_second" => per_second(amount, seconds),
                    [low, high] => aligned([low, high], &[]).join(" "),
                    [low, middle, high] => aligned([low, middle, high], &[1.0, 1.05]).join(" "),
                    _ => unreachable!("{word}"),
                }
            }
            other => unreachable!("{other}"),
        }
    });
}
