//! Nodes live, die, stand still and come back.

use std::collections::VecDeque;

use tenure_core::agent::{Agent, AgentConfig};
use tenure_core::event::{AgentEvent, MasterEvent};
use tenure_core::ids::{Holder, Incarnation, WorkerId};
use tenure_core::master::{Master, MasterConfig};

use super::disk::Disk;
use super::{Coming, FAST_RESTART, MasterNode, NET, WorkerNode, World};
use crate::faults::Fault;
use crate::invariants::Fate;

/// A node that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeId {
    Master(usize),
    Worker(usize),
    Client,
}

impl NodeId {
    /// A number of its own, for the trace.
    pub(super) fn number(self) -> u8 {
        match self {
            NodeId::Master(index) => index as u8,
            NodeId::Worker(index) => 0x40 + index as u8,
            NodeId::Client => 0xFF,
        }
    }
}

/// Whether a node's process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Up,
    Paused,
    /// Its process is gone; its host refuses connections.
    Killed,
    /// Its host is gone.
    Dark,
}

/// The life of one node, over its restarts.
#[derive(Debug)]
pub(super) struct Life<E, C> {
    pub(super) state: State,
    /// Counts starts; what was meant for an earlier one is dropped.
    pub(super) boot: u32,
    /// What came while it stood still.
    pub(super) inbox: VecDeque<E>,
    /// What it was about to do when it stopped.
    pub(super) todo: VecDeque<C>,
    /// When it is to be woken.
    pub(super) armed: u64,
}

impl<E, C> Life<E, C> {
    fn new() -> Life<E, C> {
        Life {
            state: State::Up,
            boot: 0,
            inbox: VecDeque::new(),
            todo: VecDeque::new(),
            armed: u64::MAX,
        }
    }

    fn end(&mut self, state: State) {
        self.state = state;
        self.boot += 1;
        self.inbox.clear();
        self.todo.clear();
        self.armed = u64::MAX;
    }
}

/// Numbers that differ from start to start and have no order, as random ones would not.
fn drawn(seed: u64, node: NodeId, boot: u32) -> u64 {
    let mut stream =
        tenure_core::random::Stream::new(seed ^ (u64::from(node.number()) << 32) ^ u64::from(boot));
    stream.next_u64()
}

/// An incarnation of its own for each start: short to read, and in no order, as random ones would be.
fn incarnation(drawn: u64, node: NodeId, boot: u32) -> Incarnation {
    let of_node = match node {
        NodeId::Master(index) => index as u64,
        NodeId::Worker(index) => 10 + index as u64,
        NodeId::Client => 99,
    };
    Incarnation((10 + drawn % 90) * 10_000 + of_node * 100 + u64::from(boot % 100))
}

impl World {
    /// The worker that an incarnation was drawn for.
    pub(super) fn worker_of(&self, incarnation: Incarnation) -> WorkerId {
        worker_id((incarnation.0 / 100 % 100).saturating_sub(10) as usize)
    }

    /// Every node starts, the first master a little earlier, so that it leads.
    pub(super) fn boot_all(&mut self) {
        for index in 0..self.scenario.masters {
            let (core, incarnation) = self.new_master(index, 0);
            self.masters.push(MasterNode { core, incarnation, life: Life::new() });
        }
        for index in 0..self.scenario.workers.len() {
            let (core, incarnation) = self.new_agent(index, 0);
            let disk = Disk::default();
            self.workers.push(WorkerNode { core, incarnation, disk, life: Life::new() });
        }
        for index in 0..self.scenario.masters {
            self.masters[index].life.state = State::Killed;
            self.after(8 * index as u64, Coming::Restart(NodeId::Master(index)));
        }
        for index in 0..self.scenario.workers.len() {
            self.workers[index].life.state = State::Killed;
            self.after(10 + index as u64, Coming::Restart(NodeId::Worker(index)));
        }
        for task in 0..self.scenario.tasks.len() {
            self.after(25 + task as u64, Coming::ClientTurn { task });
        }
    }

    fn new_master(&self, index: usize, boot: u32) -> (Master, Incarnation) {
        let drawn = drawn(self.scenario.seed, NodeId::Master(index), boot);
        let incarnation = incarnation(drawn, NodeId::Master(index), boot);
        let config = MasterConfig {
            policy: self.scenario.policy,
            rules: self.rules,
            incarnation,
            exclusive: false,
            seed: drawn.rotate_left(17),
        };
        (Master::new(config), incarnation)
    }

    fn new_agent(&self, index: usize, boot: u32) -> (Agent, Incarnation) {
        let drawn = drawn(self.scenario.seed, NodeId::Worker(index), boot);
        let incarnation = incarnation(drawn, NodeId::Worker(index), boot);
        let config = AgentConfig {
            policy: self.scenario.policy,
            rules: self.rules,
            holder: Holder { worker: worker_id(index), incarnation },
            capacity: self.scenario.workers[index].clone(),
            masters: self.scenario.masters,
            seed: drawn.rotate_left(17),
        };
        (Agent::new(config), incarnation)
    }

    /// Ends a node's process, or its whole host.
    pub(super) fn crash(&mut self, node: NodeId, fault: Fault) {
        let slow = self.longest_ttl;
        let (state, back) = match fault {
            Fault::PowerCut => (State::Dark, slow),
            Fault::KillBeforeSlow | Fault::KillAfterSlow => (State::Killed, slow),
            _ => (State::Killed, FAST_RESTART),
        };
        self.end(node, state);
        self.healed_at(self.now + tenure_core::time::Millis(back));
        self.after(back, Coming::Restart(node));
    }

    /// Ends a node's process without a fault: it wanted to end, and its supervisor starts it again.
    pub(super) fn exit(&mut self, node: NodeId) {
        self.end(node, State::Killed);
        self.after(super::DIAL_TIMEOUT, Coming::Restart(node));
    }

    fn end(&mut self, node: NodeId, state: State) {
        match node {
            NodeId::Master(index) => self.masters[index].life.end(state),
            NodeId::Worker(index) => {
                self.workers[index].life.end(state);
                self.end_processes(index);
                if state == State::Dark {
                    let now = self.now;
                    self.workers[index].disk.lose_unsynced(now);
                    self.count_unacknowledged();
                }
            }
            NodeId::Client => {}
        }
        self.end_sessions(node, state == State::Dark);
    }

    fn end_processes(&mut self, worker: usize) {
        let incarnation = self.workers[worker].incarnation;
        for process in &mut self.processes {
            if process.worker == worker && !process.ended {
                process.ended = true;
                let run = self
                    .oracle
                    .executions
                    .iter_mut()
                    .find(|run| run.at == process.at && run.holder.incarnation == incarnation);
                if let Some(run) = run
                    && run.fate == Fate::Runs
                {
                    run.fate = Fate::Killed;
                }
            }
        }
    }

    /// A node starts: for the first time or again.
    pub(super) fn restart(&mut self, node: NodeId) {
        self.note_life(node, "starts");
        match node {
            NodeId::Master(index) => {
                let boot = self.masters[index].life.boot;
                let (core, incarnation) = self.new_master(index, boot);
                let known = &mut self.masters[index];
                (known.core, known.incarnation) = (core, incarnation);
                known.life.state = State::Up;
                self.reset_sessions(node);
                self.tell_master(index, MasterEvent::Woke);
            }
            NodeId::Worker(index) => {
                let boot = self.workers[index].life.boot;
                let (core, incarnation) = self.new_agent(index, boot);
                let known = &mut self.workers[index];
                (known.core, known.incarnation) = (core, incarnation);
                known.life.state = State::Up;
                let remembered = known.disk.remembered();
                self.oracle.outbox.on_boot(worker_id(index), &remembered.outcomes);
                self.oracle.patience.on_born(Holder { worker: worker_id(index), incarnation });
                self.reset_sessions(node);
                self.tell_agent(index, AgentEvent::Booted(remembered));
            }
            NodeId::Client => {}
        }
    }

    /// A node stands still for longer than every TTL.
    pub(super) fn pause(&mut self, node: NodeId) {
        let length = self.longest_ttl;
        match node {
            NodeId::Master(index) => self.masters[index].life.state = State::Paused,
            NodeId::Worker(index) => self.workers[index].life.state = State::Paused,
            NodeId::Client => return,
        }
        self.pending += 1;
        self.healed_at(self.now + tenure_core::time::Millis(length));
        self.after(length, Coming::Resume(node));
    }

    /// It goes on: what it was doing, then what came meanwhile, then its timers, all late.
    pub(super) fn resume(&mut self, node: NodeId) {
        self.pending -= 1;
        self.note_life(node, "goes on");
        match node {
            NodeId::Master(index) => {
                self.masters[index].life.state = State::Up;
                self.oracle.patience.on_resumed(index, self.now);
                self.go_on_master(index);
            }
            NodeId::Worker(index) => {
                self.workers[index].life.state = State::Up;
                self.go_on_agent(index);
            }
            NodeId::Client => {}
        }
    }

    /// A node's deadline may have come.
    pub(super) fn wake(&mut self, node: NodeId) {
        let now = self.now.0;
        match node {
            NodeId::Master(index) => {
                let known = &mut self.masters[index];
                if known.life.armed != now {
                    return;
                }
                known.life.armed = u64::MAX;
                if known.life.state != State::Up {
                    return;
                }
                if known.core.next_deadline().is_some_and(|deadline| deadline.0 <= now) {
                    self.tell_master(index, MasterEvent::Woke);
                } else {
                    self.arm_master(index);
                }
            }
            NodeId::Worker(index) => {
                let known = &mut self.workers[index];
                if known.life.armed != now {
                    return;
                }
                known.life.armed = u64::MAX;
                if known.life.state != State::Up {
                    return;
                }
                if known.core.next_deadline().is_some_and(|deadline| deadline.0 <= now) {
                    self.tell_agent(index, AgentEvent::Woke);
                } else {
                    self.arm_agent(index);
                }
            }
            NodeId::Client => {}
        }
    }

    /// Plans the next waking of a master, unless an earlier one is planned.
    pub(super) fn arm_master(&mut self, index: usize) {
        let known = &mut self.masters[index];
        let Some(deadline) = known.core.next_deadline() else { return };
        let at = deadline.0.max(self.now.0);
        if at < known.life.armed {
            known.life.armed = at;
            self.heap.push(at, Coming::Wake(NodeId::Master(index)));
        }
    }

    /// Plans the next waking of an agent, unless an earlier one is planned.
    pub(super) fn arm_agent(&mut self, index: usize) {
        let known = &mut self.workers[index];
        let Some(deadline) = known.core.next_deadline() else { return };
        let at = deadline.0.max(self.now.0);
        if at < known.life.armed {
            known.life.armed = at;
            self.heap.push(at, Coming::Wake(NodeId::Worker(index)));
        }
    }

    /// How long a connection needs to tell its other end that it is over.
    pub(super) fn end_travels() -> u64 {
        NET
    }
}

/// The name of a worker: core only compares them, and 0 is left out.
pub(super) fn worker_id(index: usize) -> WorkerId {
    WorkerId(index as u32 + 1)
}
