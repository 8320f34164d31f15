//! What a store that cannot write answers, and that it works again once it can.

use sqlx::Executor;
use tenure_adapters::sql::StoreOptions;
use tenure_core::spec::Payload;
use tenure_core::store::{StoreAnswer, StoreOp, StoreResult};

use crate::support::{Fixture, insert, options};

fn is_inserted(result: &StoreResult) -> bool {
    matches!(result, StoreResult::Answer(StoreAnswer::Inserted { existed: false, .. }))
}

#[tokio::test]
async fn one_bad_order_fails_alone() {
    let mut fixture = Fixture::new().await;
    let trigger = "CREATE TRIGGER poison BEFORE INSERT ON keys WHEN NEW.key = 'poison' \
                   BEGIN SELECT RAISE(ABORT, 'poisoned'); END";
    fixture.intruder().await.execute(trigger).await.expect("the trigger stands");
    let keys = ["a", "b", "c", "poison", "d", "e", "f"];
    let results = fixture.all(keys.iter().map(|key| insert(key)).collect()).await;
    for (key, result) in keys.iter().zip(&results) {
        let fine =
            if *key == "poison" { *result == StoreResult::Failed } else { is_inserted(result) };
        assert!(fine, "{key}: {result:?}");
    }
    assert_eq!(fixture.store.counts().await.expect("readable").pending, 6);
}

#[tokio::test]
async fn a_held_database_fails_the_batch_and_names_the_file() {
    let mut fixture = Fixture::new().await;
    let mut intruder = fixture.intruder().await;
    intruder.execute("BEGIN IMMEDIATE").await.expect("the lock is free");
    let results = fixture.all(vec![insert("a"), insert("b")]).await;
    assert_eq!(results, [StoreResult::Failed, StoreResult::Failed]);
    let trouble = fixture.store.trouble().expect("it says why");
    assert!(trouble.contains("tenure.db") && trouble.contains("locked"), "{trouble}");
    intruder.execute("ROLLBACK").await.expect("it lets go");
    assert!(is_inserted(&fixture.one(insert("a")).await));
    assert_eq!(fixture.store.trouble(), None);
}

#[tokio::test]
async fn a_commit_without_a_clear_answer_is_unknown() {
    let mut fixture = Fixture::new().await;
    // A foreign key that is looked at only by COMMIT.
    let trap = "CREATE TABLE other (id INTEGER PRIMARY KEY); \
         CREATE TABLE trap (x REFERENCES other (id) DEFERRABLE INITIALLY DEFERRED); \
         CREATE TRIGGER spring AFTER INSERT ON keys BEGIN INSERT INTO trap VALUES (1); END";
    let mut intruder = fixture.intruder().await;
    intruder.execute(trap).await.expect("the trap stands");
    let results = fixture.all(vec![insert("a"), insert("b")]).await;
    assert_eq!(results, [StoreResult::Unknown, StoreResult::Unknown]);
    intruder.execute("DROP TRIGGER spring").await.expect("the trap is gone");
    assert!(is_inserted(&fixture.one(insert("a")).await), "nothing was kept, and it works again");
}

#[tokio::test]
async fn a_full_disk_fails_the_batch_and_harms_nothing() {
    let full = StoreOptions { max_pages: Some(40), ..options() };
    let mut fixture = Fixture::with(full).await;
    let kept = fixture.insert("before").await;
    let mut submission = insert("large");
    if let StoreOp::Insert { submission, .. } = &mut submission {
        submission.payload = Payload::of(&[7; 1 << 20]);
    }
    let results = fixture.all(vec![submission, insert("small")]).await;
    assert_eq!(results, [StoreResult::Failed, StoreResult::Failed]);
    let trouble = fixture.store.trouble().expect("it says why");
    assert!(trouble.contains("full") && trouble.contains("free space"), "{trouble}");
    assert!(fixture.store.task(kept).await.expect("readable").is_some());
    assert!(is_inserted(&fixture.one(insert("small")).await), "what fits is taken again");
}
