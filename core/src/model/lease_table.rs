//! The lease store as a table of keys that run out.

use alloc::collections::BTreeMap;

use crate::ids::{AttemptRef, Epoch, Fence, Holder, Incarnation, TaskId, WorkerId};
use crate::lease::{LeaseAnswer, LeaseOp};
use crate::rules::{Rule, Rules};
use crate::time::{Millis, Time};

/// A task's lease: `worker:{id}:task`, `task:{id}:workerId` and their companions, which live and die together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskLease {
    /// Who has it.
    pub holder: Holder,
    /// Under which epoch and attempt.
    pub fence: Fence,
    /// Until when.
    pub expires: Time,
}

/// A worker's heartbeat key and its companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatKey {
    /// Which start of the worker.
    pub incarnation: Incarnation,
    /// Until when.
    pub expires: Time,
}

/// All leases. `now` is the store's own clock, which alone judges expiry.
#[derive(Debug, Clone, Default)]
pub struct LeaseTable {
    rules: Rules,
    tasks: BTreeMap<TaskId, TaskLease>,
    heartbeats: BTreeMap<WorkerId, HeartbeatKey>,
    highest: Epoch,
}

impl LeaseTable {
    /// No leases.
    #[must_use]
    pub fn new() -> LeaseTable {
        LeaseTable::default()
    }

    /// No leases, and none of the rules that `rules` leaves out.
    #[must_use]
    pub fn with_rules(rules: Rules) -> LeaseTable {
        LeaseTable { rules, ..LeaseTable::default() }
    }

    /// The leases that have not run out.
    pub fn live_tasks(&self, now: Time) -> impl Iterator<Item = (TaskId, TaskLease)> {
        self.tasks.iter().filter(move |(_, lease)| lease.expires > now).map(|(t, l)| (*t, *l))
    }

    /// The heartbeat keys that have not run out.
    pub fn live_workers(&self, now: Time) -> impl Iterator<Item = (WorkerId, HeartbeatKey)> {
        self.heartbeats.iter().filter(move |(_, key)| key.expires > now).map(|(w, k)| (*w, *k))
    }

    /// Carries out one order.
    pub fn apply(&mut self, now: Time, op: &LeaseOp) -> LeaseAnswer {
        match op {
            LeaseOp::Grant { holder, task, fence, ttl } => {
                self.grant(now, *holder, *task, *fence, *ttl)
            }
            LeaseOp::Renew { holder, epoch, tasks, heartbeat_ttl, task_ttl } => {
                self.renew(now, *holder, *epoch, tasks, *heartbeat_ttl, *task_ttl)
            }
            LeaseOp::Release { holder, task, fence } => self.release(now, *holder, *task, *fence),
            LeaseOp::IsAlive(worker) => {
                let key = self.heartbeats.get(worker);
                LeaseAnswer::Alive(key.is_some_and(|key| key.expires > now))
            }
        }
    }

    fn grant(
        &mut self,
        now: Time,
        holder: Holder,
        task: TaskId,
        fence: Fence,
        ttl: Millis,
    ) -> LeaseAnswer {
        if let Some(held) = self.live(now, task)
            && held.fence > fence
        {
            return LeaseAnswer::Higher(held.fence);
        }
        self.highest = self.highest.max(fence.epoch);
        self.tasks.insert(task, TaskLease { holder, fence, expires: now + ttl });
        LeaseAnswer::Granted
    }

    /// Extends and never creates, except the heartbeat key, which only its own beat writes.
    fn renew(
        &mut self,
        now: Time,
        holder: Holder,
        epoch: Epoch,
        tasks: &[AttemptRef],
        heartbeat_ttl: Millis,
        task_ttl: Millis,
    ) -> LeaseAnswer {
        if epoch < self.highest {
            return LeaseAnswer::Renewed(0);
        }
        self.highest = epoch;
        let key = HeartbeatKey { incarnation: holder.incarnation, expires: now + heartbeat_ttl };
        self.heartbeats.insert(holder.worker, key);
        let mut extended = 0;
        for at in tasks {
            if let Some(lease) = self.tasks.get_mut(&at.task)
                && lease.expires > now
                && lease.holder == holder
                && lease.fence.attempt == at.attempt
            {
                lease.expires = now + task_ttl;
                extended += 1;
            }
        }
        LeaseAnswer::Renewed(extended)
    }

    fn release(&mut self, now: Time, holder: Holder, task: TaskId, fence: Fence) -> LeaseAnswer {
        let Some(held) = self.live(now, task) else {
            return LeaseAnswer::Gone;
        };
        let own = held.holder == holder && held.fence == fence;
        if self.rules.hold(Rule::LeaseReleaseCompared) && !own {
            return LeaseAnswer::NotYours;
        }
        self.tasks.remove(&task);
        LeaseAnswer::Released
    }

    fn live(&self, now: Time, task: TaskId) -> Option<TaskLease> {
        self.tasks.get(&task).copied().filter(|lease| lease.expires > now)
    }
}
