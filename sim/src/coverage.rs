//! Which fault met which kind of action, and how often; what was never met must have a reason.

use std::fmt::Write as _;

use serde::Serialize;

use crate::action::{ACTIONS, Action};
use crate::faults::{FAULTS, Fault};
use crate::scenario::ScenarioName;

/// Counts of injections by kind of action and kind of fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    cells: Vec<[u64; FAULTS]>,
}

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage { cells: vec![[0; FAULTS]; ACTIONS] }
    }
}

/// One cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// So often.
    Hit(u64),
    /// Never, and that is right, for this reason.
    NotApplicable(&'static str),
    /// Never, and nothing says why.
    Empty,
}

/// A row of the matrix as JSON has it.
#[derive(Debug, Clone, Serialize)]
pub struct CoverageRow {
    /// The kind of action.
    pub action: &'static str,
    /// The kinds of faults that met it, with counts.
    pub hits: Vec<(&'static str, u64)>,
    /// Why it was met by none, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_applicable: Option<&'static str>,
}

impl Coverage {
    #[inline]
    pub(crate) fn count(&mut self, action: Action, fault: Fault) {
        self.cells[action as usize][fault as usize] += 1;
    }

    /// Adds the counts of another.
    pub(crate) fn add(&mut self, other: &Coverage) {
        for (row, more) in self.cells.iter_mut().zip(&other.cells) {
            for (cell, more) in row.iter_mut().zip(more) {
                *cell += more;
            }
        }
    }

    /// How many faults were injected in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.cells.iter().flatten().sum()
    }

    /// One cell, judged for an exhaustive run of this scenario with so many faults.
    #[must_use]
    pub fn cell(&self, scenario: ScenarioName, faults: u32, action: Action, fault: Fault) -> Cell {
        let hits = self.cells[action as usize][fault as usize];
        if hits > 0 {
            return Cell::Hit(hits);
        }
        match absent(scenario, faults, action, fault) {
            Some(reason) => Cell::NotApplicable(reason),
            None => Cell::Empty,
        }
    }

    /// The cells that are empty without a reason.
    #[must_use]
    pub fn empty_cells(&self, scenario: ScenarioName, faults: u32) -> Vec<(Action, Fault)> {
        let all = Action::ALL.iter().flat_map(|action| Fault::ALL.map(|fault| (*action, fault)));
        all.filter(|(action, fault)| self.cell(scenario, faults, *action, *fault) == Cell::Empty)
            .collect()
    }

    /// The matrix as JSON rows.
    #[must_use]
    pub fn rows(&self, scenario: ScenarioName, faults: u32) -> Vec<CoverageRow> {
        let row = |action: &Action| {
            let cells = &self.cells[*action as usize];
            let hits: Vec<_> = Fault::ALL
                .into_iter()
                .map(|fault| (fault.name(), cells[fault as usize]))
                .filter(|(_, hits)| *hits > 0)
                .collect();
            let none = hits.is_empty();
            let not_applicable =
                if none { absent(scenario, faults, *action, Fault::KillAfter) } else { None };
            CoverageRow { action: action.name(), hits, not_applicable }
        };
        Action::ALL.iter().map(row).collect()
    }

    /// The matrix as text: one line an action, `-` where it cannot be, `!` where it should have been.
    #[must_use]
    pub fn table(&self, scenario: ScenarioName, faults: u32) -> String {
        let mut text = String::new();
        let _ = write!(text, "{:22}", "action \\ fault");
        for fault in Fault::ALL {
            let _ = write!(text, " {:>7}", short(fault));
        }
        text.push('\n');
        for action in Action::ALL {
            let cells = Fault::ALL.map(|fault| self.cell(scenario, faults, *action, fault));
            let _ = write!(text, "{:22}", action.name());
            let reasons = cells.iter().filter_map(|cell| match cell {
                Cell::NotApplicable(reason) => Some(*reason),
                Cell::Hit(_) | Cell::Empty => None,
            });
            if reasons.clone().count() == FAULTS {
                let reason = absent(scenario, faults, *action, Fault::KillAfter);
                let _ = writeln!(text, " n/a: {}", reason.unwrap_or(NOT_OFFERED));
                continue;
            }
            for cell in cells {
                let _ = match cell {
                    Cell::Hit(hits) => write!(text, " {hits:>7}"),
                    Cell::NotApplicable(_) => write!(text, " {:>7}", "-"),
                    Cell::Empty => write!(text, " {:>7}", "!"),
                };
            }
            text.push('\n');
        }
        text
    }
}

fn short(fault: Fault) -> &'static str {
    match fault {
        Fault::KillBefore => "kill<",
        Fault::KillBeforeSlow => "kill<s",
        Fault::KillAfter => "kill>",
        Fault::KillAfterSlow => "kill>s",
        Fault::PowerCut => "power",
        Fault::Pause => "pause",
        Fault::UnknownApplied => "unk+",
        Fault::UnknownLost => "unk-",
        Fault::UnknownLate => "unk~",
        Fault::Refuse => "refuse",
        Fault::Slow => "slow",
        Fault::Break => "break",
        Fault::Late => "late",
        Fault::Silence => "silence",
        Fault::Repeat => "repeat",
        Fault::DiskFails => "dfail",
        Fault::DiskHangs => "dhang",
    }
}

const NOT_OFFERED: &str = "this kind of fault cannot meet this kind of action";

/// Why a cell may be empty, if it may.
fn absent(
    scenario: ScenarioName,
    faults: u32,
    action: Action,
    fault: Fault,
) -> Option<&'static str> {
    if !action.faults().has(fault) {
        return Some(NOT_OFFERED);
    }
    absent_action(scenario, faults, action)
}

/// Why an action may never be met by a fault.
fn absent_action(scenario: ScenarioName, faults: u32, action: Action) -> Option<&'static str> {
    match need(scenario, action) {
        Need::Never(reason) => Some(reason),
        Need::Faults(needed) if needed > faults => {
            Some("comes only after more faults than this run places")
        }
        Need::Faults(_) => None,
    }
}

/// What it takes until a fault can meet an action: the faults that bring the action about, and the one
/// that meets it.
enum Need {
    Faults(u32),
    Never(&'static str),
}

fn need(scenario: ScenarioName, action: Action) -> Need {
    use Action as A;
    use ScenarioName as S;
    // Only these last longer than a heartbeat without a fault.
    let long = matches!(scenario, S::Retry | S::Patience | S::Failure);
    match action {
        A::Lift => Need::Never("the model store never goes back in time"),
        A::SendDocumented => Need::Never("no worker of the documented protocol in this world"),
        A::SendDrain | A::Drained | A::Stopped | A::ReleaseTerm => {
            Need::Never("no operator stops anything in this world")
        }
        A::Scan => {
            Need::Never("the slow net is out of reach here: what only it finds counts as stuck")
        }
        A::Lead | A::StepDown | A::Quit => Need::Never(NOT_OFFERED),
        A::Cancel if scenario == S::Cancel => Need::Faults(1),
        A::Cancel => Need::Never("no client cancels in this scenario"),
        // Two processes of one name at once: a late hello of the one before, or a silent session of it.
        A::SendHelloRefused => Need::Faults(3),
        A::SendPing => Need::Faults(if scenario == S::Queue { 2 } else { 3 }),
        // A leader must be lost, and a worker must not come back to the next.
        A::IsAlive => Need::Faults(3),
        // Where another worker is free, it has the task before the first can show that it still runs it.
        A::Keep => Need::Faults(if scenario == S::Queue { 2 } else { 3 }),
        A::SendStop | A::Stop => Need::Faults(match scenario {
            S::Cancel => 1,
            S::Slots | S::Patience => 2,
            S::Dispatch | S::Retry | S::Queue | S::Failure => 3,
        }),
        A::SendHeartbeat | A::SendHeartbeatAck | A::RenewTerm if !long => Need::Faults(2),
        // Noted once an attempt has run for a second.
        A::MarkStarted if scenario != S::Patience => Need::Faults(2),
        // Submitted while a worker is idle, a task is claimed with its insert.
        A::Insert if scenario == S::Queue => Need::Faults(1),
        A::Insert => Need::Faults(2),
        A::Claim if matches!(scenario, S::Queue | S::Retry | S::Failure) => Need::Faults(1),
        A::Claim => Need::Faults(2),
        A::Undo | A::Lose | A::Read | A::SendDeclined | A::SendNotLeader | A::Close | A::Hangup => {
            Need::Faults(2)
        }
        _ => Need::Faults(1),
    }
}
