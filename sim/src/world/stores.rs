//! The two stores: orders reach them a little later, and their answers reach the masters, or do not.

use tenure_core::event::MasterEvent;
use tenure_core::ids::{EffectId, Term};
use tenure_core::lease::{LeaseAnswer, LeaseOp};
use tenure_core::store::{Row, Status, StoreAnswer, StoreOp, StoreResult, Wrote};

use super::{Coming, LATE, ORDER_TIMEOUT, STORE, World};
use crate::faults::Fault;
use crate::invariants::no_leak::NoLeak;
use crate::invariants::{Property, RowChange};

impl World {
    pub(super) fn carry_out_store_order(
        &mut self,
        master: usize,
        boot: u32,
        effect: EffectId,
        op: &StoreOp,
        twist: Option<Fault>,
    ) {
        let (result, delay) = match twist {
            None | Some(Fault::Slow) => {
                (StoreResult::Answer(self.apply_to_store(master, op)), STORE)
            }
            Some(Fault::UnknownApplied) => {
                self.apply_to_store(master, op);
                (StoreResult::Unknown, ORDER_TIMEOUT)
            }
            Some(Fault::UnknownLate) => {
                let twist = Some(Fault::Late);
                let late = Coming::StoreOrder { master, boot, effect, op: op.clone(), twist };
                self.after(LATE, late);
                self.heals_after(LATE);
                (StoreResult::Unknown, ORDER_TIMEOUT)
            }
            // It was answered before: only its effect comes.
            Some(Fault::Late) => {
                self.apply_to_store(master, op);
                return;
            }
            Some(Fault::Refuse) => (StoreResult::Failed, STORE),
            Some(_) => (StoreResult::Unknown, ORDER_TIMEOUT),
        };
        self.after(delay, Coming::Stored { master, boot, effect, result });
    }

    pub(super) fn on_stored(
        &mut self,
        master: usize,
        boot: u32,
        effect: EffectId,
        result: StoreResult,
    ) {
        if self.masters[master].life.boot == boot {
            self.tell_master(master, MasterEvent::Stored(effect, result));
        }
    }

    fn apply_to_store(&mut self, master: usize, op: &StoreOp) -> StoreAnswer {
        let before = match op {
            StoreOp::Change { task, .. } => self.table.entry(*task).map(|entry| entry.row.clone()),
            _ => None,
        };
        let answer = self.table.apply(self.now, op);
        self.note_store(op, &answer);
        match (op, &answer) {
            (
                StoreOp::Insert { submission, claim, .. },
                StoreAnswer::Inserted { row, existed: false },
            ) => {
                let key = submission.payload.bytes().first().copied().unwrap_or(0);
                let stored = self.oracle.none_lost.on_stored(key, row.task);
                self.oracle.note(Property::NoneLost, self.now, Some(row.task), stored);
                match claim {
                    Some((_, term)) => self.note_leader_write(*term),
                    None => self.oracle.order.on_waiting(self.now, row),
                }
            }
            (StoreOp::Change { term, change, .. }, StoreAnswer::Changed { wrote, row, .. }) => {
                if *wrote == Wrote::Applied {
                    self.note_leader_write(*term);
                }
                if let Some(before) = before {
                    let wrote = *wrote;
                    self.observe_change(&RowChange { before: &before, after: row, change, wrote });
                }
            }
            (StoreOp::Register { term, .. }, StoreAnswer::Registered { .. })
            | (StoreOp::RenewTerm { term, .. }, StoreAnswer::Renewed) => {
                self.note_leader_write(*term);
            }
            (StoreOp::TakeTerm { .. }, StoreAnswer::Taken(term)) => {
                let taken = self.oracle.epoch_fences.on_taken(*term);
                self.oracle.note(Property::EpochFences, self.now, None, taken);
                self.oracle.patience.on_taken(term.epoch, master, self.now);
            }
            _ => {}
        }
        answer
    }

    fn note_leader_write(&mut self, term: Term) {
        let fenced = self.oracle.epoch_fences.on_write(term);
        self.oracle.note(Property::EpochFences, self.now, None, fenced);
    }

    fn observe_change(&mut self, seen: &RowChange<'_>) {
        let now = self.now;
        self.oracle.on_change(now, seen);
        self.count_over(seen.before, seen.after);
        let task = Some(seen.after.task);
        match (seen.before.status, seen.after.status) {
            (Status::Pending, Status::Running) => {
                let order = self.oracle.order.on_claimed(now, seen.after, &self.table);
                self.oracle.note(Property::Order, now, task, order);
            }
            (Status::Running, Status::Pending) => self.oracle.order.on_waiting(now, seen.after),
            (_, status) if status.is_terminal() => self.oracle.order.on_gone(seen.after.task),
            _ => {}
        }
    }

    fn count_over(&mut self, before: &Row, after: &Row) {
        match (before.status.is_terminal(), after.status.is_terminal()) {
            (false, true) => self.over += 1,
            (true, false) => self.over -= 1,
            _ => {}
        }
    }

    pub(super) fn carry_out_lease_order(
        &mut self,
        master: usize,
        boot: u32,
        effect: EffectId,
        op: &LeaseOp,
        twist: Option<Fault>,
    ) {
        let (answer, delay) = match twist {
            None => (self.apply_to_leases(op), STORE),
            Some(Fault::UnknownApplied) => {
                self.apply_to_leases(op);
                (LeaseAnswer::Unreachable, ORDER_TIMEOUT)
            }
            Some(Fault::UnknownLate) => {
                let twist = Some(Fault::Late);
                let late = Coming::LeaseOrder { master, boot, effect, op: op.clone(), twist };
                self.after(LATE, late);
                self.heals_after(LATE);
                (LeaseAnswer::Unreachable, ORDER_TIMEOUT)
            }
            Some(Fault::Late) => {
                self.apply_to_leases(op);
                return;
            }
            Some(_) => (LeaseAnswer::Unreachable, ORDER_TIMEOUT),
        };
        self.after(delay, Coming::Leased { master, boot, effect, answer });
    }

    fn apply_to_leases(&mut self, op: &LeaseOp) -> LeaseAnswer {
        let held = match op {
            LeaseOp::Release { task, .. } => {
                let mut live = self.leases.live_tasks(self.now);
                live.find(|(of, _)| of == task).map(|(_, lease)| lease)
            }
            _ => None,
        };
        let answer = self.leases.apply(self.now, op);
        if let (LeaseOp::Release { holder, task, fence }, LeaseAnswer::Released) = (op, answer) {
            let own = NoLeak::on_release(held, *holder, *fence);
            self.oracle.note(Property::NoLeak, self.now, Some(*task), own);
        }
        answer
    }
}
