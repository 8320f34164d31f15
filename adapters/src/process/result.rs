//! What a task says about itself: its result file, and lines of its output that mean something.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc;

/// Above this a result is data, and belongs in a file that the result names.
pub const RESULT_LIMIT: u64 = 1 << 20;

/// A progress text is for one line of a table.
pub const PROGRESS_LIMIT: usize = 256;

/// Where the last line of a progress file is looked for, in bytes from its end.
const PROGRESS_TAIL: u64 = 16 << 10;

/// What a task left when it ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskResult {
    /// The contents of `$TENURE_RESULT`.
    pub result_json: Option<serde_json::Value>,
    /// Why there is no `result_json` although the task wrote one. Does not make the task fail.
    pub result_error: Option<String>,
    /// Decimal text of the last `FINAL_REWARD:<number>` line, as it was written.
    pub reward: Option<String>,
    /// The last progress, from `$TENURE_PROGRESS` if that was written, else from the output.
    pub progress: Option<String>,
}

/// What has been found in the output so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Decimal text of the last `FINAL_REWARD:<number>` line.
    pub reward: Option<String>,
    /// Text of the last progress line.
    pub progress: Option<String>,
}

/// What a line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<'a> {
    /// `FINAL_REWARD:<number>`.
    Reward(&'a str),
    /// `progress <text>`, `Progress: <text>`; a tag such as `[Python] ` may come first.
    Progress(&'a str),
    /// Output like any other.
    Nothing,
}

impl Findings {
    /// Takes one whole line, without its newline. True if it changed something.
    pub fn feed(&mut self, line: &[u8]) -> bool {
        let (found, text) = match meaning(line) {
            Meaning::Reward(number) => (&mut self.reward, number),
            Meaning::Progress(text) => (&mut self.progress, text),
            Meaning::Nothing => return false,
        };
        let changed = found.as_deref() != Some(text);
        *found = Some(text.to_owned());
        changed
    }
}

/// Reads one line.
pub fn meaning(line: &[u8]) -> Meaning<'_> {
    let Ok(text) = std::str::from_utf8(line) else { return Meaning::Nothing };
    let text = without_tag(text.trim());
    if let Some(number) = text.strip_prefix("FINAL_REWARD:").map(str::trim) {
        return if is_decimal(number) { Meaning::Reward(number) } else { Meaning::Nothing };
    }
    match progress_text(text) {
        Some(progress) => Meaning::Progress(shorten(progress)),
        None => Meaning::Nothing,
    }
}

/// `[Python] Progress: 20%` is how the workers of RL-Scheduler print.
fn without_tag(text: &str) -> &str {
    let tagged = text.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    tagged.map_or(text, |(_, rest)| rest.trim_start())
}

fn progress_text(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked("progress".len())?;
    let separated = rest.starts_with([' ', '\t', ':', '=']);
    let rest = rest.trim_start_matches([' ', '\t', ':', '=']);
    (word.eq_ignore_ascii_case("progress") && separated && !rest.is_empty()).then_some(rest)
}

/// A finite number in decimal notation: `nan` and `inf` are no rewards.
fn is_decimal(text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    plain && text.len() <= 64 && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// At most [`PROGRESS_LIMIT`] bytes of it, cut between characters.
pub fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(PROGRESS_LIMIT)]
}

/// Reads a result file. A file that is missing or empty is no result and no error.
///
/// # Errors
/// Says what is wrong with the file and what the task should write instead.
pub fn read_json(path: &Path) -> Result<Option<serde_json::Value>, String> {
    let name = path.display();
    let bytes = match read_bounded(path, RESULT_LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("the result file {name} cannot be read: {error}")),
    };
    if bytes.len() as u64 > RESULT_LIMIT {
        return Err(format!(
            "the result file {name} has over {RESULT_LIMIT} bytes; write the data elsewhere and \
             its path here"
        ));
    }
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        format!(
            "the result file {name} is not one JSON document: {error}; write it at once, then exit"
        )
    })
}

/// The last line of a progress file, which may grow for as long as its task runs.
pub fn read_progress(path: &Path) -> Option<String> {
    let bytes = read_tail(path, PROGRESS_TAIL).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(shorten(last).to_owned())
}

/// At most one byte above the limit.
fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The end of the file.
fn read_tail(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(end.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Only a regular file: the task may have put a FIFO, a device or a link there, on which a worker must
/// not hang or tell secrets.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_captured_reward_line_gives_its_decimal_text() {
        assert_eq!(meaning(b"FINAL_REWARD:94.73"), Meaning::Reward("94.73"));
        assert_eq!(meaning(b"FINAL_REWARD: -1.5e-3\r"), Meaning::Reward("-1.5e-3"));
        assert_eq!(meaning(b"[Python] FINAL_REWARD:7"), Meaning::Reward("7"));
    }

    #[test]
    fn what_is_not_a_finite_number_is_no_reward() {
        for line in ["nan", "inf", "-inf", "", "1,5", "1 2", "0x10", "1e999", "infinity"] {
            assert_eq!(
                meaning(format!("FINAL_REWARD:{line}").as_bytes()),
                Meaning::Nothing,
                "{line}"
            );
        }
        assert_eq!(meaning(b"the FINAL_REWARD:1"), Meaning::Nothing);
        assert_eq!(meaning(b"FINAL_REWARD:\xff"), Meaning::Nothing);
    }

    #[test]
    fn progress_lines_in_the_known_spellings() {
        for line in ["progress 20%", "[Python] Progress: 20%", "PROGRESS=20%", "progress\t20%"] {
            assert_eq!(meaning(line.as_bytes()), Meaning::Progress("20%"), "{line}");
        }
        for line in ["progress", "progress: ", "progressive rock", "in progress 5"] {
            assert_eq!(meaning(line.as_bytes()), Meaning::Nothing, "{line}");
        }
    }

    #[test]
    fn a_long_progress_is_cut_at_a_character() {
        let line = format!("progress {}", "é".repeat(300));
        let Meaning::Progress(text) = meaning(line.as_bytes()) else { panic!("progress") };
        assert_eq!(text.len(), PROGRESS_LIMIT);
    }

    #[test]
    fn the_last_line_of_a_progress_file_counts_however_long_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("progress");
        std::fs::write(&path, "step\n".repeat(1 << 18) + "the last\n\n").expect("written");
        assert_eq!(read_progress(&path).as_deref(), Some("the last"));
        std::fs::write(&path, " \n").expect("written");
        assert_eq!(read_progress(&path), None);
    }

    #[test]
    fn the_last_of_each_kind_counts() {
        let mut findings = Findings::default();
        let lines: [&[u8]; 4] = [b"progress 1/2", b"FINAL_REWARD:1", b"x", b"FINAL_REWARD:2"];
        assert_eq!(lines.map(|line| findings.feed(line)), [true, true, false, true]);
        assert!(!findings.feed(b"FINAL_REWARD:2"));
        assert_eq!(findings.reward.as_deref(), Some("2"));
        assert_eq!(findings.progress.as_deref(), Some("1/2"));
    }
}
