//! Files that cannot be opened, and why; what a reopened file still knows.

use sqlx::Executor;
use tenure_adapters::names::Names;
use tenure_core::ids::{Incarnation, LabelId, WorkerId};
use tenure_core::spec::Labels;
use tenure_core::store::{StoreAnswer, StoreOp, StoreResult};
use tenure_core::time::Time;

use crate::support::{Fixture, TERM, insert, open};

#[tokio::test]
async fn a_file_that_is_no_database_is_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("tenure.db");
    std::fs::write(&path, "not a database, but long enough to have a header".repeat(40))
        .expect("written");
    let refused = open(&path).await.expect_err("not a database").to_string();
    assert!(refused.contains("tenure.db") && refused.contains("backup"), "{refused}");
}

#[tokio::test]
async fn another_programs_database_is_left_alone() {
    let fixture = Fixture::new().await;
    let mut intruder = fixture.intruder().await;
    intruder.execute("PRAGMA application_id = 77").await.expect("marked");
    let path = fixture.path();
    fixture.store.close().await;
    let refused = open(&path).await.expect_err("foreign").to_string();
    assert!(refused.contains("another program"), "{refused}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_both_versions() {
    let fixture = Fixture::new().await;
    fixture.intruder().await.execute("PRAGMA user_version = 99").await.expect("marked");
    let path = fixture.path();
    fixture.store.close().await;
    let refused = open(&path).await.expect_err("newer").to_string();
    assert!(refused.contains("version 99") && refused.contains("up to 1"), "{refused}");
}

#[tokio::test]
async fn a_directory_that_does_not_exist_is_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("missing").join("tenure.db");
    let refused = open(&path).await.expect_err("no such directory").to_string();
    assert!(refused.contains("missing") && refused.contains("check"), "{refused}");
}

#[tokio::test]
async fn two_programs_that_make_the_file_at_once_agree() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("tenure.db");
    let (one, two) = tokio::join!(open(&path), open(&path));
    // The loser of the race may find the file busy, never half made.
    assert!(one.is_ok() || two.is_ok());
    open(&path).await.expect("the file is whole");
}

#[tokio::test]
async fn names_are_stored_as_text_whatever_their_numbers_are() {
    let mut fixture = Fixture::led().await;
    let (gpu, big) = (fixture.holder("gpu-7", u64::MAX), fixture.names.label("big"));
    let mut order = insert("a");
    if let StoreOp::Insert { submission, claim, .. } = &mut order {
        submission.shape.labels = Labels::of(&[big]);
        *claim = Some((gpu, TERM));
    }
    fixture.one(order).await;
    fixture.one(StoreOp::Register { holder: gpu, term: TERM, at: Time(5) }).await;

    let names = Names::new();
    names.worker("seen before");
    names.label("seen before");
    let mut later = fixture.reopened(names).await;
    let StoreResult::Answer(StoreAnswer::All { rows, workers }) =
        later.one(StoreOp::ReadAll(TERM)).await
    else {
        panic!("the term is still current");
    };
    let holder = rows[0].holder.expect("it is claimed");
    assert_eq!((holder.worker, holder.incarnation), (WorkerId(1), Incarnation(u64::MAX)));
    assert_eq!(rows[0].shape.labels, Labels::of(&[LabelId(1)]));
    assert_eq!(workers, [holder]);
    assert_eq!(&*later.names.worker_name(holder.worker), "gpu-7");
}
