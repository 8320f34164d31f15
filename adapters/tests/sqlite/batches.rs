//! Group commit by arrival.

use tenure_core::ids::TaskId;
use tenure_core::store::{StoreAnswer, StoreOp, StoreResult};

use crate::support::{Fixture, insert};

#[tokio::test]
async fn orders_that_arrive_at_once_share_commits() {
    let mut fixture = Fixture::new().await;
    let before = fixture.store.commits();
    let results = fixture.all((0..2_000).map(|n| insert(&format!("key-{n}"))).collect()).await;
    assert!(results.iter().all(|result| matches!(
        result,
        StoreResult::Answer(StoreAnswer::Inserted { existed: false, .. })
    )));
    let commits = fixture.store.commits() - before;
    assert!(commits <= 10, "{commits} commits for 2,000 orders");
}

#[tokio::test]
async fn a_lone_order_is_a_commit_of_its_own() {
    let mut fixture = Fixture::new().await;
    for n in 1..=3 {
        assert_eq!(fixture.insert(&format!("key-{n}")).await, TaskId(n));
        assert_eq!(fixture.store.commits(), n);
    }
}

#[tokio::test]
async fn closing_answers_what_was_ordered_and_refuses_the_rest() {
    let mut fixture = Fixture::new().await;
    let orders: Vec<StoreOp> = (0..50).map(|n| insert(&format!("key-{n}"))).collect();
    fixture.submit(orders);
    fixture.store.close().await;
    let results = fixture.results(50).await;
    assert!(results.iter().all(|result| matches!(result, StoreResult::Answer(_))));
    assert_eq!(fixture.one(insert("late")).await, StoreResult::Failed);
}

#[tokio::test]
async fn an_id_is_never_given_twice() {
    let mut fixture = Fixture::new().await;
    let first = fixture.insert("a").await;
    let mut intruder = fixture.intruder().await;
    // What retention will do.
    sqlx::query("DELETE FROM tasks").execute(&mut intruder).await.expect("deleted");
    let second = fixture.insert("b").await;
    assert!(second > first, "{second} after {first}");
    let taken = fixture.one(insert("a")).await;
    assert_eq!(taken, StoreResult::Answer(StoreAnswer::KeyTaken(first)), "a key outlives its row");
}
