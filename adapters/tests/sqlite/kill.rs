//! A process that is killed while it writes: what it had been answered is there.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tenure_adapters::names::Names;
use tenure_adapters::sql::{SqliteStore, StoreOptions};
use tenure_core::ids::EffectId;
use tenure_core::store::{StoreAnswer, StoreResult};
use tokio::sync::mpsc::unbounded_channel;

use crate::support::{Fixture, insert, options};

const FILE: &str = "TENURE_TEST_KILL_FILE";

#[tokio::test]
async fn what_was_answered_survives_a_kill_at_any_moment() {
    for answers in [1, 40, 700] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut writer = Command::new(std::env::current_exe().expect("this test's program"))
            .args(["--exact", "kill::writer", "--ignored", "--nocapture"])
            .env(FILE, dir.path().join("tenure.db"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = BufReader::new(writer.stdout.take().expect("it is piped"));
        let mut said = said.lines().map_while(Result::ok);
        let mut answered: Vec<u64> = Vec::new();
        while answered.len() < answers {
            let line = said.next().expect("it writes until it is killed");
            answered.extend(line.strip_prefix("answered ").and_then(|id| id.parse::<u64>().ok()));
        }
        writer.kill().expect("it runs");
        writer.wait().expect("it is our child");
        answered
            .extend(said.filter_map(|line| line.strip_prefix("answered ")?.parse::<u64>().ok()));

        let mut after = Fixture::at(dir, Names::new(), options()).await;
        for number in answered {
            let result = after.one(insert(&format!("key-{number}"))).await;
            let was_there =
                matches!(result, StoreResult::Answer(StoreAnswer::Inserted { existed: true, .. }));
            assert!(was_there, "key-{number}: {result:?}");
        }
    }
}

/// Run by the test above, and killed by it.
#[tokio::test]
#[ignore = "writes until it is killed"]
async fn writer() {
    let path = PathBuf::from(std::env::var_os(FILE).expect("given by the test above"));
    let (tell, mut answers) = unbounded_channel();
    let names = Arc::new(Names::new());
    let store = SqliteStore::open(&path, names, StoreOptions::default(), tell).await;
    let store = store.expect("the file opens");
    for number in 0..20 {
        store.submit(EffectId(number), insert(&format!("key-{number}")));
    }
    // Twenty are always under way. Bounded, so that a test that fails leaves nothing that writes for ever.
    for number in 20..100_000 {
        let Some((effect, StoreResult::Answer(_))) = answers.recv().await else {
            panic!("every order is taken");
        };
        println!("answered {}", effect.0);
        store.submit(EffectId(number), insert(&format!("key-{number}")));
    }
}
