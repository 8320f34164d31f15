//! A failure on file: the scenario and its faults, nothing more.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tenure_core::rules::Rules;
use tenure_core::time::Millis;

use crate::choices::{Choices, Injection};
use crate::explore::Found;
use crate::invariants::Violation;
use crate::scenario::{Scenario, ScenarioName};
use crate::timeline;
use crate::world::World;

/// The format of the file; one that is newer than the program is refused.
const VERSION: u32 = 1;

/// What it takes to run one history again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The format.
    pub version: u32,
    /// Which world.
    pub scenario: ScenarioName,
    /// Which timings it runs with.
    pub policy: PolicyPreset,
    /// Spreads the nodes in time.
    pub seed: u64,
    /// A world drawn from the seed instead of the named one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drawn: bool,
    /// The faults.
    pub choices: Vec<Injection>,
    /// What was violated.
    #[serde(default)]
    pub violated: String,
}

/// The timings of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyPreset {
    /// The default, without the slow reconcile.
    SmallWorld,
}

/// Why a replay cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("{path}: {why}; give the file that `tenure sim explore` wrote")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        why: std::io::Error,
    },
    /// The text is no replay.
    #[error("not a replay: {0}; give the JSON that `tenure sim explore` printed")]
    Malformed(#[from] serde_json::Error),
    /// It was written by a newer program.
    #[error("replay version {0} is newer than this program knows ({VERSION}); use a newer tenure")]
    Newer(u32),
}

/// A history that was run again.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// What was violated, if anything.
    pub violation: Option<Violation>,
    /// The hash of the history.
    pub hash: u64,
    /// How many faults happened; fewer than planned if the world has changed since.
    pub faults: usize,
    /// How long it lasted in virtual time.
    pub lasted: Millis,
    /// Its timeline.
    pub timeline: Vec<String>,
}

impl Replay {
    /// The replay of a finding.
    #[must_use]
    pub fn new(scenario: ScenarioName, seed: u64, found: &Found) -> Replay {
        Replay {
            version: VERSION,
            scenario,
            policy: PolicyPreset::SmallWorld,
            seed,
            drawn: false,
            choices: found.plan.clone(),
            violated: found.violation.property.text().to_owned(),
        }
    }

    /// Reads it from JSON.
    ///
    /// # Errors
    /// [`ReplayError`] if it is no replay, or a newer one.
    pub fn of_json(text: &str) -> Result<Replay, ReplayError> {
        let replay: Replay = serde_json::from_str(text)?;
        if replay.version > VERSION {
            return Err(ReplayError::Newer(replay.version));
        }
        Ok(replay)
    }

    /// Reads it from a file.
    ///
    /// # Errors
    /// [`ReplayError`] if the file cannot be read or is no replay.
    pub fn of_file(path: &Path) -> Result<Replay, ReplayError> {
        let text = std::fs::read_to_string(path)
            .map_err(|why| ReplayError::Unreadable { path: path.display().to_string(), why })?;
        Replay::of_json(&text)
    }

    /// As JSON, one line.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a replay holds nothing that JSON cannot")
    }

    /// What a person does with it.
    #[must_use]
    pub fn how(&self) -> String {
        format!(
            "seed {}, scenario {}, faults: {}\nagain: tenure sim replay <file> with {}",
            self.seed,
            self.scenario.text(),
            Faults(&self.choices),
            self.json()
        )
    }

    /// The world that it runs in.
    #[must_use]
    pub fn world(&self) -> Scenario {
        if self.drawn {
            crate::random::drawn_scenario(self.seed)
        } else {
            Scenario { seed: self.seed, ..Scenario::named(self.scenario) }
        }
    }
}

struct Faults<'a>(&'a [Injection]);

impl fmt::Display for Faults<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (place, injection) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{} at point {}", injection.fault, injection.point)?;
        }
        Ok(())
    }
}

/// Runs a history again, with its timeline.
#[must_use]
pub fn replay(replay: &Replay, rules: Rules) -> Replayed {
    let mut world = World::new(replay.world(), rules, Choices::plan(replay.choices.clone()));
    world.record();
    let ending = world.run();
    Replayed {
        violation: ending.violation,
        hash: ending.hash,
        faults: world.choices().injected().len(),
        lasted: ending.lasted,
        timeline: timeline::render(&world.take_lines(), ending.violation),
    }
}
