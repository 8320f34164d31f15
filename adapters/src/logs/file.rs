//! One file of lines that is only ever added to.
//!
//! It is opened for each use, so that thousands of logs need no file handles while nobody writes to them.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::line::{self, Item, LINE_HEAD, Line, StoredLine};
use crate::frames::{self, FRAME_HEAD};

/// A frame gets more lines up to this size: a reader skips little, a small write costs little.
const FRAME_BYTES: usize = 32 << 10;
/// One place is remembered for so many bytes of the file.
const INDEX_EVERY: u64 = 64 << 10;
/// Read at once.
const CHUNK: usize = 128 << 10;

/// What is known of a file without reading it.
#[derive(Debug)]
pub(super) struct LineFile {
    pub(super) path: PathBuf,
    /// The offset after its last line.
    pub(super) next: u64,
    /// Its length in bytes.
    pub(super) end: u64,
    /// Some frames: offset of the first line, and place. Ascending.
    index: Vec<(u64, u64)>,
}

/// Where reading begins and ends.
#[derive(Debug, Clone)]
pub(super) struct Span {
    path: PathBuf,
    from: u64,
    place: u64,
    end: u64,
}

impl LineFile {
    /// A file that has no line yet; it comes into being with the first one.
    pub(super) fn fresh(path: PathBuf, first: u64) -> LineFile {
        LineFile { path, next: first, end: 0, index: Vec::new() }
    }

    /// Reads what a file holds; `first` is the offset of its first line, should it have none yet. A torn
    /// tail is cut off: it was never acknowledged.
    pub(super) fn open(path: PathBuf, first: u64) -> io::Result<LineFile> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let scanned = frames::scan(&bytes, 0);
        let mut file = LineFile::fresh(path, first);
        for body in scanned.bodies {
            let place = (body.start - FRAME_HEAD) as u64;
            let mut items = line::decode(&bytes[body.clone()]);
            file.note(items.next, place);
            items.by_ref().for_each(drop);
            file.next = items.next;
            file.end = body.end as u64;
        }
        if file.end < bytes.len() as u64 {
            tracing::warn!(path = %file.path.display(), "cut off a write that a crash had interrupted");
            OpenOptions::new().write(true).open(&file.path)?.set_len(file.end)?;
        }
        Ok(file)
    }

    /// Adds lines at the end. When this returns they survive a kill of the process.
    pub(super) fn append(&mut self, lines: &[Line]) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut frames = Vec::new();
        let (mut rest, mut next) = (lines, self.next);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fitting(rest));
            frames.push((next, self.end + bytes.len() as u64));
            frames::put(&mut bytes, &line::encode(next, now));
            next += now.len() as u64;
            rest = later;
        }
        self.write(&bytes)?;
        for (offset, place) in frames {
            self.note(offset, place);
        }
        self.next = next;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Where the line of this offset is found, if it is in the file or may come.
    pub(super) fn span(&self, from: u64) -> Span {
        let after = self.index.partition_point(|(offset, _)| *offset <= from);
        let place = after.checked_sub(1).map_or(0, |at| self.index[at].1);
        Span { path: self.path.clone(), from, place, end: self.end }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&self.path)?;
        file.write_all_at(bytes, self.end).inspect_err(|_| {
            // Best effort: what remains is no whole frame, and the next write goes over it.
            let _ = file.set_len(self.end);
        })
    }

    fn note(&mut self, offset: u64, place: u64) {
        let is_far = |(_, last): &(u64, u64)| place >= last + INDEX_EVERY;
        if self.index.last().is_none_or(is_far) {
            self.index.push((offset, place));
        }
    }
}

impl Span {
    /// Items from the wanted offset on, as long as `more` wants them. What was damaged on the disk is passed
    /// over.
    pub(super) fn read(&self, mut more: impl FnMut(Item<'_>) -> bool) -> io::Result<()> {
        let file = match OpenOptions::new().read(true).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let (mut place, mut size) = (self.place, CHUNK);
        while place < self.end {
            let left = usize::try_from(self.end - place).unwrap_or(usize::MAX);
            let mut chunk = vec![0; size.min(left)];
            file.read_exact_at(&mut chunk, place)?;
            let scanned = frames::scan(&chunk, 0);
            for body in &scanned.bodies {
                let items = line::decode(&chunk[body.clone()]);
                let wanted = items.filter(|item| last_of(item) >= self.from);
                for item in wanted {
                    if !more(item) {
                        return Ok(());
                    }
                }
            }
            if scanned.bodies.is_empty() {
                if size >= left {
                    return Ok(());
                }
                // A frame of one very long line, or a damaged place.
                size *= 2;
            } else {
                place += scanned.end as u64;
                size = CHUNK;
            }
        }
        Ok(())
    }
}

fn last_of(item: &Item<'_>) -> u64 {
    match item {
        Item::Line { offset, .. } => *offset,
        Item::Run { offset, count, .. } => offset + count.saturating_sub(1),
    }
}

/// How many of the lines go into one frame: at least one.
fn fitting(lines: &[Line]) -> usize {
    let mut bytes = 0;
    let fits = lines.iter().take_while(|line| {
        bytes += line.text.len() + LINE_HEAD;
        bytes <= FRAME_BYTES
    });
    fits.count().max(1)
}

/// A line as it is read, out of an item.
pub(super) fn stored(
    (offset, is_error, at_ms, text, continues): (u64, bool, u64, &[u8], bool),
) -> StoredLine {
    StoredLine { offset, is_error, at_ms, text: text.to_vec(), continues }
}

/// Makes the directory that a file is in.
pub(super) fn make_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => std::fs::create_dir_all(parent),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<Line> {
        let line = |n| Line {
            is_error: false,
            at_ms: 1,
            text: format!("line {n} {}", "x".repeat(n % 90)).into_bytes(),
            continues: false,
        };
        (0..count).map(line).collect()
    }

    fn offsets(file: &LineFile, from: u64, most: usize) -> Vec<u64> {
        let mut found = Vec::new();
        let read = file.span(from).read(|item| {
            found.push(last_of(&item));
            found.len() < most
        });
        read.expect("readable");
        found
    }

    #[test]
    fn reading_begins_anywhere() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("log");
        let mut file = LineFile::fresh(path.clone(), 100);
        for some in lines(20_000).chunks(700) {
            file.append(some).expect("written");
        }
        let again = LineFile::open(path, 100).expect("readable");
        for file in [&file, &again] {
            assert_eq!(file.next, 20_100);
            assert!(file.index.len() > 5, "{}", file.index.len());
            for from in [0, 100, 101, 9_999, 20_099] {
                let first = from.max(100);
                let expected: Vec<u64> = (first..20_100).take(3).collect();
                assert_eq!(offsets(file, from, 3), expected, "from {from}");
            }
            assert_eq!(offsets(file, 20_100, 3), [0; 0]);
            assert_eq!(offsets(file, 0, usize::MAX).len(), 20_000);
        }
    }

    #[test]
    fn a_cut_at_any_byte_keeps_whole_writes() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("log");
        let mut file = LineFile::fresh(path.clone(), 0);
        let mut ends = vec![(0, 0)];
        for some in lines(12).chunks(3) {
            file.append(some).expect("written");
            ends.push((file.end, file.next));
        }
        let bytes = std::fs::read(&path).expect("readable");
        for cut in 0..=bytes.len() {
            std::fs::write(&path, &bytes[..cut]).expect("written");
            let kept = ends.iter().rev().find(|(end, _)| *end <= cut as u64);
            let mut again = LineFile::open(path.clone(), 0).expect("readable");
            assert_eq!(Some(&(again.end, again.next)), kept, "cut at {cut}");
            again.append(&lines(1)).expect("written");
            assert_eq!(offsets(&again, 0, usize::MAX).len() as u64, again.next, "cut at {cut}");
        }
    }

    #[test]
    fn a_line_longer_than_a_chunk_is_read() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut file = LineFile::fresh(dir.path().join("log"), 0);
        let mut long = lines(3);
        long[1].text = vec![b'y'; 3 * CHUNK];
        file.append(&long).expect("written");
        assert_eq!(offsets(&file, 0, usize::MAX), [0, 1, 2]);
        assert_eq!(offsets(&file, 2, usize::MAX), [2]);
    }
}
