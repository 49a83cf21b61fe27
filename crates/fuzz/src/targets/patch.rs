//! Patches. A patch does to the lines of a file exactly what it says. A diff that we show is a patch that produces it.
//! A patch whose lines fit in one place changes that place.

use surehand_core::{
    Content, Limits, Planned, Policy, Present, Refusal, RelPath, Target, Text, View,
    edit::patch::{FilePatch, Patch, PatchRow, parse},
    file_diff::FileDiff,
    gate::Tracking,
    plan::{self, FileAction, PatchStep},
    text::LineEnding,
};

use crate::{
    model::{Endings, Page, line, words_of},
    source::Source,
};

pub(super) const WORDS: &[&str] = &[
    "*** Begin Patch\n",
    "*** End Patch\n",
    "*** Add File: a\n",
    "*** Update File: a\n",
    "*** Update File: b\n",
    "*** Delete File: a\n",
    "*** Move to: c\n",
    "*** End of File\n",
    "@@\n",
    "@@ fn f() {\n",
    "@@ -1,2 +1,2 @@\n",
    "@@ -0,0 +1 @@\n",
    "--- a/a\n+++ b/a\n",
    "--- /dev/null\n",
    "+++ /dev/null\n",
    "diff --git a/a b/a\n",
    "rename from a\nrename to b\n",
    "new file mode 100644\n",
    "deleted file mode 100644\n",
    "index 1..2\n",
    "GIT binary patch\n",
    "\\ No newline at end of file\n",
    "```\n",
    "<<'EOF'\n",
    "EOF\n",
    "+a\n",
    "-a\n",
    " a\n",
    "-}\n",
    " }\n",
    "\r\n",
    "\"a\\303\\251\"",
];

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    match source.below(4) {
        0 => any(&mut source),
        1 => shown_difference(&mut source),
        2 => envelope(&mut source),
        _ => without_newline(&mut source),
    }
}

/// A patch of arbitrary words, on two files.
fn any(source: &mut Source<'_>) {
    let endings = Endings::draw(source);
    let pages = [Page::draw(source, 12, endings), Page::draw(source, 4, endings)];
    let words = String::from_utf8_lossy(source.rest()).into_owned();
    let Ok(patch) = parse(&words) else { return };
    let rows = |file: &FilePatch<'_>| match file {
        FilePatch::Update { chunks, .. } => chunks.iter().map(|chunk| chunk.rows.len()).sum(),
        FilePatch::Add { content, .. } => content.len(),
        FilePatch::Delete { .. } => 0,
    };
    assert!(patch.files.iter().map(rows).sum::<usize>() <= words.len(), "a patch has no more lines than it was given");
    let Ok(plans) = apply(&patch, &pages.each_ref().map(Page::text)) else { return };
    for (name, planned) in &plans {
        check_lines(&patch, name, planned);
    }
}

/// For each file that is updated under its own name: the old lines, without the removed and with the added ones, are
/// the new lines.
fn check_lines(patch: &Patch<'_>, name: &RelPath, planned: &Planned) {
    let (FileAction::Write { content, .. }, Some(Content::Text(before)), None) =
        (planned.act(), planned.base(), planned.origin())
    else {
        return;
    };
    let after = content.text().expect("a patch writes text");
    let mut expected: Vec<String> = words_of(before).into_iter().map(str::to_owned).collect();
    for file in patch.files.iter().filter(|file| RelPath::new(file.path()).is_ok_and(|path| path == *name)) {
        let FilePatch::Update { chunks, .. } = file else { return };
        for row in chunks.iter().flat_map(|chunk| &chunk.rows) {
            match row {
                PatchRow::Keep(_) => {}
                PatchRow::Add(line) => expected.push(line.trim_end_matches('\r').to_owned()),
                PatchRow::Remove(line) => {
                    let line = line.trim_end_matches('\r');
                    let at = expected.iter().position(|known| known == line).expect("what a patch removes was there");
                    expected.swap_remove(at);
                }
            }
        }
    }
    let mut found: Vec<&str> = words_of(after);
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "the lines of a patched file");
    check_kept(before, after, planned);
}

/// The bytes of lines outside the hunks are unchanged.
fn check_kept(before: &Text, after: &Text, planned: &Planned) {
    for (run, shift) in planned.map().kept() {
        for index in run {
            let there = (index as i64 + shift) as usize;
            let (old, new) = (before.full_line(crate::model::number(index)), after.full_line(crate::model::number(there)));
            assert_eq!(old, new, "line {} of a patched file", index + 1);
        }
    }
}

/// A diff as we show it is a patch that produces the change.
fn shown_difference(source: &mut Source<'_>) {
    let endings = source.pick(&[Endings::Lf, Endings::CrLf]);
    let before = Page::draw(source, 30, endings);
    let after = before.changed(source);
    check_difference(&before, &after);
    let other = Page::draw(source, 12, endings);
    check_difference(&before, &other);
}

fn check_difference(before: &Page, after: &Page) {
    // A patch cannot say which lone carriage returns belong to an ending.
    if before == after || before.content() == after.content() || before.content().is_empty() {
        return;
    }
    let (old, new) = (before.text(), after.text());
    if words_of(&old) == words_of(&new) && is_open(&old) == is_open(&new) {
        // Only endings differ, which a patch cannot express.
        return;
    }
    let path = RelPath::new("a").expect("a name");
    let shown =
        FileDiff::between((&path, Some(&Content::Text(old.clone()))), (&path, Some(&Content::Text(new.clone())))).to_string();
    let patch = parse(&shown).unwrap_or_else(|bad| panic!("{bad:?}\n{shown}"));
    let plans = apply(&patch, &[old.clone(), old.clone()]).unwrap_or_else(|no| panic!("{}\n{shown}", no));
    let made = plans[0].1.text().expect("a text");
    assert_eq!(words_of(made), words_of(&new), "{shown}");
    assert_eq!(is_open(made), is_open(&new), "the last newline\n{shown}");
    if !old.has_crlf() && !new.has_crlf() {
        assert_eq!(made.as_str(), new.as_str(), "{shown}");
    }
}

/// Whether the last line has no ending.
fn is_open(text: &Text) -> bool {
    text.last_line().is_some_and(|last| text.ending(last) == LineEnding::None)
}

/// An envelope patch from lines of a file with context: it changes these lines or is refused.
fn envelope(source: &mut Source<'_>) {
    let endings = Endings::draw(source);
    let page = Page::draw(source, 16, endings);
    let Some(start) = page.lines.len().checked_sub(1).map(|last| source.below(last + 1)) else { return };
    let end = (start + source.below(3)).min(page.lines.len());
    let new: Vec<String> = (0..source.below(4)).map(|_| line(source)).collect();
    let (above, below) = (start.saturating_sub(source.below(4)), (end + source.below(4)).min(page.lines.len()));
    if above == below {
        return;
    }
    let row = |sign: char, line: &str| format!("{sign}{line}\n");
    let words = page.words();
    let rows: String = words[above..start]
        .iter()
        .map(|line| row(' ', line))
        .chain(words[start..end].iter().map(|line| row('-', line)))
        .chain(new.iter().map(|line| row('+', line)))
        .chain(words[end..below].iter().map(|line| row(' ', line)))
        .collect();
    let shown = format!("*** Begin Patch\n*** Update File: a\n@@\n{rows}*** End Patch\n");
    let patch = parse(&shown).unwrap_or_else(|bad| panic!("{bad:?}\n{shown}"));
    let text = page.text();
    let Ok(plans) = apply(&patch, &[text.clone(), text.clone()]) else { return };
    let mut expected = words[..start].to_vec();
    expected.extend(new.iter().map(String::as_str));
    expected.extend(&words[end..]);
    assert_eq!(words_of(plans[0].1.text().expect("a text")), expected, "{shown}");
}

/// The patch adds or removes the last newline, whatever the encoding of the file is.
fn without_newline(source: &mut Source<'_>) {
    let page = Page::draw(source, 5, Endings::Lf);
    let utf16: Vec<u8> = format!("\u{feff}{}", page.content()).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let text = Text::new(utf16).expect("UTF-16 is text");
    let Some(last) = text.last_line() else { return };
    let old = text.line(last).to_owned();
    let mark = "\\ No newline at end of file\n";
    let (before, after) = if is_open(&text) { (mark, "") } else { ("", mark) };
    let shown = format!("--- a/a\n+++ b/a\n@@ -{last},1 +{last},1 @@\n-{old}\n{before}+new\n{after}");
    let Ok(patch) = parse(&shown) else { return };
    let Ok(plans) = apply(&patch, &[text.clone(), text.clone()]) else { return };
    let made = plans[0].1.text().expect("a text");
    assert_ne!(made.as_str().ends_with('\n'), text.as_str().ends_with('\n'), "{shown}");
}

/// Applies a patch to two files that were seen completely: the first is `a`, the second `b`. No other file exists.
fn apply(patch: &Patch<'_>, texts: &[Text; 2]) -> Result<Vec<(RelPath, Planned)>, Refusal> {
    let mut paths: Vec<RelPath> = ["a", "b"].map(|name| RelPath::new(name).expect("a name")).to_vec();
    let mut find = |name: &str| {
        let path = RelPath::new(name).ok()?;
        Some(paths.iter().position(|known| *known == path).unwrap_or_else(|| {
            paths.push(path);
            paths.len() - 1
        }))
    };
    let mut steps = Vec::new();
    for file in &patch.files {
        let bad = || Refusal::of_call(surehand_core::Cause::NoSuchFile);
        let target = find(file.path()).ok_or_else(bad)?;
        let to = match file {
            FilePatch::Update { move_to: Some(to), .. } => Some(find(to).ok_or_else(bad)?),
            _ => None,
        };
        steps.push(PatchStep { file, target, to });
    }
    let (policy, limits) = (Policy::default(), Limits::default());
    let views = texts.each_ref().map(View::whole);
    let presents: Vec<Present> =
        (0..paths.len()).map(|index| texts.get(index).map_or(Present::Absent, |text| Present::Text(text.clone()))).collect();
    let targets: Vec<Target<'_>> = (0..paths.len())
        .map(|index| {
            let tracking = match (views.get(index), texts.get(index)) {
                (Some(view), text) => Tracking::Seen { view, text, provenance: None },
                _ => Tracking::Unseen,
            };
            Target { path: &paths[index], tracking, present: &presents[index], policy: &policy, limits: &limits }
        })
        .collect();
    let plans = plan::apply_patch(&targets, &steps);
    if let Err(no) = &plans {
        assert!(no.to_string().len() < 40_000, "a refusal is bounded");
    }
    Ok(plans?.into_iter().map(|(target, planned)| (paths[target].clone(), planned)).collect())
}
