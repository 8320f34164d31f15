//! Each rule of the protocol is taken out, and the explorer must see the damage: with at most three faults,
//! within a minute, on one screen.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::rules::{Rule, Rules};
use tenure_sim::bank::{BANK, Finding, Hunt, hunt};
use tenure_sim::{Replay, replay};

const BUDGET: Duration = Duration::from_secs(60);

fn hunt_all(pick: impl Fn(&Hunt) -> bool) -> Vec<(Rule, Finding)> {
    let entries = BANK.iter().filter(|entry| pick(&entry.hunt));
    entries.map(|entry| (entry.rule, hunt(entry, Rules::without(entry.rule), BUDGET, 2))).collect()
}

fn assert_seen(rule: Rule, finding: &Finding) {
    assert!(finding.found, "{rule:?} was taken out and nothing was seen: {finding:?}");
    assert!(finding.faults <= 3, "{rule:?} needs {} faults", finding.faults);
    assert!(finding.lines <= tenure_sim::timeline::SCREEN, "{rule:?}: {} lines", finding.lines);
    assert!(finding.elapsed_ms < 60_000, "{rule:?} took {} ms", finding.elapsed_ms);
    let again = finding.replay.as_deref().expect("what was found can be shown again");
    let again = Replay::of_json(again).expect("the bank writes replays");
    assert!(
        replay(&again, Rules::without(rule)).violation.is_some(),
        "{rule:?} is not shown again"
    );
    let healthy = replay(&again, Rules::ALL).violation;
    assert_eq!(healthy, None, "{rule:?}: the same faults do harm with every rule in place");
}

#[test]
fn what_one_fault_shows_is_seen() {
    let findings = hunt_all(|hunt| matches!(hunt, Hunt::In(_, 1, _)));
    for (rule, finding) in &findings {
        assert_seen(*rule, finding);
    }
    assert!(findings.len() >= 15, "only {} rules are shown by one fault", findings.len());
}

#[test]
fn what_needs_more_faults_is_seen() {
    for (rule, finding) in hunt_all(|hunt| matches!(hunt, Hunt::In(_, faults, _) if *faults > 1)) {
        assert_seen(rule, &finding);
    }
}

#[test]
fn every_rule_is_in_the_bank_once() {
    let rules: BTreeSet<Rule> = BANK.iter().map(|entry| entry.rule).collect();
    assert_eq!(rules.len(), BANK.len());
    // The last of the enumeration: a rule that is added behind it must come into the bank as well.
    assert_eq!(rules.len(), Rule::AcceptTimeout as usize + 1);
}
