//! Explores a scenario: `explore [scenario] [faults] [jobs] [budget in s] [all] [kinds=pause,break] [seed=2]` (`all` goes on
//! after a violation), `explore swarm [seeds] [faults] [jobs]`, `explore trace [scenario]` for the history
//! without faults, or `explore replay <json>` for every line of a history.

use std::process::ExitCode;
use std::time::Duration;

use tenure_core::rules::Rules;
use tenure_sim::choices::Choices;
use tenure_sim::faults::{Fault, FaultSet};
use tenure_sim::scenario::Scenario;
use tenure_sim::world::World;
use tenure_sim::{ExploreOptions, Replay, ScenarioName, SwarmOptions, explore, replay, swarm};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u64| {
        args.get(place).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let name = args.first().map_or("dispatch", String::as_str);
    let report = match name {
        "swarm" => swarm(&SwarmOptions {
            seeds: number(1, 1_000),
            faults: number(2, 6) as u32,
            jobs: number(3, 2) as usize,
            ..SwarmOptions::default()
        }),
        "trace" => return trace(args.get(1).map_or("dispatch", String::as_str)),
        "replay" => return again(args.get(1).map_or("", String::as_str)),
        _ => {
            let Some(scenario) = ScenarioName::of_text(name) else {
                eprintln!("scenario \"{name}\" is not known");
                return ExitCode::from(2);
            };
            explore(&ExploreOptions {
                scenario,
                faults: number(1, 1) as u32,
                jobs: number(2, 2) as usize,
                budget: args.get(3).map(|_| Duration::from_secs(number(3, 60))),
                kinds: kinds(&args),
                seed: seed(&args),
                stop_at_first: args.get(4).is_none_or(|text| text != "all"),
                ..ExploreOptions::default()
            })
        }
    };
    println!("{}", report.text(true));
    ExitCode::from(report.exit_code())
}

fn kinds(args: &[String]) -> FaultSet {
    let Some(names) = args.iter().find_map(|text| text.strip_prefix("kinds=")) else {
        return FaultSet::ALL;
    };
    let kinds = names.split(',').filter_map(Fault::of_name);
    kinds.fold(FaultSet::NONE, |set, kind| set.and(FaultSet::of(&[kind])))
}

fn seed(args: &[String]) -> u64 {
    let named = args.iter().find_map(|text| text.strip_prefix("seed="));
    named.and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn trace(name: &str) -> ExitCode {
    let scenario = ScenarioName::of_text(name).unwrap_or(ScenarioName::Dispatch);
    let mut world = World::new(Scenario::named(scenario), Rules::ALL, Choices::plan(Vec::new()));
    world.record();
    let ending = world.run();
    for line in world.take_lines() {
        println!("{:>7} {:?} {:6} {}", line.at.0, line.kind, line.node, line.text);
    }
    println!("{ending:?}");
    ExitCode::SUCCESS
}

fn again(text: &str) -> ExitCode {
    match Replay::of_json(text) {
        Ok(found) => {
            let mut world =
                World::new(found.world(), Rules::ALL, Choices::plan(found.choices.clone()));
            world.record();
            let _ = world.run();
            for line in world.take_lines() {
                println!("{:>7} {:?} {:6} {}", line.at.0, line.kind, line.node, line.text);
            }
            println!("{:?}", replay(&found, Rules::ALL).violation);
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}
