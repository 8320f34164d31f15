//! Errors as `application/problem+json` (RFC 9457): what, where, and what to do.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

/// Kinds of problems; a client may rely on the last part of `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request cannot be understood.
    BadRequest,
    /// A value is not allowed.
    Invalid,
    /// A browser's page, or a name that is not this server's.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// The path is there, the method is not.
    MethodNotAllowed,
    /// The idempotency key belongs to another submission.
    KeyTaken,
    /// The task is over.
    TaskOver,
    /// This master does not lead.
    NotLeader,
    /// The store did not take it; nothing was changed.
    StoreFailed,
    /// It may have been done, or not; ask again with the same key.
    Unknown,
    /// This master is stopping.
    Stopping,
}

impl Kind {
    fn parts(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Kind::BadRequest => ("bad-request", StatusCode::BAD_REQUEST, "Bad request"),
            Kind::Invalid => ("invalid", StatusCode::UNPROCESSABLE_ENTITY, "Value not allowed"),
            Kind::Forbidden => ("forbidden", StatusCode::FORBIDDEN, "Not allowed"),
            Kind::NotFound => ("not-found", StatusCode::NOT_FOUND, "Not found"),
            Kind::MethodNotAllowed => {
                ("method-not-allowed", StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
            }
            Kind::KeyTaken => ("key-taken", StatusCode::CONFLICT, "Idempotency key taken"),
            Kind::TaskOver => ("task-over", StatusCode::CONFLICT, "Task is over"),
            Kind::NotLeader => {
                ("not-leader", StatusCode::SERVICE_UNAVAILABLE, "This master does not lead")
            }
            Kind::StoreFailed => {
                ("store-failed", StatusCode::SERVICE_UNAVAILABLE, "The store did not take it")
            }
            Kind::Unknown => ("unknown", StatusCode::SERVICE_UNAVAILABLE, "Unknown whether done"),
            Kind::Stopping => {
                ("stopping", StatusCode::SERVICE_UNAVAILABLE, "This master is stopping")
            }
        }
    }
}

/// The document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// A reference that names the kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The value, the place, and what to do.
    pub detail: String,
}

/// A problem on its way to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind.
    pub kind: Kind,
    /// The value, the place, and what to do.
    pub detail: String,
}

impl Problem {
    /// A problem of this kind.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Problem {
        Problem { kind, detail: detail.into() }
    }

    /// There is no such task.
    pub fn no_task(id: &str) -> Problem {
        let detail =
            format!("there is no task {id}; `GET /api/v1/tasks` lists those that are kept");
        Problem::new(Kind::NotFound, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (name, status, title) = self.kind.parts();
        let document = Document {
            kind: format!("/problems/{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: self.detail,
        };
        let body = serde_json::to_vec(&document).expect("texts and a number are JSON");
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
