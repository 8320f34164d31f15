//! Lines, and their form in files.

/// A line as it is added; its offset follows from its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Whether it came from standard error.
    pub is_error: bool,
    /// When it was read, milliseconds since 1970 by the worker's clock.
    pub at_ms: u64,
    /// The line without its end; any bytes.
    pub text: Vec<u8>,
    /// Whether the next line of the same stream continues this one.
    pub continues: bool,
}

/// A line as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLine {
    /// Its number in the attempt.
    pub offset: u64,
    /// Whether it came from standard error.
    pub is_error: bool,
    /// When it was read, milliseconds since 1970 by the worker's clock.
    pub at_ms: u64,
    /// The line without its end; any bytes.
    pub text: Vec<u8>,
    /// Whether the next line of the same stream continues this one.
    pub continues: bool,
}

impl Line {
    /// A line of our own about lines that are not there.
    pub(super) fn notice(at_ms: u64, text: String) -> Line {
        Line { is_error: true, at_ms, text: text.into_bytes(), continues: false }
    }

    pub(super) fn at(self, offset: u64) -> StoredLine {
        let Line { is_error, at_ms, text, continues } = self;
        StoredLine { offset, is_error, at_ms, text, continues }
    }

    /// Stands for a dropped line: adds nothing to the line before it.
    pub(super) fn is_filler(&self) -> bool {
        self.text.is_empty() && self.continues
    }
}

/// Several lines as one body of a frame: the first one's offset, then each line.
///
/// | bytes | what |
/// |---|---|
/// | 8 | offset of the first line |
/// | then for each line: 1 | flags: from standard error, continues, run |
/// | 8 | when |
/// | 4 and so many | length and text; for a run 8: how many fillers it stands for |
pub(super) fn encode(first: u64, lines: &[Line]) -> Vec<u8> {
    let text: usize = lines.iter().map(|line| line.text.len() + LINE_HEAD).sum();
    let mut out = Vec::with_capacity(8 + text);
    out.extend_from_slice(&first.to_le_bytes());
    let mut rest = lines;
    while let Some(line) = rest.first() {
        let run = rest.iter().take_while(|next| next.is_filler() && next.is_error == line.is_error);
        let run = run.count();
        out.push(flags(line) | if run > 1 { RUN } else { 0 });
        out.extend_from_slice(&line.at_ms.to_le_bytes());
        if run > 1 {
            out.extend_from_slice(&(run as u64).to_le_bytes());
        } else {
            let length = u32::try_from(line.text.len()).expect("a line fits into a frame");
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&line.text);
        }
        rest = &rest[run.max(1)..];
    }
    out
}

/// What a line costs in a file beside its text.
pub(super) const LINE_HEAD: usize = 13;
const IS_ERROR: u8 = 1;
const CONTINUES: u8 = 2;
const RUN: u8 = 4;

fn flags(line: &Line) -> u8 {
    let is_error = if line.is_error { IS_ERROR } else { 0 };
    is_error | if line.continues { CONTINUES } else { 0 }
}

/// One thing in a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Line {
        offset: u64,
        is_error: bool,
        at_ms: u64,
        text: &'a [u8],
        continues: bool,
    },
    /// So many fillers.
    Run {
        offset: u64,
        is_error: bool,
        at_ms: u64,
        count: u64,
    },
}

/// The items of a body, and the offset after the last. Stops at what it cannot read.
pub(super) fn decode(body: &[u8]) -> Items<'_> {
    match body.split_first_chunk() {
        Some((first, rest)) => Items { rest, next: u64::from_le_bytes(*first) },
        None => Items { rest: &[], next: 0 },
    }
}

pub(super) struct Items<'a> {
    rest: &'a [u8],
    /// The offset of the item that comes next.
    pub(super) next: u64,
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        let (flags, rest) = self.rest.split_first()?;
        let (at_ms, rest) = rest.split_first_chunk()?;
        let at_ms = u64::from_le_bytes(*at_ms);
        let offset = self.next;
        let is_error = flags & IS_ERROR != 0;
        if flags & RUN != 0 {
            let (count, rest) = rest.split_first_chunk()?;
            let count = u64::from_le_bytes(*count);
            (self.rest, self.next) = (rest, offset.saturating_add(count));
            return Some(Item::Run { offset, is_error, at_ms, count });
        }
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (text, rest) = rest.split_at_checked(length)?;
        (self.rest, self.next) = (rest, offset + 1);
        let continues = flags & CONTINUES != 0;
        Some(Item::Line { offset, is_error, at_ms, text, continues })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &[u8], continues: bool) -> Line {
        Line { is_error: text.len() % 2 == 1, at_ms: 7, text: text.to_vec(), continues }
    }

    #[test]
    fn lines_read_back_as_they_were_written() {
        let lines = [line(b"one", false), line(b"\0\xff", true), line(b"", false), line(b"", true)];
        let body = encode(40, &lines);
        let mut items = decode(&body);
        let read: Vec<StoredLine> = items
            .by_ref()
            .map(|item| match item {
                Item::Line { offset, is_error, at_ms, text, continues } => {
                    Line { is_error, at_ms, text: text.to_vec(), continues }.at(offset)
                }
                Item::Run { .. } => panic!("a single filler is a line"),
            })
            .collect();
        let expected: Vec<StoredLine> =
            lines.into_iter().zip(40..).map(|(line, offset)| line.at(offset)).collect();
        assert_eq!(read, expected);
        assert_eq!(items.next, 44);
    }

    #[test]
    fn many_fillers_take_no_room() {
        let mut lines = vec![line(b"", true); 100_000];
        lines.push(line(b"", false));
        let body = encode(5, &lines);
        assert!(body.len() < 100, "{}", body.len());
        let mut items = decode(&body);
        let first = items.next();
        assert_eq!(first, Some(Item::Run { offset: 5, is_error: false, at_ms: 7, count: 100_000 }));
        assert_eq!(items.count(), 1);
    }
}
