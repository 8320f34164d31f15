//! What people and programs read: tables that fit the terminal, or one JSON document. Data goes to
//! stdout, everything else to stderr.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Row, Table, presets};
use serde::Serialize;

/// The narrowest table that still says something.
const LEAST_WIDTH: u16 = 40;

/// A table of this width has room for more than the usual columns.
const WIDE: u16 = 120;

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people.
    #[default]
    Table,
    /// One stable JSON document.
    Json,
}

/// Prints a line of data.
pub(crate) fn data(text: &str) {
    bytes(format!("{}\n", text.trim_end_matches('\n')).as_bytes());
}

/// Prints data as it is. A reader that has gone (`| head`) ends the program quietly.
pub(crate) fn bytes(data: &[u8]) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(data).and_then(|()| out.flush()) {
        gone(&error);
    }
}

/// Ends the program because nobody reads its output any more.
fn gone(error: &io::Error) -> ! {
    if error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    eprintln!("error: cannot write to stdout: {error}");
    std::process::exit(crate::exit::Exit::Unavailable.code().into());
}

/// Prints one JSON document.
pub(crate) fn json(value: &impl Serialize) {
    data(&serde_json::to_string_pretty(value).expect("our documents have text keys only"));
}

/// Prints one JSON document on one line: for a process that goes on, whose reader waits for a line.
pub(crate) fn json_line(value: &impl Serialize) {
    data(&serde_json::to_string(value).expect("our documents have text keys only"));
}

/// Says something that is not data.
pub(crate) fn note(text: &str) {
    // Without a stderr there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints rows under a heading, cut to the terminal's width; whole where nobody looks on.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) {
    data(&render(heading, rows, width()));
}

fn render(heading: &[&str], rows: &[Vec<String>], width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_truncation_indicator("…");
    match width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(width);
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    table.set_header(one_line(heading.iter().map(|name| (*name).to_owned())));
    for row in rows {
        table.add_row(one_line(row.iter().map(|cell| printable(cell))));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

fn one_line(cells: impl Iterator<Item = String>) -> Row {
    let mut row = Row::from(cells.collect::<Vec<_>>());
    row.max_height(1);
    row
}

/// A task's name may hold anything; a table must not obey it.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Whether there is room for a column that most readers can do without.
pub(crate) fn is_wide() -> bool {
    width().is_none_or(|width| width >= WIDE)
}

fn width() -> Option<u16> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let named = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let seen = || terminal_size::terminal_size().map(|(terminal_size::Width(width), _)| width);
    Some(named.or_else(seen).unwrap_or(80).max(LEAST_WIDTH))
}

/// Whether colours may be used on stderr: `NO_COLOR` unset, and a terminal.
pub(crate) fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        vec![
            vec!["1".into(), "RUNNING".into(), "python3 train.py ".repeat(10)],
            vec!["20".into(), "PENDING".into(), "a\x1b[31mb\nc".into()],
        ]
    }

    #[test]
    fn a_table_fits_the_terminal_and_every_row_is_one_line() {
        let text = render(&["ID", "STATUS", "COMMAND"], &rows(), Some(60));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{text}");
        assert!(lines[1].contains('…'), "{text}");
    }

    #[test]
    fn without_a_terminal_nothing_is_cut_and_control_characters_never_pass() {
        let text = render(&["ID", "STATUS", "COMMAND"], &rows(), None);
        assert!(text.contains(rows()[0][2].trim()), "{text}");
        assert!(!text.contains('\x1b') && text.lines().count() == 3, "{text}");
    }
}
