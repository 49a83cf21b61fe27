//! Encodings. Any bytes are either text or not, and text keeps exactly these bytes. After an edit, all bytes outside of
//! it are unchanged and the text reads as intended, or the edit is refused with its own cause.

use encoding_rs::{GB18030, SHIFT_JIS, WINDOWS_1252};
use surehand_core::{
    Limits, LineRange, Policy, Present, RelPath, Target, Text,
    edit::lines::LineEdit,
    encoding::Encoding,
    gate::Tracking,
    hash::Anchor,
    plan,
    text::{Unencodable, Unfit},
};

use crate::{
    model::{Endings, number, written},
    source::Source,
};

pub(super) const WORDS: &[&str] =
    &["\u{feff}", "é", "日本語の設定", "读取配置文件", "€", "\u{1f600}", "\r\n", "\0", "\u{1b}$B", "ÿþ"];

/// Typical text for each encoding.
const JAPANESE: &[&str] = &["設定ファイルを読み込む", "ここに処理を書く", "ﾊﾝｶｸ", "表示ソ能", "// main", "~\\"];
const CHINESE: &[&str] = &["读取配置文件，然后启动服务器", "结束", "中文注释", "int main()", "€"];
const FRENCH: &[&str] = &["Un café à la crème", "s’il vous plaît", "nom = \"Zoé\"", "plain", "€ – „x“"];
const ANY: &[&str] = &["hi", "é", "日本", "\u{1f600}", "\u{10ffff}", "", "\u{fffd}"];

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let bytes = bytes(&mut source);
    let Ok(text) = Text::new(bytes.clone()) else { return };
    assert_eq!(text.bytes(), bytes, "text has the bytes of the file");
    let full: String = text.full_lines().collect();
    assert_eq!(&text.as_str()[text.body_start()..], full, "lines put together are the file");
    match text.with(text.as_str().to_owned()) {
        Ok(again) => assert_eq!(again.bytes(), bytes, "nothing changed"),
        Err(unfit) => assert!(
            matches!(unfit, Unfit::Unencodable { why: Unencodable::Inexact, .. } | Unfit::NotText(_)),
            "{unfit:?} {:?}",
            text.encoding()
        ),
    }
    edit(&mut source, &text);
}

fn bytes(source: &mut Source<'_>) -> Vec<u8> {
    let kind = source.below(8);
    let words = match kind {
        3 => FRENCH,
        4 => JAPANESE,
        5 => CHINESE,
        6 | 7 => ANY,
        _ => return source.until_zero(200).to_vec(),
    };
    let endings = if Endings::draw(source) == Endings::CrLf { "\r\n" } else { "\n" };
    let lines: Vec<&str> = (0..=source.below(8)).map(|_| source.pick(words)).collect();
    let content = lines.join(endings) + if source.flag() { endings } else { "" };
    match kind {
        3 => WINDOWS_1252.encode(&content).0.into_owned(),
        4 => SHIFT_JIS.encode(&content).0.into_owned(),
        5 => GB18030.encode(&content).0.into_owned(),
        6 => format!("\u{feff}{content}").encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => format!("\u{feff}{content}").encode_utf16().flat_map(u16::to_le_bytes).collect(),
    }
}

fn edit(source: &mut Source<'_>, text: &Text) {
    let Some(last) = text.last_line() else { return };
    let start = source.below(256) * last.index() / 255;
    let end = (start + source.below(3)).min(last.index());
    let new = match source.below(5) {
        0 => source.pick(JAPANESE).to_owned(),
        1 => source.pick(CHINESE).to_owned(),
        2 => source.pick(FRENCH).to_owned(),
        3 => String::from_utf8_lossy(source.until_zero(40)).into_owned(),
        _ => written(source, 3),
    };
    let anchor = |index: usize| Anchor::of(number(index), text.line(number(index)));
    let edit = LineEdit::Replace { at: anchor(start), to: anchor(end), text: new.clone() };
    let (path, limits, policy, present) =
        (RelPath::new("a").expect("a name"), Limits::default(), Policy::default(), Present::Text(text.clone()));
    let target = Target { path: &path, tracking: Tracking::Off, present: &present, policy: &policy, limits: &limits };
    let Ok(planned) = plan::edit_lines(&target, &[edit]) else { return };
    let made = planned.text().expect("a text");
    let read = Text::new(made.bytes().to_vec()).expect("what is written can be read");
    assert_eq!(read.as_str(), made.as_str(), "what is written is read as what was meant");
    check_rims(text, made, start, end);
}

/// The bytes above and below the edited lines are unchanged. An edit at the end includes the ending of the line above.
fn check_rims(text: &Text, made: &Text, start: usize, end: usize) {
    let lines = LineRange::from_indexes(start..end + 1).expect("at least one line");
    let span = text.span(lines);
    let is_last = span.end == text.as_str().len();
    let above = if is_last { &text.as_str()[..text.start_of(start.saturating_sub(1))] } else { &text.as_str()[..span.start] };
    let (above, below) = (encoded(text, above).len(), encoded(text, &text.as_str()[span.end..]).len());
    assert_eq!(made.bytes()[..above], text.bytes()[..above], "the bytes above an edit");
    let (old, new) = (text.bytes(), made.bytes());
    assert_eq!(new[new.len() - below..], old[old.len() - below..], "the bytes below an edit");
}

fn encoded(text: &Text, part: &str) -> Vec<u8> {
    match text.encoding() {
        Encoding::Utf8 => part.as_bytes().to_vec(),
        Encoding::Utf16Le => part.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Encoding::Utf16Be => part.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        Encoding::Legacy(legacy) => legacy.encode(part).0.into_owned(),
    }
}
