//! The API for people and programs, `/api/v1`: JSON over HTTP.
//!
//! Thin, like every adapter: it asks the master and tells what the store says. Errors are
//! [`problem::Problem`]s; the documents are in [`shapes`].

mod health;
mod log_follow;
mod logs;
pub mod problem;
mod request;
mod served;
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

use problem::{Kind, Problem};
pub use served::Served;

/// Serves the API until `stop` is done and the requests under way are answered. While there is no master
/// yet, only `/livez` succeeds.
///
/// # Errors
/// The listener broke.
pub async fn serve(
    listener: TcpListener,
    master: Served,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let listening = request::Listening(listener.local_addr()?);
    let app = router(master).layer(middleware::from_fn_with_state(listening, request::guard));
    axum::serve(listener, app).with_graceful_shutdown(stop).await
}

fn router(master: Served) -> Router {
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::watch;

    use super::*;

    async fn get(address: std::net::SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("text");
        answer
    }

    #[tokio::test]
    async fn before_the_master_has_started_it_is_alive_and_not_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (_started, served) = watch::channel(None);
        tokio::spawn(serve(listener, served, std::future::pending()));
        assert!(get(address, "/livez").await.starts_with("HTTP/1.1 200"));
        for path in ["/readyz", "/api/v1/workers"] {
            let answer = get(address, path).await;
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
            assert!(answer.contains("retry-after: ") && answer.contains("not-leader"), "{answer}");
        }
    }
}
