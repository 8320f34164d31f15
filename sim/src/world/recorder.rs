//! Keeps what happens in words, when somebody wants to read it. Off, it costs one comparison a step.

use std::fmt::Display;

use tenure_core::command::{AgentCommand, MasterCommand, Reply};
use tenure_core::event::{AgentEvent, Ask, MasterEvent};
use tenure_core::store::{StoreAnswer, StoreOp};
use tenure_core::time::Millis;

use super::life::NodeId;
use super::{BEGINNING, World};
use crate::action::Action;
use crate::faults::Fault;

/// What kind of line it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// A node was told something.
    Event,
    /// A node did something.
    Command,
    /// A fault met the action that is named.
    Fault,
    /// A node ended, started, stood still or went on.
    Life,
    /// What a store answered to a change.
    Store,
    /// The client's side.
    Client,
}

/// One line of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Since the beginning.
    pub at: Millis,
    /// Which node.
    pub node: String,
    /// What kind of line.
    pub kind: LineKind,
    /// What happened.
    pub text: String,
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) lines: Vec<Line>,
}

fn name(node: NodeId) -> String {
    match node {
        NodeId::Master(index) => format!("m{}", index + 1),
        NodeId::Worker(index) => format!("w{}", index + 1),
        NodeId::Client => "client".to_owned(),
    }
}

impl World {
    fn line(&mut self, node: NodeId, kind: LineKind, text: impl FnOnce() -> String) {
        let at = self.now.since(BEGINNING);
        if let Some(recorder) = &mut self.recorder {
            recorder.lines.push(Line { at, node: name(node), kind, text: text() });
        }
    }

    fn said(&mut self, node: NodeId, kind: LineKind, what: &impl Display) {
        self.line(node, kind, || what.to_string());
    }

    #[inline]
    pub(super) fn note_master_event(&mut self, index: usize, event: &MasterEvent) {
        if self.recorder.is_some() {
            self.said(NodeId::Master(index), LineKind::Event, event);
        }
    }

    #[inline]
    pub(super) fn note_master_command(&mut self, index: usize, command: &MasterCommand) {
        if self.recorder.is_some() {
            self.said(NodeId::Master(index), LineKind::Command, command);
        }
    }

    #[inline]
    pub(super) fn note_agent_event(&mut self, index: usize, event: &AgentEvent) {
        if self.recorder.is_some() {
            self.said(NodeId::Worker(index), LineKind::Event, event);
        }
    }

    #[inline]
    pub(super) fn note_agent_command(&mut self, index: usize, command: &AgentCommand) {
        if self.recorder.is_some() {
            self.said(NodeId::Worker(index), LineKind::Command, command);
        }
    }

    pub(super) fn note_fault(&mut self, node: NodeId, action: Action, fault: Fault) {
        self.line(node, LineKind::Fault, || format!("{fault} at \"{}\"", action.name()));
    }

    pub(super) fn note_life(&mut self, node: NodeId, what: &'static str) {
        self.line(node, LineKind::Life, || what.to_owned());
    }

    #[inline]
    pub(super) fn note_store(&mut self, op: &StoreOp, answer: &StoreAnswer) {
        let at = self.now.since(BEGINNING);
        if let Some(recorder) = &mut self.recorder {
            let text = format!("{op}: {answer}");
            recorder.lines.push(Line { at, node: "store".to_owned(), kind: LineKind::Store, text });
        }
    }

    #[inline]
    pub(super) fn note_ask(&mut self, task: usize, master: usize, ask: &Ask) {
        if self.recorder.is_some() {
            let text = format!("asks m{} for task {task}: {ask}", master + 1);
            self.line(NodeId::Client, LineKind::Client, || text);
        }
    }

    #[inline]
    pub(super) fn note_reply(&mut self, task: usize, reply: &Reply) {
        if self.recorder.is_some() {
            let text = format!("is told of task {task}: {reply}");
            self.line(NodeId::Client, LineKind::Client, || text);
        }
    }
}
