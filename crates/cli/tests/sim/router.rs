//! The router guide: its host file is valid, its commands run anywhere, and its statements about them are true.

use crate::common::prelude::*;

const GUIDE: &str = include_str!("../../../../docs/router.md");

fn sim(args: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(NICPOLL);
    command
        .arg("sim")
        .args(args)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn block<'a>(text: &'a str, kind: &str) -> &'a str {
    let (_, block) = text.split_once(&format!("```{kind}\n")).expect(kind);
    block.split("```").next().unwrap()
}

#[test]
fn the_guides_router_of_ten_lines_runs_where_nothing_but_the_program_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = block(GUIDE, "toml");
    assert!(file.lines().count() <= 10, "{file}");
    fs::write(folder.path().join("router.toml"), file).unwrap();
    let commands = block(GUIDE, "console").lines();
    let mut rates = Vec::new();
    for command in commands {
        let words = command.strip_prefix("$ nicpoll sim ").expect(command);
        let mut words: Vec<&str> = words.split(' ').collect();
        words.extend(["--no-explain", "--json"]);
        let run: serde_json::Value =
            serde_json::from_str(&stdout(&sim(&words, folder.path()))).unwrap();
        rates.push(
            run["figures"]["delivered_packets_per_second"]
                .as_f64()
                .unwrap(),
        );
    }
    let [interrupts, polled, bound] = rates[..] else {
        panic!("{rates:?}");
    };
    for (rate, said) in [
        (interrupts, "50,000"),
        (polled, "25,500"),
        (bound, "48,500"),
    ] {
        let said_rate: f64 = said.replace(',', "").parse().unwrap();
        assert!(
            GUIDE.contains(said) && (rate / said_rate - 1.0).abs() < 0.02,
            "{said}: {rate}"
        );
    }
}

#[test]
fn the_guides_router_of_several_processors_does_what_the_guide_says() {
    let folder = tempfile::tempdir().unwrap();
    let (_, guide) = GUIDE.split_once("## A router of several").unwrap();
    let file = block(guide, "toml");
    assert!(file.lines().count() <= 10, "{file}");
    let command = block(guide, "console").replace("\\\n", "");
    let command = command.trim_start().strip_prefix("$ nicpoll sim ").unwrap();
    let rows = guide.lines().filter(|line| line.starts_with("| `"));
    let mut told = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [discipline, queues, rate, idle, interrupts] = cells[..] else {
            panic!("{row}");
        };
        let file = file.replace("queues = 4", &format!("queues = {queues}"));
        fs::write(folder.path().join("router.toml"), file).unwrap();
        let mut words: Vec<&str> = command.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "--router-discipline");
        words[at.unwrap() + 1] = discipline.trim_matches('`');
        words.push("--json");
        let run: serde_json::Value =
            serde_json::from_str(&stdout(&sim(&words, folder.path()))).unwrap();
        let router = &run["figures"]["hosts"][1];
        let number = |text: &str| text.replace([',', '%', ' '], "").parse::<f64>().unwrap();
        for (value, said, aim) in [
            (
                &run["figures"]["delivered_packets_per_second"],
                number(rate),
                0.02,
            ),
            (&router["interrupts"], number(interrupts) / 20.0, 0.02),
        ] {
            let value = value.as_f64().unwrap();
            let is_near = (value - said).abs() <= aim * said.max(50.0);
            assert!(is_near, "{row}: {value} instead of {said}");
        }
        let share = 100.0 * router["cpu"]["idle_ratio"].as_f64().unwrap();
        assert!((share - number(idle)).abs() < 1.0, "{row}: {share} %");
        told += 1;
    }
    assert!(told >= 3, "{told} rows");
}

#[test]
fn the_program_carries_its_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let list = stdout(&sim(&["hosts"], folder.path()));
    for word in [
        "generic ",
        "net6501 ",
        "[card] preset: em, sis, vr",
        "[link] preset: 10m,",
    ] {
        assert!(list.contains(word), "{word}: {list}");
    }
    let text = stdout(&sim(&["hosts", "wrap"], folder.path()));
    assert_eq!(text, include_str!("../../../../sim/hosts/wrap.toml"));
    let args = ["run", "wrap", "--duration", "50ms", "--no-explain"];
    assert!(stdout(&sim(&args, folder.path())).contains("host wrap under freebsd-interrupt"));
    let refused = sim(&["hosts", "warp"], folder.path());
    assert_code(&refused, 2);
    let said = stderr(&refused);
    assert_has(&said, "there is no host 'warp'; there are asa633,");
}
