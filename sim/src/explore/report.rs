//! What a run came to, as text and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::search::Tally;
use super::{ExploreOptions, Found};
use crate::coverage::{Coverage, CoverageRow};
use crate::invariants::Property;
use crate::replay::Replay;
use crate::scenario::ScenarioName;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing was violated.
    Clean,
    /// Something was violated.
    Violated,
    /// The budget was used up before everything was seen.
    BudgetUsedUp,
}

impl Outcome {
    /// The program's exit code.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Outcome::Clean => 0,
            Outcome::Violated => 10,
            Outcome::BudgetUsedUp => 11,
        }
    }
}

/// A violation, shrunk.
#[derive(Debug, Clone, Serialize)]
pub struct ViolationReport {
    /// What was violated.
    pub property: Property,
    /// In words.
    pub violation: String,
    /// Faults before shrinking.
    pub faults_found: usize,
    /// What shows it again.
    pub replay: Replay,
    /// Its timeline, a line each.
    pub timeline: Vec<String>,
}

impl ViolationReport {
    pub(crate) fn new(
        found: &Found,
        shrunk: &Found,
        replay: Replay,
        timeline: Vec<String>,
    ) -> ViolationReport {
        ViolationReport {
            property: shrunk.violation.property,
            violation: shrunk.violation.to_string(),
            faults_found: found.plan.len(),
            replay,
            timeline,
        }
    }
}

/// What a run came to.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Which world.
    pub scenario: ScenarioName,
    /// At most so many faults in a history.
    pub faults: u32,
    /// The seed of the run.
    pub seed: u64,
    /// Threads.
    pub jobs: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether every history was run.
    pub complete: bool,
    /// How many histories were run.
    pub histories: u64,
    /// How many events were handled and effects carried out.
    pub events: u64,
    /// How many faults were injected.
    pub injected: u64,
    /// How many histories violated something.
    pub violating: u64,
    /// Real time.
    pub elapsed_ms: u64,
    /// Per second of real time, all threads together.
    pub events_per_s: u64,
    /// Per second of real time, all threads together.
    pub histories_per_s: u64,
    /// The longest history, in virtual time.
    pub longest_ms: u64,
    /// The same for the same options, whatever the number of threads, if complete.
    pub trace_hash: String,
    /// Which fault met which action.
    pub coverage: Vec<CoverageRow>,
    /// Cells of that matrix that are empty without a reason (only judged for a complete run of all kinds).
    pub empty_cells: Vec<String>,
    /// What was violated, one of each property.
    pub violations: Vec<ViolationReport>,
    #[serde(skip)]
    matrix: Coverage,
}

impl Report {
    pub(crate) fn new(options: &ExploreOptions, tally: &Tally) -> Report {
        let (scenario, faults) = (options.scenario, options.faults);
        let seconds = tally.elapsed.as_secs_f64().max(1e-6);
        let judged = tally.complete && options.kinds == crate::faults::FaultSet::ALL;
        let empty = if judged { tally.coverage.empty_cells(scenario, faults) } else { Vec::new() };
        Report {
            scenario,
            faults,
            seed: options.seed,
            jobs: options.jobs,
            outcome: outcome(tally),
            complete: tally.complete,
            histories: tally.histories,
            events: tally.steps,
            injected: tally.faults,
            violating: tally.violations,
            elapsed_ms: tally.elapsed.as_millis() as u64,
            events_per_s: (tally.steps as f64 / seconds) as u64,
            histories_per_s: (tally.histories as f64 / seconds) as u64,
            longest_ms: tally.longest.0,
            trace_hash: format!("{:016x}", tally.hash),
            coverage: tally.coverage.rows(scenario, faults),
            empty_cells: empty
                .into_iter()
                .map(|(action, fault)| format!("{} x {fault}", action.name()))
                .collect(),
            violations: Vec::new(),
            matrix: tally.coverage.clone(),
        }
    }

    /// The exit code of a program that ran this: a run that should have tried more than it did is as bad as
    /// one that found something.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.outcome {
            Outcome::Clean if !self.empty_cells.is_empty() => Outcome::Violated.exit_code(),
            outcome => outcome.exit_code(),
        }
    }

    /// The report for programs.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report holds nothing that JSON cannot")
    }

    /// The report for people; `matrix` adds the coverage.
    #[must_use]
    pub fn text(&self, matrix: bool) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{}: {} histories with at most {} faults{}, {} violating",
            self.scenario.text(),
            self.histories,
            self.faults,
            if self.complete { " (complete)" } else { " (not complete)" },
            self.violating,
        );
        let _ = writeln!(
            text,
            "{} events, {} faults injected, longest history {} ms; {:.2} s on {} threads: {} histories/s, {} events/s",
            self.events,
            self.injected,
            self.longest_ms,
            self.elapsed_ms as f64 / 1_000.0,
            self.jobs,
            self.histories_per_s,
            self.events_per_s,
        );
        let _ = writeln!(text, "trace hash {}", self.trace_hash);
        if matrix {
            text.push_str(&self.matrix.table(self.scenario, self.faults));
        }
        if !self.empty_cells.is_empty() {
            let _ = writeln!(text, "empty cells: {}", self.empty_cells.join(", "));
        }
        for violation in &self.violations {
            let _ = writeln!(text, "\nVIOLATED {}", violation.violation);
            let _ = writeln!(text, "{}", violation.replay.how());
            for line in &violation.timeline {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }
}

fn outcome(tally: &Tally) -> Outcome {
    match (tally.violations, tally.complete) {
        (0, true) => Outcome::Clean,
        (0, false) => Outcome::BudgetUsedUp,
        (_, _) => Outcome::Violated,
    }
}
