//! The world: masters, workers, a client, the stores, disks, processes and connections, in one thread and
//! virtual time.
//!
//! Every command of a node is one step; before and around it a fault may be chosen ([`crate::choices`]). All
//! that happens lies in one heap, ordered by time and then by when it was planned, so a history is a
//! function of its scenario and its choices.

mod agents;
pub mod client;
mod disk;
mod ending;
mod life;
mod masters;
mod network;
mod recorder;
mod stores;

use tenure_core::agent::Agent;
use tenure_core::command::{AgentCommand, MasterCommand, Reply};
use tenure_core::event::{AgentEvent, Ask, MasterEvent};
use tenure_core::ids::{AttemptRef, EffectId, Incarnation, RequestId};
use tenure_core::lease::{LeaseAnswer, LeaseOp};
use tenure_core::master::Master;
use tenure_core::message::{ToMaster, ToWorker};
use tenure_core::model::lease_table::LeaseTable;
use tenure_core::model::task_table::TaskTable;
use tenure_core::rules::Rules;
use tenure_core::store::{StoreOp, StoreResult};
use tenure_core::time::{Millis, Time};

use crate::action::Action;
use crate::choices::Choices;
use crate::coverage::Coverage;
use crate::faults::{Fault, FaultSet};
use crate::heap::Heap;
use crate::invariants::ends;
use crate::invariants::{Oracle, Property, Violation};
use crate::scenario::Scenario;
use crate::trace::TraceHash;

use client::Client;
use disk::Disk;
use life::{Life, NodeId};
use network::Session;
use recorder::Recorder;
pub use recorder::{Line, LineKind};

/// The first instant. Not zero, so that nothing in core is ever "before the beginning".
const BEGINNING: Time = Time(100_000);
/// A message from node to node.
const NET: u64 = 1;
/// An order on its way to a store; its answer takes as long.
const STORE: u64 = 1;
/// A restart well within every TTL.
const FAST_RESTART: u64 = 100;
/// What comes late comes after the disconnect grace and after a fast restart.
const LATE: u64 = 600;
/// An unknown answer comes when the order's own timeout is over.
const ORDER_TIMEOUT: u64 = 20;
/// A dial into nothing gives up after this.
const DIAL_TIMEOUT: u64 = 1_000;

/// What is still to come.
#[derive(Debug)]
enum Coming {
    Wake(NodeId),
    StoreOrder { master: usize, boot: u32, effect: EffectId, op: StoreOp, twist: Option<Fault> },
    Stored { master: usize, boot: u32, effect: EffectId, result: StoreResult },
    LeaseOrder { master: usize, boot: u32, effect: EffectId, op: LeaseOp, twist: Option<Fault> },
    Leased { master: usize, boot: u32, effect: EffectId, answer: LeaseAnswer },
    ToMaster { session: usize, said: ToMaster, late: bool },
    ToWorker { session: usize, said: ToWorker, late: bool },
    Opened { session: usize },
    Dialed { session: usize, effect: EffectId },
    DialFailed { worker: usize, boot: u32, effect: EffectId },
    ClosedAtMaster { session: usize },
    ClosedAtWorker { session: usize },
    Persisted { worker: usize, boot: u32, effect: EffectId, ok: bool },
    Ended { run: usize },
    Asked { master: usize, request: RequestId, ask: Ask },
    Replied { request: RequestId, reply: Reply },
    ClientTurn { task: usize },
    ClientTimeout { request: RequestId },
    Restart(NodeId),
    Resume(NodeId),
    Heal,
    RestIsOver,
}

struct MasterNode {
    core: Master,
    incarnation: Incarnation,
    life: Life<MasterEvent, MasterCommand>,
}

struct WorkerNode {
    core: Agent,
    incarnation: Incarnation,
    disk: Disk,
    life: Life<AgentEvent, AgentCommand>,
}

/// A process of a worker.
struct Process {
    worker: usize,
    boot: u32,
    at: AttemptRef,
    ended: bool,
    stopped: bool,
    verdict: tenure_core::outcome::Verdict,
}

/// How a history ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// What was violated, if anything.
    pub violation: Option<Violation>,
    /// How many events were handled and effects carried out.
    pub steps: u64,
    /// The hash of all of them.
    pub hash: u64,
    /// Virtual time from the beginning to the end.
    pub lasted: Millis,
    /// How many faults happened.
    pub faults: u32,
}

/// The world of one scenario; used again and again, one history after the other.
pub struct World {
    scenario: Scenario,
    rules: Rules,
    longest_ttl: u64,
    bound: Millis,
    choices: Choices,
    now: Time,
    heap: Heap<Coming>,
    masters: Vec<MasterNode>,
    workers: Vec<WorkerNode>,
    sessions: Vec<Session>,
    processes: Vec<Process>,
    table: TaskTable,
    leases: LeaseTable,
    client: Client,
    oracle: Oracle,
    coverage: Coverage,
    hash: TraceHash,
    recorder: Option<Recorder>,
    master_out: Vec<MasterCommand>,
    agent_out: Vec<AgentCommand>,
    steps: u64,
    steps_at_once: u32,
    faults: u32,
    healed: Time,
    /// Late things on their way, and nodes that stand still: none may be left at the end. A node that is down
    /// and owes nothing is not waited for: what it does when it is back is what a fresh one does.
    pending: u32,
    /// Tasks whose row is over.
    over: usize,
    /// Outcomes on the disks of workers that were not acknowledged.
    unacknowledged: usize,
    resting: bool,
    done: bool,
}

impl World {
    /// The world of this scenario under these rules.
    #[must_use]
    pub fn new(scenario: Scenario, rules: Rules, choices: Choices) -> World {
        let client = Client::new(scenario.tasks.len());
        World {
            longest_ttl: longest_ttl(&scenario),
            bound: ends::bound(&scenario),
            scenario,
            rules,
            choices,
            now: BEGINNING,
            heap: Heap::new(),
            masters: Vec::new(),
            workers: Vec::new(),
            sessions: Vec::new(),
            processes: Vec::new(),
            table: TaskTable::with_rules(rules),
            leases: LeaseTable::with_rules(rules),
            client,
            oracle: Oracle::default(),
            coverage: Coverage::default(),
            hash: TraceHash::default(),
            recorder: None,
            master_out: Vec::new(),
            agent_out: Vec::new(),
            steps: 0,
            steps_at_once: 0,
            faults: 0,
            healed: BEGINNING,
            pending: 0,
            over: 0,
            unacknowledged: 0,
            resting: false,
            done: false,
        }
    }

    /// The choices, to move them on between two histories.
    pub fn choices(&mut self) -> &mut Choices {
        &mut self.choices
    }

    /// What was injected so far, over all histories.
    #[must_use]
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Keeps a line for every step of the next history.
    pub fn record(&mut self) {
        self.recorder = Some(Recorder::default());
    }

    /// The recorded lines.
    pub fn take_lines(&mut self) -> Vec<Line> {
        self.recorder.take().map(|recorder| recorder.lines).unwrap_or_default()
    }

    /// Runs one history from its beginning to its end.
    pub fn run(&mut self) -> Ending {
        self.reset();
        self.boot_all();
        while !self.done
            && let Some((at, coming)) = self.heap.pop()
        {
            self.move_clock(at);
            self.step(coming);
            self.look_at_the_end();
        }
        let lasted = self.now.since(BEGINNING);
        let hash = self.hash.finish();
        let violation = self.oracle.violation();
        Ending { violation, steps: self.steps, hash, lasted, faults: self.faults }
    }

    fn reset(&mut self) {
        self.now = BEGINNING;
        self.heap.clear();
        self.masters.clear();
        self.workers.clear();
        self.sessions.clear();
        self.processes.clear();
        self.table = TaskTable::with_rules(self.rules);
        self.leases = LeaseTable::with_rules(self.rules);
        self.client.reset();
        self.oracle.reset();
        self.hash = TraceHash::default();
        (self.steps, self.steps_at_once, self.faults) = (0, 0, 0);
        self.healed = BEGINNING;
        (self.pending, self.over, self.unacknowledged) = (0, 0, 0);
        (self.resting, self.done) = (false, false);
    }

    fn move_clock(&mut self, at: u64) {
        if at > self.now.0 {
            self.now = Time(at);
            self.steps_at_once = 0;
        }
    }

    /// The core broke its contract: no history goes on after that.
    fn refused(&mut self, what: &'static str) {
        self.oracle.note(Property::Contract, self.now, None, Err(what));
        self.done = true;
    }

    // Inlined, so that what comes is not copied from hand to hand.
    #[inline(always)]
    fn step(&mut self, coming: Coming) {
        match coming {
            Coming::Wake(node) => self.wake(node),
            Coming::StoreOrder { master, boot, effect, op, twist } => {
                self.carry_out_store_order(master, boot, effect, &op, twist);
            }
            Coming::Stored { master, boot, effect, result } => {
                self.on_stored(master, boot, effect, result);
            }
            Coming::LeaseOrder { master, boot, effect, op, twist } => {
                self.carry_out_lease_order(master, boot, effect, &op, twist);
            }
            Coming::Leased { master, boot, effect, answer } => {
                if self.masters[master].life.boot == boot {
                    self.tell_master(master, MasterEvent::Leased(effect, answer));
                }
            }
            Coming::ToMaster { session, said, late } => self.arrive_at_master(session, said, late),
            Coming::ToWorker { session, said, late } => self.arrive_at_worker(session, said, late),
            Coming::Opened { session } => self.on_opened(session),
            Coming::Dialed { session, effect } => self.on_dialed(session, effect),
            Coming::DialFailed { worker, boot, effect } => {
                if self.workers[worker].life.boot == boot {
                    self.tell_agent(worker, AgentEvent::DialFailed(effect));
                }
            }
            Coming::ClosedAtMaster { session } => self.on_closed_at_master(session),
            Coming::ClosedAtWorker { session } => self.on_closed_at_worker(session),
            Coming::Persisted { worker, boot, effect, ok } => {
                self.on_persisted(worker, boot, effect, ok);
            }
            Coming::Ended { run } => self.on_ended(run),
            Coming::Asked { master, request, ask } => {
                self.tell_master(master, MasterEvent::Asked(request, ask));
            }
            Coming::Replied { request, reply } => self.on_replied(request, reply),
            Coming::ClientTurn { task } => self.client_turn(task),
            Coming::ClientTimeout { request } => self.on_client_timeout(request),
            Coming::Restart(node) => self.restart(node),
            Coming::Resume(node) => self.resume(node),
            Coming::Heal => self.pending -= 1,
            Coming::RestIsOver => self.rest_is_over(),
        }
    }

    fn after(&mut self, delay: u64, coming: Coming) {
        self.heap.push(self.now.0 + delay, coming);
    }

    /// Which fault meets this action, if any. Nothing is asked once all tasks are over, their outcomes are
    /// acknowledged and the client is content: what is left is rest.
    #[inline]
    fn fault_at(&mut self, node: NodeId, action: Action, first: bool) -> Option<Fault> {
        let over = self.over == self.scenario.tasks.len() && self.unacknowledged == 0;
        if over && self.client.is_content() {
            return None;
        }
        let mut offered = action.faults();
        if !first {
            offered = offered.but(FaultSet::of(&[Fault::KillBefore, Fault::KillBeforeSlow]));
        }
        if offered.is_empty() {
            return None;
        }
        let fault = self.choices.pick(offered, action)?;
        self.faults += 1;
        self.healed_at(self.now);
        self.coverage.count(action, fault);
        self.note_fault(node, action, fault);
        Some(fault)
    }

    /// Faults stop mattering at this time.
    fn healed_at(&mut self, at: Time) {
        self.healed = self.healed.max(at);
    }

    /// Notes that the effects of a fault go on for so long.
    fn heals_after(&mut self, delay: u64) {
        self.healed_at(self.now + Millis(delay));
        self.pending += 1;
        // Behind the last thing that the fault does.
        self.after(delay + 1, Coming::Heal);
    }

    fn count_step(&mut self, node: NodeId, kind: u8, about: u64) {
        self.steps += 1;
        self.steps_at_once += 1;
        self.hash.add(self.now.0, node.number(), kind, about);
    }
}

/// A pause or a slow restart lasts longer than anything that a peer may wait for: the longest of the TTLs
/// and graces that decide. The lease of a task is not among them: it never decides.
fn longest_ttl(scenario: &Scenario) -> u64 {
    let s = scenario.policy.settings();
    let patience = scenario.tasks.iter().filter_map(|task| task.submission.limits.patience).max();
    let longest = s.adopt_max.max(s.heartbeat_ttl).max(s.leader_ttl).max(s.disconnect_grace);
    longest.max(patience.unwrap_or_default()).0 + s.heartbeat.0 / 2
}
