//! The bug bank: each rule of the protocol is taken out, and the explorer must see the damage.
//!
//! A mutation test of the simulator: a rule whose absence it does not see is either checked nowhere, or
//! needs a world that is larger than these; then the reason stands here.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use tenure_core::rules::{Rule, Rules};

use crate::driver::Stopwatch;
use crate::explore::{ExploreOptions, Report, explore};
use crate::faults::{Fault, FaultSet};
use crate::scenario::ScenarioName;

/// Where to look for the damage of one rule's absence.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The rule that is taken out.
    pub rule: Rule,
    /// Where its absence shows, or why a small world cannot show it.
    pub hunt: Hunt,
}

/// How to find it.
#[derive(Debug, Clone, Copy)]
pub enum Hunt {
    /// In this scenario, with at most so many faults of these kinds.
    In(ScenarioName, u32, FaultSet),
    /// Not in a small world, for this reason.
    CannotShow(&'static str),
}

/// What hunting for one rule's absence came to.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: String,
    /// Whether a violation was found.
    pub found: bool,
    /// Why not, if that is known.
    pub reason: Option<&'static str>,
    /// Where.
    pub scenario: Option<ScenarioName>,
    /// How many histories it took.
    pub histories: u64,
    /// Real time.
    pub elapsed_ms: u64,
    /// Faults of the shrunk history.
    pub faults: usize,
    /// Lines of its timeline.
    pub lines: usize,
    /// What was violated.
    pub violation: String,
    /// The timeline.
    pub timeline: Vec<String>,
    /// What shows it again.
    pub replay: Option<String>,
}

const fn within(rule: Rule, scenario: ScenarioName, faults: u32) -> Entry {
    Entry { rule, hunt: Hunt::In(scenario, faults, FaultSet::ALL) }
}

const fn with(rule: Rule, scenario: ScenarioName, faults: u32, kinds: &[Fault]) -> Entry {
    Entry { rule, hunt: Hunt::In(scenario, faults, FaultSet::of(kinds)) }
}

const fn cannot(rule: Rule, reason: &'static str) -> Entry {
    Entry { rule, hunt: Hunt::CannotShow(reason) }
}

/// Every rule, and where its absence shows.
pub const BANK: &[Entry] = &[
    within(Rule::TerminalIsFinal, ScenarioName::Cancel, 1),
    within(Rule::OneOutcome, ScenarioName::Retry, 1),
    within(Rule::CancelFlagRead, ScenarioName::Cancel, 1),
    within(Rule::TermCompared, ScenarioName::Patience, 1),
    within(Rule::AttemptCompared, ScenarioName::Retry, 1),
    cannot(
        Rule::IncarnationCompared,
        "an attempt is claimed for one incarnation and run by it alone, unless the store goes back in time",
    ),
    with(
        Rule::SessionFenced,
        ScenarioName::Cancel,
        2,
        &[Fault::DiskHangs, Fault::KillAfterSlow, Fault::Break],
    ),
    with(Rule::ClaimBound, ScenarioName::Queue, 2, &[Fault::Slow, Fault::KillAfter, Fault::Break]),
    within(Rule::OneWrite, ScenarioName::Retry, 1),
    within(Rule::NeverStartedAgain, ScenarioName::Retry, 1),
    cannot(
        Rule::HighestEpoch,
        "a worker has hung up on the older leader before it greets the newer one (SessionFenced)",
    ),
    within(Rule::AckAfterCommit, ScenarioName::Dispatch, 1),
    within(Rule::OutcomeKept, ScenarioName::Dispatch, 1),
    within(Rule::OutcomePersisted, ScenarioName::Dispatch, 1),
    within(Rule::StartPersisted, ScenarioName::Dispatch, 1),
    within(Rule::FinishedListed, ScenarioName::Dispatch, 1),
    within(Rule::UnknownReread, ScenarioName::Dispatch, 1),
    with(
        Rule::LeaseReleaseCompared,
        ScenarioName::Slots,
        2,
        &[Fault::UnknownLate, Fault::KillAfter, Fault::KillAfterSlow, Fault::Break, Fault::Pause],
    ),
    within(Rule::IncarnationReleases, ScenarioName::Patience, 1),
    within(Rule::AdoptGrace, ScenarioName::Dispatch, 1),
    within(Rule::TrustLapses, ScenarioName::Dispatch, 1),
    cannot(
        Rule::KeepOnlyLost,
        "an inventory is never older than the outcome or the undo that it would overrule (SessionFenced)",
    ),
    within(Rule::KeyUnique, ScenarioName::Dispatch, 1),
    within(Rule::AcceptTimeout, ScenarioName::Dispatch, 1),
];

/// Looks for the violation that an entry promises; `rules` are all rules but the entry's.
#[must_use]
pub fn hunt(entry: &Entry, rules: Rules, budget: Duration, jobs: usize) -> Finding {
    let watch = Stopwatch::start(Some(budget));
    let rule = format!("{:?}", entry.rule);
    let (scenario, most, kinds) = match entry.hunt {
        Hunt::In(scenario, most, kinds) => (scenario, most, kinds),
        Hunt::CannotShow(reason) => return not_found(rule, None, Some(reason), 0, &watch),
    };
    let mut histories = 0;
    for faults in 0..=most {
        let left = budget.saturating_sub(watch.elapsed());
        let report = explore(&ExploreOptions {
            scenario,
            faults,
            kinds,
            rules,
            jobs,
            budget: Some(left),
            ..ExploreOptions::default()
        });
        histories += report.histories;
        if !report.violations.is_empty() {
            return finding(rule, histories, &report, &watch);
        }
    }
    not_found(rule, Some(scenario), None, histories, &watch)
}

fn finding(rule: String, histories: u64, report: &Report, watch: &Stopwatch) -> Finding {
    let shown = report
        .violations
        .iter()
        .min_by_key(|violation| violation.replay.choices.len())
        .expect("called for a report with violations");
    Finding {
        rule,
        found: true,
        reason: None,
        scenario: Some(report.scenario),
        histories,
        elapsed_ms: watch.elapsed().as_millis() as u64,
        faults: shown.replay.choices.len(),
        lines: shown.timeline.len(),
        violation: shown.violation.clone(),
        timeline: shown.timeline.clone(),
        replay: Some(shown.replay.json()),
    }
}

fn not_found(
    rule: String,
    scenario: Option<ScenarioName>,
    reason: Option<&'static str>,
    histories: u64,
    watch: &Stopwatch,
) -> Finding {
    Finding {
        rule,
        found: false,
        reason,
        scenario,
        histories,
        elapsed_ms: watch.elapsed().as_millis() as u64,
        faults: 0,
        lines: 0,
        violation: String::new(),
        timeline: Vec::new(),
        replay: None,
    }
}

/// The findings as a table.
#[must_use]
pub fn table(findings: &[Finding]) -> String {
    let mut text = format!(
        "{:22} {:9} {:>9} {:>8} {:>6} {:>5}  {}\n",
        "rule taken out", "scenario", "histories", "ms", "faults", "lines", "seen as"
    );
    for finding in findings {
        let seen = match (finding.found, finding.reason) {
            (true, _) => finding.violation.as_str(),
            (false, Some(reason)) => reason,
            (false, None) => "NOT FOUND",
        };
        let _ = writeln!(
            text,
            "{:22} {:9} {:>9} {:>8} {:>6} {:>5}  {}",
            finding.rule,
            finding.scenario.map_or("-", ScenarioName::text),
            finding.histories,
            finding.elapsed_ms,
            finding.faults,
            finding.lines,
            seen
        );
    }
    let found = findings.iter().filter(|finding| finding.found).count();
    let _ = writeln!(text, "{found} of {} rules are seen when they are taken out", findings.len());
    text
}
