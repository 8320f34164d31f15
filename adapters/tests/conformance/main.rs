//! Every task store answers like core's `TaskTable`: the same random orders go to both, in batches of
//! random size, and each answer is compared.

mod orders;
mod sqlite;

use tenure_core::ids::TaskId;
use tenure_core::model::task_table::TaskTable;
use tenure_core::random::Stream;
use tenure_core::store::{StoreAnswer, StoreOp, StoreResult};
use tenure_core::time::Time;

/// A store under test.
trait Subject {
    /// Carries out orders that arrive at once, by this clock; one result each, in order.
    async fn carry_out(&mut self, now: Time, orders: &[StoreOp]) -> Vec<StoreResult>;

    /// Ends the store and starts it again from what it kept.
    async fn restart(&mut self);
}

/// What a run has met, so that a generator that no longer reaches a case fails the test.
#[derive(Debug, Default)]
struct Met(std::collections::BTreeSet<String>);

impl Met {
    fn note(&mut self, result: &StoreResult) {
        let StoreResult::Answer(answer) = result else {
            return;
        };
        let text = format!("{answer:?}");
        let kind = text.split([' ', '(']).next().unwrap_or_default();
        self.0.insert(kind.to_owned());
        for wrote in ["Applied", "Repeat", "Refused", "Superseded", "Ahead"] {
            if text.starts_with(&format!("Changed {{ wrote: {wrote}")) {
                self.0.insert(wrote.to_owned());
            }
        }
        if text.contains("existed: true") {
            self.0.insert("existed".to_owned());
        }
    }
}

/// The table's answer. How long a stretch of a scan is, is the store's own choice; what lies in it is not.
fn expected(table: &mut TaskTable, now: Time, order: &StoreOp, got: &StoreResult) -> StoreAnswer {
    let answer = table.apply(now, order);
    let (StoreOp::Scan { after, .. }, StoreAnswer::Page { .. }) = (order, &answer) else {
        return answer;
    };
    let StoreResult::Answer(StoreAnswer::Page { until, .. }) = got else {
        return answer;
    };
    let ends = until.unwrap_or(TaskId(u64::MAX));
    assert!(until.is_none() || ends > *after, "a stretch leads on");
    let rows = table.entries().map(|entry| &entry.row);
    let stretch = rows.filter(|row| row.task > *after && row.task <= ends);
    let open = stretch.filter(|row| !row.status.is_terminal());
    StoreAnswer::Page { rows: open.cloned().collect(), until: *until }
}

/// Runs one seed and compares every answer.
async fn compare(seed: u64, rounds: usize, subject: &mut impl Subject, met: &mut Met) {
    let mut random = Stream::new(seed);
    let mut table = TaskTable::new();
    let mut now = Time(1_700_000_000_000);
    for round in 0..rounds {
        now = Time(now.0 + random.up_to(400));
        let orders = orders::draw(&mut random, &table, now);
        let got = subject.carry_out(now, &orders).await;
        assert_eq!(got.len(), orders.len(), "seed {seed}, round {round}");
        for (at, (got, order)) in got.iter().zip(&orders).enumerate() {
            let expected = &StoreResult::Answer(expected(&mut table, now, order, got));
            assert_eq!(got, expected, "seed {seed}, round {round}, order {at}: {order:?}");
            met.note(expected);
        }
        if random.up_to(30) == 0 {
            subject.restart().await;
        }
    }
}
