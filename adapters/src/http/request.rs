//! What is common to all requests: who may ask, and parts that can be wrong.

use std::net::{IpAddr, SocketAddr};

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use tenure_core::ids::TaskId;

use super::problem::{Kind, Problem};

/// Whom the listener serves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listening(pub(super) SocketAddr);

/// Refuses what a page in somebody's browser could send to this machine: there is no
/// authentication, and a browser may well be where the master is.
pub(super) async fn guard(
    State(listening): State<Listening>,
    request: Request,
    next: Next,
) -> Response {
    match check(listening, request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(listening: Listening, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    if listening.0.ip().is_loopback() && !is_this_machine(host) {
        return Err(Problem::new(
            Kind::Forbidden,
            format!("host `{host}` is not this machine; ask for {}", listening.0),
        ));
    }
    match text(header::ORIGIN) {
        Some(origin) if origin.split_once("://").map(|(_, from)| from) != Some(host) => {
            Err(Problem::new(
                Kind::Forbidden,
                format!("a page of {origin} may not use this API; use a program"),
            ))
        }
        _ => Ok(()),
    }
}

/// A name other than `localhost` may have been made to point here by somebody else's name server.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<IpAddr>().is_ok()
}

/// The query of a request.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    Query::<T>::try_from_uri(uri)
        .map(|Query(query)| query)
        .map_err(|error| Problem::new(Kind::BadRequest, format!("{}: {error}", uri.path())))
}

/// The JSON body of a request.
pub(super) fn body<T: DeserializeOwned>(
    headers: &HeaderMap,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<T, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    // Browsers send other types without asking first.
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        return Err(Problem::new(
            Kind::BadRequest,
            format!("content-type is {kind:?}; send application/json"),
        ));
    }
    let bytes = bytes.map_err(|error| Problem::new(Kind::BadRequest, error.body_text()))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Problem::new(Kind::BadRequest, format!("the body: {error}")))
}

/// The task of a path.
pub(super) fn task_id(text: &str) -> Result<TaskId, Problem> {
    text.parse().map(TaskId).map_err(|_| {
        Problem::new(
            Kind::NotFound,
            format!("`{text}` is no task; tasks are named by their number"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&'static str, &'static str)]) -> Result<(), Problem> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, header::HeaderValue::from_static(value));
        }
        check(Listening(([127, 0, 0, 1], 7300).into()), &map)
    }

    #[test]
    fn programs_on_this_machine_may_ask_and_pages_of_others_may_not() {
        assert!(asked(&[("host", "127.0.0.1:9080")]).is_ok());
        assert!(asked(&[("host", "localhost:7300")]).is_ok());
        assert!(asked(&[("host", "[::1]:7300")]).is_ok());
        assert!(asked(&[("host", "localhost:7300"), ("origin", "http://localhost:7300")]).is_ok());
        for headers in [
            vec![("host", "evil.example:7300")],
            vec![("host", "127.0.0.1:9080"), ("origin", "https://evil.example")],
            vec![("host", "127.0.0.1:9080"), ("origin", "null")],
        ] {
            assert_eq!(asked(&headers).expect_err("refused").kind, Kind::Forbidden, "{headers:?}");
        }
    }
}
