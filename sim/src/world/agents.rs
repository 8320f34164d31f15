//! What agents are told, what they do, and the processes that they start.

use tenure_core::command::{AgentCommand, Record};
use tenure_core::event::AgentEvent;
use tenure_core::ids::{AttemptRef, EffectId, Holder};
use tenure_core::message::{Execute, Inventory, ToMaster};
use tenure_core::outcome::Verdict;
use tenure_core::spec::Payload;

use super::life::{NodeId, State, worker_id};
use super::{Coming, NET, Process, World};
use crate::action::Action;
use crate::faults::{Fault, FaultSet};
use crate::invariants::{Execution, Fate, Property, outbox};

/// A process that is asked to end takes this long.
const ENDS_AFTER: u64 = 5;

impl World {
    /// Tells an agent something, if it listens: a paused one will hear it later.
    #[inline]
    pub(super) fn tell_agent(&mut self, index: usize, event: AgentEvent) {
        match self.workers[index].life.state {
            State::Up => self.handle_agent(index, event),
            State::Paused => self.workers[index].life.inbox.push_back(event),
            State::Killed | State::Dark => {}
        }
    }

    fn handle_agent(&mut self, index: usize, event: AgentEvent) {
        let node = NodeId::Worker(index);
        self.count_step(node, kind_of(&event), about_event(&event));
        self.note_agent_event(index, &event);
        let mut out = core::mem::take(&mut self.agent_out);
        let now = self.now;
        let handled = self.workers[index].core.handle(now, event, &mut out);
        if handled.is_err() {
            self.refused("an agent refused an event that the contract allows");
        }
        self.judge_starts(index, &out);
        self.perform_agent(index, &mut out, true);
        out.clear();
        self.agent_out = out;
        if self.workers[index].life.state == State::Up {
            self.arm_agent(index);
        }
    }

    /// Looks at what an agent decides to start at the moment of deciding: a pause may come before the doing.
    fn judge_starts(&mut self, index: usize, out: &[AgentCommand]) {
        for command in out {
            let AgentCommand::Start(execute) = command else { continue };
            let incarnation = self.workers[index].incarnation;
            let holder = Holder { worker: worker_id(index), incarnation };
            let row = self.table.entry(execute.at.task).map(|entry| &entry.row);
            let once = self.oracle.started_once.on_decision(execute.at, holder, row);
            self.oracle.note(Property::StartedOnce, self.now, Some(execute.at.task), once);
        }
    }

    /// Does what an agent ordered, one effect after the other, each of them a crash point.
    pub(super) fn perform_agent(
        &mut self,
        index: usize,
        out: &mut Vec<AgentCommand>,
        mut first: bool,
    ) {
        let node = NodeId::Worker(index);
        let mut commands = out.drain(..);
        while let Some(command) = commands.next() {
            if self.done {
                return;
            }
            let action = Action::of_agent(&command);
            let fault = self.fault_at(node, action, first);
            first = first && action.faults().is_empty();
            match fault {
                Some(fault @ (Fault::KillBefore | Fault::KillBeforeSlow)) => {
                    return self.crash(node, fault);
                }
                Some(Fault::Pause) => {
                    let todo = &mut self.workers[index].life.todo;
                    todo.push_back(command);
                    todo.extend(commands);
                    return self.pause(node);
                }
                _ => {}
            }
            let twist = fault.filter(|fault| !FaultSet::PROCESS.has(*fault));
            let quits = matches!(command, AgentCommand::Quit(_) | AgentCommand::Drained);
            self.do_for_agent(index, command, action, twist);
            if quits {
                return self.exit(node);
            }
            if let Some(fault @ (Fault::KillAfter | Fault::KillAfterSlow | Fault::PowerCut)) = fault
            {
                self.credit_before(fault, commands.next().as_ref().map(Action::of_agent));
                return self.crash(node, fault);
            }
        }
    }

    /// A paused agent goes on.
    pub(super) fn go_on_agent(&mut self, index: usize) {
        let boot = self.workers[index].life.boot;
        let mut todo: Vec<_> = self.workers[index].life.todo.drain(..).collect();
        self.perform_agent(index, &mut todo, false);
        while !self.done
            && self.workers[index].life.state == State::Up
            && self.workers[index].life.boot == boot
            && let Some(event) = self.workers[index].life.inbox.pop_front()
        {
            self.handle_agent(index, event);
        }
        if self.workers[index].life.state == State::Up {
            self.arm_agent(index);
        }
    }

    fn do_for_agent(
        &mut self,
        index: usize,
        command: AgentCommand,
        action: Action,
        twist: Option<Fault>,
    ) {
        self.count_step(NodeId::Worker(index), action as u8, about_command(&command));
        self.note_agent_command(index, &command);
        match command {
            AgentCommand::Dial(effect, master) => self.dial(index, effect, master, twist),
            AgentCommand::Hangup(session) => self.hang_up(session),
            AgentCommand::Send(session, said) => {
                self.judge_telling(index, &said);
                self.say_to_master(session, said, twist);
            }
            AgentCommand::Persist(effect, record) => self.persist(index, effect, record, twist),
            AgentCommand::Start(execute) => self.start(index, &execute),
            AgentCommand::Stop(at, _) => self.stop(index, at),
            AgentCommand::Drained | AgentCommand::Quit(_) => {}
        }
    }

    fn judge_telling(&mut self, index: usize, said: &ToMaster) {
        match said {
            ToMaster::Hello(hello) => self.judge_inventory(index, &hello.inventory),
            ToMaster::Heartbeat(inventory) => self.judge_inventory(index, inventory),
            ToMaster::Finished(outcome) => {
                let kept = self.workers[index].disk.has_outcome(outcome.at, outcome.ran_by);
                let task = Some(outcome.at.task);
                self.oracle.note(Property::Outbox, self.now, task, outbox::on_told(kept));
            }
            _ => {}
        }
    }

    fn judge_inventory(&mut self, index: usize, inventory: &Inventory) {
        let listed = self.oracle.outbox.on_inventory(worker_id(index), inventory);
        self.oracle.note(Property::Outbox, self.now, None, listed);
    }

    fn persist(&mut self, index: usize, effect: EffectId, record: Record, twist: Option<Fault>) {
        let worker = worker_id(index);
        if let Record::Acknowledged(at, ran_by) = &record {
            let row = self.table.entry(at.task).map(|entry| &entry.row);
            let forgotten = self.oracle.outbox.on_forgotten(worker, *at, *ran_by, row);
            self.oracle.note(Property::Outbox, self.now, Some(at.task), forgotten);
        }
        let ok = twist != Some(Fault::DiskFails);
        if ok {
            if let Record::Outcome(outcome) = &record {
                self.oracle.outbox.on_persisted(worker, outcome);
            }
            let now = self.now;
            self.workers[index].disk.write(now, record);
        } else {
            self.workers[index].disk.refuse(record);
        }
        self.count_unacknowledged();
        let delay = if twist == Some(Fault::DiskHangs) {
            self.heals_after(self.longest_ttl);
            self.longest_ttl
        } else {
            NET
        };
        let boot = self.workers[index].life.boot;
        self.after(delay, Coming::Persisted { worker: index, boot, effect, ok });
    }

    pub(super) fn on_persisted(&mut self, index: usize, boot: u32, effect: EffectId, ok: bool) {
        if self.workers[index].life.boot != boot {
            return;
        }
        let event =
            if ok { AgentEvent::Persisted(effect) } else { AgentEvent::PersistFailed(effect) };
        self.tell_agent(index, event);
    }

    pub(super) fn count_unacknowledged(&mut self) {
        self.unacknowledged = self.workers.iter().map(|worker| worker.disk.unacknowledged()).sum();
    }

    fn start(&mut self, index: usize, execute: &Execute) {
        let known = &self.workers[index];
        let at = execute.at;
        let holder = Holder { worker: worker_id(index), incarnation: known.incarnation };
        let given = known.disk.knows(at);
        let fresh =
            self.oracle.epoch_fences.on_start(execute.term.epoch, known.disk.highest().epoch);
        let boot = known.life.boot;
        self.oracle.note(Property::EpochFences, self.now, Some(at.task), fresh);
        let (runs_for, verdict) = self.plan_of(execute);
        let execution = Execution { at, holder, slots: execute.shape.slots, fate: Fate::Runs };
        let capacity = self.scenario.workers[index].slots;
        self.oracle.on_start(self.now, execution, capacity, given);
        let run = self.processes.len();
        self.processes.push(Process {
            worker: index,
            boot,
            at,
            ended: false,
            stopped: false,
            verdict,
        });
        self.after(runs_for, Coming::Ended { run });
    }

    /// How long this execution runs, and what it comes to.
    fn plan_of(&self, execute: &Execute) -> (u64, Verdict) {
        let number = execute.payload.bytes().first().copied().unwrap_or(0);
        let plan = &self.scenario.tasks[usize::from(number)];
        let task = execute.at.task;
        let before = self.processes.iter().filter(|process| process.at.task == task).count();
        let verdict = plan.verdicts.get(before).copied().unwrap_or(Verdict::Succeeded);
        (plan.runs_for.0, verdict)
    }

    fn stop(&mut self, index: usize, at: AttemptRef) {
        let running = self
            .processes
            .iter_mut()
            .enumerate()
            .find(|(_, process)| process.worker == index && process.at == at && !process.ended);
        if let Some((run, process)) = running
            && !process.stopped
        {
            process.stopped = true;
            self.after(ENDS_AFTER, Coming::Ended { run });
        }
    }

    pub(super) fn on_ended(&mut self, run: usize) {
        let process = &mut self.processes[run];
        if core::mem::replace(&mut process.ended, true) {
            return;
        }
        let (worker, boot, at) = (process.worker, process.boot, process.at);
        let (stopped, verdict) = (process.stopped, process.verdict);
        let fate = if stopped { Fate::Killed } else { Fate::Ended(verdict) };
        let incarnation = self.workers[worker].incarnation;
        let runs = self.oracle.executions.iter_mut();
        for execution in runs {
            if execution.at == at && execution.holder.incarnation == incarnation {
                execution.fate = fate;
            }
        }
        debug_assert_eq!(boot, self.workers[worker].life.boot, "processes end with their worker");
        let verdict = if stopped { Verdict::Failed } else { verdict };
        self.tell_agent(worker, AgentEvent::Ended { at, verdict, report: Payload::NONE });
    }
}

fn kind_of(event: &AgentEvent) -> u8 {
    0x90 + match event {
        AgentEvent::Woke => 0,
        AgentEvent::Booted(_) => 1,
        AgentEvent::Dialed(..) => 2,
        AgentEvent::DialFailed(_) => 3,
        AgentEvent::Closed(_) => 4,
        AgentEvent::Received(..) => 5,
        AgentEvent::Persisted(_) => 6,
        AgentEvent::PersistFailed(_) => 7,
        AgentEvent::Ended { .. } => 8,
        AgentEvent::DrainAsked { .. } => 9,
    }
}

fn about_event(event: &AgentEvent) -> u64 {
    match event {
        AgentEvent::Dialed(effect, session) => (effect.0 << 32) ^ session.0,
        AgentEvent::DialFailed(effect)
        | AgentEvent::Persisted(effect)
        | AgentEvent::PersistFailed(effect) => effect.0,
        AgentEvent::Closed(session) | AgentEvent::Received(session, _) => session.0,
        AgentEvent::Ended { at, .. } => about_attempt(*at),
        AgentEvent::Woke | AgentEvent::Booted(_) | AgentEvent::DrainAsked { .. } => 0,
    }
}

fn about_attempt(at: AttemptRef) -> u64 {
    (at.task.0 << 16) ^ u64::from(at.attempt.number())
}

fn about_command(command: &AgentCommand) -> u64 {
    match command {
        AgentCommand::Dial(effect, master) => (effect.0 << 8) ^ *master as u64,
        AgentCommand::Send(session, ToMaster::Finished(outcome)) => {
            (session.0 << 32) ^ about_attempt(outcome.at)
        }
        AgentCommand::Hangup(session) | AgentCommand::Send(session, _) => session.0,
        AgentCommand::Persist(effect, _) => effect.0,
        AgentCommand::Start(execute) => about_attempt(execute.at),
        AgentCommand::Stop(at, _) => about_attempt(*at),
        AgentCommand::Drained | AgentCommand::Quit(_) => 0,
    }
}
