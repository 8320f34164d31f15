//! Every failure that the explorer ever found is kept as a replay, and must stay harmless.

use std::path::Path;

use tenure_core::rules::Rules;
use tenure_sim::{Replay, replay};

#[test]
fn what_was_found_once_does_no_harm_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions");
    let files =
        std::fs::read_dir(&folder).expect("the folder of regressions is part of the source");
    let mut played = 0;
    for file in files {
        let path = file.expect("a readable folder").path();
        let found = Replay::of_file(&path).unwrap_or_else(|why| panic!("{why}"));
        let again = replay(&found, Rules::ALL);
        let (name, lines) = (path.display(), again.timeline.join("\n"));
        assert_eq!(again.violation, None, "{name}\n{lines}");
        assert!(again.faults > 0, "{name}: no fault of it hits any more; make it anew or drop it");
        played += 1;
    }
    assert!(played >= 3, "only {played} regressions were found in {}", folder.display());
}

#[test]
fn a_replay_that_cannot_be_read_says_what_to_do() {
    let unknown = r#"{"version":1,"scenario":"dispatch","policy":"small-world","seed":1,
        "choices":[{"point":3,"fault":"gremlin"}]}"#;
    let why = Replay::of_json(unknown).expect_err("there is no such fault").to_string();
    assert!(why.contains("gremlin") && why.contains("power-cut"), "{why}");
    let newer =
        r#"{"version":2,"scenario":"dispatch","policy":"small-world","seed":1,"choices":[]}"#;
    let why = Replay::of_json(newer).expect_err("it is newer").to_string();
    assert!(why.contains("use a newer tenure"), "{why}");
    let missing = Replay::of_file(Path::new("no-such-file.json")).expect_err("it is not there");
    assert!(missing.to_string().contains("no-such-file.json"));
}
