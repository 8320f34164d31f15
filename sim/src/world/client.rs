//! A client that does what ours promises: it sends an idempotency key, and asks again, elsewhere, with the
//! same key, until it is told.

use tenure_core::command::Reply;
use tenure_core::event::Ask;
use tenure_core::ids::{RequestId, TaskId};
use tenure_core::store::Status;

use super::life::{NodeId, State};
use super::{Coming, NET, World};
use crate::invariants::Property;

/// It waits this long for an answer.
pub const TIMEOUT: u64 = 1_000;
/// It waits at most this long before it asks again.
pub const PAUSE_MOST: u64 = 800;
const PAUSE_LEAST: u64 = 25;

/// What it still wants of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Submitted,
    /// To wait, and then have it cancelled.
    Cancelled,
    Nothing,
}

#[derive(Debug, Clone, Copy)]
struct Errand {
    want: Want,
    task: Option<TaskId>,
    /// Whom it asks next.
    master: usize,
    under_way: Option<RequestId>,
    pause: u64,
}

/// The client's errands, one a task.
#[derive(Debug)]
pub(super) struct Client {
    errands: Vec<Errand>,
    open: usize,
    next: u64,
}

const FRESH: Errand =
    Errand { want: Want::Submitted, task: None, master: 0, under_way: None, pause: PAUSE_LEAST };

impl Client {
    pub(super) fn new(tasks: usize) -> Client {
        Client { errands: vec![FRESH; tasks], open: tasks, next: 1 }
    }

    pub(super) fn reset(&mut self) {
        self.errands.fill(FRESH);
        self.open = self.errands.len();
        self.next = 1;
    }

    /// Whether it wants nothing more.
    pub(super) fn is_content(&self) -> bool {
        self.open == 0
    }

    fn by_request(&self, request: RequestId) -> Option<usize> {
        self.errands.iter().position(|errand| errand.under_way == Some(request))
    }
}

impl World {
    /// The client asks for what it wants of this task.
    pub(super) fn client_turn(&mut self, task: usize) {
        let errand = self.client.errands[task];
        let plan = &self.scenario.tasks[task];
        let ask = match (errand.want, errand.task) {
            (Want::Submitted, _) => Ask::Submit(plan.submission.clone()),
            (Want::Cancelled, Some(id)) => Ask::Cancel { task: id, force: plan.force },
            (Want::Cancelled, None) | (Want::Nothing, _) => return,
        };
        if errand.under_way.is_some() {
            return;
        }
        let request = RequestId(self.client.next);
        self.client.next += 1;
        self.count_step(NodeId::Client, 0xA0, request.0);
        match self.masters[errand.master].life.state {
            State::Killed => self.ask_elsewhere(task),
            State::Dark => {
                self.client.errands[task].under_way = Some(request);
                self.after(TIMEOUT, Coming::ClientTimeout { request });
            }
            State::Up | State::Paused => {
                self.client.errands[task].under_way = Some(request);
                self.note_ask(task, errand.master, &ask);
                self.after(NET, Coming::Asked { master: errand.master, request, ask });
                self.after(TIMEOUT, Coming::ClientTimeout { request });
            }
        }
    }

    fn ask_elsewhere(&mut self, task: usize) {
        let masters = self.scenario.masters;
        let errand = &mut self.client.errands[task];
        errand.master = (errand.master + 1) % masters;
        let pause = errand.pause;
        errand.pause = (pause * 2).min(PAUSE_MOST);
        self.after(pause, Coming::ClientTurn { task });
    }

    pub(super) fn on_client_timeout(&mut self, request: RequestId) {
        if let Some(task) = self.client.by_request(request) {
            self.client.errands[task].under_way = None;
            self.count_step(NodeId::Client, 0xA1, request.0);
            self.ask_elsewhere(task);
        }
    }

    pub(super) fn on_replied(&mut self, request: RequestId, reply: Reply) {
        let Some(task) = self.client.by_request(request) else {
            return;
        };
        self.count_step(NodeId::Client, 0xA2, request.0);
        self.note_reply(task, &reply);
        self.client.errands[task].under_way = None;
        match reply {
            Reply::Submitted { task: id, .. } => self.on_submitted(task, id),
            Reply::KeyTaken(id) => {
                let refused = Err("a client was refused its own key");
                self.oracle.note(Property::NoneLost, self.now, Some(id), refused);
            }
            Reply::Cancelled(row) => {
                let stored = self.table.entry(row.task).map(|entry| entry.row.status);
                let stored = stored.unwrap_or(Status::Pending);
                let confirmed = self.oracle.cancel.on_confirmed(row.task, stored);
                self.oracle.note(Property::Cancel, self.now, Some(row.task), confirmed);
                self.satisfied(task);
            }
            Reply::Cancelling(row) => {
                let entry = self.table.entry(row.task).map(|entry| &entry.row);
                let stored =
                    entry.is_some_and(|row| row.cancel_requested || row.status.is_terminal());
                let found = if stored { Ok(()) } else { Err("a wish to cancel was not stored") };
                self.oracle.note(Property::Cancel, self.now, Some(row.task), found);
                self.satisfied(task);
            }
            Reply::AlreadyOver(..) => self.satisfied(task),
            Reply::NoTask(id) => {
                let lost = Err("a client was told that its task does not exist");
                self.oracle.note(Property::NoneLost, self.now, Some(id), lost);
            }
            Reply::NotLeader(_) | Reply::StoreFailed | Reply::Unknown => self.ask_elsewhere(task),
        }
    }

    fn on_submitted(&mut self, task: usize, id: TaskId) {
        let told = self.oracle.none_lost.on_told(task as u8, id);
        self.oracle.note(Property::NoneLost, self.now, Some(id), told);
        let errand = &mut self.client.errands[task];
        errand.task = Some(id);
        errand.pause = PAUSE_LEAST;
        match self.scenario.tasks[task].cancel_after {
            Some(wait) => {
                errand.want = Want::Cancelled;
                self.after(wait.0, Coming::ClientTurn { task });
            }
            None => self.satisfied(task),
        }
    }

    fn satisfied(&mut self, task: usize) {
        self.client.errands[task].want = Want::Nothing;
        self.client.open -= 1;
    }
}
