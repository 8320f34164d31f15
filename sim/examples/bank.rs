//! Prints the bug bank: each rule of the protocol taken out, and how the explorer sees it. With a rule's name
//! (`bank ClaimBound`) only that one, with its timeline.

use std::process::ExitCode;
use std::time::Duration;

use tenure_core::rules::Rules;
use tenure_sim::bank::{BANK, hunt, table};

const BUDGET: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let only = std::env::args().nth(1);
    let wanted = BANK
        .iter()
        .filter(|entry| only.as_deref().is_none_or(|only| format!("{:?}", entry.rule) == only));
    let findings: Vec<_> =
        wanted.map(|entry| hunt(entry, Rules::without(entry.rule), BUDGET, 2)).collect();
    print!("{}", table(&findings));
    if only.is_some() {
        for line in findings.iter().flat_map(|finding| &finding.timeline) {
            println!("{line}");
        }
    }
    let missed = findings.iter().any(|finding| !finding.found && finding.reason.is_none());
    ExitCode::from(if missed { 10 } else { 0 })
}
