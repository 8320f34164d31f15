//! An agent whose disk, network and processes the test plays.

use tenure_core::agent::{Agent, AgentConfig};
use tenure_core::command::{AgentCommand, Record};
use tenure_core::error::Refused;
use tenure_core::event::{AgentEvent, Remembered};
use tenure_core::ids::{
    Attempt, AttemptRef, EffectId, Epoch, Holder, Incarnation, SessionId, TaskId, Term, WorkerId,
};
use tenure_core::message::{AckVerdict, Execute, Finished, Inventory, ToMaster, ToWorker};
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::policy::{Policy, Settings};
use tenure_core::rules::Rules;
use tenure_core::spec::{Payload, Shape};
use tenure_core::time::{Millis, Time};

/// The incarnation of every agent here.
pub(crate) const ME: Incarnation = Incarnation(7);
/// The default timings.
pub(crate) const TIMES: Settings = Settings::DEFAULT;

pub(crate) type Commands = Vec<AgentCommand>;

/// An agent and the time that passes for it.
pub(crate) struct Bench {
    pub(crate) now: Time,
    pub(crate) agent: Agent,
    sessions: u64,
}

/// One slot, two masters, no labels.
pub(crate) fn config() -> AgentConfig {
    AgentConfig {
        policy: Policy::default(),
        rules: Rules::ALL,
        holder: Holder { worker: WorkerId(1), incarnation: ME },
        capacity: Shape::default(),
        masters: 2,
        seed: 3,
    }
}

/// The same with so many slots.
pub(crate) fn with_slots(slots: u16) -> AgentConfig {
    AgentConfig { capacity: Shape { slots, ..Shape::default() }, ..config() }
}

/// The leader of this epoch.
pub(crate) fn term(epoch: u64) -> Term {
    Term { epoch: Epoch(epoch), leader: Incarnation(100 + epoch) }
}

/// Attempt `attempt` of task `task`.
pub(crate) fn at(task: u64, attempt: u32) -> AttemptRef {
    AttemptRef::new(TaskId(task), Attempt::new(attempt).expect("attempts begin at 1"))
}

/// An order of the leader of epoch 1 to run it.
pub(crate) fn execute(at: AttemptRef) -> Execute {
    let (shape, payload) = (Shape::default(), Payload::NONE);
    Execute { at, term: term(1), shape, timeout: None, resumes: false, payload }
}

/// The outcome of an attempt that this incarnation ran.
pub(crate) fn outcome(at: AttemptRef, verdict: Verdict) -> Outcome {
    Outcome { at, ran_by: ME, verdict, report: Payload::NONE }
}

/// The acknowledgement of an outcome of this incarnation by the leader of that epoch.
pub(crate) fn ack(at: AttemptRef, epoch: u64) -> ToWorker {
    let verdict = AckVerdict::Committed;
    ToWorker::ResultAck { at, ran_by: ME, epoch: Epoch(epoch), verdict }
}

/// An inventory of attempts run and finished by this incarnation.
pub(crate) fn inventory(running: &[AttemptRef], finished: &[AttemptRef]) -> Inventory {
    let finished = finished.iter().map(|at| Finished { at: *at, ran_by: ME }).collect();
    Inventory { running: running.to_vec(), finished }
}

/// What was said in these commands.
pub(crate) fn said(commands: &[AgentCommand]) -> Vec<ToMaster> {
    let said = commands.iter().filter_map(|command| match command {
        AgentCommand::Send(_, message) => Some(message.clone()),
        _ => None,
    });
    said.collect()
}

/// The records that these commands write.
pub(crate) fn records(commands: &[AgentCommand]) -> Vec<Record> {
    let records = commands.iter().filter_map(|command| match command {
        AgentCommand::Persist(_, record) => Some(record.clone()),
        _ => None,
    });
    records.collect()
}

/// The attempts that these commands start.
pub(crate) fn started(commands: &[AgentCommand]) -> Vec<AttemptRef> {
    let started = commands.iter().filter_map(|command| match command {
        AgentCommand::Start(execute) => Some(execute.at),
        _ => None,
    });
    started.collect()
}

/// The master that these commands dial.
pub(crate) fn dialed(commands: &[AgentCommand]) -> Option<(EffectId, usize)> {
    commands.iter().find_map(|command| match command {
        AgentCommand::Dial(effect, master) => Some((*effect, *master)),
        _ => None,
    })
}

/// Whether these commands end that session.
pub(crate) fn hangs_up(commands: &[AgentCommand], session: SessionId) -> bool {
    commands.contains(&AgentCommand::Hangup(session))
}

impl Bench {
    /// An agent that has not booted.
    pub(crate) fn cold(config: AgentConfig) -> Bench {
        Bench { now: Time(1_000), agent: Agent::new(config), sessions: 0 }
    }

    /// An agent that was booted with this memory and connected to its first master, leader of epoch 1.
    pub(crate) fn booted(config: AgentConfig, remembered: Remembered) -> (Bench, Commands) {
        let mut bench = Bench::cold(config);
        let commands = bench.event(AgentEvent::Booted(remembered));
        bench.answer_dial(&commands);
        let commands = bench.hears(ToWorker::HelloAck(term(1)));
        (bench, commands)
    }

    /// An agent with an empty disk in a session with the leader of epoch 1.
    pub(crate) fn connected(config: AgentConfig) -> Bench {
        let (mut bench, commands) = Bench::booted(config, Remembered::default());
        bench.write(&commands);
        bench
    }

    /// The same, running these attempts.
    pub(crate) fn running(config: AgentConfig, attempts: &[AttemptRef]) -> Bench {
        let mut bench = Bench::connected(config);
        for at in attempts {
            bench.run(execute(*at));
        }
        bench
    }

    /// The same, holding the unacknowledged outcome of an attempt that succeeded.
    pub(crate) fn finished(config: AgentConfig, attempt: AttemptRef) -> Bench {
        let mut bench = Bench::running(config, &[attempt]);
        let commands = bench.ends(attempt, Verdict::Succeeded);
        bench.write(&commands);
        bench
    }

    pub(crate) fn event(&mut self, event: AgentEvent) -> Commands {
        self.try_event(event).expect("every event here is possible")
    }

    pub(crate) fn try_event(&mut self, event: AgentEvent) -> Result<Commands, Refused> {
        let mut out = Vec::new();
        self.agent.handle(self.now, event, &mut out).map(|()| out)
    }

    /// Time passes, then the agent is woken.
    pub(crate) fn wait(&mut self, length: Millis) -> Commands {
        self.now = self.now + length;
        self.event(AgentEvent::Woke)
    }

    /// The agent is woken at the deadline that it named.
    pub(crate) fn wake(&mut self) -> Commands {
        let deadline = self.agent.next_deadline().expect("it waits for something");
        assert!(deadline >= self.now, "a deadline that has passed was left over");
        self.now = deadline;
        self.event(AgentEvent::Woke)
    }

    /// Time passes with a master that acknowledges every heartbeat; gives all commands.
    pub(crate) fn live(&mut self, length: Millis) -> Commands {
        let (until, mut all) = (self.now + length, Vec::new());
        while self.agent.next_deadline().is_some_and(|at| at <= until) {
            let commands = self.wake();
            if said(&commands).iter().any(|said| matches!(said, ToMaster::Heartbeat(_))) {
                all.extend(self.hears(ToWorker::HeartbeatAck(Epoch(1))));
            }
            all.extend(commands);
        }
        self.now = until;
        all
    }

    /// The dial in these commands leads to a session.
    pub(crate) fn answer_dial(&mut self, commands: &[AgentCommand]) -> Commands {
        let (effect, _) = dialed(commands).expect("a master was dialed");
        self.sessions += 1;
        self.event(AgentEvent::Dialed(effect, SessionId(self.sessions)))
    }

    /// The session ends and a new one is acknowledged by the leader of epoch 1; gives the hello and what
    /// follows its acknowledgement.
    pub(crate) fn reconnect(&mut self) -> (Commands, Commands) {
        self.event(AgentEvent::Closed(self.session()));
        let dial = self.wake();
        let hello = self.answer_dial(&dial);
        (hello, self.hears(ToWorker::HelloAck(term(1))))
    }

    /// The session that was opened last.
    pub(crate) fn session(&self) -> SessionId {
        SessionId(self.sessions)
    }

    /// The master says this in the current session.
    pub(crate) fn hears(&mut self, message: ToWorker) -> Commands {
        self.event(AgentEvent::Received(self.session(), message))
    }

    /// The records of these commands are written; gives what follows.
    pub(crate) fn write(&mut self, commands: &[AgentCommand]) -> Commands {
        self.answer_writes(commands, AgentEvent::Persisted)
    }

    /// The records of these commands cannot be written; gives what follows.
    pub(crate) fn fail_write(&mut self, commands: &[AgentCommand]) -> Commands {
        self.answer_writes(commands, AgentEvent::PersistFailed)
    }

    fn answer_writes(
        &mut self,
        commands: &[AgentCommand],
        answer: fn(EffectId) -> AgentEvent,
    ) -> Commands {
        let mut all = Vec::new();
        for command in commands {
            if let AgentCommand::Persist(effect, _) = command {
                all.extend(self.event(answer(*effect)));
            }
        }
        all
    }

    /// The order comes, and its record is written.
    pub(crate) fn run(&mut self, execute: Execute) -> Commands {
        let commands = self.hears(ToWorker::Execute(execute));
        self.write(&commands)
    }

    /// The attempt's process ends.
    pub(crate) fn ends(&mut self, at: AttemptRef, verdict: Verdict) -> Commands {
        self.event(AgentEvent::Ended { at, verdict, report: Payload::NONE })
    }

    /// What it runs.
    pub(crate) fn runs(&self) -> Vec<AttemptRef> {
        self.agent.running().collect()
    }

    /// How the outcomes that it holds read.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        self.agent.outcomes().map(|outcome| outcome.verdict).collect()
    }
}
