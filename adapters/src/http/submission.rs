//! Checks what a client submits and turns it into what core and the worker need.

use tenure_core::spec::{IdempotencyKey, Labels, Limits, Payload, Shape, Submission};
use tenure_core::time::Millis;
use tenure_proto::messages::TaskBody;

use super::problem::{Kind, Problem};
use super::shapes::NewTask;
use crate::names::Names;

/// A key is kept as long as its task; nobody needs a longer one.
const KEY_LIMIT: usize = 255;
/// Leaves room in a frame of 16 MiB, and in the row of a database.
const BODY_LIMIT: usize = 1 << 20;
/// What is longer than a year is a slip of units.
const LENGTH_LIMIT_MS: u64 = 366 * 86_400_000;

impl NewTask {
    /// The key of this submission: the header's, the body's, or a fresh one.
    ///
    /// # Errors
    /// The two differ, or it cannot be a key.
    pub fn key(&mut self, header: Option<&str>) -> Result<String, Problem> {
        let body = self.idempotency_key.take();
        let key = match (header, body) {
            (Some(header), Some(body)) if header != body => {
                return Err(Problem::new(
                    Kind::Invalid,
                    format!(
                        "Idempotency-Key `{header}` and idempotency_key `{body}` differ; send one"
                    ),
                ));
            }
            (Some(key), _) => key.to_owned(),
            (None, Some(key)) => key,
            (None, None) => random_text(),
        };
        let plain = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if key.is_empty() || key.len() > KEY_LIMIT || !plain {
            return Err(Problem::new(
                Kind::Invalid,
                format!(
                    "idempotency_key has {} bytes; it must have 1 to {KEY_LIMIT}, all printable ASCII",
                    key.len()
                ),
            ));
        }
        Ok(key)
    }

    /// What core takes. `self` must not hold its key any more, so that the fingerprint is of the rest.
    ///
    /// # Errors
    /// Names the field that is not allowed and what would be.
    pub fn submission(&self, key: &str, names: &Names) -> Result<Submission, Problem> {
        self.check()?;
        let labels: Vec<_> = self.labels.iter().map(|label| names.label(label)).collect();
        let body = self.body().to_bytes();
        if body.len() > BODY_LIMIT {
            let size = body.len();
            return Err(invalid(
                "command and env",
                &format!(
                    "take {size} bytes, at most {BODY_LIMIT} are allowed; pass large data in a file"
                ),
            ));
        }
        let limits = Limits::default();
        Ok(Submission {
            shape: Shape {
                slots: self.slots.unwrap_or(1),
                gpus: self.gpus.unwrap_or(0),
                labels: Labels::of(&labels),
            },
            limits: Limits {
                priority: self.priority.unwrap_or(limits.priority),
                max_attempts: self.max_attempts.unwrap_or(limits.max_attempts),
                max_lost: self.max_lost.unwrap_or(limits.max_lost),
                patience: self.patience_ms.map(Millis),
                timeout: self.timeout_ms.map(Millis),
            },
            payload: Payload::of(&body),
            key: IdempotencyKey(key.into()),
            fingerprint: self.fingerprint(),
        })
    }

    fn body(&self) -> TaskBody {
        TaskBody {
            name: self.name.clone(),
            command: self.command.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone().unwrap_or_default(),
            resumable: self.resumable,
            trace_id: random_text(),
            // 0 leaves it to the worker; no grace at all is as good as a millisecond.
            stop_grace_ms: self.stop_grace_ms.map_or(0, |grace| grace.max(1)),
            ..TaskBody::default()
        }
    }

    fn check(&self) -> Result<(), Problem> {
        if self.command.first().is_none_or(String::is_empty) {
            return Err(invalid(
                "command",
                "is empty; give the program and its arguments as a list",
            ));
        }
        let texts = self.command.iter().chain(self.env.keys()).chain(self.env.values());
        if texts.chain(&self.cwd).any(|text| text.contains('\0')) {
            return Err(invalid("command, env or cwd", "holds a zero byte; remove it"));
        }
        if let Some(name) = self.env.keys().find(|name| name.is_empty() || name.contains('=')) {
            return Err(invalid(
                "env",
                &format!("has the name `{name}`; names are not empty and have no `=`"),
            ));
        }
        if let Some(name) = self.env.keys().find(|name| name.starts_with("TENURE_")) {
            return Err(invalid(
                "env",
                &format!("sets `{name}`; names that begin with TENURE_ are Tenure's"),
            ));
        }
        for (name, value) in [
            ("max_attempts", self.max_attempts),
            ("max_lost", self.max_lost),
            ("slots", self.slots),
        ] {
            if value == Some(0) {
                return Err(invalid(name, "is 0; it must be at least 1"));
            }
        }
        if self.timeout_ms == Some(0) {
            return Err(invalid("timeout_ms", "is 0; leave it out for no timeout"));
        }
        for (name, value) in [
            ("timeout_ms", self.timeout_ms),
            ("patience_ms", self.patience_ms),
            ("stop_grace_ms", self.stop_grace_ms),
        ] {
            if value.is_some_and(|value| value > LENGTH_LIMIT_MS) {
                return Err(invalid(name, "is over a year; it is a number of milliseconds"));
            }
        }
        if self.labels.iter().any(|label| label.trim().is_empty() || label.contains(',')) {
            return Err(invalid("labels", "has a label that is empty or holds a comma"));
        }
        Ok(())
    }

    /// A hash of what was asked for (FNV-1a of its JSON), the same in every version of the program.
    fn fingerprint(&self) -> u64 {
        let mut canonical = self.clone();
        canonical.idempotency_key = None;
        canonical.labels.sort_unstable();
        canonical.labels.dedup();
        let json = serde_json::to_vec(&canonical).expect("texts and numbers are JSON");
        json.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }
}

fn invalid(field: &str, why: &str) -> Problem {
    Problem::new(Kind::Invalid, format!("{field} {why}"))
}

/// 128 random bits as text: nobody draws the same twice.
pub fn random_text() -> String {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).expect("the system gives random numbers");
    bits.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> NewTask {
        NewTask { command: vec!["true".into()], ..NewTask::default() }
    }

    #[test]
    fn the_same_request_has_the_same_fingerprint_whatever_its_key_or_order_of_labels() {
        let names = Names::new();
        let one = NewTask { labels: vec!["a".into(), "b".into()], ..task() };
        let two = NewTask { labels: vec!["b".into(), "a".into(), "b".into()], ..task() };
        let print = |task: &NewTask, key| task.submission(key, &names).expect("fine").fingerprint;
        assert_eq!(print(&one, "k1"), print(&two, "k2"));
        let other = NewTask { priority: Some(1), ..one.clone() };
        assert_ne!(print(&one, "k"), print(&other, "k"));
    }

    #[test]
    fn header_and_body_may_name_the_key_but_not_two_keys() {
        let with = |key: &str| NewTask { idempotency_key: Some(key.into()), ..task() };
        assert_eq!(with("k").key(Some("k")), Ok("k".into()));
        assert_eq!(with("k").key(None), Ok("k".into()));
        assert_eq!(with("k").key(Some("other")).expect_err("two").kind, Kind::Invalid);
        assert!(with("").key(None).is_err() && with("a\nb").key(None).is_err());
        assert_ne!(task().key(None), task().key(None));
    }

    #[test]
    fn what_cannot_run_is_refused_by_the_name_of_its_field() {
        let names = Names::new();
        for (field, task) in [
            ("command", NewTask::default()),
            ("slots", NewTask { slots: Some(0), ..task() }),
            ("timeout_ms", NewTask { timeout_ms: Some(0), ..task() }),
            ("env", NewTask { env: [("A=B".into(), "x".into())].into(), ..task() }),
            ("env", NewTask { env: [("TENURE_ATTEMPT".into(), "x".into())].into(), ..task() }),
            ("zero byte", NewTask { cwd: Some("a\0b".into()), ..task() }),
        ] {
            let problem = task.submission("k", &names).expect_err(field);
            assert!(problem.detail.contains(field), "{}", problem.detail);
        }
    }

    #[test]
    fn an_unknown_field_is_an_error_and_not_ignored() {
        let error = serde_json::from_str::<NewTask>(r#"{"command": ["x"], "retries": 3}"#);
        assert!(error.expect_err("unknown").to_string().contains("retries"));
    }
}
