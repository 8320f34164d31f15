//! The one place that decides what is not determined: which fault, if any, meets an action.
//!
//! A history is a function of its choices. Depth-first search replays a list of choices and asks for
//! "none" beyond its end; a plan names the faults of a history by their place, which is how a
//! failure is kept, shrunk and shown again.

use serde::{Deserialize, Serialize};
use tenure_core::random::Stream;

use crate::action::Action;
use crate::faults::{Fault, FaultSet};

/// One fault at one place: the fault points of a history are numbered as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Injection {
    /// The number of the fault point.
    pub point: u32,
    /// What happens there.
    pub fault: Fault,
}

#[derive(Serialize, Deserialize)]
struct InjectionText {
    point: u32,
    fault: String,
}

impl Serialize for Injection {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        InjectionText { point: self.point, fault: self.fault.name().to_owned() }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Injection {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = InjectionText::deserialize(deserializer)?;
        let fault = Fault::of_name(&text.fault).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "fault \"{}\" is not known; use one of {}",
                text.fault,
                Fault::ALL.map(Fault::name).join(", ")
            ))
        })?;
        Ok(Injection { point: text.point, fault })
    }
}

/// A pick that was made: 0 is "no fault", else the place in the set, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) value: u8,
    pub(crate) offered: FaultSet,
}

#[derive(Debug, Clone)]
enum Mode {
    /// Follow `trail`, then pick none.
    Search,
    /// Inject this, ascending by point; `next` is the place of the first not yet reached.
    Plan { plan: Vec<Injection>, next: usize },
    /// Draw: one fault in `rarity` points.
    Draw { stream: Stream, rarity: u64 },
}

/// The choices of one history.
#[derive(Debug, Clone)]
pub struct Choices {
    mode: Mode,
    pub(crate) trail: Vec<Pick>,
    at: usize,
    faults_left: u32,
    kinds: FaultSet,
    injected: Vec<Injection>,
}

impl Choices {
    /// Choices of a search that places at most `faults` faults of these kinds.
    #[must_use]
    pub fn search(faults: u32, kinds: FaultSet) -> Choices {
        Choices {
            mode: Mode::Search,
            trail: Vec::with_capacity(512),
            at: 0,
            faults_left: faults,
            kinds,
            injected: Vec::new(),
        }
    }

    /// Exactly these faults.
    #[must_use]
    pub fn plan(mut plan: Vec<Injection>) -> Choices {
        plan.sort_unstable();
        plan.dedup_by_key(|injection| injection.point);
        let faults = u32::try_from(plan.len()).unwrap_or(u32::MAX);
        Choices { mode: Mode::Plan { plan, next: 0 }, ..Choices::search(faults, FaultSet::ALL) }
    }

    /// Drawn from a seed: at most `faults` of these kinds, one in `rarity` points.
    #[must_use]
    pub fn draw(seed: u64, faults: u32, kinds: FaultSet, rarity: u64) -> Choices {
        let mode = Mode::Draw { stream: Stream::new(seed), rarity: rarity.max(1) };
        Choices { mode, ..Choices::search(faults, kinds) }
    }

    /// Begins the history again, with so many faults to place. The trail stays.
    pub(crate) fn rewind(&mut self, faults: u32) {
        self.at = 0;
        self.faults_left = faults;
        self.injected.clear();
    }

    /// Which of these faults meets the action, if any. Once the faults are used up nothing is asked.
    #[inline]
    pub fn pick(&mut self, offered: FaultSet, _tag: Action) -> Option<Fault> {
        if self.faults_left == 0 {
            return None;
        }
        let offered = offered.within(self.kinds);
        // A point counts even where the kinds asked for do not occur: so its number never depends on them.
        let point = self.at;
        self.at += 1;
        let fault = match &mut self.mode {
            Mode::Search => {
                let value = match self.trail.get(point) {
                    Some(pick) => pick.value,
                    None => {
                        self.trail.push(Pick { value: 0, offered });
                        0
                    }
                };
                if value == 0 { None } else { offered.nth(u32::from(value) - 1) }
            }
            Mode::Plan { plan, next } => follow(plan, next, point, offered),
            Mode::Draw { stream, rarity } => {
                let hit = !offered.is_empty() && stream.up_to(*rarity - 1) == 0;
                hit.then(|| stream.up_to(u64::from(offered.len()) - 1))
                    .and_then(|place| offered.nth(place as u32))
            }
        }?;
        self.faults_left -= 1;
        self.injected.push(Injection { point: point as u32, fault });
        Some(fault)
    }

    /// The faults that were placed in this history.
    #[must_use]
    pub fn injected(&self) -> &[Injection] {
        &self.injected
    }

    /// How many points were asked about.
    #[must_use]
    pub fn points(&self) -> usize {
        self.at
    }
}

/// A planned fault that its point does not offer is passed over, so a shrunk plan never goes astray.
fn follow(plan: &[Injection], next: &mut usize, point: usize, offered: FaultSet) -> Option<Fault> {
    let planned = *plan.get(*next)?;
    if planned.point as usize > point {
        return None;
    }
    *next += 1;
    (planned.point as usize == point && offered.has(planned.fault)).then_some(planned.fault)
}
