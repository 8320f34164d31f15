//! Small worlds with a name: how many nodes, which tasks, and what the client does.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tenure_core::outcome::Verdict;
use tenure_core::policy::{Policy, Settings};
use tenure_core::spec::{IdempotencyKey, Limits, Payload, Shape, Submission};
use tenure_core::time::Millis;

/// How one task behaves, and what its client does about it.
#[derive(Debug, Clone)]
pub struct TaskPlan {
    /// As its client submits it.
    pub submission: Submission,
    /// How long an attempt runs.
    pub runs_for: Millis,
    /// How its executions end, in order; after the last they succeed.
    pub verdicts: Vec<Verdict>,
    /// How long after the submission was acknowledged its client cancels it.
    pub cancel_after: Option<Millis>,
    /// Whether the cancel is forced.
    pub force: bool,
}

/// A world to explore.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: ScenarioName,
    /// How many masters.
    pub masters: usize,
    /// What each worker has to give.
    pub workers: Vec<Shape>,
    /// The tasks.
    pub tasks: Vec<TaskPlan>,
    /// Timings.
    pub policy: Policy,
    /// Spreads peers in time; part of the scenario, not a choice.
    pub seed: u64,
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident $text:literal)*) => {
        /// The named scenarios.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum ScenarioName {
            $($(#[$doc])* $name,)*
        }

        impl ScenarioName {
            /// Those that are explored exhaustively.
            pub const ALL: &'static [ScenarioName] = &[$(ScenarioName::$name,)*];

            /// As the command line names it.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self {
                    $(ScenarioName::$name => $text,)*
                }
            }

            /// The scenario of this name.
            #[must_use]
            pub fn of_text(text: &str) -> Option<ScenarioName> {
                ScenarioName::ALL.iter().copied().find(|name| name.text() == text)
            }
        }
    };
}

names! {
    /// Three tasks on three workers, two masters.
    Dispatch "dispatch"
    /// A client cancels one of two tasks while it runs.
    Cancel "cancel"
    /// One of two tasks fails once and is tried again.
    Retry "retry"
    /// Three tasks share a worker with two slots.
    Slots "slots"
    /// Three tasks, one worker of one slot: they wait for each other.
    Queue "queue"
    /// A task that runs longer than every TTL waits for its worker with a patience of its own.
    Patience "patience"
    /// One task fails for good, one fails each time, one is lost at most once.
    Failure "failure"
}

/// Tasks run this long unless the scenario needs more: longer than the disconnect grace, so that a
/// worker can be given up while it runs.
const RUNS_FOR: Millis = Millis(300);

/// The policy of small worlds: the default, without the net, so that what only the slow reconcile would
/// find counts as stuck; and with the longest timings shortened. A pause must outlast them all, and each second
/// of it is a beat of every node that shows nothing new.
#[must_use]
pub fn small_world_policy() -> Policy {
    let settings = Settings {
        adopt_max: Millis(5_500),
        accept_timeout: Millis(500),
        reconcile: Millis(3_600_000),
        ..Settings::DEFAULT
    };
    Policy::new(settings)
        .expect("adopt_max is above adopt_grace, and the others are bound to nothing")
}

/// The task of this number, as plain as it can be.
#[must_use]
pub fn plain_task(number: u8) -> TaskPlan {
    TaskPlan {
        submission: Submission {
            shape: Shape::default(),
            limits: Limits::default(),
            payload: Payload::of(&[number]),
            key: IdempotencyKey(Arc::from(format!("key-{number}"))),
            fingerprint: u64::from(number),
        },
        runs_for: RUNS_FOR,
        verdicts: Vec::new(),
        cancel_after: None,
        force: false,
    }
}

fn world(name: ScenarioName, workers: &[u16], tasks: Vec<TaskPlan>) -> Scenario {
    let workers = workers.iter().map(|slots| Shape { slots: *slots, ..Shape::default() });
    Scenario {
        name,
        masters: 2,
        workers: workers.collect(),
        tasks,
        policy: small_world_policy(),
        seed: 1,
    }
}

impl Scenario {
    /// The scenario of this name.
    #[must_use]
    pub fn named(name: ScenarioName) -> Scenario {
        match name {
            ScenarioName::Dispatch => world(name, &[1, 1, 1], (0..3).map(plain_task).collect()),
            ScenarioName::Cancel => cancel(name),
            ScenarioName::Retry => retry(name),
            ScenarioName::Slots => world(name, &[2, 1], (0..3).map(plain_task).collect()),
            ScenarioName::Queue => world(name, &[1], (0..3).map(plain_task).collect()),
            ScenarioName::Patience => patience(name),
            ScenarioName::Failure => failure(name),
        }
    }
}

fn cancel(name: ScenarioName) -> Scenario {
    let cancelled = TaskPlan { cancel_after: Some(Millis(100)), ..plain_task(0) };
    world(name, &[1, 1], vec![cancelled, plain_task(1)])
}

fn retry(name: ScenarioName) -> Scenario {
    let fails_once = TaskPlan { verdicts: vec![Verdict::Failed], ..plain_task(0) };
    world(name, &[1, 1], vec![fails_once, plain_task(1)])
}

fn patience(name: ScenarioName) -> Scenario {
    let mut patient = TaskPlan { runs_for: Millis(6_000), ..plain_task(0) };
    patient.submission.limits.patience = Some(Millis(3_000));
    world(name, &[1, 1], vec![patient])
}

fn failure(name: ScenarioName) -> Scenario {
    let for_good = TaskPlan { verdicts: vec![Verdict::FailedForGood], ..plain_task(0) };
    let mut twice = TaskPlan { verdicts: vec![Verdict::Failed; 4], ..plain_task(1) };
    twice.submission.limits.max_attempts = 2;
    let mut fragile = plain_task(2);
    fragile.submission.limits.max_lost = 1;
    world(name, &[1, 1, 1], vec![for_good, twice, fragile])
}
