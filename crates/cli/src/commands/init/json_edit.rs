//! Adds and removes items of JSON objects and arrays in the text itself. Order, comments and indentation stay as they
//! are, and removing an added item restores the text byte for byte. The syntax tree of `jsonc-parser` does not do that:
//! it breaks one-line objects and drops blank lines.

use std::{borrow::Cow, ops::Range};

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Array, Object, Value},
    common::Ranged,
    parse_to_ast,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxProblem {
    pub line: usize,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonNode {
    Text(String),
    Number(u64),
    Yes,
    List(Vec<JsonNode>),
    Object(Vec<(Cow<'static, str>, JsonNode)>),
}

/// A range of the text and its replacement.
type Splice = (Range<usize>, String);

/// The position of an object or array in the text.
pub(super) struct Container {
    open: usize,
    close: usize,
    items: Vec<Range<usize>>,
}

#[derive(Clone, Copy)]
struct LineStyle<'a> {
    indent: &'a str,
    unit: &'a str,
    newline: &'a str,
}

struct GapContents {
    comma: Option<usize>,
    comments: Vec<Range<usize>>,
}

/// Parses a text, which may be empty. Accepts comments and trailing commas, as most clients do.
pub(super) fn parse(text: &str) -> Result<Option<Value<'_>>, SyntaxProblem> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
    let parsed =
        parsed.map_err(|error| SyntaxProblem { line: error.line_display(), why: lowercase(&error.kind().to_string()) })?;
    Ok(parsed.value)
}

fn lowercase(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

pub(super) fn line_of(text: &str, place: usize) -> usize {
    1 + text[..place].matches('\n').count()
}

impl Container {
    pub(super) fn of_object(object: &Object<'_>) -> Self {
        Self::new(object, object.properties.iter().map(Ranged::range).map(|range| range.start..range.end).collect())
    }

    pub(super) fn of_array(array: &Array<'_>) -> Self {
        Self::new(array, array.elements.iter().map(Ranged::range).map(|range| range.start..range.end).collect())
    }

    fn new(whole: &impl Ranged, items: Vec<Range<usize>>) -> Self {
        Self { open: whole.start(), close: whole.end() - 1, items }
    }

    /// Whether it contains neither items nor comments.
    pub(super) fn is_bare(&self, text: &str) -> bool {
        self.items.is_empty() && text[self.open + 1..self.close].trim().is_empty()
    }

    /// Whether it has a single item, and no comments.
    pub(super) fn has_one_item_only(&self, text: &str) -> bool {
        self.items.len() == 1 && !self.has_comments(text)
    }

    /// Whether it has comments outside its items.
    fn has_comments(&self, text: &str) -> bool {
        let starts = self.items.iter().map(|item| item.start).chain([self.close]);
        let ends = [self.open + 1].into_iter().chain(self.items.iter().map(|item| item.end));
        ends.zip(starts).any(|(from, to)| !between(text, from, to).comments.is_empty())
    }

    /// Appends a member to this object.
    pub(super) fn with_member(&self, text: &str, name: &str, value: &JsonNode) -> String {
        self.with(text, &|style| format!("{}: {}", quoted(name), value.as_text(style)))
    }

    /// Appends an element to this array.
    pub(super) fn with_element(&self, text: &str, value: &JsonNode) -> String {
        self.with(text, &|style| value.as_text(style))
    }

    fn with(&self, text: &str, item: &dyn Fn(Option<LineStyle<'_>>) -> String) -> String {
        let unit = unit(text);
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let outer = line_indent(text, self.open);
        let Some((first, last)) = self.items.first().zip(self.items.last()) else {
            let indent = format!("{outer}{unit}");
            let item = item(Some(LineStyle { indent: &indent, unit, newline }));
            return spliced(
                text,
                vec![self.first_of_all(text, &format!("{newline}{indent}{item}"), &format!("{newline}{outer}"))],
            );
        };
        let after = between(text, last.end, self.close);
        let end = after.comma.map_or(last.end, |comma| comma + 1);
        let is_in_a_line = !text[self.open..first.start].contains('\n');
        let (place, item) = if is_in_a_line {
            (end, format!(" {}", item(None)))
        } else {
            let indent = first_on_line(text, first.start).map_or_else(|| format!("{outer}{unit}"), str::to_owned);
            let item = item(Some(LineStyle { indent: &indent, unit, newline }));
            // A comment after the last item belongs to that item.
            (behind_comments(text, end, &after.comments), format!("{newline}{indent}{item}"))
        };
        match after.comma {
            Some(_) => spliced(text, vec![(place..place, item + ",")]),
            None => spliced(text, vec![(last.end..last.end, ",".to_owned()), (place..place, item)]),
        }
    }

    /// Adds the first item. An existing line break serves as the one before the closing bracket.
    fn first_of_all(&self, text: &str, item: &str, break_after: &str) -> Splice {
        let inside = between(text, self.open + 1, self.close);
        let place = inside.comments.last().map_or(self.open + 1, |comment| comment.end);
        if text[place..self.close].contains('\n') {
            return (place..place, item.to_owned());
        }
        (place..self.close, format!("{item}{break_after}"))
    }

    /// Removes an item, its comma, and the white space before it.
    pub(super) fn without(&self, text: &str, index: usize) -> String {
        let item = &self.items[index];
        if self.has_one_item_only(text) {
            return spliced(text, vec![(self.open + 1..self.close, String::new())]);
        }
        let previous = index.checked_sub(1).map(|previous| &self.items[previous]);
        let before = between(text, previous.map_or(self.open + 1, |previous| previous.end), item.start);
        let after = between(text, item.end, self.items.get(index + 1).map_or(self.close, |next| next.start));
        let gap = text[..item.start].trim_end_matches([' ', '\t', '\r', '\n']).len();
        let mut cuts = vec![(gap..item.end, String::new())];
        // The last item may have no comma after it. Then the one before it goes.
        if let Some(comma) = after.comma.or(before.comma) {
            cuts.push((comma..comma + 1, String::new()));
        }
        spliced(text, cuts)
    }
}

/// Replaces ranges of the text by values.
pub(super) fn replaced(text: &str, parts: Vec<(Range<usize>, JsonNode)>) -> String {
    spliced(text, parts.into_iter().map(|(part, value)| (part, value.as_text(None))).collect())
}

pub(super) fn range_of(part: &impl Ranged) -> Range<usize> {
    part.start()..part.end()
}

pub(super) fn spliced(text: &str, mut splices: Vec<Splice>) -> String {
    // Splices at the same position keep their order.
    splices.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len() + 1024);
    let mut at = 0;
    for (range, with) in &splices {
        out.push_str(&text[at..range.start]);
        out.push_str(with);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

fn between(text: &str, from: usize, to: usize) -> GapContents {
    let mut found = GapContents { comma: None, comments: Vec::new() };
    let mut at = from;
    while at < to {
        let rest = &text[at..to];
        let length = if rest.starts_with("//") {
            rest.find(['\n', '\r']).unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            if rest.starts_with(',') {
                found.comma = Some(at);
            }
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        found.comments.push(at..at + length);
        at += length;
    }
    found
}

/// The end of the comments that follow on the same line.
fn behind_comments(text: &str, mut place: usize, comments: &[Range<usize>]) -> usize {
    for comment in comments {
        // Comments before the comma are already passed.
        if comment.start < place {
            continue;
        }
        if text[place..comment.start].contains('\n') {
            break;
        }
        place = comment.end;
    }
    place
}

fn line_indent(text: &str, place: usize) -> &str {
    let line = &text[text[..place].rfind('\n').map_or(0, |end| end + 1)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The indentation before a position; `None` if anything else precedes it on its line.
fn first_on_line(text: &str, place: usize) -> Option<&str> {
    let indent = line_indent(text, place);
    text[..place].ends_with(&format!("\n{indent}")).then_some(indent)
}

/// The indentation of one level, taken from the first indented line.
fn unit(text: &str) -> &str {
    let indents = text.lines().filter(|line| !line.trim().is_empty()).map(|line| line_indent(line, 0));
    indents.into_iter().find(|indent| !indent.is_empty()).map_or("  ", |indent| match indent.strip_prefix('\t') {
        Some(_) => "\t",
        None if indent.len() <= 8 => indent,
        None => "  ",
    })
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl JsonNode {
    pub(crate) fn text(text: &str) -> Self {
        JsonNode::Text(text.to_owned())
    }

    pub(crate) fn texts(texts: &[String]) -> Self {
        JsonNode::List(texts.iter().cloned().map(JsonNode::Text).collect())
    }

    pub(crate) fn object(members: impl IntoIterator<Item = (&'static str, JsonNode)>) -> Self {
        JsonNode::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Nests this value in objects with these names, outermost first.
    pub(crate) fn nested(self, names: &[String]) -> Self {
        names.iter().rev().fold(self, |inner, name| JsonNode::Object(vec![(name.clone().into(), inner)]))
    }

    fn is_plain(&self) -> bool {
        !matches!(self, JsonNode::List(_) | JsonNode::Object(_))
    }

    /// Whether people would write it on one line.
    fn is_small(&self) -> bool {
        match self {
            JsonNode::List(items) => items.iter().all(|item| !matches!(item, JsonNode::List(_)) && item.is_small()),
            JsonNode::Object(members) => members.iter().all(|(_, value)| value.is_plain() || value.is_plain_list()),
            _ => true,
        }
    }

    fn is_plain_list(&self) -> bool {
        matches!(self, JsonNode::List(items) if items.iter().all(JsonNode::is_plain))
    }

    /// The value as JSON: in lines of this style if it is not small, and in one line without a style.
    fn as_text(&self, style: Option<LineStyle<'_>>) -> String {
        let fits = |style: &LineStyle<'_>| self.is_small() && style.indent.len() + self.as_text(None).len() <= WIDTH;
        let style = style.filter(|style| !fits(style));
        let inner = style.map(|style| format!("{}{}", style.indent, style.unit));
        let deeper = style.zip(inner.as_deref()).map(|(style, indent)| LineStyle { indent, ..style });
        let joined = |items: Vec<String>| match style.zip(inner.as_ref()) {
            Some((LineStyle { indent, newline, .. }, inner)) => {
                format!("{newline}{inner}{}{newline}{indent}", items.join(&format!(",{newline}{inner}")))
            }
            None => items.join(", "),
        };
        match self {
            JsonNode::Text(text) => quoted(text),
            JsonNode::Number(number) => number.to_string(),
            JsonNode::Yes => "true".to_owned(),
            JsonNode::List(items) => format!("[{}]", joined(items.iter().map(|item| item.as_text(deeper)).collect())),
            JsonNode::Object(members) => {
                let members = members.iter().map(|(name, value)| format!("{}: {}", quoted(name), value.as_text(deeper)));
                let pad = if style.is_some() { "" } else { " " };
                format!("{{{pad}{}{pad}}}", joined(members.collect()))
            }
        }
    }
}

const WIDTH: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn container(text: &str) -> Container {
        match parse(text).unwrap().unwrap() {
            Value::Object(object) => Container::of_object(&object),
            Value::Array(array) => Container::of_array(&array),
            other => panic!("{other:?}"),
        }
    }

    /// Adds `"k": 1`, and removes it again.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let with = container(text).with_member(text, "k", &JsonNode::Number(1));
        assert_eq!(with, expected);
        let added = container(&with);
        assert_eq!(added.without(&with, added.items.len() - 1), text);
    }

    #[test]
    fn a_member_comes_last_and_goes_again() {
        check("{}", "{\n  \"k\": 1\n}");
        check("{\"a\": 1}", "{\"a\": 1, \"k\": 1}");
        check("{ \"a\": 1 }\n", "{ \"a\": 1, \"k\": 1 }\n");
        check("{\n    \"a\": 1\n}\n", "{\n    \"a\": 1,\n    \"k\": 1\n}\n");
        check("{\n\t\"a\": [\n\t\t1\n\t]\n}", "{\n\t\"a\": [\n\t\t1\n\t],\n\t\"k\": 1\n}");
        check("{\r\n  \"a\": 1\r\n}\r\n", "{\r\n  \"a\": 1,\r\n  \"k\": 1\r\n}\r\n");
        check("{\n  \"a\": 1}", "{\n  \"a\": 1,\n  \"k\": 1}");
    }

    #[test]
    fn a_trailing_comma_stays_one() {
        check("{\n  \"a\": 1,\n}", "{\n  \"a\": 1,\n  \"k\": 1,\n}");
        check("{\"a\": 1,}", "{\"a\": 1, \"k\": 1,}");
        check("{\"a\": 1 , }", "{\"a\": 1 , \"k\": 1, }");
    }

    #[test]
    fn a_comment_stays_with_what_it_is_about() {
        check("{\n  \"a\": 1 // one\n}", "{\n  \"a\": 1, // one\n  \"k\": 1\n}");
        check(
            "{\n  \"a\": 1, /* one, */ // two\n  // \"b\": 2\n}",
            "{\n  \"a\": 1, /* one, */ // two\n  \"k\": 1,\n  // \"b\": 2\n}",
        );
        check("{ // first\n}", "{ // first\n  \"k\": 1\n}");
        check("{\n  // \"a\": {\n}", "{\n  // \"a\": {\n  \"k\": 1\n}");
        check("{\"a\": 1 /* one */}", "{\"a\": 1, \"k\": 1 /* one */}");
        check("{\"a\": 1 // one\n}", "{\"a\": 1, \"k\": 1 // one\n}");
        check("{\r\n  \"a\": 1 // one\r\n}", "{\r\n  \"a\": 1, // one\r\n  \"k\": 1\r\n}");
    }

    #[test]
    fn an_item_in_the_middle_takes_its_own_comma() {
        let cut = |text: &str, index| container(text).without(text, index);
        assert_eq!(cut("{\n  \"k\": 1,\n  \"a\": 2\n}", 0), "{\n  \"a\": 2\n}");
        assert_eq!(cut("[1, 2, 3]", 1), "[1, 3]");
        assert_eq!(cut("[1, /* two */ 2 /* and */, 3]", 1), "[1, /* two */ /* and */ 3]");
        assert_eq!(cut("[\n  // ours\n  1\n]", 0), "[\n  // ours\n]");
        assert_eq!(cut("[ 1, ]", 0), "[]");
    }

    #[test]
    fn values_are_written_as_the_file_is() {
        let value = JsonNode::object([
            ("command", JsonNode::text("a\"b")),
            ("args", JsonNode::List(vec![JsonNode::text("mcp"), JsonNode::Yes])),
            ("more", JsonNode::List(vec![JsonNode::object([("n", JsonNode::Number(2))])])),
        ]);
        let in_lines = "{\n\t\"x\": 1,\n\t\"k\": {\n\t\t\"command\": \"a\\\"b\",\n\t\t\"args\": [\"mcp\", true],\n\t\t\"more\": [{ \"n\": 2 }]\n\t}\n}";
        let text = "{\n\t\"x\": 1\n}";
        assert_eq!(container(text).with_member(text, "k", &value), in_lines);
        let line = r#"[1, { "command": "a\"b", "args": ["mcp", true], "more": [{ "n": 2 }] }]"#;
        assert_eq!(container("[1]").with_element("[1]", &value), line);
    }

    #[test]
    fn a_syntax_error_names_its_line() {
        let broken = |text: &str| parse(text).map(|_| ()).unwrap_err();
        assert_eq!(broken("{\n  \"a\": 1\n  \"b\": 2\n}").line, 2);
        assert_eq!(broken("{\n  \"a\": \n}").line, 3);
        assert_eq!(broken("{\"a\": 1").line, 1);
        assert_eq!(broken("{'a': 1}").line, 1);
        assert!(parse("// nothing\n").unwrap().is_none());
    }
}
