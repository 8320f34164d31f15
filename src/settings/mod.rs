//! Settings from flags, `TENURE_*`, `tenure.toml` and defaults, in that order; each value keeps where
//! it came from, so that an error about it can say so.

pub(crate) mod keys;
mod nearest;
mod read;
mod timings;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use tenure_core::policy::Policy;
use tenure_core::time::Millis;

use crate::duration;
use crate::exit::{Exit, Failure};
use keys::Key;

pub(crate) use nearest::nearest;
pub(crate) use read::Sources;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag of the command line.
    Flag(&'static str),
    /// An environment variable.
    Env(String),
    /// A file.
    File(PathBuf),
    /// Nobody said anything.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(flag) => write!(f, "flag {flag}"),
            Origin::Env(name) => write!(f, "environment {name}"),
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// A value as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// The text; of a list, its members with commas between.
    pub(crate) text: String,
    /// Where it came from.
    pub(crate) origin: Origin,
}

/// All settings that somebody gave; the rest are defaults.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    given: BTreeMap<&'static str, Value>,
}

impl Settings {
    /// The value of a setting, or its default.
    pub(crate) fn value(&self, key: Key) -> Value {
        let default = || Value { text: default_of(key), origin: Origin::Default };
        self.given.get(key.name).cloned().unwrap_or_else(default)
    }

    /// The value of a setting as text.
    pub(crate) fn text(&self, key: Key) -> String {
        self.value(key).text
    }

    /// Whether anybody gave it.
    pub(crate) fn is_given(&self, key: Key) -> bool {
        self.given.contains_key(key.name)
    }

    /// A value that its type can read.
    pub(crate) fn parse<T: FromStr>(&self, key: Key, expected: &str) -> Result<T, Failure> {
        let value = self.value(key);
        value.text.parse().map_err(|_| wrong(key.name, &value, &format!("not {expected}")))
    }

    /// A length of time.
    pub(crate) fn length(&self, key: Key) -> Result<Millis, Failure> {
        let value = self.value(key);
        duration::parse(&value.text).map_err(|why| wrong(key.name, &value, &why))
    }

    /// A list: members with commas between.
    pub(crate) fn list(&self, key: Key) -> Vec<String> {
        let text = self.text(key);
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// An address to listen on. Without authentication only this machine may connect, unless the
    /// operator insists.
    pub(crate) fn listener(&self, key: Key) -> Result<SocketAddr, Failure> {
        let address: SocketAddr = self.parse(key, "an address like 127.0.0.1:9080")?;
        let insists: bool = self.parse(keys::INSECURE, "true or false")?;
        if address.ip().is_loopback() {
            return Ok(address);
        }
        if !insists {
            let value = self.value(key);
            let why = "there is no authentication, so only 127.0.0.1 is safe; add --insecure-no-auth \
                       if the network is trusted";
            return Err(Failure { exit: Exit::NotAllowed, ..wrong(key.name, &value, why) });
        }
        crate::output::note(&format!(
            "warning: {} {address} accepts everybody who can reach it (--insecure-no-auth): they can run \
             any program here",
            key.name
        ));
        Ok(address)
    }

    /// The directory that everything is kept in.
    pub(crate) fn data_dir(&self) -> PathBuf {
        PathBuf::from(self.text(keys::DATA_DIR))
    }

    /// The timings, checked.
    pub(crate) fn policy(&self) -> Result<Policy, Failure> {
        let preset = self.value(keys::PRESET);
        let mut timings =
            timings::preset(&preset.text).map_err(|why| wrong(keys::PRESET.name, &preset, &why))?;
        for name in timings::names() {
            if let Some(value) = self.given.get(name) {
                timings::set(&mut timings, name, &value.text)
                    .map_err(|why| wrong(name, value, &why))?;
            }
        }
        Policy::new(timings).map_err(|unsafe_one| Failure::usage(format!("timings: {unsafe_one}")))
    }

    /// Every setting with its value and origin, for people.
    pub(crate) fn all(&self) -> Result<Vec<(&'static str, Value)>, Failure> {
        let timings = self.policy()?.settings();
        let plain = keys::ALL.iter().map(|key| (key.name, self.value(*key)));
        let preset = self.value(keys::PRESET).origin;
        let timed = timings::names().map(|name| {
            let origin = self.given.get(name).map_or(preset.clone(), |value| value.origin.clone());
            (name, Value { text: timings::show(&timings, name), origin })
        });
        Ok(plain.chain(timed).collect())
    }
}

fn wrong(name: &str, value: &Value, why: &str) -> Failure {
    Failure::usage(format!("{name} = `{}` ({}): {why}", value.text, value.origin))
}

/// Defaults that depend on the machine are worked out here.
fn default_of(key: Key) -> String {
    match key.name {
        "data_dir" => default_data_dir().display().to_string(),
        "worker.slots" => std::thread::available_parallelism().map_or(1, usize::from).to_string(),
        "worker.name" => hostname(),
        _ => key.default.to_owned(),
    }
}

fn default_data_dir() -> PathBuf {
    let of =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("XDG_DATA_HOME")
        .or_else(|| of("HOME").map(|home| home.join(".local/share")))
        .map_or_else(|| PathBuf::from(".tenure"), |base| base.join("tenure"))
}

fn hostname() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "worker".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, env: &[(&str, &str)], flags: &[(Key, &str)]) -> Result<Settings, Failure> {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let flags = flags.iter();
        Sources {
            flags: flags.map(|(key, text)| (key.name, "--flag", (*text).to_owned())).collect(),
            env: env.iter().map(own).collect(),
            file: Some((PathBuf::from("tenure.toml"), file.to_owned())),
        }
        .read()
    }

    #[test]
    fn a_flag_beats_the_environment_and_that_the_file_and_that_the_default() {
        let file = "server = \"http://file\"\n[worker]\nslots = 3\nlabels = [\"big\", \"gpu\"]";
        let env = [("TENURE_SERVER", "http://env"), ("TENURE_SLOTS", "4")];
        let settings = read(file, &env, &[(keys::SERVER, "http://flag")]).expect("fine");
        assert_eq!(settings.text(keys::SERVER), "http://flag");
        assert_eq!(settings.value(keys::SLOTS).origin, Origin::Env("TENURE_SLOTS".into()));
        assert_eq!(settings.list(keys::LABELS), ["big", "gpu"]);
        assert_eq!(settings.value(keys::LABELS).origin, Origin::File("tenure.toml".into()));
        assert_eq!(settings.value(keys::GPUS).origin, Origin::Default);
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_right_one() {
        let error = read("[worker]\nslot = 3", &[], &[]).expect_err("unknown").message;
        assert!(error.contains("worker.slot") && error.contains("worker.slots"), "{error}");
        let error = read("", &[("TENURE_SEVRER", "x")], &[]).expect_err("unknown").message;
        assert!(error.contains("TENURE_SEVRER") && error.contains("TENURE_SERVER"), "{error}");
        read("", &[("TENURE_TASK_ID", "7"), ("TENURE_ENTIRELY_ELSE", "x")], &[]).expect("not ours");
    }

    #[test]
    fn a_wrong_value_is_named_with_its_origin() {
        let settings = read("[worker]\nslots = \"many\"", &[], &[]).expect("read");
        let error = settings.parse::<u16>(keys::SLOTS, "a number").expect_err("not one").message;
        assert!(error.contains("`many`") && error.contains("file tenure.toml"), "{error}");
    }

    #[test]
    fn single_timings_lie_over_the_preset_and_unsafe_ones_are_refused() {
        let file = "[timings]\npreset = \"documented\"\ndisconnect_grace = \"100ms\"";
        let timings = read(file, &[], &[]).expect("read").policy().expect("safe").settings();
        assert_eq!(timings.heartbeat, Millis(10_000));
        assert_eq!(timings.disconnect_grace, Millis(100));
        let env = [("TENURE_TIMINGS_HEARTBEAT_TTL", "2s")];
        let error = read("", &env, &[]).expect("read").policy().expect_err("unsafe").message;
        assert!(error.contains("2.5 heartbeats"), "{error}");
    }

    #[test]
    fn only_loopback_may_be_listened_on_without_insisting() {
        let error = read("", &[("TENURE_HTTP", "0.0.0.0:1")], &[]).expect("read");
        let error = error.listener(keys::HTTP).expect_err("not safe");
        assert_eq!(error.exit, Exit::NotAllowed);
        assert!(error.message.contains("--insecure-no-auth"), "{}", error.message);
        let env = [("TENURE_HTTP", "0.0.0.0:1"), ("TENURE_INSECURE_NO_AUTH", "true")];
        assert!(read("", &env, &[]).expect("read").listener(keys::HTTP).is_ok());
    }
}
