//! The stage on which scenarios play: masters on model stores whose answers a script can hold, lose or fail.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use tenure_core::command::MasterCommand;
use tenure_core::event::{Ask, MasterEvent};
use tenure_core::ids::{
    AttemptRef, EffectId, Epoch, Incarnation, LabelId, RequestId, SessionId, TaskId, Term, WorkerId,
};
use tenure_core::master::{Master, MasterConfig};
use tenure_core::message::{Decline, Finished, Hello, Inventory, ToMaster};
use tenure_core::model::lease_table::LeaseTable;
use tenure_core::model::task_table::TaskTable;
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::policy::Policy;
use tenure_core::rules::Rules;
use tenure_core::spec::{IdempotencyKey, Labels, Limits, Payload, Shape, Submission};
use tenure_core::store::{Change, StoreAnswer, StoreOp, StoreResult};
use tenure_core::text;
use tenure_core::time::{Millis, Time};

/// What becomes of the next store order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mishap {
    /// Carried out, its answer lost.
    LoseAnswer,
    /// Not carried out, its answer lost.
    LoseOrder,
    /// Not taken.
    Fail,
}

/// A store order that waits to be carried out, and whether its master was told "unknown" meanwhile.
struct Held {
    master: String,
    effect: EffectId,
    op: StoreOp,
    /// Its master was told that no answer came.
    unknown: bool,
}

/// Masters, stores, and what was said.
pub(crate) struct StageSet {
    rules: Rules,
    masters: BTreeMap<String, Master>,
    store: TaskTable,
    leases: LeaseTable,
    now: Time,
    /// The masters whose store orders are kept.
    holding: BTreeSet<String>,
    held: VecDeque<Held>,
    mishap: Option<Mishap>,
    lines: String,
}

impl StageSet {
    pub(crate) fn new(rules: Rules) -> StageSet {
        StageSet {
            rules,
            masters: BTreeMap::new(),
            store: TaskTable::with_rules(rules),
            leases: LeaseTable::with_rules(rules),
            now: Time(0),
            holding: BTreeSet::new(),
            held: VecDeque::new(),
            mishap: None,
            lines: String::new(),
        }
    }

    /// Plays one line and keeps what it led to.
    pub(crate) fn play(&mut self, line: &str) {
        let mut words = line.split_whitespace().peekable();
        if let Some(time) = words.peek().and_then(|word| word.parse().ok()) {
            self.now = Time(time);
            words.next();
        }
        let master = match words.peek() {
            Some(word) if word.ends_with(':') => {
                words.next().expect("peeked").trim_end_matches(':').to_owned()
            }
            _ => "m1".to_owned(),
        };
        let verb = words.next().unwrap_or_else(|| panic!("no verb in {line:?}"));
        let rest: Vec<&str> = words.collect();
        self.act(&master, verb, &rest, line);
    }

    /// What was said since the last call.
    pub(crate) fn take_lines(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }

    fn act(&mut self, master: &str, verb: &str, rest: &[&str], line: &str) {
        match verb {
            "master" => self.start(master, rest),
            "crash" => {
                self.masters.remove(master);
                self.held.retain(|held| held.master != master);
            }
            "hold" => {
                self.holding.insert(master.to_owned());
            }
            "release" => self.release(rest),
            "unknown" => self.forget_first_held(),
            "lose-answer" => self.mishap = Some(Mishap::LoseAnswer),
            "lose-order" => self.mishap = Some(Mishap::LoseOrder),
            "fail" => self.mishap = Some(Mishap::Fail),
            "wipe-leases" => self.leases = LeaseTable::with_rules(self.rules),
            "behind-its-back" => self.end_behind_its_back(rest),
            "rows" => self.show_rows(),
            "leases" => self.show_leases(),
            _ => {
                let event = event(verb, rest)
                    .unwrap_or_else(|| panic!("cannot read the verb or its words: {line:?}"));
                if let MasterEvent::Received(session, ToMaster::Hello(_)) = &event {
                    self.event(master, MasterEvent::Opened(*session));
                }
                self.event(master, event);
            }
        }
    }

    fn start(&mut self, name: &str, rest: &[&str]) {
        let mut config = MasterConfig {
            policy: Policy::default(),
            rules: self.rules,
            incarnation: Incarnation(0),
            exclusive: rest.contains(&"exclusive"),
            seed: 1,
        };
        config.incarnation = rest
            .iter()
            .find_map(|word| incarnation(word))
            .unwrap_or(Incarnation(900 + u64::try_from(self.masters.len()).expect("few masters")));
        self.masters.insert(name.to_owned(), Master::new(config));
        self.event(name, MasterEvent::Woke);
    }

    fn event(&mut self, name: &str, event: MasterEvent) {
        let mut waiting = VecDeque::from([(name.to_owned(), event)]);
        while let Some((name, event)) = waiting.pop_front() {
            let Some(master) = self.masters.get_mut(&name) else {
                continue;
            };
            let mut out = Vec::new();
            let refused = master.handle(self.now, event, &mut out).err();
            if let Some(refused) = refused {
                self.say(&name, &format!("refused: {refused}"));
            }
            for command in out {
                self.perform(&name, command, &mut waiting);
            }
        }
    }

    fn perform(
        &mut self,
        name: &str,
        command: MasterCommand,
        waiting: &mut VecDeque<(String, MasterEvent)>,
    ) {
        let text = command.to_string();
        match command {
            MasterCommand::Store(effect, op) => {
                if let Some(result) = self.store(name, effect, op, &text) {
                    waiting.push_back((name.to_owned(), MasterEvent::Stored(effect, result)));
                }
            }
            MasterCommand::Lease(effect, op) => {
                let answer = self.leases.apply(self.now, &op);
                self.say(name, &format!("{text} = {answer}"));
                waiting.push_back((name.to_owned(), MasterEvent::Leased(effect, answer)));
            }
            _ => self.say(name, &text),
        }
    }

    fn store(
        &mut self,
        name: &str,
        effect: EffectId,
        op: StoreOp,
        text: &str,
    ) -> Option<StoreResult> {
        match self.mishap.take() {
            Some(Mishap::LoseAnswer) => {
                self.store.apply(self.now, &op);
                self.say(name, &format!("{text} = done, its answer lost"));
                return Some(StoreResult::Unknown);
            }
            Some(Mishap::LoseOrder) => {
                self.say(name, &format!("{text} = lost"));
                return Some(StoreResult::Unknown);
            }
            Some(Mishap::Fail) => {
                self.say(name, &format!("{text} = failed"));
                return Some(StoreResult::Failed);
            }
            None => {}
        }
        if self.holding.contains(name) {
            self.say(name, &format!("{text} = held"));
            let master = name.to_owned();
            self.held.push_back(Held { master, effect, op, unknown: false });
            return None;
        }
        let answer = self.store.apply(self.now, &op);
        self.say(name, &format!("{text} = {}", verdict(&answer)));
        Some(StoreResult::Answer(answer))
    }

    /// Carries out held orders: so many, or all and holds no more.
    fn release(&mut self, rest: &[&str]) {
        let count = rest.first().and_then(|word| word.parse().ok()).unwrap_or_else(|| {
            self.holding.clear();
            self.held.len()
        });
        for _ in 0..count {
            let held = self.held.pop_front().expect("an order is held");
            let answer = self.store.apply(self.now, &held.op);
            self.say(&held.master, &format!("released: {} = {}", held.op, verdict(&answer)));
            if !held.unknown {
                let result = StoreResult::Answer(answer);
                self.event(&held.master, MasterEvent::Stored(held.effect, result));
            }
        }
    }

    /// Tells the master of the first held order that no answer came. The order is still under way.
    fn forget_first_held(&mut self) {
        let held = self.held.front_mut().expect("an order is held");
        held.unknown = true;
        let (master, effect) = (held.master.clone(), held.effect);
        self.holding.remove(&master);
        self.event(&master, MasterEvent::Stored(effect, StoreResult::Unknown));
    }

    /// Ends a task in the store as no master knows it: a restored backup, or a repair by hand.
    fn end_behind_its_back(&mut self, rest: &[&str]) {
        let task = rest.first().and_then(|word| number(word, "t")).map(TaskId);
        let task = task.expect("the verb names a task");
        let term = self.store.term_row(self.now).term;
        let change = Change::Cancel { force: true };
        self.store.apply(self.now, &StoreOp::Change { task, term, at: self.now, change });
    }

    fn show_rows(&mut self) {
        let rows: Vec<String> = self.store.entries().map(|entry| entry.row.to_string()).collect();
        for row in rows {
            writeln!(self.lines, "row {row}").expect("a string takes it");
        }
    }

    fn show_leases(&mut self) {
        let live: Vec<String> = self
            .leases
            .live_tasks(self.now)
            .map(|(task, lease)| format!("lease {task} {} as {}", lease.holder, lease.fence))
            .collect();
        for line in &live {
            writeln!(self.lines, "{line}").expect("a string takes it");
        }
        if live.is_empty() {
            self.lines.push_str("no leases\n");
        }
    }

    fn say(&mut self, name: &str, what: &str) {
        let several = self.masters.len() > 1;
        let prefix = if several { format!("{name}: ") } else { String::new() };
        writeln!(self.lines, "{prefix}{what}").expect("a string takes it");
    }
}

/// Of an answer, what a reader of a scenario wants to know.
fn verdict(answer: &StoreAnswer) -> String {
    match answer {
        StoreAnswer::Changed { wrote, .. } => wrote.to_string(),
        other => other.to_string(),
    }
}

fn event(verb: &str, rest: &[&str]) -> Option<MasterEvent> {
    let received = |said| Some(MasterEvent::Received(session(rest.first()?)?, said));
    match verb {
        "tick" => Some(MasterEvent::Woke),
        "stop" => Some(MasterEvent::StopAsked),
        "open" => Some(MasterEvent::Opened(session(rest.first()?)?)),
        "close" => Some(MasterEvent::Closed(session(rest.first()?)?)),
        "hello" => received(ToMaster::Hello(hello(rest)?)),
        "beat" => received(ToMaster::Heartbeat(inventory(rest)?)),
        "accepted" => received(ToMaster::Accepted(at(rest.get(1)?)?)),
        "declined" => received(ToMaster::Declined(at(rest.get(1)?)?, decline(rest.get(2)?)?)),
        "finished" => received(ToMaster::Finished(outcome(rest)?)),
        "doc-beat" => received(ToMaster::DocumentedHeartbeat {
            worker: WorkerId(number(rest.get(1)?, "w")?),
            busy: rest.get(2).and_then(|word| number(word, "t")).map(TaskId),
        }),
        "doc-answer" => received(ToMaster::DocumentedAnswer {
            task: TaskId(number(rest.get(1)?, "t")?),
            accepted: *rest.get(2)? == "yes",
        }),
        "doc-report" => received(ToMaster::DocumentedReport {
            task: TaskId(number(rest.get(1)?, "t")?),
            attempt: None,
            verdict: verdict_of(rest.get(2)?)?,
            report: Payload::NONE,
        }),
        "submit" => Some(MasterEvent::Asked(request(rest)?, Ask::Submit(submission(rest)?))),
        "cancel" => Some(MasterEvent::Asked(
            request(rest)?,
            Ask::Cancel {
                task: TaskId(number(rest.get(1)?, "t")?),
                force: rest.contains(&"force"),
            },
        )),
        _ => None,
    }
}

fn hello(rest: &[&str]) -> Option<Hello> {
    let (worker, incarnation_word) = rest.get(1)?.split_once('/')?;
    let highest = value(rest, "highest").and_then(|word| {
        let (epoch, leader) = word.split_once('/')?;
        Some(Term { epoch: Epoch(number(epoch, "e")?), leader: incarnation(leader)? })
    });
    Some(Hello {
        worker: WorkerId(number(worker, "w")?),
        incarnation: incarnation(incarnation_word)?,
        capacity: shape(rest),
        highest: highest.unwrap_or_default(),
        inventory: inventory(rest)?,
        draining: rest.contains(&"draining"),
    })
}

fn inventory(rest: &[&str]) -> Option<Inventory> {
    let mut inventory = Inventory::default();
    let mut part = "";
    for word in rest {
        match *word {
            "runs" | "finished" => part = word,
            _ if word.contains('=') || !word.starts_with('t') => {}
            _ if part == "runs" => inventory.running.push(at(word)?),
            _ if part == "finished" => {
                let (attempt, ran_by) = word.split_once('/')?;
                let ran_by = incarnation(ran_by)?;
                inventory.finished.push(Finished { at: at(attempt)?, ran_by });
            }
            _ => {}
        }
    }
    Some(inventory)
}

fn submission(rest: &[&str]) -> Option<Submission> {
    let limits = Limits {
        priority: value(rest, "priority").map_or(Some(0), |word| word.parse().ok())?,
        max_attempts: value(rest, "attempts").map_or(Some(3), |word| word.parse().ok())?,
        max_lost: value(rest, "lost").map_or(Some(3), |word| word.parse().ok())?,
        patience: value(rest, "patience").and_then(|word| word.parse().ok()).map(Millis),
        timeout: None,
    };
    Some(Submission {
        shape: shape(rest),
        limits,
        payload: Payload::of(b"true"),
        key: IdempotencyKey((*rest.get(1)?).into()),
        fingerprint: value(rest, "fingerprint").map_or(Some(1), |word| word.parse().ok())?,
    })
}

fn shape(rest: &[&str]) -> Shape {
    let count = |name| value(rest, name).and_then(|word| word.parse().ok());
    let labels: Vec<LabelId> = value(rest, "labels")
        .map(|words| words.split(',').filter_map(|word| number(word, "l")).map(LabelId).collect())
        .unwrap_or_default();
    Shape {
        slots: count("slots").unwrap_or(1),
        gpus: count("gpus").unwrap_or(0),
        labels: Labels::of(&labels),
    }
}

fn outcome(rest: &[&str]) -> Option<Outcome> {
    Some(Outcome {
        at: at(rest.get(1)?)?,
        ran_by: incarnation(rest.get(2)?)?,
        verdict: verdict_of(rest.get(3)?)?,
        report: Payload::NONE,
    })
}

fn verdict_of(word: &str) -> Option<Verdict> {
    let all = [
        Verdict::Succeeded,
        Verdict::Failed,
        Verdict::FailedForGood,
        Verdict::TimedOut,
        Verdict::Stopped,
        Verdict::HandedBack,
    ];
    all.into_iter().find(|verdict| verdict.to_string() == word)
}

fn decline(word: &str) -> Option<Decline> {
    match word {
        "busy" => Some(Decline::Busy),
        "cannot" => Some(Decline::Cannot),
        "old" => Some(Decline::OldAttempt),
        _ => None,
    }
}

fn value<'a>(rest: &[&'a str], name: &str) -> Option<&'a str> {
    rest.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn number<N: std::str::FromStr>(word: &str, prefix: &str) -> Option<N> {
    word.strip_prefix(prefix)?.parse().ok()
}

fn session(word: &str) -> Option<SessionId> {
    number(word, "s").map(SessionId)
}

fn request(rest: &[&str]) -> Option<RequestId> {
    number(rest.first()?, "r").map(RequestId)
}

fn incarnation(word: &str) -> Option<Incarnation> {
    number(word, "i").map(Incarnation)
}

fn at(word: &str) -> Option<AttemptRef> {
    text::attempt(word).ok()
}
