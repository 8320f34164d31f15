//! A history in words, on a screen: when, which node, what.

use crate::invariants::Violation;
use crate::world::{Line, LineKind};

/// So many lines fit on a screen.
pub const SCREEN: usize = 40;

/// The lines of a history: all of them if they fit, else the ones that matter most.
#[must_use]
pub fn render(lines: &[Line], violation: Option<Violation>) -> Vec<String> {
    let mut kept = choose(lines);
    if violation.is_some() && kept.len() >= SCREEN {
        kept.truncate(SCREEN - 1);
    }
    let mut text: Vec<String> = kept.into_iter().map(one_line).collect();
    if let Some(violation) = violation {
        text.push(format!("         !!     {violation}"));
    }
    text
}

/// Leaves out, step by step, what says least, until the rest fits.
fn choose(lines: &[Line]) -> Vec<&Line> {
    let room = SCREEN - 1;
    for level in 0..=LEVELS {
        let kept: Vec<&Line> = lines.iter().filter(|line| weight(line) >= level).collect();
        if kept.len() <= room {
            return kept;
        }
        if level == LEVELS {
            return around_the_faults(&kept, room);
        }
    }
    Vec::new()
}

const LEVELS: u8 = 4;

/// How much a line tells: faults and changes of the store most, beats and wakings least.
fn weight(line: &Line) -> u8 {
    let says = |word: &str| line.text.starts_with(word) || line.text.contains(word);
    match line.kind {
        LineKind::Fault | LineKind::Life => 5,
        LineKind::Store if is_change(&line.text) => 4,
        LineKind::Store => 1,
        LineKind::Client => 2,
        LineKind::Event => 0,
        LineKind::Command if says("execute") || line.text.starts_with("start") => 4,
        LineKind::Command if says("heartbeat") || says("renew") => 0,
        LineKind::Command if says("finished") || says("result-ack") || says("hello") => 3,
        LineKind::Command if says("stop") || says("close") || says("hangup") => 3,
        LineKind::Command if says("lead") || says("step") => 3,
        LineKind::Command if line.text.starts_with("store") => 1,
        LineKind::Command => 1,
    }
}

fn is_change(text: &str) -> bool {
    !(text.starts_with("read") || text.starts_with("renew"))
}

/// Too long even so: the beginning is ordinary, so the lines before and after each fault and the last ones
/// are kept.
fn around_the_faults<'a>(kept: &[&'a Line], room: usize) -> Vec<&'a Line> {
    let faults: Vec<usize> = kept
        .iter()
        .enumerate()
        .filter(|(_, line)| line.kind == LineKind::Fault)
        .map(|(place, _)| place)
        .collect();
    let each = room / (faults.len() + 1);
    let mut wanted = vec![false; kept.len()];
    for fault in faults {
        let from = fault.saturating_sub(each / 2);
        for want in wanted.iter_mut().skip(from).take(each) {
            *want = true;
        }
    }
    let last = kept.len().saturating_sub(each);
    for want in wanted.iter_mut().skip(last) {
        *want = true;
    }
    kept.iter().zip(wanted).filter(|(_, want)| *want).map(|(line, _)| *line).collect()
}

fn one_line(line: &Line) -> String {
    let mark = match line.kind {
        LineKind::Event => "<-",
        LineKind::Command => "->",
        LineKind::Fault => "##",
        LineKind::Life => "**",
        LineKind::Store => "==",
        LineKind::Client => "::",
    };
    format!("{:>7} {mark} {:6} {}", line.at.0, line.node, line.text)
}
