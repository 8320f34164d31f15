//! Puts the sources together: which keys exist, and who wins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Origin, Settings, Value, keys, nearest, timings};
use crate::exit::Failure;

/// The file's name where nobody names one.
const FILE: &str = "tenure.toml";

/// Everything that settings are read from.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Name of the setting, the flag, its text.
    pub(crate) flags: Vec<(&'static str, &'static str, String)>,
    /// Environment variables.
    pub(crate) env: Vec<(String, String)>,
    /// A file's path and contents.
    pub(crate) file: Option<(PathBuf, String)>,
}

impl Sources {
    /// The sources of this process. `config` is the file that a flag names.
    ///
    /// # Errors
    /// A file that was named, or is there, cannot be read.
    pub(crate) fn of_process(config: Option<&Path>) -> Result<Sources, Failure> {
        let env = std::env::vars_os()
            .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with("TENURE_"))
            .collect();
        Ok(Sources { flags: Vec::new(), env, file: file(config)? })
    }

    /// Adds a flag, if it was given.
    pub(crate) fn flag(&mut self, key: keys::Key, flag: &'static str, text: Option<String>) {
        if let Some(text) = text {
            self.flags.push((key.name, flag, text));
        }
    }

    /// Adds `--timing name=value`.
    ///
    /// # Errors
    /// There is no such timing.
    pub(crate) fn timing(&mut self, pair: &str) -> Result<(), Failure> {
        let (name, text) = pair.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--timing {pair}: write name=value, as in heartbeat=500ms"))
        })?;
        let full = format!("timings.{name}");
        let known = timings::names().find(|known| *known == full);
        let known = known.ok_or_else(|| unknown("--timing", &full, timings::names()))?;
        self.flags.push((known, "--timing", text.to_owned()));
        Ok(())
    }

    /// The settings that win.
    ///
    /// # Errors
    /// An unknown name, with the nearest right one.
    pub(crate) fn read(self) -> Result<Settings, Failure> {
        let mut given = BTreeMap::new();
        if let Some((path, text)) = self.file {
            read_file(&path, &text, &mut given)?;
        }
        for (name, text) in self.env {
            if let Some(known) = key_of_variable(&name)? {
                given.insert(known, Value { text, origin: Origin::Env(name) });
            }
        }
        for (known, flag, text) in self.flags {
            given.insert(known, Value { text, origin: Origin::Flag(flag) });
        }
        Ok(Settings { given })
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    keys::ALL.iter().map(|key| key.name).chain(timings::names())
}

fn unknown(place: &str, wrong: &str, names: impl Iterator<Item = &'static str>) -> Failure {
    let hint = nearest(wrong, names).map_or_else(
        || "`tenure config show` lists all settings".to_owned(),
        |right| format!("did you mean `{right}`?"),
    );
    Failure::usage(format!("{place}: there is no setting `{wrong}`; {hint}"))
}

/// The file that a flag or `TENURE_CONFIG` names, or the first that is there.
fn file(named: Option<&Path>) -> Result<Option<(PathBuf, String)>, Failure> {
    let by_variable = std::env::var_os("TENURE_CONFIG").map(PathBuf::from);
    if let Some(path) = named.map(Path::to_owned).or(by_variable) {
        return match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some((path, text))),
            Err(error) => Err(unreadable(&path, &error)),
        };
    }
    let of =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let personal = of("XDG_CONFIG_HOME").or_else(|| of("HOME").map(|home| home.join(".config")));
    let personal = personal.map(|base| base.join("tenure").join(FILE));
    for path in std::iter::once(PathBuf::from(FILE)).chain(personal) {
        match std::fs::read_to_string(&path) {
            Ok(text) => return Ok(Some((path, text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&path, &error)),
        }
    }
    Ok(None)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{}: cannot be read: {error}", path.display()))
}

fn read_file(
    path: &Path,
    text: &str,
    given: &mut BTreeMap<&'static str, Value>,
) -> Result<(), Failure> {
    let place = path.display().to_string();
    let table: toml::Table =
        text.parse().map_err(|error| Failure::usage(format!("{place}: {error}")))?;
    let mut flat = Vec::new();
    flatten("", table, &mut flat);
    for (name, value) in flat {
        let known = names().find(|known| *known == name);
        let known = known.ok_or_else(|| unknown(&place, &name, names()))?;
        let text = text_of(value).ok_or_else(|| {
            Failure::usage(format!(
                "{place}: {name} must be a text, a number, true, false or a list"
            ))
        })?;
        given.insert(known, Value { text, origin: Origin::File(path.to_owned()) });
    }
    Ok(())
}

fn flatten(prefix: &str, table: toml::Table, flat: &mut Vec<(String, toml::Value)>) {
    for (name, value) in table {
        let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, flat),
            value => flat.push((name, value)),
        }
    }
}

fn text_of(value: toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(yes) => Some(yes.to_string()),
        toml::Value::Array(members) => {
            let members: Option<Vec<String>> = members.into_iter().map(text_of).collect();
            members.map(|members| members.join(","))
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

/// The setting behind a variable. A variable that is only nearly one of ours is a slip; others
/// that begin the same may belong to somebody else.
fn key_of_variable(name: &str) -> Result<Option<&'static str>, Failure> {
    let timed = timings::names().map(|timing| (timings::variable(timing), timing));
    let plain = keys::ALL.iter().map(|key| (key.env.to_owned(), key.name));
    let known: Vec<(String, &'static str)> = plain.chain(timed).collect();
    if let Some((_, key)) = known.iter().find(|(variable, _)| variable == name) {
        return Ok(Some(key));
    }
    if keys::OTHER_VARIABLES.contains(&name) {
        return Ok(None);
    }
    // The common beginning says nothing about how near two names are.
    let bare = |variable: &str| variable.trim_start_matches("TENURE_").to_owned();
    let all: Vec<String> = known.iter().map(|(variable, _)| bare(variable)).collect();
    match nearest(&bare(name), all.iter().map(String::as_str)) {
        Some(right) => Err(Failure::usage(format!(
            "environment: there is no setting `{name}`; did you mean `TENURE_{right}`?"
        ))),
        None => Ok(None),
    }
}
