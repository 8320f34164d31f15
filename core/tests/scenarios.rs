//! Plays the text scenarios of `tests/scenarios/`: events, a line, what they led to.
//!
//! `UPDATE_EXPECT=1 cargo test -p tenure-core --test scenarios` rewrites the expectations; review the diff.
//! A scenario that says `# rule: Name` must play differently when that rule is taken out (feature `bugs`).

mod stage;

use std::fs;
use std::path::{Path, PathBuf};

use stage::StageSet;
use tenure_core::rules::Rules;

#[test]
fn every_scenario_plays_as_written() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    let files = scenarios();
    assert!(files.len() > 20, "only {} scenarios found", files.len());
    for file in files {
        let written = fs::read_to_string(&file).expect("a scenario can be read");
        let played = play(&written, Rules::ALL);
        if played == written {
            continue;
        }
        if update {
            fs::write(&file, &played).expect("a scenario can be written");
        } else {
            wrong.push(format!("{}\n{}", file.display(), difference(&written, &played)));
        }
    }
    assert!(wrong.is_empty(), "scenarios that play otherwise:\n{}", wrong.join("\n"));
}

#[cfg(feature = "bugs")]
#[test]
fn every_rule_that_a_scenario_names_is_needed_there() {
    let mut named = 0;
    for file in scenarios() {
        let written = fs::read_to_string(&file).expect("a scenario can be read");
        for name in written.lines().filter_map(|line| line.strip_prefix("# rule: ")) {
            let rule = rule(name).unwrap_or_else(|| panic!("{}: no rule {name}", file.display()));
            let played = play(&written, Rules::without(rule));
            assert_ne!(played, written, "{}: plays the same without {name}", file.display());
            named += 1;
        }
    }
    assert!(named >= 10, "only {named} rules are named by scenarios");
}

#[cfg(feature = "bugs")]
fn rule(name: &str) -> Option<tenure_core::rules::Rule> {
    tenure_core::rules::Rule::EVERY.into_iter().find(|rule| format!("{rule:?}") == name.trim())
}

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of scenarios is there")
        .map(|entry| entry.expect("an entry can be read").path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    files.sort();
    files
}

/// The scenario with its expectations as they come out.
fn play(written: &str, rules: Rules) -> String {
    let mut stage = StageSet::new(rules);
    let mut played = String::new();
    let mut skipping = false;
    for line in written.lines() {
        match line {
            "----" => {
                played.push_str("----\n");
                played.push_str(&stage.take_lines());
                skipping = true;
            }
            "" => {
                skipping = false;
                played.push('\n');
            }
            _ if skipping => {}
            _ => {
                played.push_str(line);
                played.push('\n');
                if !line.starts_with('#') {
                    stage.play(line);
                }
            }
        }
    }
    played
}

fn difference(written: &str, played: &str) -> String {
    let (mut old, mut new) = (written.lines(), played.lines());
    let mut text = String::new();
    for number in 1.. {
        match (old.next(), new.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let (a, b) = (a.unwrap_or("(end)"), b.unwrap_or("(end)"));
                text.push_str(&format!("  line {number}\n  - {a}\n  + {b}\n"));
            }
        }
    }
    text
}
