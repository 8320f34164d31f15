//! A task's log as JSON lines or plain text, up to its end if the client follows.

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use tenure_core::ids::Attempt;

use super::log_follow::{Follower, Position};
use super::problem::{Kind, Problem};
use super::request;
use super::served::Master;
use super::shapes::LogRecord;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogQuery {
    attempt: Option<u32>,
    from: Option<String>,
    #[serde(default)]
    follow: bool,
    format: Option<String>,
}

/// How lines are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Text,
}

pub(super) async fn get(
    Master(master): Master,
    Path(id): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let task = request::task_id(&id)?;
    let query: LogQuery = request::query(&uri)?;
    let format = format(&query, &headers)?;
    let position = position(&query)?;
    let follower = Follower::start(master, task, position, query.follow).await?;
    let body = stream::unfold(Some(follower), move |follower| async move {
        let mut follower = follower?;
        match follower.next().await {
            Some(records) => {
                let ended = matches!(records.last(), Some(LogRecord::End(_)));
                let bytes = Ok::<_, std::convert::Infallible>(encode(&records, format));
                Some((bytes, (!ended).then_some(follower)))
            }
            // The store broke: without its last record the client knows that this is no end.
            None => None,
        }
    });
    let kind = match format {
        Format::Json => "application/jsonl",
        Format::Text => "text/plain; charset=utf-8",
    };
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(body)).into_response())
}

fn format(query: &LogQuery, headers: &HeaderMap) -> Result<Format, Problem> {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    match query.format.as_deref() {
        Some("json") => Ok(Format::Json),
        Some("text") => Ok(Format::Text),
        Some(other) => {
            Err(Problem::new(Kind::Invalid, format!("format `{other}` is neither json nor text")))
        }
        None if accept.is_some_and(|accept| accept.contains("text/plain")) => Ok(Format::Text),
        None => Ok(Format::Json),
    }
}

/// `from` is a line of `attempt`, or `attempt.line` from where all later attempts follow.
fn position(query: &LogQuery) -> Result<Position, Problem> {
    let wrong = || {
        let from = query.from.as_deref().unwrap_or_default();
        let detail = format!("from `{from}`: write ATTEMPT.LINE, or LINE together with attempt=");
        Problem::new(Kind::Invalid, detail)
    };
    let only =
        match query.attempt {
            None => None,
            Some(number) => Some(Attempt::new(number).ok_or_else(|| {
                Problem::new(Kind::Invalid, "attempt is 0; the first attempt is 1")
            })?),
        };
    let (attempt, offset) = match query.from.as_deref() {
        None => (only.unwrap_or(Attempt::FIRST), 0),
        Some(text) => match (text.split_once('.'), only) {
            (Some((attempt, line)), _) => {
                let attempt = attempt.parse().ok().and_then(Attempt::new).ok_or_else(wrong)?;
                (attempt, line.parse().map_err(|_| wrong())?)
            }
            (None, Some(attempt)) => (attempt, text.parse().map_err(|_| wrong())?),
            (None, None) => return Err(wrong()),
        },
    };
    if only.is_some_and(|only| only != attempt) {
        return Err(wrong());
    }
    Ok(Position { attempt, offset, only })
}

fn encode(records: &[LogRecord], format: Format) -> Bytes {
    let mut bytes = Vec::new();
    for record in records {
        match (format, record) {
            (Format::Json, record) => {
                serde_json::to_writer(&mut bytes, record).expect("texts and numbers are JSON");
                bytes.push(b'\n');
            }
            (Format::Text, LogRecord::Line(line)) => bytes.extend(line.bytes()),
            (Format::Text, LogRecord::End(_)) => {}
        }
    }
    // A sign of life; text has no way to say one.
    if records.is_empty() && format == Format::Json {
        bytes.push(b'\n');
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(attempt: Option<u32>, from: Option<&str>) -> Option<(u32, u64, bool)> {
        let from = from.map(str::to_owned);
        let query = LogQuery { attempt, from, follow: false, format: None };
        let position = position(&query).ok()?;
        Some((position.attempt.number(), position.offset, position.only.is_some()))
    }

    #[test]
    fn a_position_is_a_line_of_one_attempt_or_of_all_from_one_on() {
        assert_eq!(at(None, None), Some((1, 0, false)));
        assert_eq!(at(Some(2), None), Some((2, 0, true)));
        assert_eq!(at(Some(2), Some("7")), Some((2, 7, true)));
        assert_eq!(at(None, Some("2.7")), Some((2, 7, false)));
        for wrong in [at(None, Some("7")), at(Some(0), None), at(Some(1), Some("2.7"))] {
            assert_eq!(wrong, None);
        }
    }
}
