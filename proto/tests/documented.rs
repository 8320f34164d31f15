//! `docs/wire.md` says what `messages.proto` says.

const PAGE: &str = include_str!("../../docs/wire.md");
const PROTO: &str = include_str!("../messages.proto");

#[test]
fn the_page_has_every_type_with_its_number_and_sender() {
    for &code in tenure_proto::Message::TYPE_CODES {
        let message = tenure_proto::Message::decode(code, Default::default());
        let message = message.expect("right").expect("known");
        let sender = format!("{:?}", message.sender()).to_lowercase();
        let row = format!("| {code} | {} | {sender} |", message.name());
        assert!(PAGE.contains(&row), "docs/wire.md lacks the row {row:?}");
    }
}

#[test]
fn the_page_has_every_field_and_value_with_its_number() {
    let mut found = 0;
    let mut section = "";
    for line in PROTO.lines() {
        if let Some(name) = name_of_definition(line) {
            section = section_of(name);
        } else if let Some((field, number)) = field(line) {
            let row = format!("| {number} | `{field}` |");
            assert!(section.contains(&row), "docs/wire.md lacks {row:?} where {line:?} belongs");
            found += 1;
        }
    }
    assert!(found > 100, "only {found} fields and values were read");
}

/// The name in `message Name {` or `enum Name {`.
fn name_of_definition(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("message ").or_else(|| line.strip_prefix("enum "))?;
    rest.split_whitespace().next()
}

/// Type with name, and number, of `  string name = 1;`.
fn field(line: &str) -> Option<(&str, &str)> {
    line.trim().strip_suffix(';')?.split_once(" = ").filter(|_| line.starts_with("  "))
}

fn section_of(name: &str) -> &'static str {
    let title = format!("### {name}\n");
    let (_, rest) =
        PAGE.split_once(&title).unwrap_or_else(|| panic!("docs/wire.md lacks {title:?}"));
    rest.split("\n### ").next().unwrap_or(rest)
}
