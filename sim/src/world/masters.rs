//! What masters are told, and what they do.

use tenure_core::command::MasterCommand;
use tenure_core::event::MasterEvent;
use tenure_core::ids::{AttemptRef, EffectId, Epoch, TaskId};
use tenure_core::message::{Hello, ToMaster, ToWorker};
use tenure_core::store::{Change, LoseReason, Status, StoreAnswer, StoreOp, StoreResult};
use tenure_core::time::Millis;

use super::life::{NodeId, State};
use super::{Coming, LATE, NET, STORE, World};
use crate::action::Action;
use crate::faults::{Fault, FaultSet};
use crate::invariants::{Property, outbox};

impl World {
    /// Tells a master something, if it listens: a paused one will hear it later.
    #[inline]
    pub(super) fn tell_master(&mut self, index: usize, event: MasterEvent) {
        match self.masters[index].life.state {
            State::Up => self.handle_master(index, event),
            State::Paused => self.masters[index].life.inbox.push_back(event),
            State::Killed | State::Dark => {}
        }
    }

    fn handle_master(&mut self, index: usize, event: MasterEvent) {
        let node = NodeId::Master(index);
        self.count_step(node, kind_of(&event), about_event(&event));
        self.note_master_event(index, &event);
        self.hear_answer(index, &event);
        self.hear_worker(index, &event);
        let mut out = core::mem::take(&mut self.master_out);
        let now = self.now;
        let handled = self.masters[index].core.handle(now, event, &mut out);
        if handled.is_err() {
            self.refused("a master refused an event that the contract allows");
        }
        self.judge_decisions(index, &out);
        self.perform_master(index, &mut out, true);
        out.clear();
        self.master_out = out;
        if self.masters[index].life.state == State::Up {
            self.arm_master(index);
        }
    }

    /// What an answer lets the master believe from here on.
    fn hear_answer(&mut self, index: usize, event: &MasterEvent) {
        let MasterEvent::Stored(effect, result) = event else { return };
        let me = self.masters[index].incarnation;
        self.oracle.one_write.on_answer(me, *effect, *result == StoreResult::Unknown);
        let ttl = self.scenario.policy.settings().leader_ttl;
        let holds: Option<Millis> = match result {
            StoreResult::Answer(StoreAnswer::Taken(_) | StoreAnswer::Renewed) => Some(ttl),
            StoreResult::Answer(StoreAnswer::TermIs(row)) => {
                (row.term.leader == me).then_some(row.left)
            }
            _ => None,
        };
        self.oracle.trust.on_answer(me, *effect, holds);
    }

    /// Looks at what a master decides at the moment of deciding: a pause may come before the doing.
    fn judge_decisions(&mut self, index: usize, out: &[MasterCommand]) {
        let me = self.masters[index].incarnation;
        let now = self.now;
        for command in out {
            match command {
                MasterCommand::Store(effect, op) => match op {
                    StoreOp::Change { task, term, change, .. } => {
                        self.judge_loss(index, *task, term.epoch, change);
                        self.judge_taking_back(index, *task, change);
                        let trusted = self.oracle.trust.on_decision(me, now);
                        self.oracle.note(Property::Trust, now, Some(*task), trusted);
                        let alone = self.oracle.one_write.on_order(me, *effect, *task);
                        self.oracle.note(Property::OneWrite, now, Some(*task), alone);
                    }
                    StoreOp::ReadTerm | StoreOp::TakeTerm { .. } | StoreOp::RenewTerm { .. } => {
                        self.oracle.trust.on_order(me, *effect, now);
                    }
                    StoreOp::Read(task) => self.oracle.one_write.on_read(me, Some(*task)),
                    StoreOp::ReadAll(_) => self.oracle.one_write.on_read(me, None),
                    StoreOp::Insert { .. }
                    | StoreOp::Register { .. }
                    | StoreOp::Scan { .. }
                    | StoreOp::ReleaseTerm(_) => {}
                },
                MasterCommand::Send(_, ToWorker::Execute(execute)) => {
                    let trusted = self.oracle.trust.on_decision(me, now);
                    self.oracle.note(Property::Trust, now, Some(execute.at.task), trusted);
                    self.oracle.patience.on_ordered(index, execute.at, now);
                }
                MasterCommand::Send(session, ToWorker::HelloAck(_)) => {
                    if let Some(holder) = self.peer_of(*session) {
                        self.oracle.patience.on_greeted(index, holder, now);
                    }
                }
                _ => {}
            }
        }
    }

    /// A loss is judged when it is decided: its write may take long.
    fn judge_loss(&mut self, index: usize, task: TaskId, epoch: Epoch, change: &Change) {
        let Change::Lose { attempt, reason, incarnation, .. } = change else { return };
        let holder = self.table.entry(task).and_then(|entry| entry.row.holder);
        let Some(holder) = holder.filter(|holder| holder.incarnation == *incarnation) else {
            return;
        };
        let settings = self.scenario.policy.settings();
        let (worker, now) = (holder.worker, self.now);
        let patient = self.oracle.patience.on_lost(&settings, epoch, worker, *reason, now);
        self.oracle.note(Property::Patience, now, Some(task), patient);
        // The next incarnation may have brought the outcome of the one before: that is waited for.
        let at = AttemptRef::new(task, *attempt);
        let listed = self.oracle.listed.lists(index, worker, at);
        if *reason != LoseReason::WorkerRestarted && !listed {
            let prompt = self.oracle.patience.on_given_up(index, holder, now);
            self.oracle.note(Property::Patience, now, Some(task), prompt);
        }
    }

    fn judge_taking_back(&mut self, index: usize, task: TaskId, change: &Change) {
        let (Change::Undo { attempt, incarnation } | Change::Lose { attempt, incarnation, .. }) =
            change
        else {
            return;
        };
        let at = AttemptRef::new(task, *attempt);
        let worker = self.worker_of(*incarnation);
        let listed = self.oracle.listed.on_decision(index, worker, at, change);
        self.oracle.note(Property::Listed, self.now, Some(task), listed);
    }

    /// What a master hears of a worker, for the oracle.
    fn hear_worker(&mut self, index: usize, event: &MasterEvent) {
        let MasterEvent::Received(session, said) = event else { return };
        match said {
            ToMaster::Hello(Hello { inventory, .. }) | ToMaster::Heartbeat(inventory) => {
                if let Some(holder) = self.peer_of(*session) {
                    self.oracle.listed.on_heard(index, holder.worker, *session, inventory);
                }
            }
            ToMaster::Accepted(at) => {
                let row = self.table.entry(at.task).map(|entry| &entry.row);
                let open = row
                    .is_some_and(|row| row.status == Status::Running && row.newest() == Some(*at));
                let (now, settings) = (self.now, self.scenario.policy.settings());
                // One that stood still hears it late, and is no leader any more.
                let leads = self.oracle.trust.on_decision(self.masters[index].incarnation, now);
                let open = open && leads.is_ok();
                let prompt = self.oracle.patience.on_accepted(&settings, index, *at, open, now);
                self.oracle.note(Property::Patience, now, Some(at.task), prompt);
            }
            _ => {}
        }
    }

    /// Does what a master ordered, one effect after the other, each of them a crash point.
    pub(super) fn perform_master(
        &mut self,
        index: usize,
        out: &mut Vec<MasterCommand>,
        mut first: bool,
    ) {
        let node = NodeId::Master(index);
        let mut commands = out.drain(..);
        while let Some(command) = commands.next() {
            if self.done {
                return;
            }
            let action = Action::of_master(&command);
            let fault = self.fault_at(node, action, first);
            first = first && action.faults().is_empty();
            match fault {
                Some(fault @ (Fault::KillBefore | Fault::KillBeforeSlow)) => {
                    return self.crash(node, fault);
                }
                Some(Fault::Pause) => {
                    let todo = &mut self.masters[index].life.todo;
                    todo.push_back(command);
                    todo.extend(commands);
                    return self.pause(node);
                }
                _ => {}
            }
            let twist = fault.filter(|fault| !FaultSet::PROCESS.has(*fault));
            self.do_for_master(index, command, action, twist);
            if let Some(fault @ (Fault::KillAfter | Fault::KillAfterSlow | Fault::PowerCut)) = fault
            {
                self.credit_before(fault, commands.next().as_ref().map(Action::of_master));
                return self.crash(node, fault);
            }
        }
    }

    /// A crash after an effect is one before the next effect of its list.
    pub(super) fn credit_before(&mut self, fault: Fault, next: Option<Action>) {
        let before = match fault {
            Fault::KillAfter => Fault::KillBefore,
            Fault::KillAfterSlow => Fault::KillBeforeSlow,
            _ => return,
        };
        if let Some(next) = next.filter(|next| !next.faults().is_empty()) {
            self.coverage.count(next, before);
        }
    }

    /// A paused master goes on.
    pub(super) fn go_on_master(&mut self, index: usize) {
        let boot = self.masters[index].life.boot;
        let mut todo: Vec<_> = self.masters[index].life.todo.drain(..).collect();
        self.perform_master(index, &mut todo, false);
        while !self.done
            && self.masters[index].life.state == State::Up
            && self.masters[index].life.boot == boot
            && let Some(event) = self.masters[index].life.inbox.pop_front()
        {
            self.handle_master(index, event);
        }
        if self.masters[index].life.state == State::Up {
            self.arm_master(index);
        }
    }

    fn do_for_master(
        &mut self,
        index: usize,
        command: MasterCommand,
        action: Action,
        twist: Option<Fault>,
    ) {
        let node = NodeId::Master(index);
        self.count_step(node, action as u8, about_command(&command));
        self.note_master_command(index, &command);
        let boot = self.masters[index].life.boot;
        match command {
            MasterCommand::Store(effect, op) => {
                let delay = self.order_delay(twist);
                self.after(delay, Coming::StoreOrder { master: index, boot, effect, op, twist });
            }
            MasterCommand::Lease(effect, op) => {
                self.after(STORE, Coming::LeaseOrder { master: index, boot, effect, op, twist });
            }
            MasterCommand::Send(session, said) => {
                self.judge_saying(&said);
                self.say_to_worker(session, said, twist);
            }
            MasterCommand::Close(session, _) => self.close(session),
            MasterCommand::Reply(request, reply) => {
                if twist.is_none() {
                    self.after(NET, Coming::Replied { request, reply });
                }
            }
            MasterCommand::Lead(_) | MasterCommand::StepDown(_) => {}
            MasterCommand::Stopped => self.exit(node),
        }
    }

    fn order_delay(&mut self, twist: Option<Fault>) -> u64 {
        if twist == Some(Fault::Slow) {
            self.heals_after(LATE);
            LATE
        } else {
            STORE
        }
    }

    fn judge_saying(&mut self, said: &ToWorker) {
        if let ToWorker::ResultAck { at, ran_by, .. } = said {
            let row = self.table.entry(at.task).map(|entry| &entry.row);
            let stored = outbox::on_acknowledged(row, *at, *ran_by);
            self.oracle.note(Property::Outbox, self.now, Some(at.task), stored);
        }
    }
}

fn kind_of(event: &MasterEvent) -> u8 {
    0x80 + match event {
        MasterEvent::Woke => 0,
        MasterEvent::Stored(..) => 1,
        MasterEvent::Leased(..) => 2,
        MasterEvent::Opened(_) => 3,
        MasterEvent::Closed(_) => 4,
        MasterEvent::Received(..) => 5,
        MasterEvent::Asked(..) => 6,
        MasterEvent::StopAsked => 7,
    }
}

fn about_event(event: &MasterEvent) -> u64 {
    match event {
        MasterEvent::Stored(effect, _) | MasterEvent::Leased(effect, _) => effect.0,
        MasterEvent::Opened(session)
        | MasterEvent::Closed(session)
        | MasterEvent::Received(session, _) => session.0,
        MasterEvent::Asked(request, _) => request.0,
        MasterEvent::Woke | MasterEvent::StopAsked => 0,
    }
}

fn about_command(command: &MasterCommand) -> u64 {
    let effect = |effect: &EffectId, task: u64| (effect.0 << 16) ^ task;
    match command {
        MasterCommand::Store(id, StoreOp::Change { task, .. }) => effect(id, task.0),
        MasterCommand::Store(id, _) | MasterCommand::Lease(id, _) => effect(id, 0),
        MasterCommand::Send(session, ToWorker::Execute(execute)) => {
            (session.0 << 32) ^ (execute.at.task.0 << 8) ^ u64::from(execute.at.attempt.number())
        }
        MasterCommand::Send(session, _) | MasterCommand::Close(session, _) => session.0 << 32,
        MasterCommand::Reply(request, _) => request.0,
        MasterCommand::Lead(term) | MasterCommand::StepDown(term) => term.epoch.0,
        MasterCommand::Stopped => 0,
    }
}
