//! The kinds of effects that nodes have on the world, and which faults each can meet.

use tenure_core::command::{AgentCommand, MasterCommand, Record};
use tenure_core::lease::LeaseOp;
use tenure_core::message::{ToMaster, ToWorker};
use tenure_core::store::{Change, StoreOp};

use crate::faults::{Fault, FaultSet};

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident $text:literal)*) => {
        /// One kind of effect.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Action {
            $($(#[$doc])* $name,)*
        }

        impl Action {
            /// Every kind, in the order of their numbers.
            pub const ALL: &'static [Action] = &[$(Action::$name,)*];

            /// Its name in tables and timelines.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Action::$name => $text,)*
                }
            }
        }
    };
}

actions! {
    /// A master stores a submission.
    Insert "store insert"
    /// A master stores a submission and claims it at once.
    InsertClaim "store insert+claim"
    /// A master claims a task.
    Claim "store claim"
    /// A master takes a claim back.
    Undo "store undo"
    /// A master gives an attempt up.
    Lose "store lose"
    /// A master keeps an attempt that it had given up.
    Keep "store keep"
    /// A master commits an outcome.
    Commit "store commit"
    /// A master stores a client's wish to cancel.
    Cancel "store cancel"
    /// A master notes that an attempt has started.
    MarkStarted "store mark-started"
    /// A master lifts a row of a store that has gone back.
    Lift "store lift"
    /// A master stores a worker's incarnation.
    Register "store register"
    /// A master reads one row.
    Read "store read"
    /// A new leader reads everything.
    ReadAll "store read-all"
    /// A leader compares a page of the store with its memory.
    Scan "store scan"
    /// A master reads who leads.
    ReadTerm "store read-term"
    /// A master takes a term.
    TakeTerm "store take-term"
    /// A leader renews its term.
    RenewTerm "store renew-term"
    /// A leader gives its term up.
    ReleaseTerm "store release-term"
    /// A master writes a task's lease.
    Grant "lease grant"
    /// A master renews a worker's leases.
    Renew "lease renew"
    /// A master releases a task's lease.
    Release "lease release"
    /// A master looks at a heartbeat key.
    IsAlive "lease is-alive"
    /// A master sends hello-ack.
    SendHelloAck "send hello-ack"
    /// A master refuses a hello.
    SendHelloRefused "send hello-refused"
    /// A master answers a heartbeat.
    SendHeartbeatAck "send heartbeat-ack"
    /// A master orders an attempt to be run.
    SendExecute "send execute"
    /// A master acknowledges an outcome.
    SendResultAck "send result-ack"
    /// A master orders an attempt to end.
    SendStop "send stop"
    /// A master says that it does not lead.
    SendNotLeader "send not-leader"
    /// A master drains a worker.
    SendDrain "send drain"
    /// A master asks for a heartbeat.
    SendPing "send ping"
    /// A master ends a session.
    Close "close"
    /// A master answers a client.
    Reply "reply"
    /// A master begins to lead.
    Lead "lead"
    /// A master leads no more.
    StepDown "step-down"
    /// A master has handed over.
    Stopped "stopped"
    /// A worker connects.
    Dial "dial"
    /// A worker ends its session.
    Hangup "hangup"
    /// A worker introduces itself.
    SendHello "send hello"
    /// A worker's heartbeat.
    SendHeartbeat "send heartbeat"
    /// A worker says that it has started an attempt.
    SendAccepted "send accepted"
    /// A worker says that it does not start an attempt.
    SendDeclined "send declined"
    /// A worker tells an outcome.
    SendFinished "send finished"
    /// A message of the documented protocol.
    SendDocumented "send documented"
    /// A worker records an attempt that it was given.
    PersistGiven "persist given"
    /// A worker records an outcome.
    PersistOutcome "persist outcome"
    /// A worker records the highest term seen.
    PersistHighest "persist highest"
    /// A worker forgets an acknowledged outcome.
    PersistAcknowledged "persist acknowledged"
    /// A worker starts a process.
    Start "start process"
    /// A worker ends a process.
    Stop "stop process"
    /// A worker's drain is over.
    Drained "drained"
    /// A worker's process ends with an error.
    Quit "quit"
}

/// How many kinds there are.
pub const ACTIONS: usize = Action::Quit as usize + 1;

const ORDER_READ: FaultSet = FaultSet::of(&[Fault::UnknownLost, Fault::Refuse, Fault::Slow]);
const ORDER_WRITE: FaultSet =
    ORDER_READ.and(FaultSet::of(&[Fault::UnknownApplied, Fault::UnknownLate]));
const LEASE: FaultSet =
    FaultSet::of(&[Fault::UnknownApplied, Fault::UnknownLost, Fault::UnknownLate]);
const MESSAGE: FaultSet = FaultSet::of(&[Fault::Break, Fault::Late, Fault::Silence]);
const DISK: FaultSet = FaultSet::of(&[Fault::DiskFails, Fault::DiskHangs]);

impl Action {
    /// The faults that it can meet, "before" included.
    #[must_use]
    pub fn faults(self) -> FaultSet {
        use Action as A;
        match self {
            A::Insert
            | A::InsertClaim
            | A::Claim
            | A::Undo
            | A::Lose
            | A::Keep
            | A::Commit
            | A::Cancel
            | A::MarkStarted
            | A::Lift
            | A::Register
            | A::TakeTerm
            | A::RenewTerm
            | A::ReleaseTerm => FaultSet::PROCESS.and(ORDER_WRITE),
            A::Read | A::ReadAll | A::Scan | A::ReadTerm => FaultSet::PROCESS.and(ORDER_READ),
            A::Grant | A::Renew | A::Release => FaultSet::PROCESS.and(LEASE),
            A::IsAlive => FaultSet::PROCESS.and(FaultSet::of(&[Fault::UnknownLost])),
            A::SendExecute => FaultSet::PROCESS.and(MESSAGE).and(FaultSet::of(&[Fault::Repeat])),
            A::SendHelloAck
            | A::SendHelloRefused
            | A::SendHeartbeatAck
            | A::SendResultAck
            | A::SendStop
            | A::SendNotLeader
            | A::SendDrain
            | A::SendPing
            | A::SendHello
            | A::SendHeartbeat
            | A::SendAccepted
            | A::SendDeclined
            | A::SendFinished
            | A::SendDocumented => FaultSet::PROCESS.and(MESSAGE),
            A::Reply | A::Dial => FaultSet::PROCESS.and(FaultSet::of(&[Fault::Break])),
            A::PersistGiven | A::PersistOutcome | A::PersistHighest | A::PersistAcknowledged => {
                FaultSet::PROCESS.and(DISK)
            }
            A::Close | A::Hangup | A::Start | A::Stop => FaultSet::PROCESS,
            // These touch nothing outside the process, or end it: a fault there is one at their neighbour.
            A::Lead | A::StepDown | A::Stopped | A::Drained | A::Quit => FaultSet::NONE,
        }
    }

    /// The kind of a master's command.
    #[must_use]
    pub fn of_master(command: &MasterCommand) -> Action {
        match command {
            MasterCommand::Store(_, op) => Action::of_store(op),
            MasterCommand::Lease(_, op) => match op {
                LeaseOp::Grant { .. } => Action::Grant,
                LeaseOp::Renew { .. } => Action::Renew,
                LeaseOp::Release { .. } => Action::Release,
                LeaseOp::IsAlive(_) => Action::IsAlive,
            },
            MasterCommand::Send(_, said) => match said {
                ToWorker::HelloAck(_) => Action::SendHelloAck,
                ToWorker::HelloRefused(_) => Action::SendHelloRefused,
                ToWorker::HeartbeatAck(_) => Action::SendHeartbeatAck,
                ToWorker::Execute(_) => Action::SendExecute,
                ToWorker::ResultAck { .. } => Action::SendResultAck,
                ToWorker::Stop { .. } => Action::SendStop,
                ToWorker::NotLeader(_) => Action::SendNotLeader,
                ToWorker::Drain => Action::SendDrain,
                ToWorker::Ping => Action::SendPing,
            },
            MasterCommand::Close(..) => Action::Close,
            MasterCommand::Reply(..) => Action::Reply,
            MasterCommand::Lead(_) => Action::Lead,
            MasterCommand::StepDown(_) => Action::StepDown,
            MasterCommand::Stopped => Action::Stopped,
        }
    }

    fn of_store(op: &StoreOp) -> Action {
        match op {
            StoreOp::Insert { claim: None, .. } => Action::Insert,
            StoreOp::Insert { claim: Some(_), .. } => Action::InsertClaim,
            StoreOp::Change { change, .. } => match change {
                Change::Claim { .. } => Action::Claim,
                Change::Undo { .. } => Action::Undo,
                Change::Lose { .. } => Action::Lose,
                Change::Keep { .. } => Action::Keep,
                Change::Commit { .. } => Action::Commit,
                Change::Cancel { .. } => Action::Cancel,
                Change::MarkStarted { .. } => Action::MarkStarted,
                Change::Lift { .. } => Action::Lift,
            },
            StoreOp::Register { .. } => Action::Register,
            StoreOp::Read(_) => Action::Read,
            StoreOp::ReadAll(_) => Action::ReadAll,
            StoreOp::Scan { .. } => Action::Scan,
            StoreOp::ReadTerm => Action::ReadTerm,
            StoreOp::TakeTerm { .. } => Action::TakeTerm,
            StoreOp::RenewTerm { .. } => Action::RenewTerm,
            StoreOp::ReleaseTerm(_) => Action::ReleaseTerm,
        }
    }

    /// The kind of an agent's command.
    #[must_use]
    pub fn of_agent(command: &AgentCommand) -> Action {
        match command {
            AgentCommand::Dial(..) => Action::Dial,
            AgentCommand::Hangup(_) => Action::Hangup,
            AgentCommand::Send(_, said) => match said {
                ToMaster::Hello(_) => Action::SendHello,
                ToMaster::Heartbeat(_) => Action::SendHeartbeat,
                ToMaster::Accepted(_) => Action::SendAccepted,
                ToMaster::Declined(..) => Action::SendDeclined,
                ToMaster::Finished(_) => Action::SendFinished,
                ToMaster::DocumentedHeartbeat { .. }
                | ToMaster::DocumentedAnswer { .. }
                | ToMaster::DocumentedReport { .. } => Action::SendDocumented,
            },
            AgentCommand::Persist(_, record) => match record {
                Record::Given { .. } => Action::PersistGiven,
                Record::Outcome(_) => Action::PersistOutcome,
                Record::Highest(_) => Action::PersistHighest,
                Record::Acknowledged(..) => Action::PersistAcknowledged,
            },
            AgentCommand::Start(_) => Action::Start,
            AgentCommand::Stop(..) => Action::Stop,
            AgentCommand::Drained => Action::Drained,
            AgentCommand::Quit(_) => Action::Quit,
        }
    }
}
