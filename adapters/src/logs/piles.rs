//! The worker's files: `<dir>/<task>.<attempt>.<first offset>.lines`, each a segment of one attempt's log.
//!
//! Segments of every attempt are in one order of age. When all of them together are too large the oldest go,
//! first those that a master has. The lines of an attempt keep their offsets: in the place of those that are
//! gone and were never stored elsewhere, a reader gets one line that says how many, drawn out by fillers.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use tenure_core::ids::{Attempt, AttemptRef, TaskId};

use super::LogError;
use super::file::{LineFile, stored};
use super::line::{Item, LINE_HEAD, Line, StoredLine};

/// All segments together: at least so many, so that dropping one costs little of what is kept.
const SEGMENTS: u64 = 256;
const SEGMENT_LEAST: u64 = 4 << 10;
const SEGMENT_MOST: u64 = 4 << 20;
/// Fillers given at once: a frame of them stays under 2 MiB.
const FILLERS: u64 = 100_000;

/// Every attempt whose lines may still be asked for.
pub(super) struct Piles {
    dir: PathBuf,
    limit: u64,
    segment: u64,
    total: u64,
    /// Age of the next segment.
    age: u64,
    piles: BTreeMap<AttemptRef, Pile>,
}

#[derive(Default)]
struct Pile {
    segments: VecDeque<Segment>,
    /// The offset after the last line, kept when no segment is.
    next: u64,
    /// A master has the lines below.
    acknowledged: u64,
    /// Lines that the disk did not take.
    unwritten: u64,
    /// A notice was given for the lines dropped from here to there.
    noticed: (u64, u64),
}

struct Segment {
    age: u64,
    first: u64,
    file: LineFile,
}

impl Piles {
    /// Reads what an earlier start left.
    pub(super) fn open(dir: &Path, limit: u64) -> Result<Piles, LogError> {
        std::fs::create_dir_all(dir).map_err(LogError::io(dir))?;
        let segment = (limit / SEGMENTS).clamp(SEGMENT_LEAST, SEGMENT_MOST);
        let piles = BTreeMap::new();
        let mut opened = Piles { dir: dir.to_owned(), limit, segment, total: 0, age: 0, piles };
        for (at, first, path) in found(dir).map_err(LogError::io(dir))? {
            let file = LineFile::open(path.clone(), first).map_err(LogError::io(&path))?;
            opened.total += file.end;
            opened.age += 1;
            let pile = opened.piles.entry(at).or_default();
            pile.next = pile.next.max(file.next);
            pile.segments.push_back(Segment { age: opened.age, first, file });
        }
        for pile in opened.piles.values_mut() {
            pile.segments.make_contiguous().sort_by_key(|segment| segment.first);
        }
        opened.shrink();
        Ok(opened)
    }

    /// Every attempt and the offset after its last line.
    pub(super) fn held(&self) -> Vec<(AttemptRef, u64)> {
        self.piles.iter().map(|(at, pile)| (*at, pile.next)).collect()
    }

    /// Adds lines and gives the offset after the last.
    pub(super) fn append(&mut self, at: AttemptRef, lines: Vec<Line>) -> Result<u64, LogError> {
        let pile = self.piles.entry(at).or_default();
        let Some(first) = lines.first() else {
            return Ok(pile.next);
        };
        let lines = match pile.unwritten {
            0 => lines,
            gone => std::iter::once(not_written(gone, first.at_ms)).chain(lines).collect(),
        };
        let is_full = |segment: &Segment| segment.file.end >= self.segment;
        if pile.segments.back().is_none_or(is_full) {
            self.age += 1;
            pile.begin(&self.dir, at, self.age);
        }
        let segment = pile.segments.back_mut().expect("one was just begun");
        let before = segment.file.end;
        if let Err(error) = segment.file.append(&lines) {
            let own = u64::from(pile.unwritten > 0);
            pile.unwritten += lines.len() as u64 - own;
            return Err(LogError::io(&segment.file.path)(error));
        }
        self.total += segment.file.end - before;
        pile.unwritten = 0;
        pile.next = segment.file.next;
        let next = pile.next;
        self.shrink();
        Ok(next)
    }

    /// Lines from an offset on: one at least if there is one, and about so many bytes at most.
    pub(super) fn read(
        &mut self,
        at: AttemptRef,
        from: u64,
        bytes: usize,
    ) -> Result<Vec<StoredLine>, LogError> {
        let Some(pile) = self.piles.get_mut(&at) else {
            return Ok(Vec::new());
        };
        let mut reading = Reading { next: from, lines: Vec::new(), left: bytes, gap_to: None };
        for segment in pile.segments.iter().filter(|segment| segment.file.next > from) {
            let read = segment.file.span(from).read(|item| reading.take(&item));
            read.map_err(LogError::io(&segment.file.path))?;
            if reading.is_full() {
                break;
            }
        }
        let Reading { mut lines, gap_to, .. } = reading;
        if lines.is_empty() && from < pile.next {
            pile.fill(from, gap_to.unwrap_or(pile.next), &mut lines);
        }
        Ok(lines)
    }

    /// A master has the lines below this offset.
    pub(super) fn acknowledged(&mut self, at: AttemptRef, next: u64) {
        if let Some(pile) = self.piles.get_mut(&at) {
            pile.acknowledged = pile.acknowledged.max(next);
        }
    }

    /// Nobody will ask for this attempt's lines any more.
    pub(super) fn remove(&mut self, at: AttemptRef) -> Result<(), LogError> {
        for segment in self.piles.remove(&at).map(|pile| pile.segments).unwrap_or_default() {
            self.total -= segment.file.end;
            delete(&segment.file.path).map_err(LogError::io(&segment.file.path))?;
        }
        Ok(())
    }

    /// Drops the oldest segments while all together are too large.
    fn shrink(&mut self) {
        while self.total > self.limit {
            let ages = self.piles.iter().filter_map(|(at, pile)| {
                // An empty one gives no room; its name alone is of use.
                let oldest = pile.segments.front().filter(|segment| segment.file.end > 0)?;
                Some((oldest.file.next > pile.acknowledged, oldest.age, *at))
            });
            let Some((_, _, at)) = ages.min() else {
                return;
            };
            self.drop_oldest(at);
        }
    }

    fn drop_oldest(&mut self, at: AttemptRef) {
        let Some(pile) = self.piles.get_mut(&at) else {
            return;
        };
        if let Some(segment) = pile.segments.pop_front() {
            self.total -= segment.file.end;
            if pile.segments.is_empty() {
                // Its name tells a later start where the log goes on.
                self.age += 1;
                pile.begin(&self.dir, at, self.age);
            }
            if let Err(error) = delete(&segment.file.path) {
                tracing::warn!("{}", LogError::io(&segment.file.path)(error));
            }
        }
    }
}

/// Takes lines without a gap in their offsets.
struct Reading {
    next: u64,
    lines: Vec<StoredLine>,
    left: usize,
    /// Where lines go on behind a gap.
    gap_to: Option<u64>,
}

impl Reading {
    fn is_full(&self) -> bool {
        self.left == 0 || self.gap_to.is_some()
    }

    /// Whether it wants more.
    fn take(&mut self, item: &Item<'_>) -> bool {
        // The spool writes no runs: its fillers are made when they are read.
        let Item::Line { offset, is_error, at_ms, text, continues } = *item else {
            return true;
        };
        if offset > self.next {
            self.gap_to = Some(offset);
            return false;
        }
        let cost = text.len() + LINE_HEAD;
        if !self.lines.is_empty() && self.left < cost {
            self.left = 0;
            return false;
        }
        self.left = self.left.saturating_sub(cost);
        self.next = offset + 1;
        self.lines.push(stored((offset, is_error, at_ms, text, continues)));
        true
    }
}

impl Pile {
    fn begin(&mut self, dir: &Path, at: AttemptRef, age: u64) {
        let name = format!("{}.{}.{}.lines", at.task.0, at.attempt.number(), self.next);
        let path = dir.join(name);
        if let Err(error) = std::fs::File::create(&path) {
            // The first append says the same to somebody who can tell people.
            tracing::debug!("{}: {error}", path.display());
        }
        let file = LineFile::fresh(path, self.next);
        self.segments.push_back(Segment { age, first: self.next, file });
    }

    /// In the place of lines that were dropped: what says so, then fillers that continue it.
    fn fill(&mut self, from: u64, kept: u64, lines: &mut Vec<StoredLine>) {
        let mut offset = from;
        let (noticed_from, noticed_to) = self.noticed;
        let goes_on = noticed_from < from && from < noticed_to;
        let end = if goes_on { noticed_to } else { kept };
        if !goes_on {
            self.noticed = (from, kept);
            let mut notice = dropped(kept - from).at(from);
            notice.continues = kept - from > 1;
            lines.push(notice);
            offset += 1;
        }
        for offset in offset..end.min(offset + FILLERS) {
            let mut filler = Line::notice(0, String::new()).at(offset);
            filler.continues = offset + 1 < end;
            lines.push(filler);
        }
    }
}

fn dropped(lines: u64) -> Line {
    let text = format!(
        "[tenure: {lines} lines of output were missing here: they were dropped from a full spool, or its disk lost them]"
    );
    Line::notice(0, text)
}

fn not_written(lines: u64, at_ms: u64) -> Line {
    let text = format!(
        "[tenure: {lines} lines of output are missing here: the worker's disk did not take them]"
    );
    Line::notice(at_ms, text)
}

/// The segments in a directory, oldest first.
fn found(dir: &Path) -> io::Result<Vec<(AttemptRef, u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some((at, first)) = name.to_str().and_then(parse) {
            found.push((entry.metadata()?.modified()?, at, first, entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, at, first, path)| (at, first, path)).collect())
}

fn parse(name: &str) -> Option<(AttemptRef, u64)> {
    let mut parts = name.strip_suffix(".lines")?.split('.');
    let task = TaskId(parts.next()?.parse().ok()?);
    let attempt = Attempt::new(parts.next()?.parse().ok()?)?;
    let first = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((AttemptRef::new(task, attempt), first))
}

fn delete(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
