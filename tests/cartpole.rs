//! The example is a real training: with one seed, more episodes make it better.

mod common;

use common::{code, output, stderr, stdout, tenure};

fn reward(episodes: &str) -> f64 {
    let dir = tempfile::tempdir().expect("a directory");
    let script = format!("{}/examples/train_cartpole.py", env!("CARGO_MANIFEST_DIR"));
    let mut command = tenure(dir.path());
    command.args(["run", "--", "python3", &script, "--seed", "1", "--episodes", episodes]);
    let done = output(&mut command);
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let printed = stdout(&done);
    let line = printed.lines().find_map(|line| line.strip_prefix("FINAL_REWARD:"));
    line.expect("a reward").parse().expect("a number")
}

#[test]
fn the_reward_after_400_episodes_is_at_least_twice_that_after_5() {
    let (few, many) = (reward("5"), reward("400"));
    assert!(many >= 2.0 * few, "{few} after 5, {many} after 400");
}
