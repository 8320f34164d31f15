//! The API for people and programs, `/api/v1`: JSON over HTTP.
//!
//! Thin, like every adapter: it asks the master and tells what the store says. Errors are
//! [`problem::Problem`]s; the documents are in [`shapes`].

mod health;
mod log_follow;
mod logs;
pub mod problem;
mod request;
pub mod shapes;
pub mod submission;
mod tasks;
mod view;
mod wait;
mod workers;

use std::io;

use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware;
use axum::routing::{get, post};
use tokio::net::TcpListener;

use crate::driver::master::MasterHandle;
use problem::{Kind, Problem};

/// Serves the API until `stop` is done and the requests under way are answered.
///
/// # Errors
/// The listener broke.
pub async fn serve(
    listener: TcpListener,
    master: MasterHandle,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let listening = request::Listening(listener.local_addr()?);
    let app = router(master).layer(middleware::from_fn_with_state(listening, request::guard));
    axum::serve(listener, app).with_graceful_shutdown(stop).await
}

fn router(master: MasterHandle) -> Router {
    let api = Router::new()
        .route("/tasks", get(tasks::list).post(tasks::submit))
        .route("/tasks/{id}", get(tasks::get))
        .route("/tasks/{id}/cancel", post(tasks::cancel))
        .route("/tasks/{id}/retry", post(tasks::retry))
        .route("/tasks/{id}/logs", get(logs::get))
        .route("/tasks/{id}/wait", get(wait::get))
        .route("/workers", get(workers::list))
        .route("/leader", get(workers::leader));
    Router::new()
        .nest("/api/v1", api)
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .with_state(master)
}

async fn nothing_here(uri: Uri) -> Problem {
    Problem::new(
        Kind::NotFound,
        format!("there is nothing at {}; the API is at /api/v1", uri.path()),
    )
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::new(Kind::MethodNotAllowed, format!("{} does not take {method}", uri.path()))
}
