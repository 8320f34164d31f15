//! What people are told.

use tenure_adapters::sql::{Counts, ListFilter};
use tenure_core::ids::{Epoch, Incarnation, TaskId};
use tenure_core::outcome::Verdict;
use tenure_core::spec::Payload;
use tenure_core::store::{AttemptEnd, Change, LoseReason, Status, StoreOp};
use tenure_core::time::Time;

use crate::support::{Fixture, TERM, commit};

#[tokio::test]
async fn every_attempt_is_kept_with_its_end() {
    let mut fixture = Fixture::led().await;
    let task = fixture.insert("a").await;
    let (one, two) = (fixture.holder("one", 11), fixture.holder("two", u64::MAX));
    let first = fixture.claim(task, 200, one).await;
    let mark = Change::MarkStarted { attempt: first.attempt, incarnation: one.incarnation };
    fixture.change(task, 210, mark).await;
    let lose = Change::Lose {
        attempt: first.attempt,
        incarnation: one.incarnation,
        counted: true,
        reason: LoseReason::Silent,
    };
    fixture.change(task, 220, lose).await;
    let second = fixture.claim(task, 230, two).await;
    fixture.change(task, 240, commit(first, 11, Verdict::Failed)).await;
    fixture.change(task, 250, commit(second, u64::MAX, Verdict::Succeeded)).await;

    let attempts = fixture.store.attempts(task).await.expect("readable");
    let [lost, done] = attempts.as_slice() else { panic!("two attempts: {attempts:?}") };
    assert_eq!(lost.end, Some(AttemptEnd::Lost { counted: true }));
    assert_eq!(lost.reason, Some(LoseReason::Silent));
    assert_eq!((lost.claimed_at, lost.started_at), (Some(Time(200)), Some(Time(210))));
    assert_eq!((lost.ended_at, lost.epoch), (Some(Time(220)), Some(Epoch(1))));
    assert_eq!((lost.verdict, lost.superseded), (Some(Verdict::Failed), true));
    assert_eq!((&lost.report, lost.reported_at), (&Payload::of(b"Failed"), Some(Time(240))));
    assert_eq!(done.end, Some(AttemptEnd::Outcome));
    assert_eq!((done.verdict, done.superseded), (Some(Verdict::Succeeded), false));
    assert_eq!(done.worker.as_deref(), Some("two"));
    assert_eq!(done.incarnation, Incarnation(u64::MAX));
}

#[tokio::test]
async fn an_attempt_that_was_given_up_and_kept_is_open_again() {
    let mut fixture = Fixture::led().await;
    let task = fixture.insert("a").await;
    let holder = fixture.holder("one", 11);
    let at = fixture.claim(task, 200, holder).await;
    let (attempt, incarnation) = (at.attempt, holder.incarnation);
    let reason = LoseReason::Disconnected;
    fixture.change(task, 210, Change::Lose { attempt, incarnation, counted: false, reason }).await;
    fixture.change(task, 220, Change::Keep { attempt, holder }).await;
    let kept = fixture.store.attempts(task).await.expect("readable").remove(0);
    assert_eq!((kept.end, kept.ended_at), (None, None));
    fixture.change(task, 230, commit(at, 11, Verdict::Succeeded)).await;
    let done = fixture.store.attempts(task).await.expect("readable").remove(0);
    assert_eq!((done.end, done.ended_at), (Some(AttemptEnd::Outcome), Some(Time(230))));
}

#[tokio::test]
async fn the_story_tells_what_happened_in_order_and_not_what_did_not() {
    let mut fixture = Fixture::led().await;
    let task = fixture.insert("a").await;
    let holder = fixture.holder("one", 11);
    let at = fixture.claim(task, 200, holder).await;
    // Refused: it is claimed already.
    fixture.change(task, 205, Change::Claim { newest: None, holder }).await;
    fixture.change(task, 210, Change::Cancel { force: false }).await;
    fixture.change(task, 220, commit(at, 11, Verdict::Stopped)).await;
    fixture.change(task, 230, commit(at, 12, Verdict::Succeeded)).await;

    let events = fixture.store.events(task).await.expect("readable");
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.at.0, event.what.as_str(), event.status, event.detail.as_deref()))
        .collect();
    let expected = [
        (100, "submitted", Status::Pending, None),
        (200, "claimed", Status::Running, None),
        (210, "cancel_asked", Status::Running, None),
        (220, "ended", Status::Cancelled, Some("stopped")),
        (230, "superseded", Status::Cancelled, Some("succeeded")),
    ];
    assert_eq!(told, expected);
    assert_eq!(events[1].worker.as_deref(), Some("one"));
    assert_eq!(fixture.store.events(TaskId(99)).await.expect("readable"), []);
}

#[tokio::test]
async fn lists_are_newest_first_filtered_and_in_pages() {
    let mut fixture = Fixture::led().await;
    for n in 0..6 {
        fixture.insert(&format!("key-{n}")).await;
    }
    let (one, two) = (fixture.holder("one", 1), fixture.holder("two", 2));
    fixture.claim(TaskId(2), 200, one).await;
    fixture.claim(TaskId(3), 200, two).await;
    fixture.change(TaskId(5), 200, Change::Cancel { force: false }).await;

    let all = ListFilter { limit: 100, ..ListFilter::default() };
    assert_eq!(listed(&fixture, &all).await, [6, 5, 4, 3, 2, 1]);
    let open = ListFilter { statuses: vec![Status::Pending, Status::Running], ..all.clone() };
    assert_eq!(listed(&fixture, &open).await, [6, 4, 3, 2, 1]);
    let page = ListFilter { limit: 2, after: Some(TaskId(4)), ..open.clone() };
    assert_eq!(listed(&fixture, &page).await, [3, 2]);
    let of_one = ListFilter { worker: Some("one".to_owned()), ..all.clone() };
    assert_eq!(listed(&fixture, &of_one).await, [2]);
    let of_two = ListFilter { worker: Some("two".to_owned()), ..open };
    assert_eq!(listed(&fixture, &of_two).await, [3]);
    let counts = Counts { pending: 3, running: 2, cancelled: 1, ..Counts::default() };
    assert_eq!(fixture.store.counts().await.expect("readable"), counts);
}

async fn listed(fixture: &Fixture, filter: &ListFilter) -> Vec<u64> {
    let views = fixture.store.list(filter).await.expect("readable");
    views.iter().map(|view| view.row.task.0).collect()
}

#[tokio::test]
async fn a_task_shows_its_worker_what_it_runs_and_when_it_changed() {
    let mut fixture = Fixture::led().await;
    let task = fixture.insert("a").await;
    let holder = fixture.holder("one", 11);
    fixture.claim(task, 200, holder).await;
    let view = fixture.store.task(task).await.expect("readable").expect("it exists");
    assert_eq!((view.worker.as_deref(), view.changed_at), (Some("one"), Time(200)));
    let payload = fixture.store.payload(task).await.expect("readable");
    assert_eq!(payload, Some(Payload::of(b"run a")));
    assert_eq!(fixture.store.payload(TaskId(9)).await.expect("readable"), None);
    assert_eq!(fixture.store.task(TaskId(9)).await.expect("readable"), None);
}

#[tokio::test]
async fn replaced_incarnations_of_a_worker_are_kept() {
    let mut fixture = Fixture::led().await;
    for (at, incarnation) in [(1, 7), (2, u64::MAX), (3, u64::MAX), (4, 9)] {
        let holder = fixture.holder("one", incarnation);
        fixture.one(StoreOp::Register { holder, term: TERM, at: Time(at) }).await;
    }
    let workers = fixture.store.workers().await.expect("readable");
    assert_eq!(workers.len(), 1);
    assert_eq!((&*workers[0].name, workers[0].incarnation), ("one", Incarnation(9)));
    assert_eq!(workers[0].since, Time(4));
    let replaced = [(Incarnation(7), Time(2)), (Incarnation(u64::MAX), Time(4))];
    assert_eq!(workers[0].replaced, replaced);
}
