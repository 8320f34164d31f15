//! What commands print: one valid document each with `-o json`, tables for people, documented exit codes.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;

use common::cluster::Cluster;
use common::{code, output, stderr, stdout, tenure};
use serde_json::Value;

/// RFC 3339 in UTC with milliseconds.
fn is_time(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T'
}

/// Every name in a document obeys the conventions on ids, times and lengths.
fn check_names(document: &Value) {
    match document {
        Value::Object(fields) => {
            for (name, value) in fields {
                let fine = match name.as_str() {
                    "id" | "epoch" | "incarnation" | "next_cursor" => {
                        value.is_string() || value.is_null()
                    }
                    "at" | "as_of" => is_time(value),
                    name if name.ends_with("_at") => value.is_null() || is_time(value),
                    name if name.ends_with("_ms") => value.is_null() || value.is_u64(),
                    _ => true,
                };
                assert!(fine, "{name}: {value}");
                check_names(value);
            }
        }
        Value::Array(members) => members.iter().for_each(check_names),
        _ => {}
    }
}

#[test]
fn every_list_and_answer_is_one_json_document_that_keeps_the_conventions() {
    let cluster = Cluster::with_worker(&[]);
    let submitted =
        cluster.json(&["submit", "--name", "a name", "--timeout", "1m", "--", "echo", "hello"]);
    let id = submitted["id"].as_str().expect("an id").to_owned();
    assert_eq!(cluster.end_of(&id)["status"], "COMPLETED");
    let shown = cluster.json(&["show", &id]);
    assert_eq!(shown["command"], serde_json::json!(["echo", "hello"]));
    assert_eq!(
        (shown["name"].as_str(), shown["timeout_ms"].as_u64()),
        (Some("a name"), Some(60_000))
    );
    assert_eq!(shown["attempts"][0]["outcome"]["exit_code"], 0, "{shown:#}");
    assert_eq!(shown["events"][0]["what"], "submitted", "{shown:#}");
    let documents = [
        submitted,
        shown,
        cluster.json(&["ps"]),
        cluster.json(&["workers"]),
        cluster.json(&["leader"]),
        cluster.json(&["wait", &id]),
        cluster.json(&["logs", &id]),
        cluster.json(&["config", "show"]),
    ];
    documents.iter().for_each(check_names);
    assert_eq!(documents[6]["lines"][0]["text"], "hello");
    assert_eq!(documents[3]["workers"][0]["name"], "one");
}

#[test]
fn pages_follow_each_other_and_filters_hold() {
    let cluster = Cluster::start(&[]);
    let ids: Vec<String> = (0..5).map(|_| cluster.submit(&[], "true")).collect();
    let mut seen = Vec::new();
    let mut page = cluster.json(&["ps", "--limit", "2"]);
    loop {
        let tasks = page["tasks"].as_array().expect("a list");
        seen.extend(tasks.iter().map(|task| task["id"].as_str().expect("an id").to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        page = cluster.json(&["ps", "--limit", "2", "--cursor", cursor]);
    }
    seen.reverse();
    assert_eq!(seen, ids);
    cluster.json(&["cancel", &ids[0]]);
    let of = |status: &str| {
        let list = cluster.json(&["ps", "--status", status]);
        list["tasks"].as_array().expect("a list").len()
    };
    assert_eq!((of("pending"), of("CANCELLED"), of("RUNNING")), (4, 1, 0));
    assert_eq!(cluster.json(&["ps"])["tasks"][0]["waits_for"], "no_worker");
}

#[test]
fn a_table_has_a_line_for_each_task_and_no_colour_where_nobody_looks() {
    let cluster = Cluster::start(&[]);
    cluster.submit(&["--name", "x\x1b[31my\nz"], "true");
    let printed = stdout(&output(&mut cluster.tenure(&["ps"])));
    assert_eq!(printed.lines().count(), 2, "{printed}");
    assert!(printed.starts_with("ID") && printed.contains("PENDING") && !printed.contains('\x1b'));
}

#[test]
fn exit_codes_are_those_of_the_help() {
    let cluster = Cluster::with_worker(&[]);
    let ends = |args: &[&str]| code(&output(&mut cluster.tenure(args)));
    assert_eq!(ends(&["show", "99"]), 3);
    assert_eq!(ends(&["show", "no-number"]), 3);
    assert_eq!(ends(&["ps", "--status", "WAITING"]), 2);
    assert_eq!(ends(&["submit", "--idempotency-key", "k", "--", "true"]), 0);
    assert_eq!(ends(&["submit", "--idempotency-key", "k", "--", "false"]), 4, "another submission");
    let failing = cluster.submit(&["--max-attempts", "1"], "exit 9");
    assert_eq!(ends(&["wait", &failing]), 1);
    let waiting = cluster.submit(&["--label", "none-has-it"], "true");
    assert_eq!(ends(&["wait", &waiting, "--timeout", "10ms"]), 124);
    assert_eq!(cluster.json(&["show", &waiting])["waits_for"], "no_fitting_worker");
    assert_eq!(ends(&["cancel", &waiting]), 0);
    assert_eq!(ends(&["wait", &waiting]), 8);
    let help = stdout(&output(tenure(cluster.path()).arg("--help")));
    assert!(help.contains("Exit codes:") && help.contains("124"), "{help}");
}

#[test]
fn without_a_server_the_error_says_how_to_get_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = tenure(dir.path());
    // Port 9 discards; nobody listens there.
    command.env("TENURE_RETRY_FOR", "10ms").args(["--server", "127.0.0.1:9", "ps"]);
    let done = output(&mut command);
    assert_eq!((code(&done), stdout(&done).as_str()), (6, ""));
    let said = stderr(&done);
    assert!(said.contains("127.0.0.1:9") && said.contains("tenure dev"), "{said}");
}

#[test]
fn retry_makes_a_new_task_and_says_so() {
    let cluster = Cluster::with_worker(&[]);
    let first = cluster.submit(&["--max-attempts", "1"], "echo again; exit 1");
    let early = cluster.submit(&["--label", "none-has-it"], "true");
    assert_eq!(cluster.end_of(&first)["status"], "FAILED");
    let done = output(&mut cluster.tenure(&["retry", &first]));
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let second = stdout(&done).trim().to_owned();
    assert!(second != first && stderr(&done).contains(&first), "{}", stderr(&done));
    assert_eq!(cluster.log(&second), ["again"]);
    assert_eq!(cluster.json(&["show", &first])["status"], "FAILED");
    assert_eq!(code(&output(&mut cluster.tenure(&["retry", &early]))), 4, "it is not over");
}

/// One HTTP request by hand: status line and headers, and body.
fn request(cluster: &Cluster, text: &str) -> (String, String) {
    let address = cluster.server.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let text = text.replace("HOST", address).replace('\n', "\r\n");
    stream.write_all(text.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_ascii_lowercase(), body.to_owned())
}

fn get(cluster: &Cluster, path: &str) -> (String, String) {
    request(cluster, &format!("GET {path} HTTP/1.1\nHost: HOST\nConnection: close\n\n"))
}

fn post(cluster: &Cluster, headers: &str, body: &str) -> (String, String) {
    let length = body.len();
    request(
        cluster,
        &format!(
            "POST /api/v1/tasks HTTP/1.1\nHost: HOST\nConnection: close\nContent-Length: {length}\n{headers}\n{body}"
        ),
    )
}

#[test]
fn problems_are_documents_with_type_title_status_and_detail() {
    let cluster = Cluster::start(&[]);
    let json = "Content-Type: application/json\n";
    for (answer, status, kind, part) in [
        (get(&cluster, "/api/v1/tasks/7"), 404, "not-found", "7"),
        (get(&cluster, "/api/v2"), 404, "not-found", "/api/v1"),
        (get(&cluster, "/api/v1/tasks?status=odd"), 422, "invalid", "`odd`"),
        (get(&cluster, "/api/v1/tasks?pages=1"), 400, "bad-request", "pages"),
        (post(&cluster, json, r#"{"command": []}"#), 422, "invalid", "command"),
        (post(&cluster, json, r#"{"command": ["x"], "slot": 1}"#), 400, "bad-request", "slot"),
        (post(&cluster, "", r#"{"command": ["x"]}"#), 400, "bad-request", "application/json"),
    ] {
        let (head, body) = answer;
        assert!(head.contains("content-type: application/problem+json"), "{head}");
        let problem: Value = serde_json::from_str(&body).expect(&body);
        assert_eq!(
            (problem["status"].as_u64(), head.contains(&status.to_string())),
            (Some(status), true)
        );
        assert!(problem["type"].as_str().expect("a type").ends_with(kind), "{problem}");
        assert!(problem["detail"].as_str().expect("a detail").contains(part), "{problem}");
        assert!(problem["title"].is_string());
    }
}

#[test]
fn a_key_gives_one_task_and_is_refused_for_another() {
    let cluster = Cluster::start(&[]);
    let headers = "Content-Type: application/json\nIdempotency-Key: k1\n";
    let (first, body) = post(&cluster, headers, r#"{"command": ["true"]}"#);
    assert!(first.starts_with("http/1.1 201"), "{first}");
    let (again, same) = post(&cluster, headers, r#"{"command": ["true"]}"#);
    assert!(again.starts_with("http/1.1 200"), "{again}");
    let id = |body: &str| serde_json::from_str::<Value>(body).expect("a document")["id"].clone();
    assert_eq!(id(&body), id(&same));
    let (other, _) = post(&cluster, headers, r#"{"command": ["false"]}"#);
    assert!(other.starts_with("http/1.1 409"), "{other}");
}

#[test]
fn health_is_told_and_pages_in_browsers_are_turned_away() {
    let cluster = Cluster::start(&[]);
    assert!(get(&cluster, "/livez").0.starts_with("http/1.1 200"));
    assert!(get(&cluster, "/readyz").0.starts_with("http/1.1 200"));
    let text = "GET /api/v1/tasks HTTP/1.1\nHost: HOST\nConnection: close\nOrigin: http://evil.example\n\n";
    assert!(request(&cluster, text).0.starts_with("http/1.1 403"));
    let text = "GET /api/v1/tasks HTTP/1.1\nHost: evil.example\nConnection: close\n\n";
    assert!(request(&cluster, text).0.starts_with("http/1.1 403"));
}
